"""Purity: how many of the top features are stop words or punctuation?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.metric.base import Measures, metrics
from pertinent.metric.english_words import is_punctuation, stop_words
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
