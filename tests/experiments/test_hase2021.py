"""Numbers of `experiments/hase2021` on cases with a known answer."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import pertinent
from tests.miniature import scripts, write_frame


@pytest.fixture
def load():
    with scripts("experiments/hase2021") as found:
        yield found


def searched(probability, logs):
    """A search of four features, one of which is kept at each sparsity but the last, where two are."""
    trajectory = {str(k): log for k, log in logs.items()}
    return SimpleNamespace(
        prediction=SimpleNamespace(values=np.array([1 - probability, probability])),
        target=1,
        mask=lambda share: np.arange(4) < (2 if share == 0.5 else 1),
        details={"trajectory": trajectory},
    )


def test_course_of_a_search(load):
    """What is lost to the whole input, after so many evaluations, averaged over sparsities."""
    own = load("explain")
    e = searched(0.9, {1: [(5, 0.1), (30, 0.5)], 2: [(5, 0.3), (100, 0.7)]})
    found = dict(zip(own.GRID, own.course([e])[0], strict=True))
    assert found[10] == pytest.approx((3 * 0.8 + 0.6) / 4)
    assert found[50] == pytest.approx((3 * 0.4 + 0.6) / 4)
    assert found[1000] == pytest.approx((3 * 0.4 + 0.2) / 4)
    late = searched(0.9, {1: [(20, 0.1)], 2: [(5, 0.3)]})
    assert own.course([late])[0][0] is None  # one sparsity has nothing yet


def test_when_a_search_has_caught_up(load):
    own = load("own_search")
    e = searched(0.9, {1: [(5, 0.1), (30, 0.5)], 2: [(5, 0.3), (100, 0.7)]})
    assert own.reached([e]).tolist() == [[0.5, 0.5, 0.5, 0.7]]
    wanted = np.array([[0.1, 0.4, 0.6, 0.7]])
    np.testing.assert_array_equal(own.caught_up([e], wanted, 1), [[5, 30, np.nan, 100]])
    np.testing.assert_array_equal(own.caught_up([e], np.full((1, 4), 0.2), -1), [[5, 5, 5, np.nan]])


def test_cells_of_seeds(load, tmp_path):
    """(seeds, inputs), in points, the mean over sparsities; a seed that was not measured is NaN."""
    own = load("collect")
    for seed, methods in ((0, ("lime", "gradient")), (1, ("lime",))):
        rows = [
            {
                "method": method,
                "budget": None,
                "metric": "sufficiency",
                "values": {"probability": [[0.1, 0.3], [0.5, 0.7]], "weight-of-evidence": [[1, 2], [3, 4]]},
            }
            for method in methods
        ]
        (tmp_path / f"sst2-standard-{seed}-sufficiency.json").write_text(json.dumps({"results": rows}))
    results = own.Results(tmp_path)
    key = own.Key("sst2", False, "standard", "lime", None, "sufficiency")
    np.testing.assert_allclose(results.values(key), [[20, 60], [20, 60]])
    np.testing.assert_allclose(results.values(key, "weight-of-evidence"), [[1.5, 3.5]] * 2)
    other = results.values(own.Key("sst2", False, "standard", "gradient", None, "sufficiency"))
    assert np.isnan(other[1]).all() and len(own.measured_seeds(other)) == 1
    assert own.difference(results.values(key), other).mean == 0.0
    assert results.values(own.Key("sst2", True, "standard", "lime", None, "sufficiency")) is None


def test_the_best_of_a_column(load):
    """Sufficiency is better if lower; a lead that is not clear, or too small to be seen, is none."""
    tables = load("tables")
    low, high = np.full((2, 30), 1.0), np.full((2, 30), 2.0)
    assert tables._clearly_best({"a": low, "b": high}, "sufficiency") == "a"
    assert tables._clearly_best({"a": low, "b": high}, "comprehensiveness") == "b"
    assert tables._clearly_best({"a": low, "b": low + 0.001}, "sufficiency") is None
    assert tables.versus(low, high, "sufficiency").startswith("1.00 points better")
    assert tables.versus(low, high, "comprehensiveness").startswith("1.00 points worse")


def test_budgets(load):
    """Salience methods have as many passes as a search, both ways of a gradient counted."""
    explain, methods = load("explain"), load("methods")
    settings = methods.salience(1000)
    assert settings["integrated-gradients"]["points"] * 2 + 4 == settings["lime"]["samples"] + 4 == 1000
    runs = explain.planned(methods.SEARCHES, "sufficiency", 1000, shortest=False)
    budgets = {}
    for run in runs:
        budgets.setdefault(run.method, set()).add(run.budget)
    assert budgets["thompson-search"] == {250, 1000}
    assert budgets["ordered-search"] == {250, 1000}
    assert budgets["parallel-local-search"] == {1000}


def logistic(weights):
    """A model of table rows whose log-odds are a weighted sum; removed columns become 0."""

    def classify(rows):
        p = 1 / (1 + np.exp(-np.asarray(rows, dtype=float) @ np.array(weights, dtype=float)))
        return np.column_stack([1 - p, p])

    return pertinent.wrap(classify, kind="table", background=np.zeros((1, len(weights))))


def test_metrics_on_both_scales(load):
    """Of log-odds 3 and 1: kept alone, the first loses 1 of 4 and its probability; removed, 3 of 4."""
    own = load("explain")
    model = logistic([3, 1])
    options = {"sparsity": own.SPARSITIES, "removal": "mean", "progress": False}
    found = pertinent.explain(model, np.ones((1, 2)), "leave-one-out", **options)
    kept, removed = (own.measured(found, model, name) for name in ("sufficiency", "comprehensiveness"))
    share = 1 / (1 + np.exp(-np.array([4.0, 3.0, 1.0])))
    assert kept["weight-of-evidence"] == [pytest.approx([1.0] * 4)]
    assert removed["weight-of-evidence"] == [pytest.approx([3.0] * 4)]
    assert kept["probability"] == [pytest.approx([share[0] - share[1]] * 4, abs=1e-6)]
    assert removed["probability"] == [pytest.approx([share[0] - share[2]] * 4, abs=1e-6)]


def test_what_a_search_had_reached(load, tmp_path):
    own = load("collect")
    course = [[None if n < 50 else n / 1000 for n in own.GRID]]
    row = {"method": "random-search", "budget": 1000, "metric": "sufficiency", "course": course}
    row["values"] = {"probability": [[0.5]]}
    (tmp_path / "snli-attention-mask-0-sufficiency.json").write_text(json.dumps({"results": [row]}))
    results = own.Results(tmp_path)
    (key,) = results.cells("snli")
    assert results.after(key, 250).tolist() == [[25.0]]
    assert np.isnan(results.after(key, 10)).all()


def test_means_are_shown_with_half_of_their_interval(load):
    own = load("collect")
    assert own.shown(SimpleNamespace(mean=2.0, low=1.5, high=3.0)) == "2.00 (0.75)"
    found = own.interval(np.array([[1.0, 1.0], [3.0, 3.0], [np.nan, np.nan]]))
    assert (found.mean, found.low, found.high) == pytest.approx((2.0, 1.0, 3.0))


def test_beside_the_best_of_others(load):
    tables = load("tables")
    values = {name: np.full((2, 30), level) for name, level in (("a", 1.0), ("b", 2.0), ("c", 4.0))}
    assert tables.ahead(values, "sufficiency", "c", "abx").startswith("c is 3.00 points worse")
    assert tables.ahead(values, "sufficiency", "c", "abx").endswith("than a")
    assert tables.ahead(values, "comprehensiveness", "c", "abc").endswith("than b")
    values["b"][1] = np.nan
    assert tables.few_seeds(values["b"]) == " [1]" and tables.few_seeds(values["a"]) == ""
    assert tables.run_of("lime") == ("lime", None)
    assert tables.run_of("thompson-search") == ("thompson-search", 1000)
    assert tables.run_of("thompson-search at 250") == ("thompson-search", 250)


def test_gaps_between_removals(load):
    found = {("CT", removal, 0.5): np.full((2, 9), share) for removal, share in (("a", 70.0), ("b", 68.5))}
    assert load("figures")._gap(found, "CT", "a", "b", 0.5).startswith("b by 1.50")


def test_times_beside_the_paper(load, tmp_path):
    rows = [
        {"method": name, "points": 500, "paper hours": hours, "seconds per 500": 36.0, "times faster": times}
        for name, hours, times in (("lime", 1.0, 100.0), ("gradient", 0.99, 99.0), ("thompson", None, None))
    ]
    path = tmp_path / "speed.json"
    path.write_text(json.dumps({"device": "GPU", "rows": rows}))
    lines = load("pages").speed_page([path]).splitlines()[-3:]
    assert lines[0] == "| lime | 500 | 3,600 | 36.0 | 100× | yes |"
    assert lines[1].endswith("| 99× | NO |") and lines[2].endswith("| – | 36.0 | – | – |")


def test_the_best_after_a_reduced_budget(load):
    assert load("own_search")._after([[10, 0.2], [250, 0.4], [251, 0.9]]) == 0.4


def test_accuracies_beside_the_papers(load, tmp_path):
    """Two seeds of four points: counterfactual training costs one point in four."""
    for training, right in (("standard", [1, 1, 1, 1]), ("attention-mask", [1, 1, 1, 0])):
        for seed in range(2):
            path = tmp_path / f"snli-{training}-{seed}.train.json"
            path.write_text(json.dumps({"right": right}))
    (line,) = [
        each for each in load("tables").accuracy_table(tmp_path).splitlines() if each.startswith("| SNLI")
    ]
    cells = line.strip("| ").split(" | ")
    assert cells[1:3] == ["85.84 (0.69)", "85.08 (0.71)"]
    assert cells[3].startswith("100.00") and cells[4].startswith("75.00") and cells[5].startswith("-25.00")


def test_findings_of_table_1(load):
    """Counterfactual-trained models are 2 points higher, which is worse for sufficiency."""
    own = load("tables")
    levels = {"parallel-local-search": 1.0, "random-search": 3.0, "lime": 2.0, "gradient": 9.0}
    levels["thompson-search at 250"] = 0.5

    def cell(method, metric, training):
        return np.full((2, 20), levels[method] + 2 * (training != "standard")) if method in levels else None

    page = own.findings(cell)
    assert "Sufficiency, CT: parallel-local-search is 1.00 points better" in page
    assert "than lime; parallel-local-search is 2.00 points better" in page
    assert (
        "than random-search; lime is 7.00 points better" in page
        and "than gradient; thompson-search at 250 is 0.50" in page
    )
    assert "Sufficiency of CT models beside Standard's: 2.00 points worse" in page
    assert "Comprehensiveness of CT models beside Standard's: 2.00 points better" in page


def test_rows_of_more_texts_are_joined(load):
    """Two texts and one more: lists go on, evaluations are a mean over texts, seconds a sum."""
    own = load("explain")
    names = ("values", "course", "evaluations", "seconds", "method")
    one = dict(zip(names, ({"probability": [[0.1], [0.2]]}, [[1], [2]], 10.0, 3.0, "lime"), strict=True))
    more = dict(zip(names, ({"probability": [[0.3]]}, [[3]], 40.0, 1.0, "lime"), strict=True))
    both = own.joined(one, more)
    assert both["values"] == {"probability": [[0.1], [0.2], [0.3]]} and both["course"] == [[1], [2], [3]]
    assert (both["evaluations"], both["seconds"], both["method"]) == (20.0, 4.0, "lime")
    assert own.joined(one | {"course": None}, more)["course"] is None


def test_texts_that_all_have_count(load, tmp_path):
    """A stopped run: one method explained three texts, the other two; another set has seeds of its own."""
    own = load("collect")

    def write(name, **methods):
        rows = [
            {"method": method, "budget": None, "metric": "sufficiency", "values": {"probability": values}}
            for method, values in methods.items()
        ]
        (tmp_path / f"{name}-sufficiency.json").write_text(json.dumps({"results": rows}))

    write("fever-standard-0", lime=[[0.1], [0.2], [0.3]], gradient=[[0.4], [0.5]])
    write("boolq-standard-1", lime=[[0.7]])
    write("fever-3layers-standard-0", lime=[[0.9], [0.8], [0.7]])
    results = own.Results(tmp_path)

    def key(which, layers=None):
        return own.Key(which, False, "standard", "lime", None, "sufficiency", layers)

    np.testing.assert_allclose(results.values(key("fever")), [[10, 20]])
    assert own.difference(np.array([[3.0, 4.0, 9.0]]), results.values(key("fever"))).mean == -11.5
    np.testing.assert_allclose(results.values(key("boolq")), [[70]])
    np.testing.assert_allclose(results.values(key("fever", 3)), [[90, 80, 70]])
    assert [each.layers for each in results.cells("fever", layers=3)] == [3]
    assert {each.layers for each in results.cells("fever")} == {None}


def test_which_is_preferable(load):
    """Of two sets, searches are clearly better on one, LIME on the other; PLS and random search are level."""
    own = load("tables")
    base = np.random.default_rng(0).normal(size=(1, 40))
    assert own.clear_wins(base, base + 1, "sufficiency") == 1
    assert own.clear_wins(base, base + 1, "comprehensiveness") == -1
    assert own.clear_wins(base, base, "sufficiency") == 0
    assert own.counted([1, 1, 0, -1], "a", "b") == "a is preferable in 2 of 4 comparisons, b in 1"
    levels = {"snli": {"lime": 5.0}, "fever": {"lime": -5.0}, "boolq": {}}

    def cell(which, method, metric, training):
        found = levels[which] | dict.fromkeys(own.COMPARED, 0.0)
        return own.SIGN[metric] * -1 * (base + found[method]) if method in found else None

    said = own.counts(cell, levels).splitlines()
    assert said == [
        "- the best search is preferable in 4 of 8 comparisons, LIME in 4.",
        "- PLS is preferable in 4 of 8 comparisons, LIME in 4.",
        "- PLS is preferable in 0 of 8 comparisons, random search in 0.",
    ]


def test_what_was_not_measured_again_stays(load):
    own = load("pages")
    old = (
        "# Old\n\n## SST-2: 9 points\n\nold\n\n## FEVER\n\nold\n\n## Which\n\nold\n\n## FEVER before\n\nold\n"
    )
    new = "# New\n\n## FEVER: 3 points\n\nnew\n\n## BoolQ\n\nnew\n\n## Which\n\nnew\n"
    page = own.kept(new, old)
    assert (
        page.count("old") == 2 and page.count("new") == 3 and page.startswith("# New\n\n## SST-2: 9 points")
    )
    assert [line for line in page.splitlines() if line.startswith("## ")][1:] == [
        "## FEVER: 3 points",
        "## BoolQ",
        "## Which",
        "## FEVER before",
    ]
    assert own.kept(new, "") == new
    head = "| set | a |\n| --- | --- |\n"
    rows = own.kept_rows(f"# T\n\n{head}| FEVER | 2 |\n", f"# T\n\n{head}| SST-2 | 1 |\n| FEVER | 1 |\n")
    assert rows == f"# T\n\n{head}| SST-2 | 1 |\n| FEVER | 2 |\n"


def test_sizes(load):
    """Words as tokens: documents of 3 and 1 of them, queries of 1 and 2; both sentences of a pair count."""
    own = load("sizes")

    def length(text):
        return len(text.split())

    asked = [{"query": "a", "document": "b c d"}, {"query": "a b", "document": "c"}]
    assert own.size(asked, length) == (2, 2.0, 1.5)
    assert own.size([{"premise": "a b", "hypothesis": "c"}], length) == (1, 3.0, None)
    assert own.shown((1200, 2.0, None)) == ["1,200", "2.0", "–"] and own.shown(None) == ["–"] * 3


def test_models_start_where_they_should(load, tmp_path):
    """FEVER from a model of sentence pairs, which is trained once; the second encoder has fewer layers."""
    own = load("run")
    places = {name: tmp_path / name for name in ("data", "encoder", "work", "results")}
    sets = {"sets": ["fever", "sst2"], "second_sets": ["fever"], "removal_sets": ["sst2"], "seeds": [4]}
    wanted = SimpleNamespace(**places, **sets, standard_only=True)
    jobs = {job.name: job for job in own.training(wanted)}
    assert list(jobs) == [
        "nli-standard-0.train",
        "fever-standard-4.train",
        "fever-attention-mask-4.train",
        "sst2-standard-4.train",
        "sst2-attention-mask-4.train",
        "fever-3layers-attention-mask-4.train",
        "filler.train",
        "sst2-10000-standard-4.train",
        "sst2-10000-filler-standard-4.train",
    ]
    assert jobs["fever-standard-4.train"].models == ("nli-standard-0",)
    assert jobs["sst2-standard-4.train"].models == ()
    assert jobs["sst2-10000-filler-standard-4.train"].models == ("filler",)
    command = jobs["fever-3layers-attention-mask-4.train"].command
    assert command[command.index("--layers") + 1] == 3
    assert command[command.index("--encoder") + 1] == tmp_path / "work" / "nli-standard-0"


def test_models_that_start_from_each_other(load, tmp_path):
    """BoolQ from FEVER's standard model of the same seed, and that from sentence pairs; each trained once."""
    own = load("run")
    places = {name: tmp_path / name for name in ("data", "encoder", "work", "results")}
    none = {"second_sets": [], "removal_sets": [], "seeds": [4], "standard_only": True}
    jobs = own.training(SimpleNamespace(**places, **none, sets=["boolq", "fever"]))
    assert [job.name.removesuffix(".train") for job in jobs] == [
        "nli-standard-0",
        "fever-standard-4",
        "boolq-standard-4",
        "boolq-attention-mask-4",
        "fever-attention-mask-4",
    ]
    starts = [job.models for job in jobs]
    assert starts == [(), ("nli-standard-0",), *[("fever-standard-4",)] * 2, ("nli-standard-0",)]


