"""Run stages of the experiments over sets, trainings and seeds, several processes at a time.

    python run.py train removals explain second --data DIR --encoder DIR --work DIR --results DIR

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
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from data import SETS, STARTS, TRAINED_ON
from methods import FILLER, LAYERS, OBJECTIVES, SALIENCE, SEARCHES, SECOND
from removals import REMOVALS

HERE = Path(__file__).parent
SMALL = 10_000
"""Training examples for the comparison of removals, as in the paper (App. B.2)."""
DONE = ("done", "was there")


@dataclass(frozen=True)
class Job:
    """A command, the result it makes, the models it needs, and the texts that it explains."""

    command: list[object]
    made: Path
    models: tuple[str, ...] = ()
    points: int = 0

    @property
    def name(self) -> str:
        """What the result is called."""
        return self.made.name.removesuffix(".json")


def folder(which: str, removal: str | None, seed: int, limit: int | None = None, variant: str = "") -> str:
    """The name of a model."""
    parts = [which, limit, variant, removal or "standard", seed]
    return "-".join(str(part) for part in parts if part not in (None, ""))


def layered(layers: int) -> str:
    """The name of a model variant whose encoder has this number of layers."""
    return f"{layers}layers"


def fine_tuning(
    arguments: argparse.Namespace,
    which: str,
    removal: str | None,
    seed: int,
    *,
    limit: int | None = None,
    variant: str = "",
    start: str | None = None,
) -> Job:
    """The command that trains a model, from the encoder or from a model that is trained before."""
    name = folder(which, removal, seed, limit, variant)
    made = arguments.results / f"{name}.train.json"
    encoder = arguments.work / start if start else arguments.encoder
    command = ["fine_tune.py", "--data", arguments.data, "--encoder", encoder]
    command += ["--out", arguments.work / name, "--result", made, "--set", which, "--seed", seed]
    command += ["--removal", removal] if removal else []
    command += ["--limit", limit] if limit else []
    command += ["--layers", LAYERS] if variant == layered(LAYERS) else []
    return Job(command, made, (start,) if start else ())


def before(which: str) -> list[str]:
    """The sets that an encoder is fine-tuned on before it is on this one, in order."""
    start = TRAINED_ON[which].start
    return [] if start is None else [*before(start), start]


def started(which: str, seed: int) -> str | None:
    """The model that one of this set starts from: of the same seed, if the paper has its set, too."""
    start = TRAINED_ON[which].start
    return None if start is None else folder(start, None, 0 if start in STARTS else seed)


def training(arguments: argparse.Namespace) -> list[Job]:
    """One command for each model, and one for what fills in removed tokens."""
    sets = (*arguments.sets, *arguments.second_sets)
    jobs = [
        fine_tuning(arguments, which, None, seed, start=started(which, seed))
        for which in dict.fromkeys(itertools.chain.from_iterable(map(before, sets)))
        for seed in ([0] if which in STARTS else arguments.seeds)
    ]
    known = {job.name for job in jobs}
    jobs += [
        job
        for seed, which, removal in itertools.product(
            arguments.seeds, arguments.sets, (None, "attention-mask")
        )
        if (job := fine_tuning(arguments, which, removal, seed, start=started(which, seed))).name not in known
    ]
    jobs += [
        fine_tuning(
            arguments, which, "attention-mask", seed, variant=layered(LAYERS), start=started(which, seed)
        )
        for seed, which in itertools.product(arguments.seeds, arguments.second_sets)
    ]
    if arguments.removal_sets:
        made = arguments.results / f"{FILLER}.train.json"
        command = ["filler.py", "--data", arguments.data, "--encoder", arguments.encoder]
        command += ["--out", arguments.work / FILLER, "--result", made, "--sets", *arguments.removal_sets]
        jobs.append(Job(command, made))
    jobs += [
        fine_tuning(arguments, which, removal, seed, limit=SMALL, variant=start or "", start=start)
        for removal, start, seed, which in itertools.product(
            _removals(arguments), (None, FILLER), arguments.seeds, arguments.removal_sets
        )
    ]
    return jobs


def explaining(arguments: argparse.Namespace) -> list[Job]:
    """One command for each model and objective; the short sentences of SST-2 on their own."""
    jobs = []
    for seed, which, removal in itertools.product(arguments.seeds, arguments.sets, (None, "attention-mask")):
        name = folder(which, removal, seed)
        lengths = (False, True) if which == "sst2" and arguments.methods is None else (False,)
        for short, objective in itertools.product(lengths, OBJECTIVES):
            options = {"objective": objective, "methods": arguments.methods, "short": short}
            jobs.append(_explained(arguments, name, which, seed, **options))
    return jobs


def second(arguments: argparse.Namespace) -> list[Job]:
    """The second encoder's counterfactual-trained models, by few methods."""
    jobs = []
    for seed, which in itertools.product(arguments.seeds, arguments.second_sets):
        name = folder(which, "attention-mask", seed, variant=layered(LAYERS))
        jobs += [
            _explained(arguments, name, which, seed, objective=objective, methods=SECOND)
            for objective in OBJECTIVES
        ]
    return jobs


