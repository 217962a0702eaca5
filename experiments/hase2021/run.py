"""Run stages of the experiments over sets, trainings and seeds, several processes at a time.

    python run.py train removals explain --data DIR --encoder DIR --work DIR --results DIR

What is there already is not made again, so a run that was stopped can go on. A command starts as soon as a
process is free and its model is trained; where one fails, what needs it is left out and the rest goes on.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from data import SETS
from methods import OBJECTIVES
from removals import REMOVALS

HERE = Path(__file__).parent
SMALL = 10_000
"""Training examples for the comparison of removals, as in the paper (App. B.2)."""
FILLER = "filler"
DONE = ("done", "was there")


@dataclass(frozen=True)
class Job:
    """A command, the result it makes, and the models it needs."""

    command: list[object]
    made: Path
    models: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the result is called."""
        return self.made.name.removesuffix(".json")


def folder(which: str, removal: str | None, seed: int, limit: int | None = None) -> str:
    """The name of a model."""
    size = f"-{limit}" if limit else ""
    return f"{which}{size}-{removal or 'standard'}-{seed}"


def training(arguments: argparse.Namespace) -> list[Job]:
    """One command for each model, and one for what fills in removed tokens."""
    wanted = [
        (which, removal, seed, None)
        for seed, which, removal in itertools.product(
            range(arguments.seeds), arguments.sets, (None, "attention-mask")
        )
    ]
    wanted += [
        (which, removal, seed, SMALL)
        for seed, which, removal in itertools.product(
            range(arguments.seeds), arguments.removal_sets, (None, *REMOVALS)
        )
    ]
    jobs = []
    for which, removal, seed, limit in wanted:
        name = folder(which, removal, seed, limit)
        out, made = arguments.work / name, arguments.results / f"{name}.train.json"
        command = ["fine_tune.py", "--data", arguments.data, "--encoder", arguments.encoder, "--out", out]
        command += ["--result", made, "--set", which, "--seed", seed]
        command += ["--removal", removal] if removal else []
        command += ["--limit", limit] if limit else []
        jobs.append(Job(command, made))
    if arguments.removal_sets:
        made = arguments.results / f"{FILLER}.train.json"
        command = ["filler.py", "--data", arguments.data, "--encoder", arguments.encoder]
        command += ["--out", arguments.work / FILLER, "--result", made, "--sets", *arguments.removal_sets]
        jobs.append(Job(command, made))
    return jobs


def explaining(arguments: argparse.Namespace) -> list[Job]:
    """One command for each model and objective; the short sentences of SST-2 on their own."""
    jobs = []
    for which, seed, removal in itertools.product(
        arguments.sets, range(arguments.seeds), (None, "attention-mask")
    ):
        name = folder(which, removal, seed)
        for short, objective in itertools.product((False, True) if which == "sst2" else (False,), OBJECTIVES):
            out = arguments.results / f"{name}{'-short' if short else ''}-{objective}.json"
            command = ["explain.py", "--data", arguments.data, "--model", arguments.work / name]
            command += ["--set", which, "--objective", objective, "--out", out]
            command += ["--points", arguments.points, "--seed", seed, "--dtype", arguments.dtype]
            command += ["--shortest"] if short else []
            jobs.append(Job(command, out, (name,)))
    return jobs


def removing(arguments: argparse.Namespace) -> list[Job]:
    """One command for each model trained on few examples; counterfactual ones with their own removal."""
    jobs = []
    for which, seed, removal in itertools.product(
        arguments.removal_sets, range(arguments.seeds), (None, *REMOVALS)
    ):
        name = folder(which, removal, seed, SMALL)
        out = arguments.results / f"removals-{name}.json"
        command = ["removals.py", "--data", arguments.data, "--model", arguments.work / name]
        command += ["--set", which, "--out", out]
        command += ["--removals", removal] if removal else ["--filler", arguments.work / FILLER]
        jobs.append(Job(command, out, (name,) if removal else (name, FILLER)))
    return jobs


def is_made(path: Path) -> bool:
    """Whether a result is there, whole: explanations say when they are, so that a stopped run goes on."""
    return path.is_file() and json.loads(path.read_text()).get("finished", True)


def carry_out(job: Job, last: float | None, models: list[Future[str]]) -> str:
    """Run one command unless its result is there, a model is not, or time is up; say how it went."""
    start = time.perf_counter()
    if is_made(job.made):
        return "was there"
    if any(model.result() not in DONE for model in models):
        return "left out: a model is not there"
    # One thread each: many of these run side by side.
    environment = {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, *map(str, job.command)],
            cwd=HERE,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=None if last is None else max(0.1, last - time.time()),
        )
    except subprocess.TimeoutExpired:
        state = "stopped: time is up"
    else:
        state = "done" if done.returncode == 0 else f"FAILED\n{done.stderr[-1500:]}"
    print(f"{job.name}: {state} ({time.perf_counter() - start:.0f} s)", flush=True)
    return state


def absolute(text: str) -> Path:
    """A path that means the same wherever a command runs."""
    return Path(text).resolve()


def main() -> None:
    """Run the stages, in an order in which no model is waited for that has not begun."""
    stages = {"train": training, "explain": explaining, "removals": removing}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("stages", nargs="+", choices=stages, metavar="STAGE", help="train, removals, explain")
    parser.add_argument("--data", type=absolute, required=True)
    parser.add_argument("--encoder", type=absolute)
    parser.add_argument("--work", type=absolute, required=True, help="models lie here")
    parser.add_argument("--results", type=absolute, default=HERE / "results")
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--removal-sets", nargs="*", choices=SETS, default=["sst2", "snli"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--dtype", default="float32", help="what models compute in to be explained")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="stop after this long; the same command goes on later")
    arguments = parser.parse_args()
    last = None if arguments.seconds is None else time.time() + arguments.seconds
    states: dict[str, Future[str]] = {}
    with ThreadPoolExecutor(arguments.processes) as pool:
        for each in itertools.chain.from_iterable(stages[stage](arguments) for stage in arguments.stages):
            models = [states[f"{name}.train"] for name in each.models if f"{name}.train" in states]
            states[each.name] = pool.submit(carry_out, each, last, models)
    left = [name for name, state in states.items() if state.result() not in DONE]
    if left:
        sys.exit(f"Not complete: {', '.join(left)}.")


if __name__ == "__main__":
    main()
