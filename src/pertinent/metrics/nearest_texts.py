"""Neighbours: for each text the most similar others, by the words in common or by embeddings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats, Ints, Masks


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Texts of which to find the nearest neighbours.

    Attributes
    ----------
    words
        The distinct words of each text.
    labels
        The model's decision about each: a neighbour has the same.
    identities
        Equal for texts that are the same: a text is no neighbour of itself.
    vectors
        The embedding of each (texts, dimensions), unless only words count.
    """

    words: Sequence[AbstractSet[str]]
    labels: Sequence[Hashable]
    identities: Sequence[Hashable]
    vectors: Floats | None = None

    def find(self, lexical: int, semantic: int) -> list[Ints]:
        """For each text its `semantic` nearest by embedding and the `lexical` nearest of the others by words.

        Fewer where fewer texts have the same label. The nearest come first; equal ones in their order.
        """
        by_label: dict[Hashable, list[int]] = defaultdict(list)
        for i, label in enumerate(self.labels):
            by_label[label].append(i)
        found: dict[int, Ints] = {}
        for members in by_label.values():
            group = np.array(members)
            ratios = WordOverlap([self.words[i] for i in members])
            directions = None if self.vectors is None else _directions(self.vectors[group])
            numbers: dict[Hashable, int] = {}
            same = np.array([numbers.setdefault(self.identities[i], len(numbers)) for i in members])
            for own, i in enumerate(members):
                others = same != same[own]
                near = np.empty(0, dtype=np.int64)
                if directions is not None:
                    near = _nearest(directions @ directions[own], others, semantic)
                    others[near] = False
                found[i] = group[np.concatenate([near, _nearest(ratios.with_all(own), others, lexical)])]
        return [found[i] for i in range(len(self.labels))]


class WordOverlap:
    """The ratio of overlapping words of texts: those in common over those of either.

    >>> WordOverlap([{"a", "good", "film"}, {"a", "bad", "film"}, {"no"}]).with_all(0).tolist()
    [1.0, 0.5, 0.0]
    """

    def __init__(self, texts: Sequence[AbstractSet[str]]) -> None:
        self._texts = texts
        self._sizes = np.array([len(words) for words in texts])
        holders: dict[str, list[int]] = defaultdict(list)
        for i, words in enumerate(texts):
            for word in words:
                holders[word].append(i)
        self._holders = {word: np.array(texts) for word, texts in holders.items()}

    def with_all(self, own: int) -> Floats:
        """The ratio of one text with each."""
        common = np.zeros(len(self._sizes))
        for word in self._texts[own]:
            common[self._holders[word]] += 1
        return np.asarray(common / np.maximum(self._sizes + self._sizes[own] - common, 1))


def mean_overlap(words: AbstractSet[str], others: Sequence[AbstractSet[str]]) -> float:
    """The mean intersection over union with each of the others; two empty sets have none.

    >>> mean_overlap({"good", "film"}, [{"good"}, {"good", "film"}, {"bad"}, set()])
    0.375
    """
    return float(np.mean([len(words & other) / max(len(words | other), 1) for other in others]))


def _nearest(similarities: Floats, allowed: Masks, n: int) -> Ints:
    candidates = np.flatnonzero(allowed)
    return candidates[np.argsort(-similarities[candidates], kind="stable")[:n]]


def _directions(vectors: Floats) -> Floats:
    """The vectors at length 1, so that their products are cosines; a vector of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))
