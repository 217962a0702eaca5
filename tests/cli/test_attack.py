"""``pertinent attack`` on the command line."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import pertinent
from pertinent.cli import main

ROW = '{"a": 1.0, "b": 0.5, "c": 0.0}'


@pytest.fixture
def module():
    made = torch.nn.Linear(3, 2)
    with torch.no_grad():
        made.weight.copy_(torch.tensor([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0]]))
        made.bias.copy_(torch.tensor([0.0, 0.0]))
    return made


@pytest.fixture
def run(run, use_model, monkeypatch, module):
    columns, classes = ["a", "b", "c"], ["yes", "no"]
    use_model(pertinent.wrap(module, kind="table", output="logit", columns=columns, classes=classes))
    monkeypatch.setenv("COLUMNS", "140")
    return partial(run, "attack", "--model", "table")


def test_the_radius_of_named_sets_and_what_changed(run):
    code, out, _ = run("--row", ROW, "--only", "a", "--only", "b,c", "--only", "2", "--json", "a.json")
    assert code == 0
    for part in ("features that may change", "a 1 →", "b, c", "none found", "l2 norm", "a.json"):
        assert part in out
    rows = json.loads(Path("a.json").read_text())["rows"]
    assert [row["features"] for row in rows] == [["a"], ["b", "c"], ["c"]]
    assert [row["radius"] for row in rows[:2]] == pytest.approx([5 / 3, 5 / 4], rel=0.01)  # of 3a + 4b = 5
    assert rows[2]["radius"] is None
    assert {row["predicted"] for row in rows} == {"yes"}


def test_json_on_stdout_alone(run):
    code, out, _ = run("--row", ROW, "--norm", "linf", "--toward", "no", "--json", "-")
    assert code == 0
    (row,) = json.loads(out)["rows"]
    assert row["radius"] == pytest.approx(5 / 7, rel=0.01)
    assert (row["toward"], row["norm"]) == ("no", "linf")


def test_the_most_important_features_of_a_method(run):
    options = ["--row", ROW, "--row", '{"a": 2, "b": 0, "c": 1}', "--json", "-"]
    code, out, _ = run(*options, "--method", "leave-one-out", "--top", "1")
    assert code == 0
    assert [row["features"] for row in json.loads(out)["rows"]] == [["a"], ["a"]]


def test_a_row_that_cannot_be_read_does_not_stop_the_others(run):
    code, out, err = run("--row", ROW, "--row", "[1, 2", "--quiet")
    assert code == 1
    assert not out
    assert "failed: row 1" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--only", "a", "--top", "1", "--method", "lime"], "pass only one"),
        (["--top", "1"], "must be passed together"),
        (["--method", "lime"], "must be passed together"),
        (["--set", "samples=3"], "--set requires --method"),
        (["--only", "a", "--set", "samples=3"], "--set requires --method"),
        (["--only", "d"], "Unknown feature 'd'"),
        (["--toward", "perhaps"], "perhaps"),
        (["--norm", "l1"], "l1"),
        (["--algorithm", "decision"], "with a `background`"),
        (["--stepz", "3"], "--steps"),
    ],
)
def test_bad_usage_is_named(run, options, said):
    code, _, err = run("--row", ROW, *options)
    assert code == 2
    assert said in err


def test_texts_by_the_embedded_model(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    code = main(["attack", "slow but wonderful", "--only", "wonderful", "--only", "slow", "--json", "-"])
    first, second = json.loads(capsys.readouterr().out)["rows"]
    assert code == 0
    assert first["radius"] < (second["radius"] or np.inf)
