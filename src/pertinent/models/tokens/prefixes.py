"""Rows of a causal language model that begin with the same tokens: what they share is computed once."""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pertinent.array_types import Floats, Ints
from pertinent.models.tokens.batches import TokenBatch, without_needless_mask

if TYPE_CHECKING:
    from pertinent.models.transformer import TransformerModel

logger = logging.getLogger(__name__)

CUTS = 64
"""The largest number of places at which the rows of a batch may be divided into groups."""

SHORTEST = 8
"""Beginnings with fewer tokens are not shared."""

KEPT = 8192
"""Number of tokens of all beginnings whose keys and values are kept for the next batch."""


class Prefixes:
    """Answers batches of a causal network, and computes what rows begin with only once.

    A token's keys and values depend on earlier tokens alone, so those of a beginning that rows share are the
    same in each row. Rows are sorted and divided into groups with a common beginning where that is less work:
    leave-one-out over a prompt takes about half of it, and what stands before the first feature is computed
    once. Verified against the plain pass when it is first needed; where it does not hold, and where tokens
    are hidden rather than left out, nothing is shared.
    """

    def __init__(self, encoder: TransformerModel) -> None:
        self._encoder = encoder
        self._holds: bool | None = None
        self._kept: OrderedDict[bytes, tuple[Tensor, Any]] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        """All but what was computed."""
        return vars(self) | {"_kept": OrderedDict()}

    def forget(self) -> None:
        """Forget keys and values, because the parameters have changed."""
        self._kept.clear()

    def answer(self, batch: TokenBatch) -> Tensor:
        """The network's answer to a batch (rows, tokens, …); that to padding is anything."""
        groups = self._groups(batch)
        if len(groups) == 1 and not groups[0][1]:
            return self._encoder.answer(batch)
        lengths = _lengths(batch)
        parts = [self._answer(batch.pick(rows)[:, : lengths[rows].max()], shared) for rows, shared in groups]
        if len(parts) == 1:
            return parts[0]
        found = parts[0].new_zeros(batch.ids.shape + parts[0].shape[2:])
        for (rows, _), part in zip(groups, parts, strict=True):
            found[torch.from_numpy(rows).to(part.device), : part.shape[1]] = part
        return found

    def _groups(self, batch: TokenBatch) -> list[tuple[Ints, int]]:
        """Rows that are computed together, and the number of tokens that they begin with in common."""
        everything = [(np.arange(len(batch.ids)), 0)]
        if batch.zeroed is not None or without_needless_mask(batch).attend is not None:
            return everything
        groups = divide(batch.ids, _lengths(batch), self._encoder.launch_overhead)
        return groups if any(shared for _, shared in groups) and self._verified() else everything

    def _answer(self, batch: TokenBatch, shared: int) -> Tensor:
        if not shared:
            return self._encoder.answer(batch)
        before, cache = self._beginning(batch[:1, :shared])
        n = len(batch.ids)
        found = self._encoder.forward(
            _rest(batch, shared), past_key_values=_repeated(cache, n), use_cache=True
        )
        after = self._encoder.head.answer_of(found)
        return torch.cat([before.expand(n, *before.shape[1:]), after], dim=1)

    def _beginning(self, batch: TokenBatch) -> tuple[Tensor, Any]:
        """The answer to the one row of a batch, and the keys and values of its tokens."""
        key = batch.ids.tobytes()
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        found = self._encoder.forward(batch, use_cache=True)
        made = self._encoder.head.answer_of(found), found.past_key_values
        if batch.ids.size <= KEPT:
            self._kept[key] = made
            while sum(len(own) for own in self._kept) > KEPT * batch.ids.itemsize:
                self._kept.popitem(last=False)
        return made

    def _verified(self) -> bool:
        """Whether sharing changes nothing, by a text in full precision."""
        if self._holds is None:
            self._holds = self._verify()
            if not self._holds:
                logger.warning("What rows begin with in common is computed for each of them.")
        return self._holds

    def _verify(self) -> bool:
        encoder = self._encoder
        plain = encoder.whole_text(min(24, encoder.max_length))
        half = plain.ids.shape[1] // 2
        try:
            whole = encoder.head.answer_of(encoder.exactly(plain))
            cache = encoder.exactly(plain[:, :half], use_cache=True).past_key_values
            rest = encoder.exactly(_rest(plain, half), past_key_values=_repeated(cache, 1), use_cache=True)
        except (AttributeError, TypeError, RuntimeError):
            return False
        return encoder.alike(encoder.head.answer_of(rest), whole[:, half:])


