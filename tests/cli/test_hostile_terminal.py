"""Escape sequences in arguments, files and models are not printed raw."""

import json
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import pertinent
from pertinent.printable import visible
from tests.stubs import half

EVIL = "\x1b]0;owned\x07\x1b[2Jgood\x9b31m\x7f\u202e"
RAW = ("\x1b", "\x07", "\x9b", "\x7f", "\u202e")
FAST = ["--method", "leave-one-out", "--metrics", "none"]


@pytest.fixture
def run(run, use_model, monkeypatch):
    """Run a command in an empty folder on a small model; check that no raw escapes are printed."""
    use_model(pertinent.wrap(half, kind="text", classes=[EVIL, "yes"]))
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments):
        code, out, err = run(*arguments)
        assert not [mark for mark in RAW if mark in out + err]
        return code, out, err

    return call


def test_visible():
    assert visible("a\tb\nc\r\x1b[0m\x9b\ud800\u202e é") == "a\tb\nc␍␛[0m��� é".replace("���", "\ufffd" * 3)


def test_the_end_of_a_line_of_windows_is_one():
    assert visible("a\r\nb\rc") == "a\nb␍c"


@pytest.mark.parametrize(
    "arguments",
    [
        [EVIL],
        ["explain", "x", f"--{EVIL}"],
        ["explain", "x", "--limit", EVIL],
        ["explain", "x", "--method", EVIL],
        ["explain", "x", "--removal", EVIL],
        ["explain", "x", "--set", EVIL],
        ["explain", "x", "--target", f"{EVIL}x"],
        ["explain", "x", "--html", f"{EVIL}/{EVIL}"],
        ["explain", "--file", f"{EVIL}.txt"],
        ["explain", "--file", EVIL],
        ["explain", "--row", EVIL],
        ["evaluate", f"{EVIL}.parquet"],
        ["check", "--model", "sentiment", "--file", f"{EVIL}.csv"],
        ["train", "--model", "sentiment", "--file", f"{EVIL}.csv", "--out", EVIL],
    ],
)
def test_arguments(run, arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert "␛" in err or "\\x1b" in err


def test_texts_classes_and_paths(run, tmp_path):
    outputs = ["--html", f"{EVIL}.html", "--out", f"{EVIL}.parquet"]
    code, out, err = run("explain", EVIL, "plain text", *FAST, *outputs)
    assert (code, err) == (0, "")
    assert "␛" in out
    assert (tmp_path / f"{EVIL}.html").exists()
    code, out, _ = run("evaluate", f"{EVIL}.parquet")
    assert code == 0


def test_json_on_stdout(run):
    code, out, _ = run("explain", EVIL, *FAST, "--json", "-")
    assert code == 0
    [result] = json.loads(out)["explanations"]
    assert (result["input"]["text"]["first"], result["classes"]) == (EVIL, [EVIL, "yes"])


def test_headers_and_failures(run, tmp_path):
    (tmp_path / "a.csv").write_text(f"{EVIL},b\nx,y\n")
    code, _, err = run("explain", "--file", "a.csv")
    assert code == 2
    assert "Unknown column 'text'" in err
    (tmp_path / f"{EVIL}.jsonl").write_text(f'"fine"\n"{EVIL}\n')
    code, _, err = run("explain", "--file", f"{EVIL}.jsonl", *FAST)
    assert code == 1
    assert "failed: ␛" in err


def test_logs_warnings_and_tracebacks(run, monkeypatch):
    def fail(args):
        logging.getLogger("pertinent.somewhere").warning("logged %s", EVIL)
        warnings.warn(f"warned {EVIL}", UserWarning, stacklevel=1)
        raise RuntimeError(EVIL)

    monkeypatch.setattr("pertinent.cli.verbs.explain", fail)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _, err = run("explain", "x")
        assert code == 2
        assert all(f"{word} ␛" in err for word in ("logged", "warned"))
        _, _, err = run("explain", "x", "--debug")
    assert "Traceback" in err


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_undecodable_names_and_any_encoding(tmp_path, encoding):
    name = os.fsdecode(b"\xff\xfe.txt")
    (tmp_path / name).write_text("good \u2603")
    command = [sys.executable, "-m", "pertinent", "explain", "--model", "own:model", "--file", name, *FAST]
    command += ["--html", os.fsdecode(b"\xfe.html")]
    (tmp_path / "own.py").write_text("def model(texts): return [[0.2, 0.8] for _ in texts]\n")
    environment = {
        **os.environ,
        "PYTHONIOENCODING": encoding,
        "PYTHONPATH": str(Path(pertinent.__file__).parents[1]),
    }
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"Report: " in done.stdout
