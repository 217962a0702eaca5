"""Measure, several stages at a time.

    python experiments/yang2023/run.py --data PACKED --encoder ENCODER --work WORK --results RESULTS

Each stage of each set writes one JSON file into RESULTS; what is there already is not made again, so a run
that was stopped goes on. WORK holds the models, and belongs to the RESULTS. A stage that fails says so in its
file and is tried again by the next run.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import fields, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path

from job import Job
from sets import SIZES, Sizes
from stages import stages_of

sys.path.append(str(Path(__file__).parents[1]))

from shared.stages import Pool

ALONE = "seconds-alone"
"""The stage in whose phase one stage runs after the other."""


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
    given = {size.name: getattr(arguments, size.name) for size in fields(Sizes)}
    given = {name: value for name, value in given.items() if value is not None}
    arguments.results.mkdir(parents=True, exist_ok=True)
    jobs = [
        Job(which, arguments.data, arguments.work, arguments.encoder, arguments.device, replace(own, **given))
        for which, own in SIZES.items()
        if which in arguments.sets
    ]
    for phase in zip_longest(*(stages_of(job.which) for job in jobs), fillvalue={}):
        in_turn = zip_longest(*(own.items() for own in phase), fillvalue=(None, None))
        chosen = {
            arguments.results / f"{job.which}.{name}.json": partial(stage, job)
            for several in in_turn
            for job, (name, stage) in zip(jobs, several, strict=True)
            if stage is not None and name in (arguments.stages or [name])
        }
        processes = 1 if any(ALONE in own for own in phase) else arguments.processes
        Pool(processes, last, tf32=arguments.tf32).run(chosen)


if __name__ == "__main__":
    main()
