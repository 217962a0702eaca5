"""Kill a run at random times, continue it, and compare its results with those of an undisturbed run.

    python benchmarks/kills.py [--inputs 1000] [--kills 200] [--seed 0]
    python benchmarks/kills.py --workers 2 --inputs 5000 --kills 100 --driver-kills 10

Both runs explain the same rows and write them with `out=`. One is killed (kill -9) and started again with the
same arguments until it finishes: half of the times during its start, half of the times after it has stored
explanations. With `--workers` the run uses Ray, and random workers and the driver are killed. Both results
must be equal. The model's log shows how many rows were computed twice.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from common import new_parser, seconds_of

import pertinent

RUN = """
import math, os, sys, time
from pathlib import Path
import numpy as np
import pertinent

def make_model(folder, seconds_per_row):
    def classify(rows):
        (folder / "pids" / str(os.getpid())).touch()
        with (folder / "rows").open("a") as log:
            log.write(f"{len(rows)}\\n")
        time.sleep(seconds_per_row * len(rows))
        # One row at a time: rounding in numpy's exp depends on the position in an array.
        p = [1 / (1 + math.exp(-sum((row * np.linspace(-1, 1, len(row))).tolist()))) for row in rows]
        return [[1 - q, q] for q in p]
    return pertinent.wrap(classify, kind="table")

folder, inputs, workers = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rows = np.random.default_rng(0).normal(size=(inputs, 12))
options = {"removal": "constant", "budget": 200, "batch_size": 256, "out": folder / "run.parquet"}
if workers:
    cluster = pertinent.Cluster(workers=workers, block_size=20)
    options |= {"budget": 100, "batch_size": 128, "out": folder / "run", "cluster": cluster}
model = make_model(folder, 0.0006 if workers else 0.00008)
pertinent.explain(model, rows, "kernel-shap", progress=False, **options)
"""


class Run:
    """Run in a child process that can be killed and continued."""

    def __init__(self, folder: Path, inputs: int, workers: int) -> None:
        self.folder, self.arguments = folder, [str(folder), str(inputs), str(workers)]
        self.out = folder / ("run" if workers else "run.parquet")
        self.journal = folder / "run.parquet.journal"
        (folder / "pids").mkdir(parents=True)

    def start(self) -> subprocess.Popen[bytes]:
        """Start or continue the run."""
        for pid in self.pids():
            self.forget(pid)
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen([sys.executable, "-c", RUN, *self.arguments], stdout=log, stderr=log)

    def finish(self) -> None:
        """Run to the end."""
        if self.start().wait():
            sys.exit(f"FAILED:\n{(self.folder / 'log').read_text()[-3000:]}")

    def pids(self) -> list[int]:
        """Return the processes that have called the model."""
        return sorted(int(file.name) for file in (self.folder / "pids").iterdir())

    def forget(self, pid: int) -> None:
        """Remove a process from the list."""
        (self.folder / "pids" / str(pid)).unlink(missing_ok=True)

    def stored(self) -> int:
        """Count the explanations in the journal."""
        return max(0, self.journal.read_bytes().count(b"\n") - 1) if self.journal.is_file() else 0

    def explanations(self) -> list[dict[str, Any]]:
        """Return the explanations without their times."""
        return [{**e.to_dict(), "seconds": 0.0} for e in pertinent.read(self.out)]

    def rows(self) -> int:
        """Count the rows that the model computed; a kill may have truncated a line of the log."""
        return sum(int(line) for line in (self.folder / "rows").read_text().split() if line.isdecimal())


def kill_process(run: Run, kills: int, startup: float, rng: random.Random) -> str:
    """Kill the run during its start, or after it has stored explanations, and continue it."""
    stored: list[int] = []
    while len(stored) < kills:
        before, process = run.stored(), run.start()
        if rng.random() < 0.5:
            time.sleep(rng.uniform(0.3, 1.2) * startup)
        else:
            while process.poll() is None and run.stored() <= before:
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        stored.append(run.stored())
    run.finish()
    if not any(stored):
        sys.exit("FAILED: no kill came after an explanation was stored.")
    return f"{len(stored)} kills; explanations in the journal after each: {stored}"


def kill_workers(run: Run, workers: int, drivers: int, rng: random.Random) -> str:
    """Kill random workers, and the driver, which is continued."""
    plan, done = ["worker"] * workers + ["driver"] * drivers, {"worker": 0, "driver": 0}
    rng.shuffle(plan)
    process = run.start()
    for target in plan:
        while process.poll() is None and not run.pids():
            time.sleep(0.02)
        time.sleep(rng.uniform(0.1, 3.0))
        if process.poll() is not None:
            break
        if target == "driver":
            process.kill()
            process.wait()
            process = run.start()
        else:
            while not kill_a_worker(run, rng) and process.poll() is None:
                time.sleep(0.02)
        done[target] += 1
    process.wait()
    run.finish()
    return f"{done['worker']} kills of workers, {done['driver']} of drivers"


def kill_a_worker(run: Run, rng: random.Random) -> bool:
    """Kill one of the processes that have called the model; return whether there was one."""
    pids = run.pids()
    rng.shuffle(pids)
    for pid in pids:
        run.forget(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def main() -> None:
    parser = new_parser(__doc__, json=False)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--workers", type=int, default=0, help="on Ray; 0 runs in one process")
    parser.add_argument("--driver-kills", type=int, default=0, help="with --workers")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        calm, killed = (
            Run(Path(name, each), arguments.inputs, arguments.workers) for each in ("calm", "killed")
        )
        seconds = seconds_of(calm.finish)
        print(f"undisturbed: {seconds:.0f} s", flush=True)
        rows, start = calm.rows(), time.perf_counter()
        if arguments.workers:
            kills = kill_workers(killed, arguments.kills, arguments.driver_kills, rng)
        else:
            kills = kill_process(killed, arguments.kills, seconds_of(calm.finish), rng)  # only starts
        print(f"{kills}; {time.perf_counter() - start:.0f} s")
        same = calm.explanations() == killed.explanations()
        print(f"{arguments.inputs:,} inputs, results equal: {same}")
        print(f"rows computed without kills: {rows:,}, with kills: {killed.rows():,}")
        if not same:
            sys.exit("FAILED: the results differ.")


if __name__ == "__main__":
    main()
