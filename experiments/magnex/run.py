r"""Train, fit, explain and measure, several stages at a time.

    python experiments/magnex/run.py --data PACKED --encoder ENCODER --cnn WEIGHTS \
        --work WORK --results RESULTS

Each stage of each black box writes one JSON file into RESULTS; what is there already is not made again, so a
run that was stopped goes on. WORK holds models and explanations, and belongs to the RESULTS. A stage that
fails says so in its file and is tried again by the next run. WEIGHTS are what `hsieh2021/mnist.py` wrote.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import traceback
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

SIZES: dict[str, dict[str, int]] = {
    "imdb": {"steps": 1000, "train": 3000, "test": 200, "timed": 10, "together": 1000},
    "squad": {"steps": 1000, "train": 5000, "test": 200, "timed": 10, "together": 1000},
    "forest": {"steps": 2000, "train": 4000, "test": 200, "timed": 10, "together": 1000},
    "cnn": {"steps": 2000, "train": 4000, "test": 200, "timed": 10, "together": 1000},
}
TIMED = ("seconds", "speed")
"""The stages that nothing runs beside."""


def carry_out(options: dict[str, Any], name: str, made: Path, seeds: int, tf32: bool) -> None:
    """Run one stage in a process of its own, and write what it found, or why it failed."""
    import torch
    from stages import Job, stages_of

    if tf32:
        torch.set_float32_matmul_precision("high")
    torch.set_num_threads(1)
    job = Job(**options)
    start = time.perf_counter()
    try:
        phases = stages_of(job.which, seeds, results_in(made.parent, job.which))
        result = {k: v for phase in phases for k, v in phase.items()}[name](job)
    except Exception:  # noqa: BLE001 (the others go on)
        result = {"error": traceback.format_exc()[-2000:]}
    result["wall seconds"] = round(time.perf_counter() - start, 2)
    unfinished = made.with_suffix(".part")
    unfinished.write_text(json.dumps(result))
    unfinished.rename(made)


def is_made(path: Path) -> bool:
    """Whether a stage was carried out, and did not fail."""
    return path.is_file() and "error" not in json.loads(path.read_text())


def results_in(folder: Path, which: str) -> dict[str, Any]:
    """What the stages of a black box found so far."""
    paths = [path for path in folder.glob(f"{which}.*.json") if is_made(path)]
    return {path.name[len(which) + 1 : -len(".json")]: json.loads(path.read_text()) for path in paths}


class Line:
    """The stages of one black box, in phases; a phase begins when the one before it is done."""

    def __init__(self, options: dict[str, Any], results: Path, only: list[str], seeds: int) -> None:
        self.options, self.results, self.only, self.seeds = options, results, only, seeds

    @property
    def phases(self) -> list[list[tuple[str, Path]]]:
        """As far as they are known: later ones depend on what was found."""
        from stages import stages_of

        which = self.options["which"]
        return [
            [
                (name, self.results / f"{which}.{name}.json")
                for name in phase
                if name.startswith(tuple(self.only))
            ]
            for phase in stages_of(which, self.seeds, results_in(self.results, which))
        ]

    def ready(self, begun: set[Path], *, alone: bool = False) -> list[tuple[str, Path]]:
        """What may be begun: of the stages that are timed, or of the others."""
        for phase in self.phases:
            left = [each for each in phase if not is_made(each[1])]
            if left:
                timed = left[0][0] in TIMED
                return [each for each in left if each[1] not in begun] if timed == alone else []
        return []

    def done(self, begun: set[Path], running: set[Path]) -> bool:
        """Whether nothing is left that could be begun."""
        return not any(
            made.name.startswith(f"{self.options['which']}.") for made in running
        ) and not self.ready(begun)


class Pool:
    """Stages that run side by side."""

    def __init__(self, processes: int, last: float, tf32: bool) -> None:
        self.processes, self.last, self.tf32 = processes, last, tf32
        self.running: dict[Path, tuple[BaseProcess, float]] = {}
        self.begun: set[Path] = set()

    @property
    def in_time(self) -> bool:
        """Whether there is time left."""
        return time.time() < self.last

    def begin(self, line: Line, name: str, made: Path) -> None:
        """Start a stage."""
        start = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        process = start.Process(target=carry_out, args=(line.options, name, made, line.seeds, self.tf32))
        process.start()
        self.begun.add(made)
        self.running[made] = process, time.time()

    def collect(self) -> None:
        """Wait a little, and say which are done."""
        time.sleep(0.3)
        for made, (process, since) in list(self.running.items()):
            if not process.is_alive():
                del self.running[made]
                state = "done" if is_made(made) else "FAILED"
                print(f"{made.stem}: {state} ({time.time() - since:.0f} s)", flush=True)

    def run(self, lines: list[Line]) -> None:
        """All phases but the last of each line."""
        while self.in_time and not all(line.done(self.begun, set(self.running)) for line in lines):
            for line in lines:
                for name, made in line.ready(self.begun):
                    if len(self.running) < self.processes:
                        self.begin(line, name, made)
            self.collect()

    def run_alone(self, lines: list[Line]) -> None:
        """The last phases, one stage after the other, as their time is taken."""
        for line in lines:
            for name, made in line.ready(self.begun, alone=True):
                if self.in_time and not self.running:
                    self.begin(line, name, made)
                    while self.running and self.in_time:
                        self.collect()

    def stop(self) -> None:
        """End what is still running."""
        for made, (process, since) in self.running.items():
            process.kill()
            print(f"{made.stem}: stopped, time is up ({time.time() - since:.0f} s)", flush=True)


def main() -> None:
    """Run the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="what sets.py packed")
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--cnn", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--boxes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--only", nargs="+", default=[""], help="stages whose name begins with one of these")
    parser.add_argument("--seeds", type=int, default=5, help="initialisations")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tf32", action="store_true", help="multiply in TF32, which is faster")
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this long")
    parser.add_argument("--limit", type=int, help="training examples of the black boxes")
    for size in ("steps", "train", "test", "timed", "together"):
        parser.add_argument(f"--{size}", type=int, help="other than each black box's own")
    arguments = parser.parse_args()
    last = time.time() + arguments.seconds
    # Many processes side by side: one thread each.
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    arguments.results.mkdir(parents=True, exist_ok=True)
    shared = {name: getattr(arguments, name) for name in ("data", "work", "encoder", "device", "limit")}
    shared["weights"] = arguments.cnn
    lines = []
    for which in arguments.boxes:
        own = {k: getattr(arguments, k) or v for k, v in SIZES[which].items()}
        options = {"which": which, **shared, **own}
        lines.append(Line(options, arguments.results, arguments.only, arguments.seeds))
    pool = Pool(arguments.processes, last, arguments.tf32)
    pool.run(lines)
    pool.run_alone(lines)
    pool.stop()


if __name__ == "__main__":
    main()