def test_documents_near_their_evidence(load, tmp_path):
    own = load("data")
    text = "".join(chr(ord("a") + i) for i in range(20))
    for window in (4, 9, 15):
        found = own.near(text, [[8, 12], [0, 2]], window, "characters")
        assert len(found) == window and "ijkl" in found and found in text
    assert own.near(text, [[8, 12]], 2, "characters") == "ij"
    assert own.near(text, [[18, 20]], 30, "characters") == text
    assert own.near(text, [], 5, "characters") == "abcde"
    assert own.near("one two three four", [[2, 3]], 5, "words") == "three"
    frame = {"query": ["q"], "document": ["one two three four"], "label": [1]}
    write_frame(tmp_path / "b.parquet", **frame, evidence_spans=[[[1, 2]]])
    spec = own.DataSet("B", (), {"query": "query", "document": "document"}, {}, 1, 1, 9, window=3)
    assert own._rows(tmp_path / "b", spec) == [{"query": "q", "document": "two", "label": 1}]


def test_packed_rows_are_those_of_the_file(load, tmp_path):
    own = load("data")
    spec = own.SETS["fever"]
    rows = [{"query": f"q{i}", "document": f"d{i % 2}", "label": i % 2} for i in range(6)]
    write_frame(tmp_path / "f.parquet", **{name: [row[name] for row in rows] for name in rows[0]})
    own.pack(tmp_path / "f", tmp_path / "out" / "f.jsonl.xz", spec)
    found = own._rows(tmp_path / "out" / "f", spec)
    assert sorted(row["query"] for row in found) == [f"q{i}" for i in range(6)]
    assert [row["document"] for row in found] == ["d0"] * 3 + ["d1"] * 3
    own.pack(tmp_path / "f", tmp_path / "out" / "f.jsonl.xz", spec, 4)
    assert len(own._rows(tmp_path / "out" / "f", spec)) == 4


