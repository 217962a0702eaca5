"""Measure, several stages at a time.

    python experiments/yang2023/run.py --data PACKED --encoder ENCODER --work WORK --results RESULTS

Each stage of each set writes one JSON file into RESULTS; what is there already is not made again, so a run
that was stopped goes on. WORK holds the models, and belongs to the RESULTS. A stage that fails says so in its
file and is tried again by the next run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import traceback
from dataclasses import fields, replace
from itertools import zip_longest
from multiprocessing.process import BaseProcess
from pathlib import Path

from job import Job
from sets import SIZES, Sizes

ALONE = "seconds"
"""The stage beside which nothing else runs."""


def carry_out(job: Job, name: str, made: Path, tf32: bool) -> None:
    """Run one stage in a process of its own, and write what it found, or why it failed."""
    import torch
    from stages import stages_of

    if tf32:
        torch.set_float32_matmul_precision("high")
    torch.set_num_threads(1)
    stage = {k: v for phase in stages_of(job.which) for k, v in phase.items()}[name]
    start = time.perf_counter()
    try:
        result = stage(job)
    except Exception:  # noqa: BLE001 (the others go on)
        result = {"error": traceback.format_exc()[-2000:]}
    result["wall seconds"] = round(time.perf_counter() - start, 2)
    unfinished = made.with_suffix(".part")
    unfinished.write_text(json.dumps(result))
    unfinished.rename(made)


def is_made(path: Path) -> bool:
    """Whether a stage was carried out, and did not fail."""
    return path.is_file() and "error" not in json.loads(path.read_text())


def run_phase(waiting: list[tuple[Job, str, Path, bool]], processes: int, last: float) -> None:
    """Run the stages, so many at a time, until all are done or time is up."""
    start = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    running: dict[Path, tuple[BaseProcess, float]] = {}
    waiting = [each for each in waiting if not is_made(each[2])]
    while (waiting or running) and time.time() < last:
        while waiting and len(running) < processes:
            each = waiting.pop(0)
            begun = start.Process(target=carry_out, args=each)
            begun.start()
            running[each[2]] = begun, time.time()
        time.sleep(0.1)
        for made, (process, since) in list(running.items()):
            if not process.is_alive():
                del running[made]
                state = "done" if is_made(made) else "FAILED"
                print(f"{made.stem}: {state} ({time.time() - since:.0f} s)", flush=True)
    for made, (process, since) in running.items():
        process.kill()
        print(f"{made.stem}: stopped, time is up ({time.time() - since:.0f} s)", flush=True)
    for each in waiting:
        print(f"{each[2].stem}: left out, time is up", flush=True)


def main() -> None:
    """Run the phases one after the other; in the last, the sets take turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="what sets.py packed")
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--stages", nargs="+", metavar="STAGE", help="only these, such as method-KS-25")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tf32", action="store_true", help="multiply in TF32, which is faster")
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this long")
    for size in fields(Sizes):
        parser.add_argument(f"--{size.name.replace('_', '-')}", type=int, help="other than each set's own")
    arguments = parser.parse_args()
    last = time.time() + arguments.seconds
    # Many processes side by side: one thread each.
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    from stages import stages_of

    given = {size.name: getattr(arguments, size.name) for size in fields(Sizes)}
    given = {name: value for name, value in given.items() if value is not None}
    arguments.results.mkdir(parents=True, exist_ok=True)
    jobs = [
        Job(which, arguments.data, arguments.work, arguments.encoder, arguments.device, replace(own, **given))
        for which, own in SIZES.items()
        if which in arguments.sets
    ]
    for phase in zip_longest(*(stages_of(job.which) for job in jobs), fillvalue={}):
        in_turn = (each for several in zip_longest(*phase) for each in zip(jobs, several, strict=True))
        waiting = [
            (job, name, arguments.results / f"{job.which}.{name}.json", arguments.tf32)
            for job, name in in_turn
            if name is not None and name in (arguments.stages or [name])
        ]
        run_phase(waiting, 1 if ALONE in phase[0] else arguments.processes, last)


if __name__ == "__main__":
    main()
