"""Speed on the CPU beside captum, shap, lime and interpreto, at equal numbers of model evaluations.

    python benchmarks/cpu.py [--texts 4] [--evaluations 400] [--repeats 3] [--only WORD] [--json PATH]

The model is a 6-layer, 384-wide encoder (all-MiniLM-L6-v2 with a random head), the texts have about
100 tokens. Every contestant runs in a process of its own, one after the other, on all cores, after a
short text to warm up. The floor is the bare model on just the kept tokens of the very masks that
pertinent asked for, sorted by length, in batches made beforehand. Contestants are tried with several
batch sizes; those clearly slower than the best are run once, the others `--repeats` times by turns.
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from common import table
from peers import ALL, PEERS, Case, Count, load

from pertinent.array_types import Ints

METHODS = ("shapley-sampling", "kernel-shap", "lime")
SEARCH = "parallel-local-search"
PADDED = f"{SEARCH}, padded"
SIMILAR = 0.85
FLOORS = (2048, 4096)
CLEARLY = 1.25
Kept: TypeAlias = list[tuple[Ints, Ints]]


def pertinent_work(case: Case, what: str, kept: Kept) -> Callable[[Case], None]:
    """Pertinent through its front door; `kept` takes the token ids and positions of every row asked for."""
    import pertinent
    from pertinent.removals.base import kept_tokens

    wrapped: Any = pertinent.wrap((case.model, case.tokenizer), compaction=what != PADDED)
    cost = wrapped.cost

    def recording(removal: Any, input: Any, masks: Any) -> Ints:
        kept.extend((input.tokens.ids[row], np.flatnonzero(row)) for row in kept_tokens(input, masks))
        return np.asarray(cost(removal, input, masks))

    wrapped.cost = recording

    def work(case: Case) -> None:
        found = pertinent.explain(
            wrapped,
            list(case.texts),
            what.removesuffix(", padded"),
            features="tokens",
            sparsity=(0.05, 0.10, 0.20),
            budget=case.evaluations,
            progress=False,
        )
        assert len(found) == len(case.texts), found.failures[:1]

    return work


def bare_batches(path: str, size: int) -> list[dict[str, torch.Tensor]]:
    """Recorded rows in batches of at most `size` tokens, the longest first, similar ones together."""
    saved = np.load(path)
    cuts = np.cumsum(saved["lengths"])[:-1]
    rows = list(zip(np.split(saved["ids"], cuts), np.split(saved["positions"], cuts), strict=True))
    rows.sort(key=lambda row: -len(row[0]))
    batches, first = [], 0
    while first < len(rows):
        longest = len(rows[first][0])
        part = [
            row for row in rows[first : first + max(1, size // longest)] if len(row[0]) > SIMILAR * longest
        ]
        first += len(part)
        lengths = torch.tensor([len(ids) for ids, _ in part])
        attend = (torch.arange(int(lengths.max())) < lengths[:, None]).long()
        batch = {"input_ids": torch.zeros_like(attend), "position_ids": torch.zeros_like(attend)}
        for i, (ids, positions) in enumerate(part):
            batch["input_ids"][i, : len(ids)] = torch.from_numpy(ids)
            batch["position_ids"][i, : len(ids)] = torch.from_numpy(positions)
        batches.append(batch if bool(attend.all()) else batch | {"attention_mask": attend})
    return batches


def contest(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one contestant in this process, and say how long it took."""
    torch.set_num_threads(arguments.threads)
    case = load(arguments.texts, arguments.evaluations)
    short = replace(case, texts=["A short text, to warm up."], evaluations=20)
    who, _, what = arguments.run.partition(" ")
    kept: Kept = []
    work: Callable[[Case], None]
    if who == "pertinent":
        work = pertinent_work(case, what, kept)
    elif who == "floor":
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
    """Somebody with a setting; `rival` is the method of ours it is compared with."""

    name: str
    rival: str
    setting: int = ALL
    default: bool = False

    @property
    def label(self) -> str:
        """The setting in words."""
        if self.name.startswith("pertinent"):
            return "its own"
        return ("all rows" if self.setting == ALL else str(self.setting)) + (
            " (default)" if self.default else ""
        )


