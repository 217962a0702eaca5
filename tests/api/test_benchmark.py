"""A benchmark: what is kept, that only what is new is done, and its description in a file."""

import importlib
import json

import numpy as np
import pytest

import pertinent
from pertinent.cli import main
from pertinent.errors import FileError, SettingError
from pertinent.runs.explanation_steps import REPEATED

TEXTS = [f"not {word} number {i}" for i in range(12) for word in ("good", "bad")]


ASKED = []
"""How many texts there were in each batch."""


class Counting:
    @property
    def rows(self):
        return sum(ASKED)

    def __call__(self, texts):
        importlib.import_module(__name__).ASKED.append(
            len(texts)
        )  # no part of the model, which stays the same
        p = np.array([0.9 if "good" in t else 0.2 if "bad" in t else 0.5 for t in texts])
        return np.stack([1 - p, p], axis=1)


@pytest.fixture
def counting():
    return Counting()


@pytest.fixture
def models(counting):
    return {"words": pertinent.wrap(counting, kind="text", classes=["bad", "good"])}


def test_it_is_what_compare_finds_and_is_kept(models, tmp_path):
    methods = ["leave-one-out", "random"]
    found = pertinent.benchmark({"films": TEXTS}, models, methods, out=tmp_path, seeds=2)
    evaluation = found.evaluations["films", "words"]
    expected = pertinent.compare(models["words"], TEXTS, methods, seeds=2)
    for method in methods:
        assert evaluation.mean(method, "sufficiency") == expected.mean(method, "sufficiency")
    names = {path.name for path in tmp_path.iterdir()}
    pair = "films--words"
    pictures = {f"{pair}--sufficiency.png", f"{pair}--comprehensiveness.png"}
    assert names == {f"{pair}.parquet", "summary.parquet", "table.md", *pictures}
    table = (tmp_path / "table.md").read_text()
    assert "## films, words" in table and "| random − leave-one-out | sufficiency |" in table
    assert "p < 0.001" in table or "p = 0." in table
    import pandas as pd

    summary = pd.read_parquet(tmp_path / "summary.parquet")
    assert len(summary) == 4 and set(summary.method) == set(methods)
    assert (summary.low <= summary["mean"]).all() and summary.evaluations.max() == 5
    assert len(pertinent.read(tmp_path / f"{pair}.parquet")) == 2 * 2 * len(TEXTS)
    assert repr(found) == "<Benchmark of films × words>"
    assert found.plot_pareto("films", "words", "comprehensiveness").axes
    with pytest.raises(SettingError, match="one of"):
        found.plot_pareto("films", "others")


def test_only_what_is_new_is_done(models, counting, tmp_path):
    data = {"films": TEXTS}
    pertinent.benchmark(data, models, ["leave-one-out"], out=tmp_path)
    first = counting.rows
    pertinent.benchmark(data, models, ["leave-one-out"], out=tmp_path)
    again = counting.rows - first
    assert again < first / 4  # a few questions, to see whether the model is still the same
    before = counting.rows
    more = pertinent.benchmark(data, models, ["leave-one-out", "random"], out=tmp_path)
    assert counting.rows - before < first
    assert more.evaluations["films", "words"].methods == ["leave-one-out", "random"]
    before = counting.rows
    pertinent.benchmark({**data, "plays": TEXTS[:4]}, models, ["leave-one-out", "random"], out=tmp_path)
    assert counting.rows - before < first


def test_a_method_that_is_left_out_is_kept_but_not_shown(models, counting, tmp_path):
    data, both = {"films": TEXTS}, ["leave-one-out", "random"]
    first = pertinent.benchmark(data, models, both, out=tmp_path, seeds=2).evaluations["films", "words"]
    before, file = counting.rows, tmp_path / "films--words.parquet"
    content = file.read_bytes()
    one = pertinent.benchmark(data, models, ["random"], out=tmp_path, seeds=2).evaluations["films", "words"]
    assert one.methods == ["random"]
    assert one.mean("random", "sufficiency") == first.mean("random", "sufficiency")
    assert "leave-one-out" not in (tmp_path / "table.md").read_text()
    assert file.read_bytes() == content and counting.rows == before + REPEATED
    other = ["random", "lime:samples=8"]
    found = pertinent.benchmark(data, models, other, out=tmp_path, seeds=2).evaluations["films", "words"]
    assert found.methods == ["random", "lime"]
    assert {e.method for e in pertinent.read(file)} == {"leave-one-out", "random", "lime"}
    before = counting.rows
    again = pertinent.benchmark(data, models, both, out=tmp_path, seeds=2).evaluations["films", "words"]
    assert again.methods == both and counting.rows == before + REPEATED
    for method in both:
        assert again.mean(method, "sufficiency") == first.mean(method, "sufficiency")


def test_other_words_are_another_run(models, tmp_path):
    pertinent.benchmark({"films": TEXTS}, models, ["random", "lime"], out=tmp_path, budget=20)
    with pytest.raises(FileError, match="contains another run, which differs in"):
        pertinent.benchmark({"films": TEXTS}, models, ["random"], out=tmp_path, budget=30)


