"""What a cluster on one machine gains, costs and survives.

    python benchmarks/cluster.py throughput [--rows 150] [--waits]  1 and 2 workers, 10 ms a row
    python benchmarks/cluster.py overhead [--texts 2000]            1 worker beside plain `explain`
    python benchmarks/cluster.py one [--inputs 2000]                what one process does with cheap models
    python benchmarks/cluster.py memory [--inputs 2000,100000]      the driver's memory by number of inputs
    python benchmarks/cluster.py kills [--inputs 5000] [--kills 100] [--driver-kills 10] [--seed 0]

Throughput and overhead are measured with a Ray that is running already; what starting it takes is measured
apart. Throughput is that of workers that have started: the inputs of a long run less those of a short one,
divided by the difference of their times. Its model computes, or waits as for a model elsewhere, which tells
more where others use the machine. Overhead is told in seconds, and in processor seconds of the driver and the
worker. The kills are of random workers and of the driver (kill -9), which is started again with the same
words; the result must be equal to that of an undisturbed run, and the model's own log tells how many rows
were computed twice. Run with OMP_NUM_THREADS=1, and RAY_worker_niceness=0 where others use the machine: by
default Ray's workers give way to them, and plain `explain` does not.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

import pertinent
from pertinent import Cluster


@contextmanager
def ray_here(cores: int) -> Iterator[None]:
    """Start Ray on this machine with `cores` cores, and stop it afterwards."""
    import ray

    begin = time.perf_counter()
    ray.init(num_cpus=cores, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    print(f"starting Ray: {time.perf_counter() - begin:.1f} s")
    try:
        yield
    finally:
        ray.shutdown()


def seconds(call: Callable[..., Any], *arguments: Any, **words: Any) -> float:
    begin = time.perf_counter()
    call(*arguments, **words)
    return time.perf_counter() - begin


def slow_model(*, waits: bool) -> Any:
    """A model of table rows that computes for 10 ms on each, or only waits."""

    def classify(rows: Any) -> list[list[float]]:
        found = []
        time.sleep(0.01 * len(rows) * waits)
        for row in rows:
            end = time.process_time() + 0.01
            while not waits and time.process_time() < end:
                np.sin(row).sum()
            p = 1 / (1 + np.exp(-float(row[0])))
            found.append([1 - p, p])
        return found

    return pertinent.wrap(classify, kind="table")


def throughput(n: int, *, waits: bool) -> None:
    rows = np.random.default_rng(0).normal(size=(n, 6))
    words: dict[str, Any] = {"method": "kernel-shap", "budget": 24, "removal": "constant", "progress": False}
    model, first = slow_model(waits=waits), rows[: n // 5]
    rates: dict[int, list[float]] = {1: [], 2: []}
    with ray_here(2):
        for workers in (1, 2) * 2:
            cluster = Cluster(workers=workers)
            few = seconds(pertinent.explain, model, first, cluster=cluster, **words)
            all_ = seconds(pertinent.explain, model, rows, cluster=cluster, **words)
            rates[workers].append((n - len(first)) / (all_ - few))
            print(f"{workers} workers: {len(first)} inputs {few:.1f} s, {n} inputs {all_:.1f} s")
    for workers, each in rates.items():
        print(f"{workers} workers: {', '.join(f'{rate:.2f}' for rate in each)} inputs a second once started")
    print(f"ratio of the means: {np.mean(rates[2]) / np.mean(rates[1]):.2f}")


def texts(n: int) -> list[str]:
    words = [
        "slow",
        "wonderful",
        "dull",
        "lazy",
        "film",
        "with",
        "great",
        "heart",
        "no",
        "plot",
        "but",
        "good",
    ]
    rng = random.Random(0)
    return [" ".join(rng.choices(words, k=rng.randint(6, 24))) for _ in range(n)]


def processor_seconds_of(process: Path) -> float:
    times = process.joinpath("stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def processor_seconds() -> Iterator[dict[str, float]]:
    """The processor seconds of this process and of Ray's workers, which end before they can be asked."""
    found: dict[str, float] = {}
    earlier: dict[str, float] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            earlier[process.name] = processor_seconds_of(process)
    begin, over = time.process_time(), threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if process.joinpath("cmdline").read_bytes().startswith(b"ray::Worker"):
                        spent = processor_seconds_of(process) - earlier.get(process.name, 0.0)
                        found[process.name] = spent

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield found
    finally:
        over.set()
        watcher.join()
        found["driver"] = time.process_time() - begin


