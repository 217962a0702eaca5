"""Runs that write as they go: killed, stopped or broken, they go on and end as if nothing had happened."""

import json
import math
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import pertinent
from pertinent.errors import FileError

N = 60
RUN = """
import math, sys, time
from pathlib import Path
import numpy as np
import pertinent

calls = Path(sys.argv[2]).open("a")

def classify(rows):
    calls.write("".join(f"{row[0]:g}\\n" for row in rows)); calls.flush()
    time.sleep(0.001)
    # One row at a time: numpy's exp rounds by where in an array a number stands.
    p = [1 / (1 + math.exp(-sum((row * np.linspace(-1, 1, len(row))).tolist()))) for row in rows]
    return [[1 - q, q] for q in p]

rows = np.random.default_rng(0).normal(size=(int(sys.argv[3]), 6)).round(3)
rows[:, 0] = np.arange(len(rows)) + 1
model = pertinent.wrap(classify, kind="table", background=rows[:50])
pertinent.explain(model, rows, removal="constant", budget=40, out=sys.argv[1], batch_size=20)
"""


def words(**changes):
    rows = np.random.default_rng(0).normal(size=(8, 5))
    model = pertinent.wrap(classify, kind="table")
    return {"model": model, "inputs": rows, "method": "lime", "removal": "constant", "budget": 30, **changes}


def classify(rows):
    p = [1 / (1 + math.exp(-sum((row * np.linspace(-1, 1, len(row))).tolist()))) for row in rows]
    return [[1 - q, q] for q in p]


calls = []


def counted(rows):
    calls.append(len(rows))
    return classify(rows)


def plain(explanations):
    return [{**e.to_dict(), "seconds": 0.0} for e in explanations]


def start(folder, n=N):
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder / "run.parquet"), str(folder / "calls"), str(n)]
    )


def test_a_run_that_is_killed_again_and_again_ends_like_one_that_is_not(tmp_path):
    """The long form of this, 200 kills in 1,000 inputs, is benchmarks/kills.py."""
    rng = random.Random(0)
    (tmp_path / "killed").mkdir()
    (tmp_path / "calm").mkdir()
    assert start(tmp_path / "calm").wait() == 0
    kills = 0
    while kills < 6:
        process = start(tmp_path / "killed")
        journal = tmp_path / "killed" / "run.parquet.journal"
        before = journal.stat().st_size if journal.is_file() else 0
        while process.poll() is None and (not journal.is_file() or journal.stat().st_size <= before):
            time.sleep(0.002)
        time.sleep(rng.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        kills += 1
    assert kills >= 2
    assert start(tmp_path / "killed").wait() == 0
    killed, calm = (pertinent.read(tmp_path / name / "run.parquet") for name in ("killed", "calm"))
    assert [e.index for e in killed] == list(range(N))
    assert plain(killed) == plain(calm)
    assert not list((tmp_path / "killed").glob("*.journal"))
    asked = {name: (tmp_path / name / "calls").read_text().split() for name in ("killed", "calm")}
    in_flight = 16 + 8
    assert len(asked["killed"]) - len(asked["calm"]) <= kills * in_flight * 40


def test_a_finished_run_is_not_run_again(tmp_path):
    calls.clear()
    out = tmp_path / "run.parquet"
    first = pertinent.explain(**words(model=pertinent.wrap(counted, kind="table"), out=out))
    n, written = sum(calls), out.read_bytes()
    again = pertinent.explain(**words(model=pertinent.wrap(counted, kind="table"), out=out))
    assert n and sum(calls) == n + 3  # predicted again, to notice another model
    assert plain(first) == plain(again)
    assert out.read_bytes() == written
    assert plain(first) == plain(pertinent.explain(**words()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": 31}, r"requests\[0\].budget \(30, now 31\)"),
        ({"method": "kernel-shap"}, r'requests\[0\].method \("lime", now "kernel-shap"\)'),
        ({"seed": 1}, "seed"),
        ({"alpha": 2.0}, r"settings.alpha \(null, now 2.0\)"),
        ({"model": pertinent.wrap(lambda rows: [[0.5, 0.5] for _ in rows], kind="table")}, "model"),
        ({"inputs": np.ones((8, 5))}, "inputs"),
    ],
    ids=["budget", "method", "seed", "setting", "model", "inputs"],
)
@pytest.mark.parametrize("finished", [True, False])
def test_other_words_are_told_apart(tmp_path, change, message, finished):
    out = tmp_path / "run.parquet"
    if finished:
        pertinent.explain(**words(out=out))
    else:
        _interrupt(out, after=5)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileError, match=message):
        pertinent.explain(**words(out=out) | change)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert len(pertinent.explain(**words(out=out))) == 8


def _interrupt(out, after):
    """Stop the run from its progress callback when so many are done."""

    def stop(progress):
        if progress.done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pertinent.explain(**words(out=out, progress=stop, batch_size=10))


