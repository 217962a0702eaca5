"""A reader in a folder, on records with a question and a context."""

import csv
import json
from pathlib import Path

import pytest

import pertinent
from pertinent.cli import main
from pertinent.models.embedded.load import load_transformer
from pertinent.rendering.wording import facts
from tests import tiny
from tests.models.test_question_answering import CONTEXT, PAIR, QUESTION, reader

RECORDS = [
    {"id": f"q{i}", "title": "x", "context": CONTEXT, "question": tiny.text(4, seed=i)} for i in range(3)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reader().save_pretrained("reader")
    tiny.tokenizer(model_max_length=200).save_pretrained("reader")
    with Path("squad.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, RECORDS[0])
        table.writeheader()
        table.writerows(RECORDS)
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    Path("squad.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("file", ["squad.csv", "squad.jsonl"])
def test_explain_a_file_of_questions(folder, file):
    options = ["--model", "reader", "--method", "leave-one-out", "--id-column", "id", "--quiet"]
    assert main(["explain", "--file", file, *options, "--out", "run.parquet"]) == 0
    result = pertinent.read(folder / "run.parquet")
    model = load_transformer(folder / "reader")
    for e, record in zip(result, RECORDS, strict=True):
        assert e.id == record["id"]
        assert e.features == tuple(CONTEXT.split())
        assert e.input.text.first == record["question"]
        assert e.details["answer"] == model.details(e.input)["answer"] != ""


def test_the_answer_is_shown(folder, capsys):
    assert main(["explain", "--file", "squad.csv", "--model", "reader", "--method", "leave-one-out"]) == 0
    model = load_transformer(folder / "reader")
    e = pertinent.explain(model, (RECORDS[0]["question"], CONTEXT), method="leave-one-out")
    shown = capsys.readouterr().out
    assert "answer overlap" in shown
    assert e.details == {"answer": model.details(e.input)["answer"]}
    assert facts(e)["answer"] == e.details["answer"]


def test_details_of_the_method_are_kept(folder):
    model = load_transformer(folder / "reader")
    e = pertinent.explain(model, PAIR, method="random")
    assert e.details["answer"] in CONTEXT
    again = pertinent.explain(model, (QUESTION, CONTEXT), method="random")
    assert e.details == again.details


def test_a_reader_is_no_classifier_to_train(folder, capsys):
    command = ["train", "--model", "reader", "--file", "squad.csv", "--column", "context"]
    assert main([*command, "--label-column", "id", "--out", "t"]) == 2
    assert "must be a transformers text classifier" in capsys.readouterr().err
