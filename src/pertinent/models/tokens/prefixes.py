"""Shared computation of the leading tokens that rows of a causal language model have in common."""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict
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
"""Largest number of row blocks that groups are formed from."""

SHORTEST = 8
"""Smallest number of tokens of a shared prefix."""

CACHED_TOKENS = 8192
"""Number of prefix tokens whose keys and values are cached for later batches."""


class Prefixes:
    """Answers batches of a causal network, computing shared prefixes of rows once.

    A token's keys and values depend only on earlier tokens, so rows with the same prefix can share them. Rows
    are sorted and divided into groups with a common prefix if that reduces the work: leave-one-out over a
    prompt takes about half of the work, and the tokens before the first feature are computed once. On first
    use, the result is compared with that of a plain pass. If they differ, and for rows with hidden tokens,
    nothing is shared.
    """

    def __init__(self, encoder: TransformerModel) -> None:
        self._encoder = encoder
        self._holds: bool | None = None
        self._cache: OrderedDict[bytes, tuple[Tensor, Any]] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without cached keys and values."""
        return vars(self) | {"_cache": OrderedDict()}

    def forget(self) -> None:
        """Discard cached keys and values, because the parameters have changed."""
        self._cache.clear()

    def answer(self, batch: TokenBatch) -> Tensor:
        """Return the network's answer to a batch (rows, tokens, …), with arbitrary values for padding."""
        groups = self._groups(batch)
        if len(groups) == 1 and not groups[0][1]:
            return self._encoder.answer(batch)
        lengths = _lengths(batch)
        parts = [self._answer(batch[rows][:, : lengths[rows].max()], shared) for rows, shared in groups]
        if len(parts) == 1:
            return parts[0]
        answer = parts[0].new_zeros(batch.ids.shape + parts[0].shape[2:])
        for (rows, _), part in zip(groups, parts, strict=True):
            answer[torch.from_numpy(rows).to(part.device), : part.shape[1]] = part
        return answer

    def _groups(self, batch: TokenBatch) -> list[tuple[Ints, int]]:
        """Return the rows of each group and the length of their common prefix."""
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
        output = self._encoder.forward(
            _rest(batch, shared), past_key_values=_repeat(cache, n), use_cache=True
        )
        after = self._encoder.head.answer_of(output)
        return torch.cat([before.expand(n, *before.shape[1:]), after], dim=1)

    def _beginning(self, batch: TokenBatch) -> tuple[Tensor, Any]:
        """Return the answer to a batch of one row, and the keys and values of its tokens."""
        key = batch.ids.tobytes()
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        output = self._encoder.forward(batch, use_cache=True)
        beginning = self._encoder.head.answer_of(output), output.past_key_values
        if batch.ids.size <= CACHED_TOKENS:
            self._cache[key] = beginning
            while sum(map(len, self._cache)) > CACHED_TOKENS * batch.ids.itemsize:
                self._cache.popitem(last=False)
        return beginning

    def _verified(self) -> bool:
        """Return whether sharing gives the same answer, tested once with one text in full precision."""
        if self._holds is None:
            self._holds = self._verify()
            if not self._holds:
                logger.warning("Shared prefixes are computed separately for each row.")
        return self._holds

    def _verify(self) -> bool:
        encoder = self._encoder
        plain = encoder.whole_text(min(24, encoder.max_length))
        half = plain.ids.shape[1] // 2
        try:
            whole = encoder.head.answer_of(encoder.exactly(plain))
            cache = encoder.exactly(plain[:, :half], use_cache=True).past_key_values
            rest = encoder.exactly(_rest(plain, half), past_key_values=_repeat(cache, 1), use_cache=True)
        except (AttributeError, TypeError, RuntimeError):
            return False
        return encoder.alike(encoder.head.answer_of(rest), whole[:, half:])


def divide(ids: Ints, lengths: Ints, overhead: int) -> list[tuple[Ints, int]]:
    """Divide rows into groups, and return each group with the length of its common prefix.

    The cost of a group is `overhead`, plus the shared tokens, plus the remaining tokens of all rows with
    padding. The total cost is minimal for sorted rows in at most `CUTS` blocks. The last token of a row is
    never shared.
    """
    n = len(ids)
    order = np.lexsort(ids.T[::-1])
    ids, lengths = ids[order], lengths[order]
    same = ids[1:] == ids[:-1]
    common = np.where(same.all(axis=1), ids.shape[1], same.argmin(axis=1))
    common = np.minimum(common, np.minimum(lengths[1:], lengths[:-1]) - 1)
    if not len(common) or common.max() < SHORTEST:
        return [(np.arange(n), 0)]
    edges = np.unique(np.linspace(0, n, min(n, CUTS) + 1).astype(np.int64))
    shared, cost = _costs(common, lengths, edges, overhead)
    least, start = np.zeros(len(edges)), np.zeros(len(edges), dtype=np.int64)
    for end in range(1, len(edges)):
        sums = least[:end] + cost[:end, end - 1]
        start[end] = sums.argmin()
        least[end] = sums[start[end]]
    groups, end = [], len(edges) - 1
    while end:
        first = int(start[end])
        groups.append((np.sort(order[edges[first] : edges[end]]), int(shared[first, end - 1])))
        end = first
    return groups[::-1]


def _costs(common: Ints, lengths: Ints, edges: Ints, overhead: int) -> tuple[Ints, Floats]:
    """Return the shared tokens and the cost of the rows from one block to another (first, last block).

    `common` is the number of tokens that each row shares with the next.
    """
    within = np.append(common, 0)
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
    """Return the number of tokens of each row; padding is at the end."""
    if batch.attend is None:
        return np.full(len(batch.ids), batch.ids.shape[1])
    return np.asarray(batch.attend.sum(axis=1))


def _rest(batch: TokenBatch, shared: int) -> TokenBatch:
    """Return the tokens after the shared ones, with positions from 0; the network continues from a cache."""
    rest = batch[:, shared:]
    return replace(rest, positions=np.broadcast_to(np.arange(rest.ids.shape[1]), rest.ids.shape))


def _repeat(cache: Any, n: int) -> Any:
    """Return a cache of n equal rows that a pass may extend without changing the original."""
    repeated = copy.copy(cache)
    repeated.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in repeated.layers:
        layer.keys = layer.keys.expand(n, -1, -1, -1)
        layer.values = layer.values.expand(n, -1, -1, -1)
    return repeated