def divide(ids: Ints, lengths: Ints, overhead: int) -> list[tuple[Ints, int]]:
    """Rows in groups, each with the number of tokens that its rows begin with in common.

    The sum over groups of `overhead`, the tokens in common, and the further tokens of all rows with their
    padding is as small as it can be for sorted rows that are divided at `CUTS` places at most. At least the
    last token of each row is not shared.
    """
    n = len(ids)
    order = np.lexsort(ids.T[::-1])
    ids, lengths = ids[order], lengths[order]
    same = ids[1:] == ids[:-1]
    alike = np.where(same.all(axis=1), ids.shape[1], same.argmin(axis=1))
    alike = np.minimum(alike, np.minimum(lengths[1:], lengths[:-1]) - 1)
    if not len(alike) or alike.max() < SHORTEST:
        return [(np.arange(n), 0)]
    edges = np.unique(np.linspace(0, n, min(n, CUTS) + 1).astype(np.int64))
    shared, cost = _costs(alike, lengths, edges, overhead)
    ends = range(1, len(edges))
    least, start = np.zeros(len(edges)), np.zeros(len(edges), dtype=np.int64)
    for end in ends:
        sums = least[:end] + cost[:end, end - 1]
        start[end] = sums.argmin()
        least[end] = sums[start[end]]
    groups, end = [], len(edges) - 1
    while end:
        first = int(start[end])
        groups.append((np.sort(order[edges[first] : edges[end]]), int(shared[first, end - 1])))
        end = first
    return groups[::-1]


def _costs(alike: Ints, lengths: Ints, edges: Ints, overhead: int) -> tuple[Ints, Floats]:
    """Tokens in common and cost of the rows from one edge to another (first block, last block)."""
    within = np.append(alike, 0)
    firsts, ends = edges[:-1], edges[1:]
    most = np.iinfo(np.int64).max
    inner = np.array([within[a : b - 1].min(initial=most) for a, b in zip(firsts, ends, strict=True)])
    joined = np.minimum(inner, np.append(most, within[firsts[1:] - 1]))
    longest = np.maximum.reduceat(lengths, firsts)
    i, j = np.indices((len(firsts),) * 2)
    shared = np.minimum.accumulate(np.where(j > i, joined, np.where(j == i, inner, most)), axis=1)
    width = np.maximum.accumulate(np.where(j >= i, longest, 0), axis=1)
    rows = ends[None, :] - firsts[:, None]
    shared = np.where((rows > 1) & (shared >= SHORTEST), shared, 0)
    return shared, overhead + shared + rows * (width - shared).astype(np.float64)


def _lengths(batch: TokenBatch) -> Ints:
    """Number of tokens of each row; padding is at the end."""
    if batch.attend is None:
        return np.full(len(batch.ids), batch.ids.shape[1])
    return np.asarray(batch.attend.sum(axis=1))


def _rest(batch: TokenBatch, shared: int) -> TokenBatch:
    """The tokens after the first ones, numbered from 0; the network goes on from its keys and values."""
    arrays: Sequence[Any] = [None if own is None else own[:, shared:] for own in vars(batch).values()]
    rest = TokenBatch(*arrays)
    return replace(rest, positions=np.broadcast_to(np.arange(rest.ids.shape[1]), rest.ids.shape))


def _repeated(cache: Any, n: int) -> Any:
    """A cache of n equal rows, which a pass may extend without a change to the one of a single row."""
    found = copy.copy(cache)
    found.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in found.layers:
        layer.keys = layer.keys.expand(n, -1, -1, -1)
        layer.values = layer.values.expand(n, -1, -1, -1)
    return found