def test_what_an_interrupted_run_finished_is_read_and_kept(tmp_path, caplog):
    out = tmp_path / "run.parquet"
    _interrupt(out, after=3)
    assert not out.exists()
    so_far = pertinent.read(out)
    assert "not finished" in caplog.text
    assert 3 <= len(so_far) < 8
    whole = pertinent.explain(**words())
    kept = {e.index: e for e in whole}
    assert plain(so_far) == plain(kept[e.index] for e in so_far)
    assert plain(pertinent.explain(**words(out=out))) == plain(whole)


def test_failures_keep_their_place(tmp_path):
    rows = [[1.0, 2.0], [1.0, 2.0j], [3.0, 4.0]]
    options = words(inputs=rows, out=tmp_path / "run.parquet")
    for found in (pertinent.explain(**options), pertinent.explain(**options)):
        assert [e.index for e in found] == [0, 2]
        assert [(f.index, f.reason) for f in found.failures] == [
            (1, "The column 'column 1' must hold a number, a text or a date, but holds a complex.")
        ]


def test_inputs_that_break_off_leave_what_is_finished(tmp_path):
    out = tmp_path / "run.parquet"

    def stream(n):
        for i in range(n):
            yield np.full(5, float(i))
        if n < 300:
            raise OSError("the network is gone")

    with pytest.raises(OSError, match="network"):
        pertinent.explain(**words(inputs=stream(200), out=out, batch_size=10))
    assert len(pertinent.read(out)) == 200
    found = pertinent.explain(**words(inputs=stream(300), out=out))
    assert [e.index for e in found] == list(range(300))


def test_a_place_that_cannot_be_written_is_said_before_anything_is_asked(tmp_path):
    asked = []
    model = pertinent.wrap(lambda rows: asked.append(1) or classify(rows), kind="table")
    (tmp_path / "notes.txt").touch()
    for out, message in (
        (tmp_path / "none" / "run.parquet", "no folder"),
        (tmp_path, "contains other files"),
    ):
        with pytest.raises(FileError, match=message):
            pertinent.explain(**words(model=model, out=out))
    pertinent.explain(**words()).save(tmp_path / "saved.parquet")
    with pytest.raises(FileError, match="not a run that can be resumed"):
        pertinent.explain(**words(model=model, out=tmp_path / "saved.parquet"))
    assert not asked


def test_compare_goes_on_too(tmp_path):
    out = tmp_path / "run.parquet"
    options = {"metrics": ["sufficiency", "insertion"], "removal": "constant", "budget": 30, "out": out}
    rows = np.random.default_rng(0).normal(size=(6, 5))
    model = pertinent.wrap(classify, kind="table")
    first = pertinent.compare(model, rows, ["lime", "random"], **options)
    again = pertinent.compare(model, rows, ["lime", "random"], **options)
    assert first.rows == again.rows
    assert len(first.rows) == 6 * 2 * (4 + 1)


def _heed_interrupts():
    """A shell's background job ignores them, and so does what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("command", ["explain", "compare"])
def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path, command):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(f"number {i} of many slow and wonderful films" for i in range(3000)))
    out = tmp_path / "run.parquet"
    method = ["--method", "kernel-shap"] if command == "explain" else ["--methods", "lime,kernel-shap"]
    line = [sys.executable, "-m", "pertinent", command, "--file", str(texts), *method, "--out", str(out)]
    line += ["--budget", "100"]
    process = subprocess.Popen(
        line,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,  # noqa: PLW1509
    )
    journal = Path(f"{out}.journal")
    while process.poll() is None and (not journal.is_file() or journal.read_bytes().count(b"\n") < 4):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert f"To resume: pertinent {command} --file {texts}" in err
    finished = len(pertinent.read(out))
    assert finished >= 3
    lines = journal.read_bytes().splitlines()
    assert [json.loads(each[9:]) for each in lines[1:]]


def test_explanations_come_one_by_one_and_inputs_are_taken_as_there_is_room():
    taken = []

    def stream():
        for i in range(2000):
            taken.append(i)
            yield np.full(3, i / 1000 if i != 7 else np.nan)

    model = pertinent.wrap(classify, kind="table")
    ahead, seen = [], []
    for n, found in enumerate(pertinent.explain_iter(model, stream(), "leave-one-out", batch_size=8)):
        ahead.append(len(taken) - n)
        seen.append(found)
        if n == 999:
            break
    assert max(ahead) < 400
    failed = [found for found in seen if isinstance(found, pertinent.Failure)]
    assert [failure.index for failure in failed] == [7]
    for e in seen[:50]:
        if not isinstance(e, pertinent.Failure):
            alone = pertinent.explain(model, np.full(3, e.index / 1000), "leave-one-out")
            np.testing.assert_array_equal(e.scores, alone.scores)
