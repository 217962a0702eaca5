"""Files that a command is to write: tried before the work begins, and one that fails stops no other."""

import json
import os

import pytest

import pertinent
from pertinent.cli import command_output
from pertinent.errors import FileError
from tests.stubs import half

FAST = ["--method", "leave-one-out", "--metrics", "none"]


@pytest.fixture
def run(run, use_model):
    use_model(pertinent.wrap(half, kind="text", classes=["no", "yes"]))
    return run


@pytest.mark.parametrize("option", ["--html", "--out", "--json"])
def test_a_folder_that_refuses_files_is_known_before_the_work(run, tmp_path, monkeypatch, option):
    monkeypatch.setattr("pertinent.cli.verbs.Call.from_flags", lambda *_: pytest.fail("it worked in vain"))
    before = os.open

    def refuse(path, *rest):
        if "closed" in str(path):
            raise PermissionError(13, "Permission denied")
        return before(path, *rest)

    monkeypatch.setattr(os, "open", refuse)
    (tmp_path / "closed").mkdir()
    code, _, err = run("explain", "a b", option, "closed/file.parquet")
    assert code == 2
    assert "cannot be written: Permission denied" in err


@pytest.mark.parametrize("option", ["html", "json"])
def test_one_that_fails_stops_no_other(run, tmp_path, monkeypatch, option):
    def fail(*_, **__):
        raise FileError("'x' cannot be written: No space left on device.")

    monkeypatch.setattr(
        *{"html": (pertinent, "save_report"), "json": (command_output, "write_text")}[option], fail
    )
    outputs = ["--html", "a.html", "--json", "a.json", "--out", "a.parquet"]
    code, out, err = run("explain", "a b", "c d", *FAST, *outputs)
    assert code == 1
    assert (
        err == f"pertinent: failed: --{option} a.{option}: 'x' cannot be written: No space left on device.\n"
    )
    written = {"a.html", "a.json", "a.parquet"} - {f"a.{option}"}
    assert {file.name for file in tmp_path.iterdir()} == written
    assert all(name in out for name in written)


def test_plots_and_json_of_a_check(run, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("text\nnot bad\ngood thing\n")
    command = ["check", "--file", "a.csv", "--draws", "2", "--json", "a.json", "--plot", "a.svg"]
    assert run(*command)[0] == 0
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    (tmp_path / "a.svg").unlink()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command_output, "write_text", full)
    code, _, err = run(*command)
    assert code == 1
    assert "failed: --json a.json: [Errno 28] No space left on device" in err
    assert (tmp_path / "a.svg").exists()


def test_a_name_that_says_no_format_is_known_before_the_work(run, monkeypatch):
    assert run("explain", "a b", *FAST, "--out", "a.parquet")[0] == 0
    code, _, err = run("evaluate", "a.parquet", "--out", "b.xyz")
    assert code == 2
    assert "must end in .parquet, .json or .csv" in err


def test_one_bad_input_counts_once(run, tmp_path):
    (tmp_path / "a.jsonl").write_text('"a b"\n{\n')
    command = ["compare", "--file", "a.jsonl", "--methods", "lime,random,leave-one-out", "--json", "-"]
    code, out, err = run(*command)
    assert code == 1
    assert err.count("failed: a.jsonl line 2: This is not JSON") == err.count("failed") == 1
    assert len(json.loads(out)["failures"]) == 1
