"""Questions that wait for the model, and the choice of those that travel together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pertinent.types import Ints, Masks

if TYPE_CHECKING:
    from pertinent.engine.engine import Conversation

FULL = 0.9
SIMILAR = 0.85
ENOUGH = 0.25


@dataclass(frozen=True, eq=False)
class Chunk:
    """Masks that one conversation waits on, with the cost of each."""

    talk: Conversation
    masks: Masks
    keys: list[bytes]
    cost: Ints

    def part(self, rows: Ints) -> Chunk:
        """Some of its rows."""
        if len(rows) == len(self.keys):
            return self
        return Chunk(self.talk, self.masks[rows], [self.keys[i] for i in rows], self.cost[rows])


class Pending:
    """Chunks of all conversations; batches are taken out of it in rows of similar cost."""

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []
        self.cost = 0

    def add(self, chunk: Chunk) -> None:
        """Line up a chunk."""
        self._chunks.append(chunk)
        self.cost += int(chunk.cost.sum())

    def drop(self, unwanted: Callable[[Chunk], bool]) -> None:
        """Forget the chunks of a conversation that has ended."""
        self._chunks = [chunk for chunk in self._chunks if not unwanted(chunk)]
        self.cost = sum(int(chunk.cost.sum()) for chunk in self._chunks)

    def take(self, limit: int) -> list[Chunk]:
        """Take out the rows of one batch: similar in cost, and as full as can be."""
        cost = np.concatenate([chunk.cost for chunk in self._chunks])
        order = np.argsort(-cost, kind="stable")
        start, end = fullest_run(cost[order], limit)
        chosen = np.zeros(len(cost), dtype=np.bool_)
        chosen[order[start:end]] = True
        taken, left, first = [], [], 0
        for chunk in self._chunks:
            mine = chosen[first : first + len(chunk.keys)]
            first += len(chunk.keys)
            if mine.any():
                taken.append(chunk.part(np.flatnonzero(mine)))
            if not mine.all():
                left.append(chunk.part(np.flatnonzero(~mine)))
        self._chunks = left
        self.cost -= sum(int(chunk.cost.sum()) for chunk in taken)
        return taken


def fullest_run(cost: Ints, limit: int) -> tuple[int, int]:
    """The run of rows, in falling order of cost, that makes the best batch.

    Every row of a batch is padded to its longest. So a run ends where rows get much shorter, and
    where half a batch of equally long rows ends, which then needs no padding at all.

    >>> fullest_run(np.array([9, 9, 4, 4, 4, 4]), limit=16)
    (2, 6)
    """
    best, best_fill = (0, 1), 0.0
    start = 0
    while start < len(cost):
        longest = int(cost[start])
        end = min(start + max(1, limit // max(1, longest)), len(cost))
        equal = int(np.searchsorted(-cost, -longest, side="right"))
        similar = int(np.searchsorted(-cost, -SIMILAR * longest, side="right"))
        if (equal - start) * longest >= limit / 2:
            end = min(end, equal)
        elif (similar - start) * longest >= ENOUGH * limit:
            end = min(end, similar)
        fill = longest * (end - start) / limit
        if fill >= FULL:
            return start, end
        if fill > best_fill:
            best, best_fill = (start, end), fill
        start = end
    return best