def contestants(only: str) -> list[Contestant]:
    """All of them; each floor after the method that it needs the masks of."""
    found = []
    for method in (*METHODS, SEARCH):
        found.append(Contestant(f"pertinent {method}", method))
        found += [Contestant(f"floor {method}", method, size) for size in FLOORS]
    found.append(Contestant(f"pertinent {PADDED}", SEARCH))
    found += [Contestant(p.name, p.rival, s, s == p.settings[0]) for p in PEERS for s in p.settings]
    return [c for c in found if only in f"{c.name} {c.rival}"]


def measure(who: Contestant, arguments: argparse.Namespace, folder: str) -> dict[str, Any] | None:
    """Run one contestant in a fresh process."""
    masks = "" if who.name.endswith(PADDED) else str(Path(folder, f"{who.rival}.npz"))
    command = [sys.executable, __file__, "--run", who.name, "--setting", str(who.setting), "--masks", masks]
    for option in ("texts", "evaluations", "threads"):
        command += [f"--{option}", str(getattr(arguments, option))]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(arguments.threads))
    environment = {**os.environ, **threads, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{who.name}, {who.label}: FAILED\n{done.stderr[-2000:]}", flush=True)
        return None
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"{who.name:40} {who.label:20} {found['seconds']:8.2f} s", flush=True)
    return found


Times: TypeAlias = dict[Contestant, dict[str, Any]]


def rounds(arguments: argparse.Namespace) -> Times:
    """Everybody by turns; the medians of the times."""
    everybody = contestants(arguments.only)
    runs: dict[Contestant, list[dict[str, Any]]] = {who: [] for who in everybody}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.repeats):
            for who in everybody:
                tried = [runs[c][0]["seconds"] for c in everybody if c.name == who.name and runs[c]]
                if number and (not runs[who] or runs[who][0]["seconds"] > CLEARLY * min(tried)):
                    continue
                found = measure(who, arguments, folder)
                runs[who] += [found] if found else []
    medians: Times = {}
    for who, each in runs.items():
        if each:
            middle = {k: statistics.median(run[k] for run in each) for k in ("seconds", "model_seconds")}
            medians[who] = each[0] | {"runs": " ".join(f"{run['seconds']:.2f}" for run in each)} | middle
    return medians


def fastest(times: Times, start: str, rival: str, default: bool | None = None) -> float:
    """The time of the fastest whose name starts so; NaN if nobody's does."""
    found = [
        run["seconds"]
        for who, run in times.items()
        if who.rival == rival and f"{who.name} ".startswith(start) and default in (None, who.default)
    ]
    return min(found, default=float("nan"))


def rows(times: Times) -> Iterator[dict[str, Any]]:
    """One row for each contestant."""
    for who, run in times.items():
        seconds = run["seconds"]
        yield {
            "contestant": who.name,
            "batch": who.label,
            "evaluations": run["evaluations"],
            "calls": run["calls"],
            "tokens": run["tokens"],
            "seconds": f"{seconds:.2f}",
            "outside the model": f"{1 - run['model_seconds'] / seconds:.1%}",
            "x pertinent": f"{seconds / fastest(times, f'pertinent {who.rival} ', who.rival):.2f}",
            "x floor": f"{seconds / fastest(times, 'floor', who.rival):.2f}",
            "all runs": run["runs"],
        }


def verdicts(times: Times) -> Iterator[dict[str, Any]]:
    """One row for each requirement that can be judged."""
    wanted: list[tuple[str, str, bool | None, str, float]] = []
    wanted += [("floor", method, None, "at most", 1.15) for method in (*METHODS, SEARCH)]
    wanted += [("captum", method, True, "at least", 5.0) for method in METHODS]
    wanted += [(peer.name, peer.rival, None, "at least", 1.8) for peer in PEERS]
    wanted += [(f"pertinent {PADDED}", SEARCH, None, "at least", 5.0)]
    for other, method, default, sign, target in wanted:
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--texts", type=int, default=4)
    parser.add_argument("--evaluations", type=int, default=400, help="per text (and sparsity), 200 at least")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="contestants with this in their name or rival's name")
    parser.add_argument("--json", help="keep the rows here")
    parser.add_argument("--markdown", help="keep the tables here")
    for hidden, kind in (("--run", str), ("--setting", int), ("--masks", str)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps(contest(arguments)))
        return
    times = rounds(arguments)
    tables = [found for found in (list(rows(times)), list(verdicts(times))) if found]
    text = "\n\n".join(map(table, tables))
    print(f"\n{text}")
    if arguments.markdown:
        Path(arguments.markdown).write_text(text + "\n")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(tables, indent=1))


if __name__ == "__main__":
    main()
