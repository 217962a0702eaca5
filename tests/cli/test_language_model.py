"""A language model in a folder, on the command line."""

import json

import pytest

from tests import tiny_lm


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models") / "lm"
    tiny_lm.model("llama").save_pretrained(made)
    tiny_lm.tokenizer().save_pretrained(made)
    return str(made)


@pytest.fixture
def run(run, folder):
    options = ["--model", folder, "--method", "leave-one-out", "--json", "-"]
    return lambda *arguments: run(*arguments, *options)


def first(out):
    return json.loads(out)["explanations"][0]


def test_an_answer_is_explained(run):
    code, out, _ = run("explain", "Ann keeps the key.", "--answer", " Ann", "--rather-than", " Bob")
    assert code == 0
    assert first(out)["classes"][:2] == ["contrast", "answer"]
    assert first(out)["details"]["answer"] == " Ann"


def test_sources_are_features(run):
    sources = ["--source", "Ann keeps the key.", "--source", "Bob keeps the map."]
    code, out, _ = run("explain", "Who keeps the map?", *sources, "--answer", " Bob")
    assert code == 0
    assert first(out)["features"] == ["Ann keeps the key.", "Bob keeps the map."]


def test_sources_and_texts_are_sent_in_a_chat(run):
    source = ["--source", "Ann keeps the key.", "--answer", "Bob"]
    texts = []
    for options in ((*source,), (*source, "--chat", "no"), ("--chat", "yes", "--answer", "Bob")):
        code, out, _ = run("explain", "Who won? Why?", *options)
        assert code == 0
        texts.append(first(out)["input"]["text"]["segments"][0])
    assert texts == ["<user>", "Ann keeps the key.", "<user>"]


def test_the_model_answers_itself(run):
    code, out, _ = run("explain", "Ann keeps the key.")
    assert code == 0
    assert first(out)["details"]["generation"].startswith("greedy, at most 64 tokens")


def test_files_of_prompts(run, tmp_path):
    one = tmp_path / "prompts.csv"
    one.write_text('text\n"Ann keeps the key, Bob the map."\nWho?\n')
    code, out, _ = run("explain", "--file", str(one))
    assert code == 0
    assert len(json.loads(out)["explanations"]) == 2
    lines = [
        {"text": "Who?", "sources": ["Ann has it.", "Bob has it."], "answer": " Bob"},
        {"messages": [{"role": "user", "content": "Ann has it. Bob has it. Who?"}], "answer": "Bob"},
    ]
    several = tmp_path / "prompts.jsonl"
    several.write_text("\n".join(map(json.dumps, lines)))
    code, out, _ = run("explain", "--file", str(several))
    assert code == 0
    assert [e["features"] for e in json.loads(out)["explanations"]] == [["Ann has it.", "Bob has it."]] * 2


@pytest.mark.parametrize(
    ("fixed", "features"),
    [
        ((), ["Ann won.", "Bob lost."]),
        (("--fixed", "Ann won."), ["Bob lost.", "Who won?"]),
        (("--fixed", "Ann", "--fixed", "Who won?"), ["won.", "Bob lost."]),
        (("--fixed", "none", "--features", "sentences"), ["Ann won.", "Bob lost.", "Who won?"]),
    ],
)
def test_parts_are_fixed(run, fixed, features):
    code, out, _ = run("explain", "Ann won. Bob lost. Who won?", *fixed, "--answer", " Ann")
    assert code == 0
    assert first(out)["features"] == features


def test_a_file_has_a_column_of_fixed_parts(run, tmp_path):
    file = tmp_path / "prompts.csv"
    file.write_text("text,answer,fixed\nAnn won. Bob lost. Who won?, Ann,Bob lost.\n")
    code, out, _ = run("explain", "--file", str(file))
    assert code == 0
    assert first(out)["features"] == ["Ann won.", "Who won?"]


def test_an_empty_answer_is_refused(run):
    code, _, err = run("explain", "Ann keeps the key.", "--answer", " ")
    assert code != 0
    assert "`answer` is empty or blank" in err
