"""Which words the top features are: purity of stop words, and brevity in synonyms (Vo et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pertinent.metric.base import Measures, metrics
from pertinent.metric.english_words import is_punctuation, senses, stop_words
from pertinent.metric.top_features import TopFeatures, top_words
from pertinent.results.explanation import Explanation


@metrics.register("purity")
@dataclass(frozen=True)
class Purity(TopFeatures):
    """The share of stop words and punctuation in S; each occurrence counts.

    Stop words are NLTK's English ones, and need the extra ``nltk`` and its data ``stopwords``.
    """

    paper = "Vo et al. 2023, App. B.1"
    summary = "share of English stop words and punctuation among the top K words"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Look the words up."""
        yield from ()
        words = {s: top_words(explanation, mask) for s, mask in self.sets(explanation).items()}
        return {s: float(np.mean([is_contaminated(word) for word in own])) for s, own in words.items()}


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
        words = {s: top_words(explanation, mask) for s, mask in self.sets(explanation).items()}
        return {s: float(len(clusters(own))) for s, own in words.items()}


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
