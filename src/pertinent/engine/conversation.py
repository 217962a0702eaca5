"""Jobs, and the conversations with the model that they consist of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pertinent.engine.asks import Algorithm, Question
from pertinent.inputs.base import Input
from pertinent.removal.base import Removal

YOUNG = 2
"""Answers until the work of a job is under way; the first tell it little more than what to explain."""


@dataclass
class Job:
    """One algorithm on one input; `key` says which when it is done."""

    key: Any
    given: Input
    removal: Removal
    algorithm: Algorithm

    def __post_init__(self) -> None:
        """Name what the cache keeps the answers under."""
        self.name = self.given.fingerprint + repr(self.removal).encode()


@dataclass(frozen=True)
class Done:
    """A job that ended: with a result, or with the error that stopped it.

    `seconds` is the time the model spent on it: its share of the batches it was part of.
    """

    key: Any
    result: Any
    error: Exception | None
    seconds: float


class Conversation:
    """An algorithm that runs, the question it waits on, and who waits for it."""

    def __init__(self, job: Job, algorithm: Algorithm, parent: tuple[Conversation, int] | None) -> None:
        self.job = job
        self.algorithm = algorithm
        self.parent = parent
        self.ask: Question | None = None
        self.known: dict[Any, Any] = {}
        self.returned: list[Any] = []
        self.outstanding = 0
        self.answers = 0
        self.over = False
        self.seconds = 0.0

    @property
    def root(self) -> Conversation:
        """The conversation of the job itself."""
        return self if self.parent is None else self.parent[0].root

    @property
    def is_young(self) -> bool:
        """Whether most of its job's work is still to come."""
        return self.root.answers < YOUNG
