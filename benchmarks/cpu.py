"""Speed on the CPU compared with captum, shap, lime and interpreto, at equal numbers of model evaluations.

    python benchmarks/cpu.py [--texts 4] [--evaluations 400] [--repeats 3] [--beside 0] [--only WORD]

The model is a 6-layer, 384-wide encoder (all-MiniLM-L6-v2 with a random head); the texts have about
100 tokens. Every contestant runs in a new process, one after the other, on all cores, after a short text
for warm-up. The floor is only the model, on the kept tokens of the masks that pertinent evaluated, sorted
by length, in precomputed batches. Contestants run with several batch sizes; those clearly slower than the
best run once, the others `--repeats` times in alternation. `--beside N` keeps the machine busy with N other
processes that run `pertinent shapley-sampling` on all cores.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from common import new_parser, table
from peers import ALL, PEERS, Case, Count, load

from pertinent.array_types import Ints

METHODS = ("shapley-sampling", "kernel-shap", "lime")
SEARCH = "parallel-local-search"
PADDED = f"{SEARCH}, padded"
SIMILAR = 0.85
FLOORS = (2048, 4096)
CLEARLY = 1.25
START = 20.0
"""Seconds until another process computes."""

Kept: TypeAlias = list[tuple[Ints, Ints]]


def pertinent_work(case: Case, what: str, kept: Kept) -> Callable[[Case], None]:
    """Return a call of `pertinent.explain` that adds the token ids and positions of every row to `kept`."""
    import pertinent
    from pertinent.removals.base import kept_tokens

    wrapped: Any = pertinent.wrap((case.model, case.tokenizer), compaction=what != PADDED)
    cost = wrapped.cost

    def recording(removal: Any, input: Any, masks: Any) -> Ints:
        kept.extend((input.tokens.ids[row], np.flatnonzero(row)) for row in kept_tokens(input, masks))
        return np.asarray(cost(removal, input, masks))

    wrapped.cost = recording

    def work(case: Case) -> None:
        explanations = pertinent.explain(
            wrapped,
            list(case.texts),
            what.removesuffix(", padded"),
            features="tokens",
            sparsity=(0.05, 0.10, 0.20),
            budget=case.evaluations,
            progress=False,
        )
        assert len(explanations) == len(case.texts), explanations.failures[:1]

    return work


def bare_batches(path: str, size: int) -> list[dict[str, torch.Tensor]]:
    """Return recorded rows in batches of at most `size` tokens, sorted by length."""
    saved = np.load(path)
    cuts = np.cumsum(saved["lengths"])[:-1]
    rows = list(zip(np.split(saved["ids"], cuts), np.split(saved["positions"], cuts), strict=True))
    rows.sort(key=lambda row: -len(row[0]))
    batches, first = [], 0
    while first < len(rows):
        longest = len(rows[first][0])
        selected = [
            row for row in rows[first : first + max(1, size // longest)] if len(row[0]) > SIMILAR * longest
        ]
        first += len(selected)
        lengths = torch.tensor([len(ids) for ids, _ in selected])
        attend = (torch.arange(int(lengths.max())) < lengths[:, None]).long()
        batch = {"input_ids": torch.zeros_like(attend), "position_ids": torch.zeros_like(attend)}
        for i, (ids, positions) in enumerate(selected):
            batch["input_ids"][i, : len(ids)] = torch.from_numpy(ids)
            batch["position_ids"][i, : len(ids)] = torch.from_numpy(positions)
        batches.append(batch if bool(attend.all()) else batch | {"attention_mask": attend})
    return batches


def contest(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one contestant in this process, and return its time."""
    case = load(arguments.texts, arguments.evaluations)
    short = replace(case, texts=["A short text for warm-up."], evaluations=20)
    library, _, method = arguments.run.partition(" ")
    kept: Kept = []
    work: Callable[[Case], None]
    if library == "pertinent":
        work = pertinent_work(case, method, kept)
    elif library == "floor":
        batches = bare_batches(arguments.masks, arguments.setting)

        @torch.inference_mode()
        def work(case: Case) -> None:
            for batch in batches[: 1 if case is short else None]:
                case.model(**batch)
    else:
        peer = next(peer for peer in PEERS if peer.name == arguments.run)

        def work(case: Case) -> None:
            peer(case, arguments.setting)

    work(short)
    while arguments.forever:
        work(case)
    kept.clear()
    count = Count(case.model)
    start = time.perf_counter()
    work(case)
    seconds = time.perf_counter() - start
    if kept and arguments.masks:
        ids, positions = (np.concatenate(column) for column in zip(*kept, strict=True))
        np.savez(arguments.masks, lengths=[len(row) for row, _ in kept], ids=ids, positions=positions)
    counted = {"evaluations": count.rows, "calls": count.calls, "tokens": count.tokens}
    return {"seconds": seconds, "model_seconds": count.seconds, **counted}


@dataclass(frozen=True)
class Contestant:
    """A library's method with a batch size; `rival` is the method of pertinent that it is compared with."""

    name: str
    rival: str
    setting: int = ALL
    default: bool = False

    @property
    def label(self) -> str:
        """Return the batch size in words."""
        if self.name.startswith("pertinent"):
            return "automatic"
        return ("all rows" if self.setting == ALL else str(self.setting)) + (
            " (default)" if self.default else ""
        )


def contestants(only: str) -> list[Contestant]:
    """Return all contestants; a floor comes after the method whose masks it needs."""
    every = []
    for method in (*METHODS, SEARCH):
        every.append(Contestant(f"pertinent {method}", method))
        every += [Contestant(f"floor {method}", method, size) for size in FLOORS]
    every.append(Contestant(f"pertinent {PADDED}", SEARCH))
    every += [Contestant(p.name, p.rival, s, s == p.settings[0]) for p in PEERS for s in p.settings]
    return [c for c in every if only in f"{c.name} {c.rival}"]


