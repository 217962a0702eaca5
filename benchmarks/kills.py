"""Kill a run of 1,000 inputs 200 times at random moments; compare its results with an undisturbed run's.

    python benchmarks/kills.py [--inputs 1000] [--kills 200] [--seed 0]

Both explain the same rows and write them with `out=`. One is killed (kill -9) and started again with the same
arguments, half of the times while it starts and half of the times after it has stored explanations, and then
finishes. Both results must be equal. The model's log of its rows shows how many were computed twice.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pertinent

RUN = """
import math, sys, time
from pathlib import Path
import numpy as np
import pertinent

log = Path(sys.argv[2]).open("a")

def classify(rows):
    log.write(f"{len(rows)}\\n")
    log.flush()
    time.sleep(0.02)
    # One row at a time: numpy's exp rounds by where in an array a number stands.
    p = [1 / (1 + math.exp(-sum((row * np.linspace(-1, 1, len(row))).tolist()))) for row in rows]
    return [[1 - q, q] for q in p]

rows = np.random.default_rng(0).normal(size=(int(sys.argv[3]), 12))
model = pertinent.wrap(classify, kind="table")
pertinent.explain(model, rows, removal="constant", budget=200, out=sys.argv[1], batch_size=256)
"""


def start(folder: Path, inputs: int) -> subprocess.Popen[bytes]:
    """Begin the run, or go on with it."""
    folder.mkdir(exist_ok=True)
    words = [str(folder / "run.parquet"), str(folder / "asked"), str(inputs)]
    return subprocess.Popen([sys.executable, "-c", RUN, *words])


def plain(folder: Path) -> list[dict[str, Any]]:
    """What a run found, the time that it took aside."""
    return [{**e.to_dict(), "seconds": 0.0} for e in pertinent.read(folder / "run.parquet")]


def asked(folder: Path) -> int:
    """Rows that the model was asked for; a kill may have torn the last line of the log."""
    return sum(int(line) for line in (folder / "asked").read_text().split() if line.isdecimal())


def finished(journal: Path) -> int:
    """Explanations in a journal."""
    return max(0, journal.read_bytes().count(b"\n") - 1) if journal.is_file() else 0


def wait_for_progress(process: subprocess.Popen[bytes], journal: Path) -> None:
    """Wait until the journal has grown or the process has ended."""
    before = finished(journal)
    while process.poll() is None and finished(journal) <= before:
        time.sleep(0.005)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        calm, killed = Path(name, "calm"), Path(name, "killed")
        assert start(calm, arguments.inputs).wait() == 0
        begin = time.perf_counter()
        assert start(calm, arguments.inputs).wait() == 0
        starting = time.perf_counter() - begin  # the run is finished, so this is what starting takes
        kills, moments = 0, []
        journal = killed / "run.parquet.journal"
        while kills < arguments.kills:
            process = start(killed, arguments.inputs)
            if rng.random() < 0.5:
                time.sleep(rng.uniform(0.3, 1.2) * starting)
            else:
                wait_for_progress(process, journal)
                time.sleep(rng.uniform(0, 0.1))
            process.send_signal(signal.SIGKILL)
            if process.wait() == 0:
                break
            kills += 1
            moments.append(finished(journal))
        assert start(killed, arguments.inputs).wait() == 0
        same = plain(calm) == plain(killed)
        print(f"{kills} kills; explanations in the journal after each: {moments}")
        print(f"{arguments.inputs} inputs, results equal: {same}")
        print(f"rows asked for without kills: {asked(calm):,}, with: {asked(killed):,}")
        if not same or not any(moments):
            sys.exit("FAILED: the results differ, or no kill came after an explanation was stored.")


if __name__ == "__main__":
    main()
