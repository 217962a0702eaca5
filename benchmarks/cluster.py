"""Throughput, overhead and memory of a cluster on one machine.

    python benchmarks/cluster.py throughput [--rows 150] [--waits]  1 and 2 workers, 10 ms per row
    python benchmarks/cluster.py overhead [--texts 2000]            1 worker compared with plain `explain`
    python benchmarks/cluster.py one [--inputs 2000]                one process with fast models
    python benchmarks/cluster.py memory [--inputs 2000 100000]      the driver's memory by number of inputs

The times do not include the start of Ray, which is measured separately. Throughput is that of workers that
have started: the inputs of a long run minus those of a short one, divided by the difference of their times.
Its model computes, or with `--waits` sleeps, which is more informative on a busy machine. Overhead is
measured in seconds, and in processor seconds of the driver and the worker. Run with OMP_NUM_THREADS=1, and on
a busy machine with RAY_worker_niceness=0: by default Ray's workers have a lower priority than plain
`explain`.
"""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from common import new_parser, seconds_of

import pertinent
from pertinent import Cluster


@contextmanager
def ray_here(cores: int) -> Iterator[None]:
    """Start Ray on this machine with `cores` cores, and stop it afterwards."""
    import ray

    options = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    print(f"start of Ray: {seconds_of(ray.init, num_cpus=cores, **options):.1f} s")
    try:
        yield
    finally:
        ray.shutdown()


def slow_model(*, waits: bool) -> Any:
    """Return a model of table rows that computes for 10 ms per row, or sleeps."""

    def classify(rows: Any) -> list[list[float]]:
        probabilities = []
        time.sleep(0.01 * len(rows) * waits)
        for row in rows:
            end = time.process_time() + 0.01
            while not waits and time.process_time() < end:
                np.sin(row).sum()
            p = 1 / (1 + np.exp(-float(row[0])))
            probabilities.append([1 - p, p])
        return probabilities

    return pertinent.wrap(classify, kind="table")


def throughput(n: int, *, waits: bool) -> None:
    rows = np.random.default_rng(0).normal(size=(n, 6))
    words: dict[str, Any] = {"method": "kernel-shap", "budget": 24, "removal": "constant", "progress": False}
    model, first = slow_model(waits=waits), rows[: n // 5]
    rates: dict[int, list[float]] = {1: [], 2: []}
    with ray_here(2):
        for workers in (1, 2) * 2:
            cluster = Cluster(workers=workers)
            few = seconds_of(pertinent.explain, model, first, cluster=cluster, **words)
            all_ = seconds_of(pertinent.explain, model, rows, cluster=cluster, **words)
            rates[workers].append((n - len(first)) / (all_ - few))
            print(f"{workers} workers: {len(first)} inputs {few:.1f} s, {n} inputs {all_:.1f} s")
    for workers, each in rates.items():
        print(f"{workers} workers: {', '.join(f'{rate:.2f}' for rate in each)} inputs per second")
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
    """Measure the processor seconds of this process and, while they run, of Ray's workers."""
    spent: dict[str, float] = {}
    earlier: dict[str, float] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            earlier[process.name] = processor_seconds_of(process)
    start, over = time.process_time(), threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if process.joinpath("cmdline").read_bytes().startswith(b"ray::Worker"):
                        seconds = processor_seconds_of(process)
                        spent[process.name] = seconds - earlier.get(process.name, 0.0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield spent
    finally:
        over.set()
        watcher.join()
        spent["driver"] = time.process_time() - start


def overhead(n: int) -> None:
    import torch

    torch.set_num_threads(1)
    inputs, words = texts(n), {"method": "leave-one-out", "progress": False}
    model, cluster = pertinent.load("sentiment"), Cluster(workers=1)
    times: dict[str, list[tuple[float, float]]] = {"plain": [], "1 worker": [], "start of a worker": []}
    with ray_here(1):
        for _ in range(2):
            for name, where, some in (
                ("plain", None, inputs),
                ("1 worker", cluster, inputs),
                ("start of a worker", cluster, inputs[:1]),
            ):
                with processor_seconds() as spent:
                    wall = seconds_of(pertinent.explain, model, some, cluster=where, **words)
                times[name].append((wall, sum(spent.values())))
                print(
                    f"{len(some):,} texts, {name}: {wall:.1f} s, {times[name][-1][1]:.1f} processor seconds"
                )
    for i, unit in enumerate(("seconds", "processor seconds")):
        plain, worker, start = (np.mean([each[i] for each in pairs]) for pairs in times.values())
        print(
            f"overhead in {unit}: {worker / plain - 1:+.1%}, without the worker's start "
            f"{(worker - start) / plain - 1:+.1%}"
        )


def one_process(n: int) -> None:
    """Measure one process with fast models."""
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
    for name, (model, inputs, words) in cases.items():
        start = time.process_time()
        wall = seconds_of(pertinent.explain, model, inputs, progress=False, **words)
        spent = time.process_time() - start
        print(f"{name}: {1000 * spent / n:.2f} processor ms per input, {spent / wall:.2f} cores used")


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
start = time.perf_counter()
words = {"out": sys.argv[2], "cluster": pertinent.Cluster(workers=2), "progress": False}
folder = pertinent.explain(model, stream, "leave-one-out", **words)
seconds = time.perf_counter() - start
size = sum(file.stat().st_size for file in folder.files)
print(f"{n:,} inputs: driver at most {most:.0f} MiB, {n / seconds:.0f} inputs per second with Ray's start,")
print(f"{len(folder.files)} files, {size / n:.0f} bytes per explanation")
"""


def memory(numbers: list[int]) -> None:
    for n in numbers:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-c", MEMORY, str(n), str(Path(folder, "run"))], check=True)


def main() -> None:
    parser = new_parser(__doc__, json=False)
    parser.add_argument("measurement", choices=["throughput", "overhead", "one", "memory"])
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--waits", action="store_true")
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--inputs", type=int, nargs="+", default=[2000, 100_000])
    arguments = parser.parse_args()
    if arguments.measurement == "throughput":
        throughput(arguments.rows, waits=arguments.waits)
    elif arguments.measurement == "overhead":
        overhead(arguments.texts)
    elif arguments.measurement == "one":
        one_process(arguments.inputs[0])
    else:
        memory(arguments.inputs)


if __name__ == "__main__":
    main()