def overhead(n: int) -> None:
    import torch

    torch.set_num_threads(1)
    inputs, words = texts(n), {"method": "leave-one-out", "progress": False}
    model, cluster = pertinent.load("sentiment"), Cluster(workers=1)
    took: dict[str, list[tuple[float, float]]] = {"plain": [], "1 worker": [], "its start": []}
    with ray_here(1):
        for _ in range(2):
            for what, where, some in (
                ("plain", None, inputs),
                ("1 worker", cluster, inputs),
                ("its start", cluster, inputs[:1]),
            ):
                with processor_seconds() as spent:
                    wall = seconds(pertinent.explain, model, some, cluster=where, **words)
                took[what].append((wall, sum(spent.values())))
                print(f"{len(some):,} texts, {what}: {wall:.1f} s, {took[what][-1][1]:.1f} s of a processor")
    for place, unit in enumerate(("seconds", "processor seconds")):
        plain_, worker, begun = (np.mean([each[place] for each in own]) for own in took.values())
        print(
            f"overhead in {unit}: {worker / plain_ - 1:+.1%}, without the worker's start "
            f"{(worker - begun) / plain_ - 1:+.1%}"
        )


def one_process(n: int) -> None:
    """What one process does with cheap models, and how much of it is the model's own time."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 20))
    fitted = LogisticRegression().fit(rows, rows[:, 0] + rows[:, 1] > 0)
    table = pertinent.wrap(fitted, background=rows[:50])
    function = pertinent.wrap(lambda ts: [[0.9, 0.1] if "bad" in t else [0.3, 0.7] for t in ts], kind="text")
    cases: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "a function of texts, leave-one-out": (function, texts(n), {"method": "leave-one-out"}),
        "logistic regression, 20 columns, kernel-shap, 200 evaluations": (
            table,
            rows,
            {"method": "kernel-shap", "budget": 200, "removal": "constant"},
        ),
    }
    for what, (model, inputs, words) in cases.items():
        begin = time.process_time()
        wall = seconds(pertinent.explain, model, inputs, progress=False, **words)
        spent = time.process_time() - begin
        print(f"{what}: {1000 * spent / n:.2f} ms of a processor an input, {spent / wall:.2f} cores used")


MEMORY = """
import sys, threading, time
import pertinent

def classify(texts):
    return [[0.9, 0.1] if "bad" in text else [0.3, 0.7] for text in texts]

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20

most = 0.0
def watch():
    global most
    while True:
        most = max(most, resident())
        time.sleep(0.05)

threading.Thread(target=watch, daemon=True).start()
n = int(sys.argv[1])
stream = (f"film {i} is {'bad' if i % 3 else 'good'} I think" for i in range(n))
model = pertinent.wrap(classify, kind="text", classes=["bad", "good"])
begin = time.perf_counter()
words = {"out": sys.argv[2], "cluster": pertinent.Cluster(workers=2), "progress": False}
found = pertinent.explain(model, stream, "leave-one-out", **words)
took = time.perf_counter() - begin
size = sum(file.stat().st_size for file in found.files)
print(f"{n:,} inputs: driver at most {most:.0f} MiB, {n / took:.0f} inputs a second with the start of Ray,")
print(f"{len(found.files)} files, {size / n:.0f} bytes an explanation")
"""


def memory(numbers: list[int]) -> None:
    for n in numbers:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-c", MEMORY, str(n), str(Path(folder, "run"))], check=True)


KILLED = """
import math, os, sys, time
from pathlib import Path
import numpy as np
import pertinent