def test_a_method_cannot_be_left_out_of_a_run_that_is_not_finished(models, tmp_path):
    def stop(progress):
        if progress.done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pertinent.benchmark({"films": TEXTS}, models, ["random", "lime"], out=tmp_path, progress=stop)
    with pytest.raises(
        FileError, match="started with lime as well, and is not finished: also pass it, or choose"
    ):
        pertinent.benchmark({"films": TEXTS}, models, ["random"], out=tmp_path)


@pytest.mark.parametrize(
    ("data", "models", "message"),
    [({}, {"m": len}, "`data` must be at least one"), ({"a": ["x"]}, {}, "`models` must be at least one"),
     ({"../a": ["x"]}, {"m": len}, "names of letters"), ({"a": ["x"]}, {"m/n": len}, "names of letters")],
)  # fmt: skip
def test_names_that_cannot_be_used(data, models, message, tmp_path):
    with pytest.raises(SettingError, match=message):
        pertinent.benchmark(data, models, "random", out=tmp_path)


DESCRIPTION = {
    "data": {"films": {"file": "films.csv", "column": "text", "limit": 6}},
    "models": {"sentiment": "sentiment"},
    "methods": ["leave-one-out", "lime:samples=10"],
    "metrics": ["comprehensiveness:sparsities=.2+.5"],
    "words": {"budget": 30},
}


def test_a_description_in_a_file(tmp_path, capsys):
    (tmp_path / "films.csv").write_text("text,label\n" + "\n".join(f"{text},x" for text in TEXTS))
    (tmp_path / "b.yaml").write_text(json.dumps(DESCRIPTION))
    out = tmp_path / "results"
    assert main(["benchmark", "--file", str(tmp_path / "b.yaml"), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "leave-one-out" in shown and "comprehensiveness" in shown
    assert len(pertinent.read(out / "films--sentiment.parquet")) == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": ["lime"]}, "Unknown field of b.yaml 'method'. Did you mean 'methods'?"),
        ({"data": {"films": {"file": "films.csv", "limt": 1}}}, "'limt'. Did you mean 'limit'?"),
        ({"data": {"films": {"file": "films.csv", 5: 1}}}, "Unknown field of data.films in b.yaml"),
        ({"data": {"films": "films.csv"}}, "data.films"),
        ({"data": ["films.csv"]}, "data"),
        ({"words": {"budgt": 30}}, "Did you mean 'budget'?"),
        ({"words": {"out": "elsewhere"}}, "words"),
        ({"words": {"data": 5}}, "words"),
        ({"words": {"inputs": 5}}, "words"),
        ({"seeds": "many"}, "b.yaml: `seeds` must be a whole number"),
        ({"data": {"films": {"column": "text"}}}, "`data.films.file` is missing"),
        ({"data": {"films": {"file": "nothing.csv"}}}, "nothing.csv"),
        ({"models": {"m": "sentimental"}}, "sentiment"),
        ({"methods": ["limes"]}, "Unknown method 'limes'"),
    ],
)
def test_what_is_wrong_in_a_description_is_said(tmp_path, capsys, change, message):
    (tmp_path / "films.csv").write_text("text\nso good\n")
    (tmp_path / "b.yaml").write_text(json.dumps(DESCRIPTION | change))
    assert main(["benchmark", "--file", str(tmp_path / "b.yaml"), "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_is_no_description(tmp_path, capsys):
    for content in ("- a\n", "{", "a: !!python/object:os.system {}\n"):
        (tmp_path / "b.yaml").write_text(content)
        assert main(["benchmark", "--file", str(tmp_path / "b.yaml"), "--out", str(tmp_path / "out")]) == 2
        assert "b.yaml" in capsys.readouterr().err


def test_methods_and_data_of_ones_own_are_named(tmp_path, capsys, monkeypatch):
    (tmp_path / "own_things.py").write_text(
        "import numpy as np\n"
        "def alone(game):\n"
        "    return game(np.eye(game.n_features)) - game(np.zeros((1, game.n_features)))\n"
        "def films():\n"
        "    return ['so good', 'a bad film', 'not bad at all']\n"
    )
    monkeypatch.chdir(tmp_path)
    own = {
        "data": {"films": {"file": "own_things:films", "limit": 2}},
        "methods": ["own_things:alone", "random"],
    }
    (tmp_path / "b.yaml").write_text(json.dumps(DESCRIPTION | own))
    assert main(["benchmark", "--file", "b.yaml", "--out", "results"]) == 0
    assert "alone" in capsys.readouterr().out
    found = pertinent.read(tmp_path / "results" / "films--sentiment.parquet")
    assert [e.method for e in found] == ["alone", "random"] * 2
    (tmp_path / "b.yaml").write_text(json.dumps(DESCRIPTION | own | {"methods": ["own_things:lone"]}))
    assert main(["benchmark", "--file", "b.yaml", "--out", "others"]) == 2
    assert "Did you mean 'alone'?" in capsys.readouterr().err
