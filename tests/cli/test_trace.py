"""``pertinent trace``."""

import json
from pathlib import Path

import pytest

import pertinent
from pertinent.inputs.traces.read_trace import read_trace
from tests.inputs.traces.examples import CHUNKS, MESSAGES, openinference
from tests.models.lm_server import serving

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "run.json"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(openinference()))
    return path


def test_the_chunk_behind_the_answer_is_printed_and_reported(run, path, tmp_path):
    code, out, err = run("trace", str(path), "--model", "recall", "--out", str(tmp_path / "report.html"))
    assert code == 0, err
    assert "retrieved chunk 2: Bob" in out
    assert "at most" in out
    assert "±" in out
    page = (tmp_path / "report.html").read_text()
    assert f"retrieved chunk 2: {CHUNKS[1]}" in page
    assert "run.json: answer" in page


def test_numbers_are_those_of_python(run, path, tmp_path):
    arguments = ["--budget", "32", "--fixed", "Who keeps the map?", "--rather-than", "Ann", "--quiet"]
    code, _, err = run("trace", str(path), "--out", str(tmp_path / "e.json"), *arguments)
    assert code == 0, err
    (e,) = pertinent.Explanations.read(tmp_path / "e.json")
    prompt = pertinent.Prompt.from_trace(path, rather_than="Ann", fixed=["Who keeps the map?"])
    same = pertinent.explain("recall", prompt, budget=32, progress=False)
    assert e.scores.tolist() == pytest.approx(same.scores.tolist())
    assert e.target_name == "contrast"


def test_hops_and_steps(run, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(map(json.dumps, MESSAGES)))
    report = tmp_path / "hops.html"
    code, out, err = run(
        "trace", str(path), "--hops", "--budget", "20", "--step", "-1", "--html", str(report)
    )
    assert code == 0, err
    assert "answer: Bob" in out
    assert "what it depends on" in report.read_text()
    code, out, err = run("trace", str(path), "--step", "call of search", "--json", "-")
    assert code == 0, err
    assert json.loads(out)["details"]["answer"] == 'search({"what": "map"})'


def test_bad_traces_are_named(run, tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"weather": 1}')
    for words, named in (
        ([str(path)], "'weather'"),
        ([str(tmp_path / "missing.json")], "missing.json"),
    ):
        code, _, err = run("trace", *words)
        assert code == 2
        assert named in err


def test_the_example_in_the_docs_is_a_trace():
    assert [step.name for step in read_trace(EXAMPLE).steps] == ["answer"]


def test_endpoints_read_messages(run, path):
    with serving() as start:
        server = start(speaks=("completions", "chat"))
        code, out, err = run("trace", str(path), "--model", f"{server.url}#tiny", "--budget", "8")
    assert code == 0, err
    assert "requests" in out
    assert "retrieved chunk 2" in out