def model_of(folder):
    def classify(rows):
        (folder / "pids" / str(os.getpid())).touch()
        with (folder / "asked").open("a") as log:
            log.write(f"{len(rows)}\\n")
        time.sleep(0.0006 * len(rows))
        # One row at a time: numpy's exp rounds by where in an array a number stands.
        p = [1 / (1 + math.exp(-sum((row * np.linspace(-1, 1, len(row))).tolist()))) for row in rows]
        return [[1 - q, q] for q in p]
    return pertinent.wrap(classify, kind="table")

folder, n = Path(sys.argv[1]), int(sys.argv[2])
rows = np.random.default_rng(0).normal(size=(n, 12))
words = dict(removal="constant", budget=100, batch_size=128, progress=False)
cluster = pertinent.Cluster(workers=2, block_size=20)
# Not what identifies the model, which must be the same in both runs.
model = model_of(folder)
pertinent.explain(model, rows, "kernel-shap", out=folder / "run", cluster=cluster, **words)
"""


def start(folder: Path, inputs: int) -> subprocess.Popen[bytes]:
    """Begin the run, or go on with it."""
    (folder / "pids").mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", KILLED, str(folder), str(inputs)], stdout=log, stderr=log
        )


def plain(folder: Path) -> list[dict[str, Any]]:
    """What a run found, the time that it took aside."""
    return [{**e.to_dict(), "seconds": 0.0} for e in pertinent.read(folder / "run")]


def asked(folder: Path) -> int:
    """Rows that the model was asked for; a kill may have torn a line of the log."""
    return sum(int(line) for line in (folder / "asked").read_text().split() if line.isdecimal())


def kill_a_worker(folder: Path, rng: random.Random) -> bool:
    """Kill one of the processes that have asked the model something, and return whether there was one."""
    pids = sorted(int(file.name) for file in (folder / "pids").iterdir())
    rng.shuffle(pids)
    for pid in pids:
        (folder / "pids" / str(pid)).unlink(missing_ok=True)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def kills(inputs: int, wanted: int, of_driver: int, seed: int) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        calm, killed = Path(name, "calm"), Path(name, "killed")
        took = seconds(lambda: start(calm, inputs).wait())
        print(f"undisturbed: {took:.0f} s", flush=True)
        plan = ["worker"] * wanted + ["driver"] * of_driver
        rng.shuffle(plan)
        begin, done = time.perf_counter(), {"worker": 0, "driver": 0}
        process = start(killed, inputs)
        for what in plan:
            while process.poll() is None and not any((killed / "pids").iterdir()):
                time.sleep(0.02)  # until a worker is at work
            time.sleep(rng.uniform(0.1, 3.0))
            if process.poll() is not None:
                break
            if what == "driver":
                process.kill()
                process.wait()
                for file in (killed / "pids").iterdir():
                    file.unlink(missing_ok=True)
                process = start(killed, inputs)
                done[what] += 1
            else:
                while not kill_a_worker(killed, rng) and process.poll() is None:
                    time.sleep(0.02)
                done[what] += 1
        code = process.wait()
        print(
            f"killed: {done['worker']} workers, {done['driver']} drivers; {time.perf_counter() - begin:.0f} s"
        )
        if code:
            print((killed / "log").read_text()[-3000:])
            sys.exit(1)
        same = plain(calm) == plain(killed)
        failures = pertinent.read(killed / "run").n_failures
        print(f"{inputs:,} inputs, results equal: {same}, failures: {failures}")
        print(f"rows asked for without kills: {asked(calm):,}, with: {asked(killed):,}")
        if not same:
            sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["throughput", "overhead", "one", "memory", "kills"])
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--waits", action="store_true")
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--inputs", default=None)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--driver-kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.what == "throughput":
        throughput(given.rows, waits=given.waits)
    elif given.what == "overhead":
        overhead(given.texts)
    elif given.what == "one":
        one_process(int(given.inputs or 2000))
    elif given.what == "memory":
        memory([int(n) for n in (given.inputs or "2000,100000").split(",")])
    else:
        kills(int(given.inputs or 5000), given.kills, given.driver_kills, given.seed)


if __name__ == "__main__":
    main()
