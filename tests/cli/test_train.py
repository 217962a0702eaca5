"""``pertinent train``."""

import csv
import json
from functools import partial

import pytest
import torch

from pertinent.cli import main
from tests import tiny
from tests.finetuning.test_training import plain_model, toy

MODEL = ["--model", "./model"]
QUICK = ["--epochs", "1", "--batch-size", "8", "--learning-rate", "1e-3"]


@pytest.fixture
def run(run, tmp_path, capsys):
    """Run a command in a folder with a model and data files."""
    torch.set_num_threads(1)
    for part in (plain_model(), tiny.tokenizer(model_max_length=200)):
        part.save_pretrained("model")
    texts, labels = toy(16)
    with (tmp_path / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *zip(texts, labels, strict=True)])
    rows = [{"q": "w1", "d": t, "topic": "abc"[y]} for t, y in zip(texts, labels, strict=True)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    capsys.readouterr()
    return partial(run, "train")


def test_trains_and_the_folder_is_explained(run, tmp_path, capsys):
    command = [*MODEL, "--file", "data.csv", "--validation", "data.csv", "--out", "trained", *QUICK]
    code, out, err = run(*command)
    assert (code, err) == (0, "")
    assert "16 examples in 2 steps, validation accuracy" in out
    assert "Saved: " in out
    record = json.loads((tmp_path / "trained" / "pertinent.json").read_text())
    assert record["counterfactual"] and record["learning_rate"] == 1e-3
    assert main(["explain", "w1 w2", "--model", "trained", "--method", "leave-one-out", "--quiet"]) == 0
    code, _, err = run(*command)
    assert code == 2 and "already contains a training run" in err
    again = run(*command, "--resume")
    assert again[:2] == (0, out)


def test_new_head_query_and_standard(run, tmp_path):
    columns = ["--label-column", "topic", "--query-column", "q", "--column", "d"]
    code, _, err = run(*MODEL, "--file", "data.jsonl", "--out", "t", *columns, *QUICK)
    assert code == 2 and "data.jsonl line 1: Unknown label" in err and "--new-head" in err
    flags = ["--new-head", "--no-counterfactual", "--quiet"]
    code, out, _ = run(*MODEL, "--file", "data.jsonl", "--out", "t", *flags, *columns, *QUICK)
    assert (code, out) == (0, "")
    config = json.loads((tmp_path / "t" / "config.json").read_text())
    assert list(config["id2label"].values()) == ["a", "b", "c"]
    assert json.loads((tmp_path / "t" / "pertinent.json").read_text())["counterfactual"] is False


def test_parquet(run):
    import pandas as pd

    texts, labels = toy(8)
    pd.DataFrame({"review": texts, "label": labels}).to_parquet("data.parquet")
    assert run(*MODEL, "--file", "data.parquet", "--column", "review", "--out", "t", *QUICK)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*MODEL, "--file", "data.csv"], "--out"),
        ([*MODEL, "--file", "missing.csv", "--out", "t"], "There is no file 'missing.csv'"),
        ([*MODEL, "--file", "missing.parquet", "--out", "t"], "There is no file 'missing.parquet'"),
        ([*MODEL, "--file", "data.csv", "--out", "t", "--label-column", "lable"], "Did you mean 'label'"),
        ([*MODEL, "--file", "data.csv", "--out", "t", "--query-column", "txt"], "Did you mean 'text'"),
        ([*MODEL, "--file", "data.csv", "--out", "t", "--removal", "marginalize"], "cannot be 'marginalize'"),
        (["--model", "digits", "--file", "data.csv", "--out", "t"], "reads images"),
        ([*MODEL, "--file", "data.csv", "--out", "t", "--learning-rate", "fast"], "must be a number"),
        (
            [*MODEL, "--file", "bad.csv", "--out", "t"],
            "bad.csv line 3: `label` must be a name or a number from 0 to 2, but got 9",
        ),
        ([*MODEL, "--file", "blank.csv", "--out", "t"], "blank.csv line 2: The text is empty"),
        (
            [*MODEL, "--file", "data.csv", "--validation", "short.csv", "--out", "t"],
            "short.csv line 3: the record has 1 values for 2 columns",
        ),
        (
            [*MODEL, "--file", "data.csv", "--validation", "bad.csv", "--out", "t"],
            "bad.csv line 3: `label` must be",
        ),
    ],
)
def test_mistakes(run, tmp_path, arguments, message):
    (tmp_path / "bad.csv").write_text("text,label\nw1,0\nw2,9\n")
    (tmp_path / "short.csv").write_text("text,label\nw1,0\nw2\n")
    (tmp_path / "blank.csv").write_text('text,label\n" ",0\nw2,1\n')
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "t").exists()
