"""Jobs, their algorithms while they run, and the questions that these wait on."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

from pertinent.array_types import Ints
from pertinent.asks import Algorithm, Part, Question
from pertinent.inputs.base import Input
from pertinent.removal.base import Removal


@dataclass
class Job:
    """One algorithm on one input; `key` says which when it is done."""

    key: Any
    input: Input
    removal: Removal
    algorithm: Algorithm
    seed: int = 0

    @cached_property
    def name(self) -> bytes:
        """What answers are remembered under: all that decides them beside the question."""
        seed = str(self.seed).encode() if self.removal.is_random else b""
        return self.input.fingerprint + self.removal.fingerprint + seed


@dataclass(frozen=True)
class Done:
    """A job that ended: with a result, or with the error that stopped it.

    `seconds` is the time the model spent on it: its share of the batches it was part of.
    """

    key: Any
    result: Any
    error: Exception | None
    seconds: float = 0.0


@dataclass(frozen=True)
class Published:
    """A partial finding of a job that goes on; `number` is what `Engine.submit` returned for the job.

    `evaluations` is the number of evaluations that its algorithm has asked for so far.
    """

    key: Any
    number: int
    finding: Any
    evaluations: int


_numbers = count()


class JobRun:
    """An algorithm under way: a job's own, or a branch of a fork. Jobs are numbered as they start."""

    def __init__(self, job: Job, algorithm: Algorithm, parent: JobRun | None = None) -> None:
        self.job = job
        self.algorithm = algorithm
        self.parent = parent
        self.number: int = next(_numbers) if parent is None else parent.number
        self.branches: list[JobRun] = []
        self.question: OpenQuestion | None = None
        self.result: Any = None
        self.ended = False
        self.answered = False
        self.seconds = 0.0

    @property
    def root(self) -> JobRun:
        """The job's own run."""
        return self if self.parent is None else self.parent.root


class OpenQuestion:
    """A question that a run waits on, and the answers that have come."""

    def __init__(self, run: JobRun, question: Question, known: dict[Hashable, Any], n_missing: int) -> None:
        self.run = run
        self.question = question
        self.known = known
        self.n_missing = n_missing
        self.withdrawn = False

    def part(self, rows: Ints) -> Part:
        """What a model is told of some of its rows."""
        job = self.run.job
        return Part(self.question, job.input, job.removal, rows, job.seed)


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
        """What is asked for."""
        return type(self.open.question)

    @property
    def total(self) -> int:
        """The cost of all its rows."""
        return self.cost * len(self.keys)

    def cut(self, n: int) -> tuple[Chunk, Chunk]:
        """The first n rows, and the others."""
        return (
            Chunk(self.open, self.group, self.rows[:n], self.keys[:n], self.cost),
            Chunk(self.open, self.group, self.rows[n:], self.keys[n:], self.cost),
        )
