"""Models and functions in Python modules of the user."""

import json
import sys

import numpy as np
import pytest
from PIL import Image

import pertinent

FAST = ["--method", "leave-one-out", "--metrics", "none"]
MODULE = """
import pertinent

class Holder:
    inside = staticmethod(lambda texts: [[0.3, 0.7] for _ in texts])

def texts(texts):
    return [[0.9, 0.1] if "bad" in text else [0.2, 0.8] for text in texts]

def any_kind(inputs):
    return [[0.2, 0.8] for _ in inputs]

wrapped = pertinent.wrap(texts, kind="text", classes=["bad", "good"])
rows = pertinent.wrap(any_kind, kind="table", columns=["age", "size"])
nothing = 3
_hidden = texts
"""


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    """Run a command in a folder with a package of models, whose modules are unloaded afterwards."""
    (tmp_path / "own_models").mkdir()
    (tmp_path / "own_models" / "__init__.py").write_text("")
    (tmp_path / "own_models" / "small.py").write_text(MODULE)
    (tmp_path / "broken_model.py").write_text("import not_installed_at_all")
    (tmp_path / "failing_model.py").write_text("1 / 0")
    (tmp_path / "leaving_model.py").write_text("raise SystemExit(3)")
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield run
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("own_models", "broken_model", "failing_model", "leaving_model"):
            del sys.modules[name]


def explained(run, *arguments):
    code, out, err = run("explain", *arguments, *FAST, "--json", "-")
    assert code == 0, err
    return json.loads(out)["explanations"]


def test_a_function_a_wrapped_model_and_what_a_class_holds(run):
    [result] = explained(run, "not bad", "--model", "own_models.small:texts")
    assert result["features"] == ["not", "bad"]
    assert result["scores"][1] > 0.5
    assert explained(run, "not bad", "--model", "own_models.small:wrapped")[0]["classes"] == ["bad", "good"]
    assert explained(run, "good", "--model", "own_models.small:Holder.inside")


def test_what_a_function_reads_is_what_it_is_given(run, tmp_path):
    model = ["--model", "own_models.small:any_kind"]
    Image.fromarray(np.eye(8, dtype=np.uint8)).save(tmp_path / "a.png")
    (tmp_path / "a.txt").write_text("one line\n")
    (tmp_path / "texts.csv").write_text("id,text\n1,some words\n")
    (tmp_path / "rows.csv").write_text("age;size\n1;2\n3;4\n")
    (tmp_path / "rows.jsonl").write_text('{"age": 1, "size": 2}\n')
    given = {
        ("a text",): "text",
        ("--row", '{"age": 1, "size": 2}'): "table",
        ("--image", "a.png"): "image",
        ("--file", "a.txt"): "text",
        ("--file", "texts.csv"): "text",
        ("--file", "rows.csv"): "table",
        ("--file", "rows.jsonl"): "table",
    }
    assert {options: explained(run, *options, *model)[0]["input"]["kind"] for options in given} == given


def test_a_model_that_says_what_it_reads_is_given_nothing_else(run, tmp_path):
    code, _, err = run("explain", "a text", "--model", "own_models.small:rows")
    assert code == 2
    assert "reads table rows: pass --row JSON, or --file" in err
    (tmp_path / "rows.csv").write_text("name,age,size\nada,1,2\n")
    [result] = explained(run, "--file", "rows.csv", "--model", "own_models.small:rows", "--id-column", "name")
    assert result["features"] == ["age", "size"]
    assert result["id"] == "ada"


def test_the_other_commands_take_it(run, tmp_path):
    model = "own_models.small:wrapped"
    code, out, _ = run("compare", "not bad", "--model", model, "--methods", "lime,random")
    assert code == 0
    assert "lime" in out
    assert run("explain", "not bad", "--model", model, *FAST, "--out", "a.parquet")[0] == 0
    assert run("evaluate", "a.parquet", "--model", model)[0] == 0
    (tmp_path / "a.csv").write_text("text\nnot bad\ngood thing\n")
    code, out, err = run("check", "--model", model, "--file", "a.csv", "--draws", "2", "--json", "check.json")
    assert code == 0, err
    assert pertinent.RemovalCheck.read("check.json").inputs == 2
    (tmp_path / "train.csv").write_text("text,label\nnot bad,0\n")
    code, _, err = run("train", "--model", model, "--file", "train.csv", "--out", "new")
    assert code == 2
    assert "must be a transformers text classifier" in err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere_at_all:f", "There is no module 'nowhere_at_all' in this folder or"),
        ("own_models.smal:f", "There is no module 'own_models.smal'"),
        ("own_models.small:text", "Did you mean 'texts'?"),
        ("own_models.small:nothing", "Cannot wrap int"),
        ("own_models.small:Holder", "Holder is a class"),
        ("broken_model:f", "'broken_model' cannot be imported: No module named 'not_installed_at_all'"),
        ("failing_model:f", "'failing_model' cannot be imported: ZeroDivisionError: division by zero"),
        ("leaving_model:f", "'leaving_model' cannot be imported: SystemExit: 3"),
        ("own_models.small", "package.module:name for your own model"),
        ("own_models.small:texts:x", "package.module:name for your own model"),
    ],
)
def test_mistakes(run, name, message):
    code, out, err = run("explain", "a text", "--model", name)
    assert (code, out) == (2, "")
    assert message in err


def test_the_device_is_the_models_own_business(run):
    code, _, err = run("explain", "a text", "--model", "own_models.small:texts", "--device", "cuda:1")
    assert code == 2
    assert "omit --device" in err
