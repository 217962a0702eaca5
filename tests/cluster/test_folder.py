"""Explanations in a folder of Parquet files: streamed in and out, resumed, with and without a cluster."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

import pertinent
from pertinent.cli import main
from pertinent.errors import FileError
from pertinent.runs.run import NamedInput

TEXTS = [f"film {i} is {'bad' if i % 3 else 'good'}, {i * 7 % 11} stars" for i in range(300)]
WORDS = {"method": "leave-one-out", "progress": False}


def classify(texts):
    return [[0.9, 0.1] if "bad" in t else [0.2 + len(t) % 7 / 20, 0.8 - len(t) % 7 / 20] for t in texts]


def own_model(function=classify):
    return pertinent.wrap(function, kind="text", classes=["bad", "good"])


def plain(explanations):
    return [{**e.to_dict(), "seconds": 0.0} for e in explanations]


def test_a_folder_holds_what_a_list_would(tmp_path):
    inputs = [*TEXTS, "", OSError("unreadable")]
    ids = [f"n{i}" for i in range(len(inputs))]
    here = pertinent.explain(own_model(), inputs, ids=ids, **WORDS)
    seen = []
    words = WORDS | {"progress": seen.append}
    found = pertinent.explain(own_model(), inputs, ids=ids, out=tmp_path / "run", **words)
    assert (len(found), found.n_failures, len(found.files), found.is_finished) == (300, 2, 2, True)
    assert plain(found) == plain(here) and list(found.failures) == here.failures
    assert plain(pertinent.read(tmp_path / "run")) == plain(here)
    assert repr(found) == "<300 explanations in 2 files, 2 failed>"
    assert (seen[-1].done, seen[-1].failed, seen[-1].total) == (302, 2, 302)
    first = pertinent.read(found.files[0])
    assert len(first) == 256 and plain(first) == plain(here[:256])


def test_a_stream_goes_to_a_folder_and_is_continued(tmp_path):
    asked = []

    def counted(texts):
        asked.extend(texts)
        return classify(texts)

    def broken():
        yield from (NamedInput(text, f"n{i}") for i, text in enumerate(TEXTS[:280]))
        raise RuntimeError("the line is cut")

    model = own_model(counted)
    with pytest.raises(RuntimeError, match="cut"):
        pertinent.explain(model, broken(), out=tmp_path / "run", **WORDS)
    assert len(pertinent.read(tmp_path / "run")) == 256
    asked.clear()
    stream = (NamedInput(text, f"n{i}") for i, text in enumerate(TEXTS))
    found = pertinent.explain(model, stream, out=tmp_path / "run", **WORDS)
    again = {0, 1, 2}  # predicted again, to notice another model
    assert {int(t.split()[1]) for t in asked if re.match(r"film \d+ ", t)} == {*range(256, 300), *again}
    here = pertinent.explain(model, TEXTS, ids=[f"n{i}" for i in range(300)], **WORDS)
    assert plain(found) == plain(here)
    asked.clear()
    assert (
        len(pertinent.explain(model, TEXTS, ids=[f"n{i}" for i in range(300)], out=tmp_path / "run", **WORDS))
        == 300
    )
    assert asked == TEXTS[:3]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"inputs": ["another", *TEXTS[1:]]}, "other inputs: block 0 has changed"),
        ({"inputs": TEXTS[:256]}, "other inputs: there are fewer inputs"),
        ({"inputs": [*TEXTS, "more"]}, "other inputs: block 1 has changed"),
        ({"seed": 1}, r"differs in requests\[0\].seed \(0, now 1\)"),
        ({"model": own_model(lambda texts: [[0.5, 0.5] for _ in texts])}, "differs in model"),
        ({"out": "foreign"}, "contains other files"),
        ({"out": "no/folder"}, "cannot be written: No such file"),
    ],
)
def test_another_run_is_not_mixed_with_it(tmp_path, monkeypatch, changes, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "a.txt").write_text("")
    words = {"model": own_model(), "inputs": TEXTS, "out": "run", **WORDS}
    pertinent.explain(**words)
    with pytest.raises(FileError, match=said):
        pertinent.explain(**words | changes)


def test_a_damaged_index(tmp_path):
    pertinent.explain(own_model(), TEXTS[:3], out=tmp_path / "run", **WORDS)
    index = tmp_path / "run" / "index.journal"
    index.write_bytes(index.read_bytes().replace(b'"explanations":3', b'"explanations":4'))
    with pytest.raises(FileError, match="damaged"):
        pertinent.read(tmp_path / "run")
    with pytest.raises(FileError, match="There is no file"):
        pertinent.ExplanationFolder(tmp_path)


# -- the command line -----------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a module of a model, and inputs in files of several kinds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    source = "def classify(texts):\n    return [[0.9, 0.1] if 'bad' in t else [0.3, 0.7] for t in texts]\n"
    (tmp_path / "folder_models.py").write_text(source)
    (tmp_path / "in").mkdir()
    pd.DataFrame({"text": TEXTS[:5], "n": range(5)}).to_parquet("in/1.parquet")
    pd.DataFrame({"text": TEXTS[5:9], "n": range(5, 9)}).to_csv("in/2.csv", index=False)
    lines = [*(json.dumps({"text": t, "n": n}) for n, t in enumerate(TEXTS[9:12], start=9)), "no JSON"]
    (tmp_path / "in" / "3.jsonl").write_text("\n".join(lines))
    yield tmp_path
    sys.modules.pop("folder_models", None)


@pytest.mark.parametrize("file", ["in", "in/*.*"])
def test_a_folder_of_files_on_the_command_line(here, capsys, file):
    arguments = ["explain", "--file", file, "--column", "text", "--model", "folder_models:classify"]
    assert main([*arguments, "--method", "leave-one-out", "--out", "run", "--id-column", "n"]) == 1
    out, err = capsys.readouterr()
    assert "12 explanations in 1 file." in out and "3.jsonl line 4: This is not JSON" in err
    found = pertinent.read("run")
    assert [e.id for e in found] == [str(n) for n in range(12)]
    assert [e.index for e in found] == list(range(12))
    assert all("sufficiency" in e.measures for e in found)
    assert main([*arguments, "--out", "r.parquet", "--metrics", "none", "--limit", "7"]) == 0
    assert len(pertinent.read("r.parquet")) == 7


def test_what_a_folder_does_not_go_with(here, capsys):
    arguments = ["explain", "--file", "in/2.csv", "--model", "folder_models:classify", "--out", "run"]
    assert main([*arguments, "--html", "r.html"]) == 2
    assert "--html needs all explanations in memory" in capsys.readouterr().err
    assert main([*arguments, "--column", "txt", "--model", "sentiment"]) == 2
    assert "Unknown column 'txt'" in capsys.readouterr().err
    assert main([*arguments[:2], "none/*.csv", *arguments[3:]]) == 2
    assert "There are no files" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_driver_that_is_interrupted_and_killed_goes_on(here):
    """With a Ray of its own, which it starts, and which ends with it."""
    pytest.importorskip("ray", reason="Ray is not installed (pip install 'pertinent[cluster]')")
    slow = "import time\n\ndef classify(texts):\n    time.sleep(0.02)\n"
    body = "    return [[0.9, 0.1] if 'bad' in t else [0.3, 0.7] for t in texts]\n"
    (here / "folder_models.py").write_text(slow + body)
    (here / "texts.txt").write_text("\n".join(TEXTS[:120]))
    words = [
        "explain",
        "--file",
        "texts.txt",
        "--model",
        "folder_models:classify",
        "--method",
        "leave-one-out",
    ]
    words += [
        "--metrics",
        "none",
        "--batch-size",
        "16",
        "--ray",
        "--workers",
        "2",
        "--block-size",
        "10",
        "--out",
        "run",
    ]
    path = os.pathsep.join(filter(None, sys.path))
    begin = [sys.executable, "-m", "pertinent", *words]

    def start():
        return subprocess.Popen(
            begin,
            env={**os.environ, "PYTHONPATH": path},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )

    def wait_for_files(n):
        end = time.monotonic() + 60
        while len(list(Path("run").glob("part-*"))) < n:
            assert time.monotonic() < end
            time.sleep(0.02)

    process = start()
    wait_for_files(1)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130 and time.monotonic() - began < 15
    assert "finished work is kept. To resume: pertinent explain --file texts.txt" in said
    kept = {file: file.stat().st_mtime_ns for file in pertinent.read("run").files}  # those in the index
    process = start()
    wait_for_files(len(list(Path("run").glob("part-*"))) + 1)
    process.kill()
    process.wait()
    process.stderr.close()
    process = start()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert kept == {file: file.stat().st_mtime_ns for file in kept}
    found = pertinent.read("run")
    assert len(found) == 120 and found.is_finished and len(found.files) == 12
    main([*words[:7], "--method", "leave-one-out", "--metrics", "none", "--out", "plain", "--quiet"])
    assert plain(found) == [
        {**each, "id": f"texts.txt line {i + 1}"} for i, each in enumerate(plain(pertinent.read("plain")))
    ]
