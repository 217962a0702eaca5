"""Fit, explain and measure, several stages at a time.

    python experiments/vo2023/run.py --data DATA --results RESULTS

Each stage writes one JSON file into RESULTS; what is there already is not made again, so a run that was
stopped goes on. A stage that fails says so in its file and is tried again by the next run.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path

from stages import Job, boxes, stages_of, timings

sys.path.append(str(Path(__file__).parents[1]))

from shared.legacy import Pool


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
    for stages, processes in ((boxes(), together), (stages_of(arguments.seeds), together), (timings(), 1)):
        chosen = dict.fromkeys(name for own in arguments.only for name in stages if name.startswith(own))
        Pool(processes, last).run(
            {job.weights / f"{name}.json": partial(stages[name], job) for name in chosen}
        )


if __name__ == "__main__":
    main()
