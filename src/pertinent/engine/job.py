"""Jobs, their running algorithms, and the questions that the algorithms wait on."""

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
    """One algorithm on one input; `key` identifies it in `JobResult`."""

    key: Any
    input: Input
    removal: Removal
    algorithm: Algorithm
    seed: int = 0

    @cached_property
    def name(self) -> bytes:
        """The key under which answers are cached: all that determines them besides the question."""
        seed = str(self.seed).encode() if self.removal.is_random else b""
        return self.input.fingerprint + self.removal.fingerprint + seed


@dataclass(frozen=True)
class JobResult:
    """A job that ended: with a result, or with the error that stopped it.

    `seconds` is the time the model spent on it: its share of the batches it was part of.
    """

    key: Any
    result: Any
    error: Exception | None
    seconds: float = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that is sent to another process, with an error that can be sent."""
        return {**vars(self), "error": sendable(self.error)}


@dataclass(frozen=True)
class Published:
    """A partial finding of a job that goes on; `number` is what `Engine.submit` returned for the job.

    `evaluations` is the number of evaluations that its algorithm has asked for so far.
    """

    key: Any
    number: int
    finding: Any
    evaluations: int


@dataclass(eq=False)
class JobRun:
    """A running algorithm: a job's own, or a branch of a fork, which has the `number` of its `parent`.

    Jobs are numbered as they start. `answered`, `rows` (the number of rows that were answered) and `seconds`,
    the model's time, are kept for the whole job.
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
        """The job's own run."""
        return self if self.parent is None else self.parent.root


@dataclass(eq=False)
class OpenQuestion:
    """A question that a run waits on, the answers known so far by key, and how many rows have none."""

    run: JobRun
    question: Question
    known: dict[Hashable, Any]
    n_missing: int
    withdrawn: bool = False

    def part(self, rows: Ints) -> BatchPart:
        """The part of a batch with some of its rows."""
        job = self.run.job
        return BatchPart(self.question, job.input, job.removal, rows, job.seed)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows of an open question that may share a batch: of one kind, one group and one cost."""

    open: OpenQuestion
    group: Hashable
    rows: Ints
    keys: list[Hashable]
    cost: int

    @property
    def kind(self) -> type[Question]:
        """The type of the question."""
        return type(self.open.question)

    @property
    def total(self) -> int:
        """The cost of all its rows."""
        return self.cost * len(self.keys)

    def cut(self, n: int) -> tuple[Chunk, Chunk]:
        """The first n rows, and the others."""
        first = replace(self, rows=self.rows[:n], keys=self.keys[:n])
        return first, replace(self, rows=self.rows[n:], keys=self.keys[n:])
