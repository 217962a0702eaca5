"""Which English words the top features are: stop words (purity) and synonyms (brevity); Vo et al. 2023."""

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

    Stop words are NLTK's English ones, and need the extra ``nltk`` and its data ``stopwords``.

    Parameters
    ----------
    distinct
        Count each stop word once, and divide by `k` even if a text has fewer words, as the authors' code
        does. It gives smaller shares.
    """

    paper = "Vo et al. 2023, App. B.1"
    summary = "share of English stop words and punctuation among the top K words"
    better = "lower"
    distinct: bool = field(default=False, kw_only=True)

    def measure(self, explanation: Explanation) -> Measures:
        """Look the words up."""
        yield from ()
        sets = self.sets(explanation).items()
        words = {s: top_words(explanation, mask) for s, mask in sets}
        if not self.distinct:
            return {s: share_contaminated(own) for s, own in words.items()}
        return {
            s: distinct_contaminated(own, self.k if self.k is not None and s is None else len(own))
            for s, own in words.items()
        }


def share_contaminated(words: Sequence[str]) -> float:
    """The share of words in lower case that are stop words or punctuation."""
    return float(np.mean([is_contaminated(word) for word in words]))


def distinct_contaminated(words: Sequence[str], k: int) -> float:
    """The number of different stop words and signs, divided by k."""
    return len({word for word in words if is_contaminated(word)}) / k


def is_contaminated(word: str) -> bool:
    """Whether a word in lower case is a stop word or punctuation."""
    return is_punctuation(word) or word in stop_words()


@metrics.register("brevity")
@dataclass(frozen=True)
class Brevity(TopFeatures):
    """The number of clusters of duplicates and synonyms among the words of S.

    Two words are synonyms if they share a sense in WordNet, in any of their forms, or if a sense of one is
    similar to a sense of the other. The best word takes all its synonyms into its cluster, then the best of
    those that are left. Needs the extra ``nltk`` and its data ``wordnet``.

    Notes
    -----
    The paper says only that tokens are grouped into clusters of synonyms. The authors' code joins two words
    already if a third one is related to both, which gives fewer clusters: *bad* and *great* by way of *big*.
    """

    paper = "Vo et al. 2023, App. B.2"
    summary = "number of clusters of English synonyms among the top K words"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Look the words up."""
        yield from ()
        sets = self.sets(explanation).items()
        return {s: float(len(clusters(top_words(explanation, mask)))) for s, mask in sets}


def clusters(words: Sequence[str]) -> list[list[str]]:
    """Distinct words in clusters of synonyms, in their order."""
    left = [*dict.fromkeys(words)]
    found = []
    while left:
        found.append([left[0], *(word for word in left[1:] if are_synonyms(left[0], word))])
        left = [word for word in left if word not in found[-1]]
    return found


def are_synonyms(word: str, other: str) -> bool:
    """Whether two words share a sense, or have similar senses."""
    a, b = senses(word), senses(other)
    return not (a.own | a.similar).isdisjoint(b.own) or not a.own.isdisjoint(b.similar)


_READING = Lock()
"""NLTK's corpora can be read by one thread at a time."""


class Senses(NamedTuple):
    """The senses (synsets) of a word, and those that WordNet calls similar to one of them."""

    own: frozenset[str]
    similar: frozenset[str]


@cache
def stop_words() -> frozenset[str]:
    """NLTK's English stop words, in lower case."""
    with _READING:
        return frozenset(_corpus("stopwords").words("english"))


@cache
def senses(word: str) -> Senses:
    """The senses of a word in any of its forms."""
    with _READING:
        own = _corpus("wordnet").synsets(word)
        similar = [other for sense in own for other in sense.similar_tos()]
    return Senses(frozenset(sense.name() for sense in own), frozenset(sense.name() for sense in similar))


def is_punctuation(word: str) -> bool:
    """Whether nothing in it is a letter or a digit.

    >>> is_punctuation("…"), is_punctuation("B-"), is_punctuation("7")
    (True, False, False)
    """
    return not any(character.isalnum() for character in word)


def _corpus(name: str) -> Any:
    """A corpus of NLTK's, loaded; an error says how to get it."""
    corpus = getattr(optional("nltk.corpus"), name)
    try:
        corpus.ensure_loaded()
    except LookupError as error:
        raise FileError(
            f"NLTK's data {name!r} are missing: python -m nltk.downloader {name}, or set the environment "
            "variable NLTK_DATA to the folder that holds them."
        ) from error
    return corpus
