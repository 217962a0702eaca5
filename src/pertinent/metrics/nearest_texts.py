"""Nearest neighbours of texts, by shared words or embeddings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats, Ints, Masks


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A collection of texts in which nearest neighbours are searched.

    Attributes
    ----------
    words
        Distinct words of each text.
    labels
        The model's decision for each text; neighbours have the same decision.
    identities
        Key of each text, shared by equal texts: a text is not its own neighbour.
    vectors
        Embedding of each text (texts, dimensions); ``None`` to compare only words.
    """

    words: Sequence[AbstractSet[str]]
    labels: Sequence[Hashable]
    identities: Sequence[Hashable]
    vectors: Floats | None = None

    def find(self, lexical: int, semantic: int) -> list[Ints]:
        """Return the indices of each text's neighbours, nearest first.

        They are the `semantic` nearest texts by embedding, then the `lexical` nearest of the remaining texts
        by words. There are fewer if fewer texts have the same label. Ties keep the order of the texts.
        """
        by_label: dict[Hashable, list[int]] = defaultdict(list)
        for i, label in enumerate(self.labels):
            by_label[label].append(i)
        neighbours: dict[int, Ints] = {}
        for members in by_label.values():
            group = np.array(members)
            overlaps = WordOverlap([self.words[i] for i in members])
            directions = None if self.vectors is None else _directions(self.vectors[group])
            numbers: dict[Hashable, int] = {}
            identity = np.array([numbers.setdefault(self.identities[i], len(numbers)) for i in members])
            for row, i in enumerate(members):
                others = identity != identity[row]
                near = np.empty(0, dtype=np.int64)
                if directions is not None:
                    near = _nearest(directions @ directions[row], others, semantic)
                    others[near] = False
                near = np.append(near, _nearest(overlaps.with_all(row), others, lexical))
                neighbours[i] = group[near]
        return [neighbours[i] for i in range(len(self.labels))]


class WordOverlap:
    """Jaccard index of the words of texts: the size of the intersection over the size of the union.

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

    def with_all(self, index: int) -> Floats:
        """Return the Jaccard index of one text with every text."""
        common = np.zeros(len(self._sizes))
        for word in self._texts[index]:
            common[self._holders[word]] += 1
        return np.asarray(common / np.maximum(self._sizes + self._sizes[index] - common, 1))


def mean_overlap(words: AbstractSet[str], others: Sequence[AbstractSet[str]]) -> float:
    """Return the mean Jaccard index of some words with each of the other sets; 0 for two empty sets.

    >>> mean_overlap({"good", "film"}, [{"good"}, {"good", "film"}, {"bad"}, set()])
    0.375
    """
    return float(np.mean([len(words & other) / max(len(words | other), 1) for other in others]))


def _nearest(similarities: Floats, allowed: Masks, n: int) -> Ints:
    candidates = np.flatnonzero(allowed)
    return candidates[np.argsort(-similarities[candidates], kind="stable")[:n]]


def _directions(vectors: Floats) -> Floats:
    """Return the vectors scaled to length 1, so their products are cosines; zero vectors stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))
