"""Stages of a paper's experiments, and the jobs that a stage consists of."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pertinent.files import atomic_write


@dataclass(frozen=True)
class Run:
    """Folders, device and deadline of a run.

    Attributes
    ----------
    data
        Folder with one folder for each data set.
    encoder
        Folder with a pretrained encoder in transformers' format.
    work
        Folder for models and fitted explainers.
    results
        Folder for records and logs.
    device
        Torch device that a job computes on.
    end
        Time, in seconds since the epoch, by which a job should have written its record.
    """

    data: Path = Path("data")
    encoder: Path = Path("encoder")
    work: Path = Path("work")
    results: Path = Path("results")
    device: str = "cpu"
    end: float = math.inf


@dataclass(frozen=True)
class Job:
    """A record and the function that computes it.

    Attributes
    ----------
    record
        Name of a file in the results folder. The runner writes what `compute` returns: a value to a ``.json``
        file, rows to a ``.jsonl`` file. If `compute` yields several values, each replaces the one before.
    compute
        Function of the run, which another process can import.
    needs
        Records that must be complete before the job starts.
    inputs
        Number of inputs that the record must cover; a record that covers fewer is continued.
    """

    record: str
    compute: Callable[[Run], Any]
    needs: Sequence[str] = ()
    inputs: int = 0

    @property
    def name(self) -> str:
        """Return the name of the record without its suffix."""
        return self.record.rpartition(".")[0]

    def is_done(self, results: Path) -> bool:
        """Return whether the record is complete."""
        return is_complete(results / self.record, self.inputs)


def is_complete(path: Path, inputs: int = 0) -> bool:
    """Return whether a record exists, was finished, and covers a number of inputs."""
    if not path.is_file():
        return False
    content = read_record(path) if path.suffix == ".json" else None
    if not isinstance(content, dict):
        return True
    return content.get("finished") is not False and content.get("wanted", inputs) >= inputs


def read_record(path: Path) -> Any:
    """Return the content of a JSON record."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_record(path: Path, content: Any) -> None:
    """Write a value to a ``.json`` file or rows to a ``.jsonl`` file, atomically."""
    rows = path.suffix == ".jsonl"
    text = "".join(f"{json.dumps(row)}\n" for row in content) if rows else json.dumps(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def carry_out(job: Job, run: Run) -> None:
    """Compute a job's record and write it."""
    path, content = run.results / job.record, job.compute(run)
    if isinstance(content, Iterator):
        last = None
        for last in content:
            write_record(path, last | {"finished": False})
        content = None if last is None else last | {"finished": True}
    if content is not None:
        write_record(path, content)


@dataclass(frozen=True)
class Stage:
    """A function that yields jobs; its keyword parameters are options of the command line.

    Attributes
    ----------
    after
        Stages whose records the function reads, so that it is called only when they are complete.
    alone
        Whether jobs run one after the other, because their time is measured.
    """

    function: Callable[..., Iterable[Job] | None]
    after: Sequence[str] = ()
    alone: bool = False

    @property
    def name(self) -> str:
        """Return the name on the command line."""
        return self.function.__name__.replace("_", "-")


@dataclass
class Stages:
    """Stages of a paper by name, in the order in which they were added."""

    by_name: dict[str, Stage] = field(default_factory=dict)

    def add(self, *, after: Sequence[str] = (), alone: bool = False) -> Callable[[Any], Any]:
        """Return a decorator that adds a function as a stage."""

        def decorate(function: Callable[..., Iterable[Job] | None]) -> Any:
            stage = Stage(function, after, alone)
            if stage.name in self.by_name:
                raise ValueError(f"There are two stages called {stage.name!r}.")
            self.by_name[stage.name] = stage
            return function

        return decorate
