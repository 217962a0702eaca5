"""Metrics of English words: purity (stop words) and brevity (synonyms) of top features; Vo et al. 2023."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from pertinent._optional import optional
from pertinent.errors import FileError
from pertinent.metrics.base import Measures, metrics
from pertinent.metrics.top_features import TopFeatures, top_words
from pertinent.results.explanation import Explanation


@metrics.register("purity")
@dataclass(frozen=True)
class Purity(TopFeatures):
    """The share of stop words and punctuation in S; each occurrence counts.

    It requires NLTK's English stop words: the extra ``nltk`` and the data package ``stopwords``.

    Parameters
    ----------
    distinct
        Count each stop word once, and divide by `k` even if a text has fewer words, as in the authors' code.
        The shares are then smaller.
    """

    paper = "Vo et al. 2023, App. B.1"
    summary = "share of English stop words and punctuation among the top K words"
    better = "lower"
    distinct: bool = field(default=False, kw_only=True)

    def measure(self, explanation: Explanation) -> Measures:
        """Count the stop words and punctuation."""
        yield from ()
        sets = self.sets(explanation).items()
        words = {s: top_words(explanation, mask) for s, mask in sets}
        if not self.distinct:
            return {s: share_contaminated(top) for s, top in words.items()}
        return {
            s: distinct_contaminated(top, self.k if self.k is not None and s is None else len(top))
            for s, top in words.items()
        }


def share_contaminated(words: Sequence[str]) -> float:
    """Return the share of words (in lower case) that are stop words or punctuation."""
    return float(np.mean([is_contaminated(word) for word in words]))


def distinct_contaminated(words: Sequence[str], k: int) -> float:
    """Return the number of distinct stop words and punctuation marks, divided by k."""
    return len({word for word in words if is_contaminated(word)}) / k


def is_contaminated(word: str) -> bool:
    """Return whether a word in lower case is a stop word or punctuation."""
    return is_punctuation(word) or word in stop_words()


@metrics.register("brevity")
@dataclass(frozen=True)
class Brevity(TopFeatures):
    """The number of clusters of duplicates and synonyms among the words of S.

    Two words are synonyms if any of their forms share a sense in WordNet, or if a sense of one is similar to
    a sense of the other. The most important word forms a cluster with all its synonyms, then the most
    important remaining word does, and so on. It requires the extra ``nltk`` and the data package ``wordnet``.

    Notes
    -----
    The paper only says that tokens are grouped into clusters of synonyms. The authors' code also joins two
    words that are both related to a third word, which gives fewer clusters: it joins *bad* and *great*
    through *big*.
    """

    paper = "Vo et al. 2023, App. B.2"
    summary = "number of clusters of English synonyms among the top K words"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Count the clusters."""
        yield from ()
        sets = self.sets(explanation).items()
        return {s: float(len(clusters(top_words(explanation, mask)))) for s, mask in sets}


def clusters(words: Sequence[str]) -> list[list[str]]:
    """Return distinct words in clusters of synonyms, in the order of the words."""
    remaining, groups = [*dict.fromkeys(words)], []
    while remaining:
        first = remaining[0]
        groups.append([first, *(word for word in remaining[1:] if are_synonyms(first, word))])
        remaining = [word for word in remaining if word not in groups[-1]]
    return groups


def are_synonyms(word: str, other: str) -> bool:
    """Return whether two words share a sense, or have similar senses."""
    a, b = senses(word), senses(other)
    return not (a.direct | a.similar).isdisjoint(b.direct) or not a.direct.isdisjoint(b.similar)


_READING = Lock()
"""Lock for NLTK's corpora, which only one thread can read at a time."""


class Senses(NamedTuple):
    """The senses (synsets) of a word, and the senses that WordNet lists as similar."""

    direct: frozenset[str]
    similar: frozenset[str]


@cache
def stop_words() -> frozenset[str]:
    """Return NLTK's English stop words, in lower case."""
    with _READING:
        return frozenset(_corpus("stopwords").words("english"))


@cache
def senses(word: str) -> Senses:
    """Return the senses of a word in any of its forms."""
    with _READING:
        direct = _corpus("wordnet").synsets(word)
        similar = [other for sense in direct for other in sense.similar_tos()]
    return Senses(frozenset(sense.name() for sense in direct), frozenset(sense.name() for sense in similar))


def is_punctuation(word: str) -> bool:
    """Return whether a word contains neither letters nor digits.

    >>> is_punctuation("…"), is_punctuation("B-"), is_punctuation("7")
    (True, False, False)
    """
    return not any(character.isalnum() for character in word)


def _corpus(name: str) -> Any:
    """Load an NLTK corpus; raise a `FileError` with instructions if it is not installed."""
    corpus = getattr(optional("nltk.corpus"), name)
    try:
        corpus.ensure_loaded()
    except LookupError as error:
        raise FileError(
            f"The NLTK data {name!r} is missing: run python -m nltk.downloader {name}, or set the "
            "environment variable NLTK_DATA to the folder that contains it."
        ) from error
    return corpus
