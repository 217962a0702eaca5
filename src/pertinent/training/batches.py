"""Batches for training: the order of the examples, and their counterfactuals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

from pertinent.array_types import Array, Ints, Masks
from pertinent.digests import digest, generator
from pertinent.explainers.base import n_kept
from pertinent.models.torch.tokens import TokenBatch, collate
from pertinent.removal.base import Removal, TokenRows
from pertinent.training.labelled_texts import Examples

POOL = 50
"""How many batches of examples are sorted by length together; more would make the order less random."""


@dataclass(frozen=True)
class Counterfactuals:
    """Hase et al. 2021, Sec. 4: for each x also ReplacE(x, e) with a random explanation e.

    The sparsity of e is drawn from `sparsities`, its tokens uniformly from all sets of k = ceil(s·d).
    Both depend only on (seed, epoch, index of the example).
    """

    removal: Removal
    sparsities: tuple[float, ...]
    seed: int

    @cached_property
    def _key(self) -> Array:
        return np.frombuffer(digest("counterfactual", self.seed), dtype=np.uint64)

    def draw(self, epoch: int, example: int, n_features: int) -> tuple[Masks, int]:
        """The random explanation of an example in an epoch, and a seed for the removal."""
        rng = np.random.Generator(np.random.Philox(key=self._key, counter=[0, 0, epoch, example]))
        k = n_kept(self.sparsities[rng.integers(len(self.sparsities))], n_features)
        mask = np.zeros((1, n_features), dtype=np.bool_)
        mask[0, rng.permutation(n_features)[:k]] = True
        return mask, int(rng.integers(2**31))


@dataclass
class Clock:
    """The current epoch of training."""

    epoch: int = 0


class Places(Dataset[tuple[int, int]]):
    """A data set whose items are only indices: (epoch, example)."""

    def __init__(self, examples: Sized) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, place: Any) -> tuple[int, int]:
        return place if isinstance(place, tuple) else (0, place)


class Shuffled(Sampler[tuple[int, int]]):
    """Every example once, in an order that depends only on (seed, epoch); batches of similar length."""

    def __init__(self, lengths: Ints, batch_size: int, seed: int, clock: Clock) -> None:
        self.lengths, self.batch_size, self.seed, self.clock = lengths, batch_size, seed, clock

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        epoch = self.clock.epoch
        rng = generator(self.seed, "order", epoch)
        order = rng.permutation(len(self.lengths))
        pool = POOL * self.batch_size
        for start in range(0, len(order), pool):
            part = order[start : start + pool]
            order[start : start + pool] = part[np.argsort(self.lengths[part], kind="stable")]
        n_full = len(order) // self.batch_size
        full, rest = np.split(order, [n_full * self.batch_size])
        batches = rng.permutation(full.reshape(n_full, self.batch_size), axis=0)
        for example in (*batches.ravel().tolist(), *rest.tolist()):
            yield epoch, example


@dataclass(frozen=True, eq=False)
class Collator:
    """Makes labels and token batches from indices: whole texts first, then counterfactuals, if any.

    They go through the model together, unless padding the counterfactuals to the length of the whole
    texts would cost more than `pass_cost`, the cost of a separate pass through the model, in tokens.
    """

    examples: Examples
    pad_id: int
    counterfactuals: Counterfactuals | None = None
    pass_cost: int = 0

    def __call__(self, places: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """A batch; each item of `passes` is one forward pass."""
        chosen = [example for _, example in places]
        labels = torch.from_numpy(self.examples.labels[chosen])
        whole = [self._whole(example) for example in chosen]
        if self.counterfactuals is None:
            return {"labels": labels, "passes": [self._collate(whole, chosen)]}
        replaced = [self._replaced(self.counterfactuals, *place) for place in places]
        longest = int(self.examples.lengths[chosen].max())
        spared = longest - max(self._length(rows, i) for rows, i in zip(replaced, chosen, strict=True))
        if len(chosen) * spared > self.pass_cost:
            passes = [self._collate(whole, chosen), self._collate(replaced, chosen)]
        else:
            passes = [self._collate(whole + replaced, chosen * 2)]
        return {"labels": labels.repeat(2), "passes": passes}

    def _length(self, rows: TokenRows, example: int) -> int:
        """Tokens of a row that will be computed."""
        dropped = rows.renumber or self.examples.compact[example]
        return int(np.count_nonzero(rows.attend)) if dropped else rows.attend.shape[1]

    def _collate(self, rows: list[TokenRows], chosen: list[int]) -> TokenBatch:
        return collate(rows, [self.examples.compact[i] for i in chosen], self.pad_id)

    def _whole(self, example: int) -> TokenRows:
        tokens = self.examples.inputs[example].tokens
        assert tokens is not None
        return TokenRows(tokens, np.ones((1, len(tokens.ids)), dtype=np.bool_))

    def _replaced(self, drawn: Counterfactuals, epoch: int, example: int) -> TokenRows:
        input = self.examples.inputs[example]
        rows = drawn.removal(input, *drawn.draw(epoch, example, input.n_features))
        assert isinstance(rows, TokenRows)
        return rows