def test_accuracies_by_removal(load, tmp_path, monkeypatch):
    """Models that start from the filler are read apart from those that do not."""
    own = load("figures")
    rows = [
        SimpleNamespace(removal="mask-token", share=share, right=r) for share in (0.0, 0.5) for r in (1, 0)
    ]
    for name in ("snli-10000-standard-0", "snli-10000-standard-1", "snli-10000-filler-standard-0"):
        (tmp_path / f"removals-{name}.json").touch()
    monkeypatch.setattr(own.RemovalCheck, "read", lambda _: SimpleNamespace(rows=rows))
    assert {key: value.tolist() for key, value in own.accuracies(tmp_path, "snli").items()} == {
        ("Standard", "mask-token", share): [[100.0, 0.0]] * 2 for share in (0.0, 0.5)
    }
    found = own.accuracies(tmp_path, "snli", "filler")
    assert found["Standard", "mask-token", 0.5].shape == (1, 2)
    better = {("Standard", "mask-token", 0.5): found["Standard", "mask-token", 0.5] * 0 + 60}
    worse = {("Standard", "mask-token", 0.5): found["Standard", "mask-token", 0.5] * 0 + 50}
    assert own._change(better, worse, "mask-token", 0.5).startswith("+10.0 ")


def test_seeds_that_some_lack_do_not_decide_the_order(load):
    """The second seed is 10 points higher; `a` was measured with it alone, and is worse there than `b`."""
    own = load("tables")
    nothing, zeros = np.full(30, np.nan), np.zeros(30)
    values = {"a": np.array([nothing, zeros + 9.0]), "b": np.array([zeros, zeros + 10.0])}
    assert own.ranked(values, "comprehensiveness") == ["b", "a"]
    assert own.ranked(values, "sufficiency") == ["a", "b"]
    assert own._clearly_best(values, "comprehensiveness") == "b"
    assert own.ahead(values | {"c": zeros + np.zeros((2, 1))}, "comprehensiveness", "c", "ab").endswith("b")
    apart = {"a": np.array([nothing, zeros + 1]), "b": np.array([zeros, nothing])}
    assert own.ranked(apart, "comprehensiveness") == ["a", "b"]


