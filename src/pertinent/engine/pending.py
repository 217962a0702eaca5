"""Questions that wait for the model, and the choice of those that travel together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pertinent.engine.asks import MaskGradients, PathGradients, Values
from pertinent.engine.conversation import Conversation
from pertinent.types import Ints

Kind: TypeAlias = type[Values] | type[MaskGradients] | type[PathGradients]

SOON = 16
"""The batches that few rows wait: alone they cost little, and whoever waits for them holds memory."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows of a question that one conversation waits on, each of the same cost."""

    talk: Conversation
    rows: Ints
    keys: list[Any]
    cost: int

    @property
    def kind(self) -> Kind:
        """What its question asks for."""
        assert self.talk.ask is not None
        return type(self.talk.ask)

    @property
    def total(self) -> int:
        """The cost of all its rows."""
        return self.cost * len(self.keys)

    def cut(self, n: int) -> tuple[Chunk, Chunk]:
        """The first n rows, and the others."""
        first = Chunk(self.talk, self.rows[:n], self.keys[:n], self.cost)
        return first, Chunk(self.talk, self.rows[n:], self.keys[n:], self.cost)


class Pending:
    """Chunks of all conversations, by the cost of their rows, the oldest first.

    `start` is what starting a batch amounts to, `mixing` the share that rows of several costs are
    dearer together. Rows travel with dearer ones, padded up to them, where that costs less than a
    batch of their own.
    """

    def __init__(self, start: int, mixing: float = 0.0) -> None:
        self.start = start
        self.mixing = mixing
        self._chunks: dict[int, deque[Chunk]] = {}
        self._totals: dict[int, int] = {}
        self._since: dict[int, int] = {}
        self._urgent: set[int] = set()
        self._batches = 0
        self.cost = 0

    def add(
        self, talk: Conversation, rows: Ints, keys: list[Any], costs: Ints, *, urgent: bool = False
    ) -> None:
        """Line up the rows that a conversation waits on; urgent ones before all others."""
        if (costs == costs[0]).all():
            self.put(Chunk(talk, rows, keys, int(costs[0])), urgent=urgent)
            return
        order = np.argsort(costs, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(costs[order])) + 1):
            chunk = Chunk(talk, rows[part], [keys[i] for i in part.tolist()], int(costs[part[0]]))
            self.put(chunk, urgent=urgent)

    def put(self, chunk: Chunk, *, urgent: bool = False) -> None:
        """Line up a chunk; an urgent one before all others, with those of its cost."""
        waiting = self._chunks.setdefault(chunk.cost, deque())
        if urgent:
            waiting.appendleft(chunk)
            self._urgent.add(chunk.cost)
        else:
            waiting.append(chunk)
        self._since.setdefault(chunk.cost, self._batches)
        self._totals[chunk.cost] = self._totals.get(chunk.cost, 0) + chunk.total
        self.cost += chunk.total

    def drop(self, unwanted: Callable[[Chunk], bool]) -> None:
        """Forget the chunks of a conversation that has ended."""
        chunks = [c for waiting in self._chunks.values() for c in waiting if not unwanted(c)]
        self._chunks, self._totals, self.cost = {}, {}, 0
        for chunk in chunks:
            self.put(chunk)
        self._since = {cost: since for cost, since in self._since.items() if cost in self._chunks}
        self._urgent &= self._chunks.keys()

    @property
    def fullest(self) -> int:
        """The cost of all rows of one cost, of which most wait."""
        return max(self._totals.values(), default=0)

    def take(self, limit: int) -> list[Chunk]:
        """Take out the rows of one batch: the fullest, unless rows of some cost are overdue."""
        self._batches += 1
        rounds = 1 + 2 * min(len(self._totals), self.cost // limit)
        late = {cost: self._lateness(cost, rounds) for cost in self._totals}
        latest = max(late, key=late.__getitem__)
        costs = [cost for cost in self._totals if cost <= latest or latest not in self._urgent]
        every = runs(sorted(costs, reverse=True), self._totals, limit, self.start, self.mixing)
        if late[latest] > 0:
            run = next(run for run in every if latest in run)
        else:
            run = max(every, key=lambda run: sum(self._totals[cost] for cost in run))
        most = max(1, limit // max(1, run[0]))
        taken: list[Chunk] = []
        for cost in run:
            part = self._take(cost, most)
            most -= sum(len(chunk.keys) for chunk in part)
            taken += part
        return taken

    def _lateness(self, cost: int, rounds: int) -> int:
        """The batches that rows of a cost have waited too long: more than the rounds, or few rows `SOON`."""
        waited = self._batches - self._since[cost]
        if cost in self._urgent:
            return waited
        return waited - (min(SOON, rounds) if self._totals[cost] < self.start else rounds)

    def _take(self, cost: int, most: int) -> list[Chunk]:
        """Take out at most so many rows of one cost."""
        waiting, taken = self._chunks[cost], []
        while waiting and most > 0:
            chunk = waiting.popleft()
            if len(chunk.keys) > most:
                chunk, rest = chunk.cut(most)
                waiting.appendleft(rest)
            taken.append(chunk)
            most -= len(chunk.keys)
        total = sum(chunk.total for chunk in taken)
        self._totals[cost] -= total
        self.cost -= total
        self._since[cost] = self._batches
        self._urgent.discard(cost)
        if not waiting:
            del self._chunks[cost], self._totals[cost], self._since[cost]
        return taken


def runs(
    costs: Iterable[int], totals: Mapping[int, int], limit: int, start: int, mixing: float = 0.0
) -> Iterator[list[int]]:
    """Those of neighbouring costs, dearest first, that travel together.

    Every row of a batch is padded to its longest, and all of them are dearer by `mixing` if they
    differ. So a run ends where that would cost more than to start another batch, or when it is full.

    >>> list(runs([9, 8, 4, 3], {9: 18, 8: 8, 4: 16, 3: 9}, limit=40, start=10))
    [[9, 8], [4, 3]]
    >>> list(runs([9, 8, 4, 3], {9: 18, 8: 8, 4: 16, 3: 9}, limit=40, start=10, mixing=0.5))
    [[9], [8], [4], [3]]
    """
    run: list[int] = []
    room = 0
    for cost in costs:
        dearest = run[0] if run else cost
        size = totals[cost] * dearest // max(1, cost)
        extra = size - totals[cost] + mixing * (size + (totals[dearest] if len(run) == 1 else 0))
        if run and (room < dearest or extra > start):
            yield run
            run = []
        if not run:
            size, room = totals[cost], limit
        run.append(cost)
        room -= size
    yield run
