"""Fit, explain and measure, several stages at a time.

    python experiments/vo2023/run.py --data DATA --results RESULTS

Each stage writes one JSON file into RESULTS; what is there already is not made again, so a run that was
stopped goes on. A stage that fails says so in its file and is tried again by the next run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import traceback
from multiprocessing.process import BaseProcess
from pathlib import Path

from stages import Job, boxes, stages_of, timings


def carry_out(job: Job, name: str, seeds: int, made: Path) -> None:
    """Run one stage in a process of its own, and write what it found, or why it failed."""
    import torch

    torch.set_num_threads(1)
    start = time.perf_counter()
    try:
        result = (boxes() | stages_of(seeds) | timings())[name](job)
    except Exception:  # noqa: BLE001 (the others go on)
        result = {"error": traceback.format_exc()[-2000:]}
    result["wall seconds"] = round(time.perf_counter() - start, 2)
    unfinished = made.with_suffix(".part")
    unfinished.write_text(json.dumps(result))
    unfinished.rename(made)


def is_made(path: Path) -> bool:
    """Whether a stage was carried out, and did not fail."""
    return path.is_file() and "error" not in json.loads(path.read_text())


def main() -> None:
    """Train the black boxes, then all else, and take times at the end."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--train", type=int, default=20_000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument(
        "--sampled", type=int, default=100, help="inputs for methods that sample each of them"
    )
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--box-epochs", type=int, default=4, help="epochs of the black boxes")
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="stages whose name begins with one of these, in this order"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    job = Job(
        arguments.data,
        arguments.results,
        arguments.device,
        arguments.train,
        arguments.test,
        arguments.sampled,
        arguments.epochs,
        arguments.box_epochs,
        arguments.batch_size,
    )
    arguments.results.mkdir(parents=True, exist_ok=True)
    last = time.time() + arguments.seconds
    together = arguments.processes
    for names, processes in ((boxes(), together), (stages_of(arguments.seeds), together), (timings(), 1)):
        chosen = dict.fromkeys(name for own in arguments.only for name in names if name.startswith(own))
        run_phase(job, list(chosen), arguments.seeds, processes, last)


def run_phase(job: Job, names: list[str], seeds: int, processes: int, last: float) -> None:
    """Run the stages, so many at a time, until all are done or time is up."""
    start = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    waiting = [(name, job.weights / f"{name}.json") for name in names]
    waiting = [each for each in waiting if not is_made(each[1])]
    running: dict[Path, tuple[BaseProcess, float]] = {}
    while (waiting or running) and time.time() < last:
        while waiting and len(running) < processes:
            name, made = waiting.pop(0)
            begun = start.Process(target=carry_out, args=(job, name, seeds, made))
            begun.start()
            running[made] = begun, time.time()
        time.sleep(0.1)
        for made, (process, since) in list(running.items()):
            if not process.is_alive():
                del running[made]
                state = "done" if is_made(made) else "FAILED"
                print(f"{made.stem}: {state} ({time.time() - since:.0f} s)", flush=True)
    for made, (process, since) in running.items():
        process.kill()
        print(f"{made.stem}: stopped, time is up ({time.time() - since:.0f} s)", flush=True)
    for name, _ in waiting:
        print(f"{name}: left out, time is up", flush=True)


if __name__ == "__main__":
    main()
