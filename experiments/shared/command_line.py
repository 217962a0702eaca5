"""Command line: run stages of a paper, rebuild its pages, and keep its records."""

from __future__ import annotations

import inspect
import math
import os
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

from experiments.shared.options import add_options, options_for
from experiments.shared.pages import pack_records, rebuild, unpacked_records
from experiments.shared.pool import Pool
from experiments.shared.stages import Job, Run, Stage, Stages

FOLDER = Path(__file__).parents[1]
PAPERS = sorted(path.parent.name for path in FOLDER.glob("*/stages.py") if path.parent.name != "shared")
USAGE = "python -m experiments"


def main(words: Sequence[str]) -> int:
    """Run a command such as ``hase2021 train explain --data DATA``, and return the exit status."""
    if not words or words[0] not in PAPERS:
        print(f"usage: {USAGE} PAPER STAGE [STAGE …] [options]\n\npapers: {', '.join(PAPERS)}")
        return 0 if not words or words[0] in ("-h", "--help") else 2
    command = parse(words)
    if command is not None:
        return command()
    paper, has_names = words[0], len(words) > 1 and not words[1].startswith("-")
    module = import_module(f"experiments.{paper}.stages")
    print(f"usage: {USAGE} {paper} STAGE [STAGE …] [options]\n\n{inspect.getdoc(module)}\n")
    functions = {name: stage.function for name, stage in module.STAGES.by_name.items()}
    for name, function in (functions | COMMANDS).items():
        print(f"  {name:18}{_summary(function).splitlines()[0]}")
    return 2 if has_names else 0


def parse(words: Sequence[str]) -> Callable[[], int] | None:
    """Return the function that runs a command; ``None`` if it names no stages that the paper has."""
    paper, names = words[0], list(takewhile(lambda word: not word.startswith("-"), words[1:]))
    stages: Stages = import_module(f"experiments.{paper}.stages").STAGES
    chosen = [stages.by_name[name] for name in names if name in stages.by_name]
    command = COMMANDS.get(names[0]) if len(names) == 1 else None
    if command is None and (not names or len(chosen) < len(names)):
        return None
    described = [command] if command else [stage.function for stage in chosen]
    parser = ArgumentParser(
        prog=f"{USAGE} {paper} {' '.join(names)}",
        description="\n\n".join(map(_summary, described)),
        formatter_class=RawDescriptionHelpFormatter,
    )
    add_options(parser, described if command else [run_stages, *described])
    arguments = parser.parse_args(words[1 + len(names) :])
    if command:
        return partial(command, paper, **options_for(command, arguments))
    return partial(run_stages, paper, chosen, arguments, **options_for(run_stages, arguments))


def run_stages(
    paper: str,
    stages: Sequence[Stage],
    arguments: Namespace,
    *,
    data: Path = Path("data"),
    encoder: Path = Path("encoder"),
    work: Path | None = None,
    results: Path | None = None,
    devices: Sequence[str] = (),
    processes: int = 1,
    seconds: float = math.inf,
    only: Sequence[str] = (),
    tf32: bool = False,
) -> int:
    """Run stages; return 0 if all their records are complete.

    Parameters
    ----------
    data
        Folder with one folder for each data set.
    encoder
        Folder with all-MiniLM-L6-v2 in transformers' format.
    work
        Folder for models and fitted explainers. Default: work/PAPER.
    results
        Folder for records and logs; complete records are not computed again. Default: results/PAPER.
    devices
        Torch devices that jobs are distributed over. Default: cuda if there is a GPU, else cpu.
    processes
        Jobs that run at the same time; 0 runs them in this process.
    seconds
        Stop after this time; the same command resumes.
    only
        Run jobs whose names begin with one of these, in this order.
    tf32
        Multiply matrices in TF32.
    """
    os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}
    if processes:  # one thread for each of many processes
        os.environ["OMP_NUM_THREADS"] = "1"
    folders = {"work": work or Path("work", paper), "results": results or Path("results", paper)}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    devices = devices or [default_device()]
    run = Run(data, encoder, **folders, device=devices[0], end=time.time() + seconds)
    missing: list[str] = []
    for batch in batches(stages):
        jobs: dict[str, Job] = {}
        for stage in batch:
            for job in stage.function(run, **options_for(stage.function, arguments)) or ():
                jobs.setdefault(job.record, job)
        every = list(jobs.values())
        chosen = {job.record: job for prefix in only or [""] for job in every if job.name.startswith(prefix)}
        n_processes = min(processes, 1) if batch[0].alone else processes
        missing += Pool(run, n_processes, devices, tf32).carry_out(list(chosen.values()))
    if missing:
        print(f"not complete: {', '.join(missing)}", flush=True)
    return 1 if missing else 0


def batches(stages: Sequence[Stage]) -> Iterator[list[Stage]]:
    """Yield the stages in groups whose jobs may run at the same time."""
    batch: list[Stage] = []
    for stage in stages:
        needs_batch = {other.name for other in batch} & set(stage.after)
        if batch and (stage.alone or batch[-1].alone or needs_batch):
            yield batch
            batch = []
        batch.append(stage)
    yield batch


def rebuild_pages(
    paper: str,
    *,
    results: Path | None = None,
    data: Path = Path("data"),
    work: Path | None = None,
    out: Path | None = None,
    pages: Sequence[str] = (),
) -> int:
    """Rebuild pages and figures from the records of the archive, or from those of a run.

    Parameters
    ----------
    results
        Folder with records. Default: those of the archive.
    data
        Folder with the data sets, for pictures and texts that are not in the records.
    work
        Folder with explanations that are drawn. Default: work/PAPER.
    out
        Folder for the pages. Default: that of the paper.
    pages
        Rebuild only these files, such as README.md.
    """
    every = import_module(f"experiments.{paper}.pages").PAGES
    if unknown := set(pages) - set(every):
        raise SystemExit(f"--pages must be of {', '.join(every)}; got {', '.join(sorted(unknown))}.")
    chosen = {name: page for name, page in every.items() if name in (pages or every)}
    run = Run(data=data, work=work or Path("work", paper), results=results or Path())
    if results is not None:
        rebuild(chosen, run, out or FOLDER / paper, from_archive=False)
        return 0
    with unpacked_records(FOLDER / paper, run) as unpacked:
        rebuild(chosen, unpacked, out or FOLDER / paper, from_archive=True)
    return 0


def keep_records(paper: str, *, results: Path | None = None, out: Path | None = None) -> int:
    """Pack the records of a run into an archive, from which `tables` rebuilds the pages.

    Parameters
    ----------
    results
        Folder with records. Default: results/PAPER.
    out
        The archive. Default: records.tar.xz in the folder of the paper.
    """
    pack_records(results or Path("results", paper), out or FOLDER / paper / "records.tar.xz")
    return 0


COMMANDS: dict[str, Callable[..., int]] = {"tables": rebuild_pages, "keep": keep_records}


def default_device() -> str:
    """Return the device that jobs compute on by default."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _summary(function: Callable[..., Any]) -> str:
    """Return the docstring before its section of parameters."""
    return (inspect.getdoc(function) or "").partition("\n\nParameters\n")[0]