def test_rows_of_a_table(load):
    """The paper's numbers, then ours; the best of each column in bold, what was not measured as a dash."""
    own = load("tables")
    levels = {"lime": 2.0, "random-search": 1.0}

    def cell(method, metric, training):
        if training != "standard" or method not in levels:
            return None
        return np.full((1, 20), levels[method])

    paper = {"lime": ((1.0, 0.1), (2.0, 0.2), (3.0, 0.3), (4.0, 0.4))}
    theirs = ["1.00 (0.10)", "2.00 (0.20)", "3.00 (0.30)", "4.00 (0.40)"]
    assert own.metric_rows(cell, paper, ["gradient", "lime", "random-search"]) == [
        ["lime", *theirs, "2.00 (0.00)", "–", "**2.00 (0.00)**", "–"],
        ["random-search", *["–"] * 4, "**1.00 (0.00)**", "–", "1.00 (0.00)", "–"],
    ]


def write_record(folder, name, *rows, seed=0):
    """One model's results; a row is (method, budget, metric, probability, log-odds, at 250 evaluations)."""
    for metric in {row[2] for row in rows}:
        found = [
            {
                "method": method,
                "budget": budget,
                "metric": of,
                "values": {"probability": [[p]] * 20, "weight-of-evidence": [[odds]] * 20},
                "course": after and [[None] * 7 + [after] * 9] * 20,
            }
            for method, budget, of, p, odds, after in rows
            if of == metric
        ]
        folder.mkdir(exist_ok=True)
        (folder / f"{name}-{seed}-{metric}.json").write_text(json.dumps({"results": found}))