def start(contestant: Contestant, arguments: argparse.Namespace, *flags: str) -> subprocess.Popen[str]:
    """Start a process that runs one contestant."""
    command = [
        sys.executable,
        __file__,
        "--run",
        contestant.name,
        "--setting",
        str(contestant.setting),
        *flags,
    ]
    for option in ("texts", "evaluations", "threads"):
        command += [f"--{option}", str(getattr(arguments, option))]
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads), "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def measure(contestant: Contestant, arguments: argparse.Namespace, folder: str) -> dict[str, Any] | None:
    """Return the time of one contestant."""
    masks = "" if contestant.name.endswith(PADDED) else str(Path(folder, f"{contestant.rival}.npz"))
    process = start(contestant, arguments, "--masks", masks)
    output, errors = process.communicate()
    if process.returncode:
        print(f"{contestant.name}, {contestant.label}: FAILED\n{errors[-2000:]}", flush=True)
        return None
    result: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    print(f"{contestant.name:40} {contestant.label:20} {result['seconds']:8.2f} s", flush=True)
    return result


@contextmanager
def busy(arguments: argparse.Namespace) -> Iterator[None]:
    """Keep the machine busy with other processes."""
    other = Contestant(f"pertinent {METHODS[0]}", METHODS[0])
    processes = [start(other, arguments, "--forever") for _ in range(arguments.beside)]
    try:
        if processes:
            time.sleep(START)
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


Times: TypeAlias = dict[Contestant, dict[str, Any]]


def rounds(arguments: argparse.Namespace) -> Times:
    """Run all contestants in alternation; return the medians of the times."""
    every = contestants(arguments.only)
    runs: dict[Contestant, list[dict[str, Any]]] = {contestant: [] for contestant in every}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.repeats):
            for contestant in every:
                of_contestant = runs[contestant]
                times = [runs[c][0]["seconds"] for c in every if c.name == contestant.name and runs[c]]
                if number and (not of_contestant or of_contestant[0]["seconds"] > CLEARLY * min(times)):
                    continue
                result = measure(contestant, arguments, folder)
                of_contestant += [result] if result else []
    medians: Times = {}
    for contestant, results in runs.items():
        if results:
            median = {k: statistics.median(run[k] for run in results) for k in ("seconds", "model_seconds")}
            listed = " ".join(f"{run['seconds']:.2f}" for run in results)
            medians[contestant] = results[0] | {"runs": listed} | median
    return medians


def fastest(times: Times, start: str, rival: str, default: bool | None = None) -> float:
    """Return the shortest time of the contestants whose name has this start; NaN if there are none."""
    seconds = [
        run["seconds"]
        for c, run in times.items()
        if c.rival == rival and f"{c.name} ".startswith(start) and default in (None, c.default)
    ]
    return min(seconds, default=float("nan"))


def rows(times: Times) -> Iterator[dict[str, Any]]:
    """Yield a row for each contestant."""
    for c, run in times.items():
        seconds = run["seconds"]
        yield {
            "contestant": c.name,
            "batch": c.label,
            "evaluations": run["evaluations"],
            "calls": run["calls"],
            "tokens": run["tokens"],
            "seconds": f"{seconds:.2f}",
            "outside the model": f"{1 - run['model_seconds'] / seconds:.1%}",
            "x pertinent": f"{seconds / fastest(times, f'pertinent {c.rival} ', c.rival):.2f}",
            "x floor": f"{seconds / fastest(times, 'floor', c.rival):.2f}",
            "all runs": run["runs"],
        }


def verdicts(times: Times) -> Iterator[dict[str, Any]]:
    """Yield a row for each goal that was measured."""
    goals: list[tuple[str, str, bool | None, str, float]] = []
    goals += [("floor", method, None, "at most", 1.15) for method in (*METHODS, SEARCH)]
    goals += [("captum", method, True, "at least", 5.0) for method in METHODS]
    goals += [(peer.name, peer.rival, None, "at least", 1.8) for peer in PEERS]
    goals += [(f"pertinent {PADDED}", SEARCH, None, "at least", 5.0)]
    for other, method, default, sign, target in goals:
        mine, theirs = fastest(times, f"pertinent {method} ", method), fastest(times, other, method, default)
        measured = mine / theirs if sign == "at most" else theirs / mine
        if np.isfinite(measured):
            yield {
                "pertinent": method,
                "compared with": f"{other}, {'default' if default else 'best'} batch",
                "target": f"{sign} {target}x",
                "measured": f"{measured:.2f}x",
                "met": "yes" if (measured <= target) == (sign == "at most") else "NO",
            }


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--texts", type=int, default=4)
    parser.add_argument("--evaluations", type=int, default=400, help="per text (and sparsity), at least 200")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--beside", type=int, default=0, help="number of other processes that compute")
    parser.add_argument("--forever", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--only", default="", help="only contestants with this in their name or their rival's name"
    )
    parser.add_argument("--markdown", help="write the tables to this file")
    for hidden, kind in (("--run", str), ("--setting", int), ("--masks", str)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps(contest(arguments)))
        return
    with busy(arguments):
        times = rounds(arguments)
    tables = [each for each in (list(rows(times)), list(verdicts(times))) if each]
    text = "\n\n".join(map(table, tables))
    print(f"\n{text}")
    if arguments.markdown:
        Path(arguments.markdown).write_text(text + "\n")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(tables, indent=1))


if __name__ == "__main__":
    main()