def _explained(
    arguments: argparse.Namespace,
    name: str,
    which: str,
    seed: int,
    *,
    objective: str,
    methods: Sequence[str] | None,
    short: bool = False,
) -> Job:
    out = arguments.results / f"{name}{'-short' if short else ''}-{objective}.json"
    command = ["explain.py", "--data", arguments.data, "--model", arguments.work / name]
    command += ["--set", which, "--objective", objective, "--out", out]
    command += ["--points", arguments.points, "--seed", seed, "--dtype", arguments.dtype]
    command += ["--together", arguments.together] if arguments.together else []
    command += ["--methods", *methods] if methods else []
    command += ["--shortest"] if short else []
    return Job(command, out, (name,), arguments.points)


def _removals(arguments: argparse.Namespace) -> list[str | None]:
    """What the models of Figure 2 are trained with; None is standard training."""
    return [None] if arguments.standard_only else [None, *REMOVALS]


def removing(arguments: argparse.Namespace) -> list[Job]:
    """One command for each model trained on few examples; counterfactual ones with their own removal."""
    jobs = []
    for removal, start, seed, which in itertools.product(
        _removals(arguments), (None, FILLER), arguments.seeds, arguments.removal_sets
    ):
        name = folder(which, removal, seed, SMALL, start or "")
        out = arguments.results / f"removals-{name}.json"
        command = ["removals.py", "--data", arguments.data, "--model", arguments.work / name]
        command += ["--set", which, "--out", out]
        command += ["--removals", removal] if removal else ["--filler", arguments.work / FILLER]
        jobs.append(Job(command, out, (name,) if removal else (name, FILLER)))
    return jobs


def is_made(job: Job) -> bool:
    """Whether a result is there, whole: explanations say of how many texts, so that a run goes on."""
    if not job.made.is_file():
        return False
    content = json.loads(job.made.read_text())
    return bool(content.get("finished", True)) and content.get("wanted", job.points) >= job.points


def carry_out(job: Job, last: float | None, models: list[Future[str]]) -> str:
    """Run one command unless its result is there, a model is not, or time is up; say how it went."""
    start = time.perf_counter()
    if is_made(job):
        return "was there"
    if any(model.result() not in DONE for model in models):
        return "left out: a model is not there"
    if last is not None and time.time() >= last:
        return "left out: time is up"
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
            timeout=None if last is None else last - time.time(),
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
    stages = {"train": training, "explain": explaining, "removals": removing, "second": second}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("stages", nargs="+", choices=stages, metavar="STAGE", help=", ".join(stages))
    parser.add_argument("--data", type=absolute, required=True)
    parser.add_argument("--encoder", type=absolute)
    parser.add_argument("--work", type=absolute, required=True, help="models lie here")
    parser.add_argument("--results", type=absolute, default=HERE / "results")
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--removal-sets", nargs="*", choices=SETS, default=["sst2", "snli"])
    parser.add_argument("--standard-only", action="store_true", help="no counterfactual training in Figure 2")
    parser.add_argument("--second-sets", nargs="*", choices=SETS, default=["snli", "fever"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--together", type=int, help="texts that every method explains before more of them")
    parser.add_argument("--methods", nargs="+", choices=[*SALIENCE, *SEARCHES], help="by default all")
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