def test_what_a_reduced_budget_has_reached(load, tmp_path):
    """PLS and random search after 250 of 1000; others in a run of 250; LIME as it is; taylor not at all."""
    own, collect = load("tables"), load("collect")
    rows = [("lime", None, 0.1), ("parallel-local-search", 1000, 0.2), ("random-search", 1000, 0.3)]
    rows += [("ordered-search", 250, 0.4), ("ordered-search", 1000, 0.9), ("thompson-search", 250, 0.5)]
    rows += [("taylor-search", 1000, 0.6)]
    full = [(m, b, "sufficiency", 0.7, 0.0, after if b else None) for m, b, after in rows]
    write_record(tmp_path, "boolq-standard", *full)
    results = collect.Results(tmp_path)
    assert collect.GRID[7] == 250
    found = {
        row: own.reduced(results, "boolq", row, "sufficiency", "standard")
        for row in (*own.METHODS, own.AT_250)
    }
    means = {row: round(float(values.mean()), 6) for row, values in found.items() if values is not None}
    assert means == {
        "lime": 70.0,
        "parallel-local-search": 20.0,
        "random-search": 30.0,
        "ordered-search": 40.0,
        "thompson-search at 250": 50.0,
    }


def test_sets_beside_a_table_are_counted(load, tmp_path):
    """LIME is ahead on BoolQ, random search on SNLI, of which a later run has results, in all columns."""
    tables, collect = load("tables"), load("collect")
    for place, name, lime, search in (
        (tmp_path, "boolq", 0.1, 0.3),
        (tmp_path / "counted", "snli", 0.3, 0.1),
    ):
        for training in collect.TRAININGS:
            rows = [("lime", None, "sufficiency", lime, 0.0, None)]
            rows += [("random-search", 1000, "sufficiency", 0.0, 0.0, search)]
            rows += [("lime", None, "comprehensiveness", 1 - lime, 0.0, None)]
            rows += [("random-search", 1000, "comprehensiveness", 0.0, 0.0, 1 - search)]
            write_record(place, f"{name}-{training}", *rows)
    page = tables.reduced_table(collect.Results(tmp_path), collect.Results(tmp_path / "counted"))
    assert "\nBoolQ; 20 test points, 1 seed in a later run of SNLI; two metrics and" in page
    assert "- the best search is preferable in 4 of 8 comparisons, LIME in 4.\n" in page
    assert "## BoolQ\n" in page and "## SNLI" not in page
    alone = tables.reduced_table(collect.Results(tmp_path), collect.Results(tmp_path / "none"))
    assert "\nBoolQ; two metrics and" in alone and "in 0 of 4 comparisons, LIME in 4.\n" in alone


