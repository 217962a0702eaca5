"""Jobs, their running algorithms, and the questions they wait on."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any

from pertinent.array_types import Ints
from pertinent.asks import Algorithm, BatchPart, Question
from pertinent.errors import sendable
from pertinent.inputs.base import Input
from pertinent.removals.base import Removal


@dataclass
class Job:
    """An algorithm and its input; `key` identifies it in the `JobResult`."""

    key: Any
    input: Input
    removal: Removal
    algorithm: Algorithm
    seed: int = 0

    @cached_property
    def name(self) -> bytes:
        """Return the cache key, which together with the question determines the answers."""
        seed = str(self.seed).encode() if self.removal.is_random else b""
        return self.input.fingerprint + self.removal.fingerprint + seed


@dataclass(frozen=True)
class JobResult:
    """A job's result, or the error that ended it.

    `seconds` is the model time: the job's share of its batches.
    """

    key: Any
    result: Any
    error: Exception | None
    seconds: float = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Return a picklable state; an unpicklable error is replaced."""
        return {**vars(self), "error": sendable(self.error)}


@dataclass(frozen=True)
class Published:
    """A partial finding of a running job; `number` is the return value of `Engine.submit`.

    `evaluations` is the number of evaluations so far.
    """

    key: Any
    number: int
    finding: Any
    evaluations: int


@dataclass(eq=False)
class JobRun:
    """A job's running algorithm, or a branch of a fork, which has the `number` of its `parent`.

    Jobs are numbered in order of starting. `answered`, `rows` (the number of answered rows) and `seconds`
    (model time) refer to the whole job.
    """

    job: Job
    algorithm: Algorithm
    parent: JobRun | None = None
    number: int = field(default_factory=count().__next__)
    branches: list[JobRun] = field(default_factory=list)
    question: OpenQuestion | None = None
    result: Any = None
    ended: bool = False
    answered: bool = False
    rows: int = 0
    seconds: float = 0.0

    @property
    def root(self) -> JobRun:
        """Return the run that started the job."""
        return self if self.parent is None else self.parent.root


@dataclass(eq=False)
class OpenQuestion:
    """A question that a run waits on, with the available answers by key and the number of missing ones."""

    run: JobRun
    question: Question
    answers: dict[Hashable, Any]
    n_missing: int
    withdrawn: bool = False

    def part(self, rows: Ints) -> BatchPart:
        """Return a batch part with some of the rows."""
        job = self.run.job
        return BatchPart(self.question, job.input, job.removal, rows, job.seed)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows of an open question that may share a batch: same kind, group and cost."""

    open: OpenQuestion
    group: Hashable
    rows: Ints
    keys: list[Hashable]
    cost: int

    @property
    def kind(self) -> type[Question]:
        """Return the type of the question."""
        return type(self.open.question)

    @property
    def total(self) -> int:
        """Return the cost of all rows."""
        return self.cost * len(self.keys)

    def cut(self, n: int) -> tuple[Chunk, Chunk]:
        """Split the chunk into the first n rows and the rest."""
        first = replace(self, rows=self.rows[:n], keys=self.keys[:n])
        return first, replace(self, rows=self.rows[n:], keys=self.keys[n:])
