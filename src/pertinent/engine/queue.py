"""All questions that wait for the model, and which of them go next."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pertinent.engine.asks import MaskGradients, PathGradients, Values
from pertinent.engine.batch_size import BatchSize
from pertinent.engine.conversation import Conversation
from pertinent.engine.pending import Chunk, Kind, Pending
from pertinent.models.base import Model
from pertinent.types import Ints

FEW = 2
"""A job's first questions are urgent if they have no more rows than this: its work is still to come."""

SPARE = 2
"""Batches on a device that keep it busy for the time being."""


class Queue:
    """Questions by their kind: a batch holds only one."""

    def __init__(self, model: Model, batch_size: BatchSize) -> None:
        kinds: tuple[Kind, ...] = (Values, MaskGradients, PathGradients)
        self._in_flight = model.in_flight
        self._batch_size = batch_size
        self._pending = {kind: Pending(model.start, model.mixing) for kind in kinds}
        self._passed = dict.fromkeys(kinds, 0)

    @property
    def cost(self) -> int:
        """The cost of all that waits."""
        return sum(pending.cost for pending in self._pending.values())

    def add(self, talk: Conversation, rows: Ints, keys: list[Any], costs: Ints) -> None:
        """Line up the rows that a conversation waits on."""
        assert talk.ask is not None
        urgent = talk.is_young and len(keys) <= FEW
        self._pending[type(talk.ask)].add(talk, rows, keys, costs, urgent=urgent)

    def put(self, chunk: Chunk) -> None:
        """Line up rows once more."""
        self._pending[chunk.kind].put(chunk)

    def drop(self, root: Conversation) -> None:
        """Forget what a job waited for."""
        for pending in self._pending.values():
            pending.drop(lambda chunk: chunk.talk.root is root)

    def due(self, flying: Collection[Kind]) -> Kind | None:
        """The kind of question to launch next: that of which most has waited longest.

        Where few wait, those on their way are waited for: else a few answers would bring a few
        questions, which would travel alone for ever.
        """
        weights = {
            kind: pending.cost * (1 + self._passed[kind])
            for kind, pending in self._pending.items()
            if pending.cost >= (self._least if kind in flying else 1)
        }
        return max(weights, key=weights.__getitem__, default=None)

    def is_pressing(self, kind: Kind, flying: int) -> bool:
        """Whether to launch it before any algorithm goes on: a device should not wait for their arithmetic.

        It takes a full batch, or a good one when the device is about to have nothing left to do.
        """
        enough = self._batch_size.cost if flying >= SPARE else self._least
        return self._in_flight > 1 and self._pending[kind].fullest >= enough

    def take(self, kind: Kind, flying: int) -> list[Chunk]:
        """Take out one batch, the chunks of each conversation together."""
        for other, pending in self._pending.items():
            self._passed[other] = self._passed[other] + 1 if other is not kind and pending.cost else 0
        together: dict[Conversation, list[Chunk]] = {}
        for chunk in self._pending[kind].take(self._limit(self._pending[kind].cost, flying)):
            together.setdefault(chunk.talk, []).append(chunk)
        return [chunk for chunks in together.values() for chunk in chunks]

    def _limit(self, waiting: int, flying: int) -> int:
        """The cost of the next batch: a full one, or half of what waits if a device has nothing to do.

        It works on one half while the other is answered. A batch that is too small is not worth its start.
        """
        full = self._batch_size.cost
        return full if flying or self._in_flight == 1 else min(full, max(waiting // 2, self._least))

    @property
    def _least(self) -> int:
        """The cost of a batch that is well worth its start."""
        return max(1, self._batch_size.cost // 2)