def test_log_odds_and_another_encoder(load, tmp_path):
    """Table 7 shows the change in log-odds of the CT model, Table 6 the points of that with three layers."""
    tables, collect = load("tables"), load("collect")
    for name, p in (("multirc-attention-mask", 0.1), ("multirc-3layers-attention-mask", 0.2)):
        rows = [
            ("lime", None, of, p, odds, None) for of, odds in (("sufficiency", -1), ("comprehensiveness", 2))
        ]
        write_record(tmp_path, name, *rows)
    results = collect.Results(tmp_path)
    (line,) = [line for line in tables.evidence_table(results).splitlines() if line.startswith("| lime")]
    assert line == "| lime | -0.33 (0.09) | 1.54 (0.17) | -1.00 (0.00) | 2.00 (0.00) |"
    page = tables.second_table(results)
    assert "## MultiRC: 20 test points, 1 seed\n" in page
    (line,) = [line for line in page.splitlines() if line.startswith("| lime")]
    assert line == "| lime | – | – | 20.00 (0.00) | 20.00 (0.00) |"


def test_accuracies_of_seeds_that_have_both(load, tmp_path):
    """A seed without a CT model counts for the standard accuracy, not for the difference."""
    rights = {"standard-0": [1, 1], "standard-1": [0, 0], "attention-mask-0": [1, 0]}
    for name, right in rights.items():
        (tmp_path / f"boolq-{name}.train.json").write_text(json.dumps({"right": right}))
    own = load("tables")
    standard, trained = own.accuracies_by_training(tmp_path, "boolq")
    np.testing.assert_array_equal(standard, [[100, 100], [0, 0]])
    np.testing.assert_array_equal(trained, [[100, 0], [np.nan, np.nan]])
    assert own.difference(trained, standard).mean == -50
    (line,) = [line for line in own.accuracy_table(tmp_path).splitlines() if line.startswith("| BoolQ")]
    assert "| 50.00 (50.00) | 50.00 (50.00) [1] | -50.00 (" in line and line.endswith("| 2 |")
    assert own.accuracies_by_training(tmp_path, "snli") is None


