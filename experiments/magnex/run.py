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
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from stages import Job, stages_of

sys.path.append(str(Path(__file__).parents[1]))

from shared.legacy import Pool, Stage, is_made

SIZES: dict[str, dict[str, int]] = {
    "imdb": {"steps": 1000, "train": 3000, "test": 200, "timed": 10, "together": 1000},
    "squad": {"steps": 1000, "train": 5000, "test": 200, "timed": 10, "together": 1000},
    "forest": {"steps": 2000, "train": 4000, "test": 200, "timed": 10, "together": 1000},
    "cnn": {"steps": 2000, "train": 4000, "test": 200, "timed": 10, "together": 1000},
}
TIMED = ("seconds", "speed")
"""The stages that nothing runs beside."""


def results_in(folder: Path, which: str) -> dict[str, Any]:
    """What the stages of a black box found so far."""
    paths = [path for path in folder.glob(f"{which}.*.json") if is_made(path)]
    return {path.name[len(which) + 1 : -len(".json")]: json.loads(path.read_text()) for path in paths}


class Line:
    """The stages of one black box, in phases; a phase begins when the one before it is done."""

    def __init__(self, job: Job, results: Path, only: list[str], seeds: int) -> None:
        self.job, self.results, self.only, self.seeds = job, results, only, seeds
        self.begun: set[Path] = set()

    def ready(self, *, alone: bool = False) -> dict[Path, Stage]:
        """What may be begun: of the stages that are timed, or of the others."""
        which = self.job.which
        # Later phases depend on what was found.
        for phase in stages_of(which, self.seeds, results_in(self.results, which)):
            left = {
                name: made
                for name in phase
                if name.startswith(tuple(self.only))
                and not is_made(made := self.results / f"{which}.{name}.json")
            }
            if left:
                timed = next(iter(left)) in TIMED
                return {
                    made: partial(phase[name], self.job)
                    for name, made in left.items()
                    if made not in self.begun and timed == alone
                }
        return {}

    def begin(self, pool: Pool, made: Path, stage: Stage) -> None:
        """Start a stage."""
        self.begun.add(made)
        pool.begin(made, stage)

    def is_done(self, pool: Pool) -> bool:
        """Whether nothing runs, and nothing is left that could be begun."""
        return self.begun.isdisjoint(pool.running) and not self.ready()


def run(lines: list[Line], pool: Pool) -> None:
    """All phases but the last of each line."""
    while pool.in_time and not all(line.is_done(pool) for line in lines):
        for line in lines:
            for made, stage in line.ready().items():
                if not pool.is_full:
                    line.begin(pool, made, stage)
        pool.collect()


def run_alone(lines: list[Line], pool: Pool) -> None:
    """The last phases, one stage after the other, as their time is taken."""
    for line in lines:
        for made, stage in line.ready(alone=True).items():
            if pool.in_time and not pool.running:
                line.begin(pool, made, stage)
                while pool.running and pool.in_time:
                    pool.collect()


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
        options: dict[str, Any] = {"which": which, **shared, **own}
        lines.append(Line(Job(**options), arguments.results, arguments.only, arguments.seeds))
    pool = Pool(arguments.processes, last, tf32=arguments.tf32)
    run(lines, pool)
    run_alone(lines, pool)
    pool.stop()


if __name__ == "__main__":
    main()
