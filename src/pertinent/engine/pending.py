"""Questions that wait for the model, and the choice of those that travel together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.types import Ints

if TYPE_CHECKING:
    from pertinent.engine.engine import Conversation

WORTHWHILE = 1 / 16
"""The share of a batch from which rows of equal cost travel alone, without any padding."""

SIMILAR = 0.85
"""Rows this much cheaper than the dearest are not padded up to it, unless the batch is small."""

SHORT = 2
"""The rows of a question that is urgent: it opens a conversation whose work is still to come."""

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
    def total(self) -> int:
        """The cost of all its rows."""
        return self.cost * len(self.keys)

    def cut(self, n: int) -> tuple[Chunk, Chunk]:
        """The first n rows, and the others."""
        first = Chunk(self.talk, self.rows[:n], self.keys[:n], self.cost)
        return first, Chunk(self.talk, self.rows[n:], self.keys[n:], self.cost)


class Pending:
    """Chunks of all conversations, by the cost of their rows, the oldest first."""

    def __init__(self) -> None:
        self._chunks: dict[int, deque[Chunk]] = {}
        self._totals: dict[int, int] = {}
        self._since: dict[int, int] = {}
        self._urgent: set[int] = set()
        self._batches = 0
        self.cost = 0

    def add(self, talk: Conversation, rows: Ints, keys: list[Any], costs: Ints) -> None:
        """Line up the rows that a conversation waits on."""
        urgent = len(rows) <= SHORT
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

    def take(self, limit: int) -> list[Chunk]:
        """Take out the rows of one batch: of equal cost if there are enough, else of similar cost.

        The fullest batch goes first, unless rows of some cost are overdue.
        """
        self._batches += 1
        late = {cost: self._lateness(cost, limit) for cost in self._totals}
        latest = max(late, key=late.__getitem__)
        overdue = late[latest] > 0
        first = latest if overdue else max(self._totals, key=self._totals.__getitem__)
        if self._totals[first] >= WORTHWHILE * limit:
            run = [first]
        elif overdue:
            run = run_from([c for c in sorted(self._totals, reverse=True) if c <= first], self._totals, limit)
        else:
            run = best_run(self._totals, limit)
        most = max(1, limit // max(1, run[0]))
        taken: list[Chunk] = []
        for cost in run:
            part = self._take(cost, most)
            most -= sum(len(chunk.keys) for chunk in part)
            taken += part
        return taken

    def _lateness(self, cost: int, limit: int) -> int:
        """The batches that rows of a cost have waited too long: more than two rounds of all costs."""
        waited = self._batches - self._since[cost]
        if cost in self._urgent:
            return waited
        rounds = 2 * len(self._since)
        few = self._totals[cost] < WORTHWHILE * limit
        return waited - (min(SOON, rounds) if few else rounds)

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


def run_from(costs: Sequence[int], totals: Mapping[int, int], limit: int) -> list[int]:
    """The first of these costs, dearest first, that travel together.

    Every row of a batch is padded to its longest, so a run ends where rows get much shorter, or
    when the batch is full.

    >>> run_from([9, 8, 4, 3], {9: 18, 8: 8, 4: 16, 3: 9}, limit=40)
    [9, 8]
    """
    run: list[int] = []
    total = 0
    for cost in costs:
        if run and (total >= limit or (cost < SIMILAR * run[0] and total >= WORTHWHILE * limit)):
            break
        run.append(cost)
        total += padded(totals[cost], cost, run[0])
    return run


def best_run(totals: Mapping[int, int], limit: int) -> list[int]:
    """The neighbouring costs, dearest first, whose rows make the fullest batch.

    >>> best_run({9: 18, 8: 8, 4: 16, 3: 9}, limit=40)
    [9, 8]
    """
    best: list[int] = []
    best_total = 0
    left = sorted(totals, reverse=True)
    while left and best_total < limit:
        run = run_from(left, totals, limit)
        total = sum(padded(totals[cost], cost, run[0]) for cost in run)
        if total > best_total:
            best, best_total = run, total
        left = left[len(run) :]
    return best


def padded(total: int, cost: int, dearest: int) -> int:
    """What rows of a cost amount to beside dearer ones."""
    return total * dearest // max(1, cost)