def test_examples_held_out_are_not_trained_on(load, tmp_path, monkeypatch):
    """Of ten rows in two files, three are the dev set; the order is always the same, and not the files'."""
    own = load("data")
    files = {"train": ("a/one", "a/two"), "test": ("a/one",)}
    spec = own.DataSet("A", ("no", "yes"), {"query": "q"}, files, 1, 1, 9, held_out=3)
    monkeypatch.setitem(own.SETS, "a", spec)
    for file, first in (("one", 0), ("two", 6)):
        numbers = range(first, 6 if first == 0 else 10)
        write_frame(tmp_path / "a" / f"{file}.parquet", q=[str(i) for i in numbers], label=list(numbers))
    train, dev, test = (own.read(tmp_path, "a", split) for split in ("train", "dev", "test"))
    assert (len(train.labels), len(dev.labels), len(test.labels)) == (7, 3, 6)
    assert sorted(train.labels + dev.labels) == list(range(10)) and sorted(test.labels) == list(range(6))
    assert [int(e["query"]) for e in train.examples] == train.labels != sorted(train.labels)
    assert own.read(tmp_path, "a", "train", 2).labels == train.labels[:2]


def test_right_answers(load):
    model = logistic([2, -1])
    rows = [np.array(row, dtype=float) for row in ([1, 0], [0, 1], [1, 1], [-1, 0])]
    own = load("fine_tune")
    found = pertinent.explain(model, rows, "random", progress=False)
    assert [e.target for e in found] == [1, 0, 1, 0]
    own.pertinent = SimpleNamespace(explain=lambda *_, **__: found)
    assert own.correct(model, rows, [1, 1, 1, 0]) == [1, 0, 1, 1]


