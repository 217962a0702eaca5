"""The command line gives the same numbers as Python."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pertinent
from pertinent.cli.input_files import read_annotations
from pertinent.cli.parser import command_parser
from pertinent.errors import InputError, SettingError

TEXTS = ["not bad at all", "a bad film", "so good", "bad luck and bad food", "good food"]
MODULE = """
import numpy as np
import pertinent

def texts(texts):
    return [[0.9, 0.1] if "bad" in t else [0.2 + len(t) % 3 / 10, 0.8 - len(t) % 3 / 10] for t in texts]

def embed(texts):
    return [[len(t), t.count("a"), 1.0] for t in texts]

def rows(rows):
    p = 1 / (1 + np.exp(-np.asarray(rows)[:, 0] * np.asarray(rows)[:, 1]))
    return np.stack([p, 1 - p], axis=1)

table = pertinent.wrap(rows, kind="table", columns=["a", "b", "c"])
model = pertinent.wrap(texts, kind="text", classes=["bad", "good"])
"""


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    """Run a command in a folder with a module of models and files of inputs; return stdout."""
    (tmp_path / "parity_models.py").write_text(MODULE)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    (tmp_path / "rows.csv").write_text("a,b,c\n1,2,3\n2,1,0\n0.5,3,1\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("COLUMNS", "160")

    def call(*arguments):
        code, out, err = run(*arguments)
        assert code == 0, err
        return out

    yield call
    sys.modules.pop("parity_models", None)


TEXT_MODEL = ["--model", "parity_models:model", "--file", "texts.txt"]
ROW_MODEL = ["--model", "parity_models:table", "--file", "rows.csv"]


def own(name):
    return getattr(__import__("parity_models"), name)


def test_annotations_of_people_come_from_a_file(run, tmp_path):
    run("explain", *TEXT_MODEL, "--method", "leave-one-out", "--metrics", "none", "--out", "e.parquet")
    marked = [["bad"], ["bad"], ["good"], [1, 4], ["good"]]
    (tmp_path / "marked.json").write_text(json.dumps(marked))
    flags = ["--metrics", "precision-at-k:k=1,precision-at-k:k=2", "--annotations", "marked.json"]
    out = run("evaluate", "e.parquet", "--model", "parity_models:model", *flags, "--out", "m.parquet")
    assert "k=1" in out and "k=2" in out
    result = pertinent.read("e.parquet")
    metrics = ["precision-at-k:k=1", "precision-at-k:k=2"]
    expected = pertinent.evaluate(own("model"), result, metrics, annotations=marked)
    assert [e.measures for e in pertinent.read("m.parquet")] == [e.measures for e in expected.explanations]


def test_annotations_of_people_come_from_a_column(run, tmp_path):
    run("explain", *TEXT_MODEL, "--method", "leave-one-out", "--metrics", "none", "--out", "e.parquet")
    marked = [["bad"], ["bad"], ["good"], ["bad"], ["good"]]
    pd.DataFrame({"text": TEXTS, "marks": marked}).to_parquet(tmp_path / "texts.parquet")
    lines = [json.dumps({"id": i, "marks": own}) for i, own in enumerate(marked)]
    (tmp_path / "marks.jsonl").write_text("\n".join(lines))
    evaluated = ["evaluate", "e.parquet", "--model", "parity_models:model", "--metrics", "average-precision"]
    expected = pertinent.evaluate(
        own("model"), pertinent.read("e.parquet"), "average-precision", annotations=marked
    )
    for given in ("texts.parquet:marks", "marks.jsonl:marks"):
        run(*evaluated, "--annotations", given, "--out", "m.parquet")
        result = [e.measures for e in pertinent.read("m.parquet")]
        assert result == [e.measures for e in expected.explanations]
    with pytest.raises(SettingError, match="must name the column of a table"):
        read_annotations("marks.jsonl")
    (tmp_path / "marks.jsonl").write_text("\n".join([lines[0], "no JSON", *lines[2:]]))
    with pytest.raises(InputError, match="2"):
        read_annotations("marks.jsonl:marks")


def test_a_check_is_given_to_explain(run):
    run("check", *TEXT_MODEL, "--draws", "3", "--json", "check.json")
    explained = ["explain", *TEXT_MODEL, "--method", "leave-one-out", "--check", "check.json", "--json", "-"]
    check = pertinent.RemovalCheck.read("check.json")
    assert check.rows == pertinent.check_removal(own("model"), TEXTS, draws=3, progress=False).rows
    result = check.attach(pertinent.explain(own("model"), TEXTS, "leave-one-out", progress=False))
    warnings = [e["warnings"] for e in json.loads(run(*explained))["explanations"]]
    assert warnings == [list(e.warnings) for e in result]


def test_one_method_with_two_settings_and_early_stopping(run):
    methods = "shapley-sampling:samples=20,shapley-sampling:samples=40"
    flags = ["--early-stopping", "stable:top=1,confidence=0.6", "--budget", "500", "--show"]
    out = run("compare", *TEXT_MODEL, "--methods", methods, *flags, "--json", "c.json")
    assert "samples=20" in out and "samples=40" in out
    expected = pertinent.compare(
        own("model"),
        TEXTS,
        methods.split(","),
        budget=500,
        early_stopping=pertinent.EarlyStopping(top=1, confidence=0.6),
        progress=False,
    )
    result = json.loads(Path("c.json").read_text())["explanations"]
    assert [e["details"] for e in result] == [e.details for e in expected.explanations]
    assert np.allclose(
        [e["prediction"] for e in result], [e.prediction.values for e in expected.explanations]
    )


@pytest.mark.parametrize("command", ["stability", "sanity", "sensitivity", "check"])
def test_diagnostics_take_the_flags_for_inputs_and_the_model(command):
    flags = {action.dest for action in command_parser(command)._actions}
    assert {"inputs", "file", "image", "row", "limit", "model", "device", "json", "quiet"} <= flags


@pytest.mark.parametrize("metrics", ["sufficiency,comprehensiveness", "none", "insertion"])
def test_a_file_is_continued_by_the_other(run, metrics):
    """A run that Python began is finished on the command line, and the other way round."""
    flags = ["--method", "leave-one-out", "--metrics", metrics]
    words = {"metrics": None if metrics == "none" else metrics.split(","), "progress": False}

    def broken():
        yield from TEXTS[:3]
        raise OSError("the line is cut")

    with pytest.raises(OSError, match="cut"):
        pertinent.explain(own("model"), broken(), "leave-one-out", out="python.parquet", **words)
    run("explain", *TEXT_MODEL, *flags, "--out", "python.parquet")
    run("explain", *TEXT_MODEL, *flags, "--out", "terminal.parquet")
    found = [
        pertinent.explain(own("model"), TEXTS, "leave-one-out", out=f"{name}.parquet", **words)
        for name in ("python", "terminal")
    ]
    alone = pertinent.explain(own("model"), TEXTS, "leave-one-out", **words)
    for each in found:
        assert [{**e.to_dict(), "seconds": 0} for e in each] == [{**e.to_dict(), "seconds": 0} for e in alone]


def test_the_command_line_measures_by_default(run):
    run("explain", *TEXT_MODEL, "--method", "leave-one-out", "--out", "e.parquet")
    metrics = ["sufficiency", "comprehensiveness"]
    found = pertinent.explain(own("model"), TEXTS, "leave-one-out", metrics=metrics, out="e.parquet")
    assert all(set(e.measures) == set(metrics) for e in found)
