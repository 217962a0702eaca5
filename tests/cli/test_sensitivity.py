"""``pertinent sensitivity`` and ``neighbour-stability``: the table, the plot and the JSON file."""

import json

import pertinent


def test_sensitivity_shows_a_table_and_writes_a_plot_and_a_file(run, tmp_path):
    row = pertinent.load("table").background.values[0].tolist()

    methods = ["--methods", "leave-one-out,random", "--samples", "2", "--plot", "a.png", "--json", "a.json"]
    code, out, _ = run("sensitivity", "--model", "table", "--row", json.dumps(row), *methods)
    assert code == 0
    for part in ("set-sensitivity", "leave-one-out", "random", "a.png", "a.json"):
        assert part in out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    result = pertinent.read(tmp_path / "a.json")
    assert result.methods == ["leave-one-out", "random"]
    assert result.settings == {"radius": 0.1, "norm": "linf", "samples": 2}


def test_neighbour_stability_of_a_file_of_explanations(run, tmp_path):
    model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    pertinent.explain(model, ["so bad", "bad luck", "good"], "leave-one-out").save(tmp_path / "e.parquet")
    options = ["--k", "1", "--semantic", "0", "--stop-words", "so"]
    code, out, err = run("neighbour-stability", "e.parquet", *options, "--json", "a.json")
    assert code == 1
    assert "iou-stability" in out
    assert "input 2: iou-stability: The model makes this decision for no other text" in err
    assert [row.value for row in pertinent.read(tmp_path / "a.json").rows] == [1.0, 1.0]