def test_thompson_search_beside_pls(load, monkeypatch):
    """PLS reaches 0.5 after 250 of 1000 evaluations and 0.6 at the end; ours 0.7, after 20."""
    own = load("own_search")
    pls = searched(0.9, {1: [(5, 0.1), (200, 0.5), (900, 0.6)], 2: [(5, 0.5), (900, 0.6)]})
    ours = searched(0.9, {1: [(5, 0.1), (20, 0.7)], 2: [(20, 0.7)]})
    answers = {"parallel-local-search": [pls, pls], "thompson-search": [ours, ours]}
    monkeypatch.setattr(own, "pertinent", SimpleNamespace(explain=lambda _, __, name, **___: answers[name]))
    row = own.compared(None, ["", ""], "sufficiency")
    assert row[:4] == ["sufficiency", "60.00", "50.00", "70.00"]
    assert row[4].startswith("+10.00 [10.00, 10.00]") and row[5].startswith("+20.00")
    assert row[6:] == ["100% / 0% / 0%", "100%, median 20"]
    assert own.compared(None, ["", ""], "comprehensiveness")[6] == "0% / 0% / 100%"


def test_a_run_with_more_texts_goes_on(load, tmp_path):
    own = load("run")
    made = tmp_path / "fever-standard-0-sufficiency.json"
    job = own.Job([], made, points=40)
    assert not own.is_made(job)
    for content, whole in (
        ({"finished": False, "wanted": 40}, False),
        ({"finished": True, "wanted": 20}, False),
        ({"finished": True, "wanted": 40}, True),
        ({"loss": 1.0}, True),
    ):
        made.write_text(json.dumps(content))
        assert own.is_made(job) is whole


def test_curves_of_figure_3(load, tmp_path, monkeypatch):
    """From the first number of evaluations at which all texts have a set, to the budget."""
    from matplotlib.figure import Figure

    own, collect = load("figures"), load("collect")
    rows = [("random-search", 1000, of, 0.0, 0.0, 0.2) for of in ("sufficiency", "comprehensiveness")]
    write_record(tmp_path, "boolq-attention-mask", *rows)
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    own._courses(collect.Results(tmp_path), "boolq", tmp_path / "x.png")
    for axis in drawn[0].axes:
        (line,) = axis.lines
        assert line.get_xdata().tolist() == [n for n in collect.GRID if n >= 250]
        np.testing.assert_allclose(line.get_ydata(), 20.0)


def test_in_how_many_columns(load):
    """PLS is clearly ahead of random search on FEVER, level on BoolQ; CT models are 1 point worse."""
    own = load("tables")
    noise = np.random.default_rng(0).normal(size=(1, 40))
    levels = {"fever": {"parallel-local-search": 3.0}, "boolq": {"lime": 2.0, "gradient": 1.0}}

    def cell(which, method, metric, training):
        found = {"parallel-local-search": 0.0, "random-search": 0.0} | levels[which]
        if method not in found:
            return None
        return own.SIGN[metric] * (found[method] - (training != "standard")) + noise

    assert own.tallies(cell, levels).splitlines() == [
        (
            "- parallel-local-search beside the best of the paper's other methods: "
            "better in 4 of 8, clearly in 4; clearly worse in 4."
        ),
        "- parallel-local-search beside random-search: better in 4 of 8, clearly in 4; clearly worse in 0.",
        "- Standard models beside CT, by PLS: better in 4 of 4, clearly in 4; clearly worse in 0.",
        "- lime beside the best other salience method: better in 4 of 4, clearly in 4; clearly worse in 0.",
    ]
