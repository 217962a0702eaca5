"""The paper's criteria for texts, along the first one to five words of an explanation (App. C)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Ask, Attack, AttackRadii, Values
from pertinent.asks.attack_radii import never_rising
from pertinent.metrics.base import Measures, Metric
from pertinent.results.explanation import Explanation

WORDS = 5


def top_words(explanation: Explanation) -> Masks:
    """Return masks of the first one to five words, or of a search's choice of that number of words."""
    d = len(explanation.features)
    chosen = {int(mask.sum()): mask for mask in explanation.chosen.values()}
    rank = np.empty(d, dtype=np.int64)
    rank[explanation.ranking] = np.arange(d)
    return np.array([chosen.get(n, rank < n) for n in range(1, WORDS + 1)])


@dataclass(frozen=True)
class TopWords(Metric):
    """A curve over the number of first words.

    Attributes
    ----------
    others
        Whether the curve is of all other words.
    """

    others: ClassVar[bool] = False

    def measure(self, explanation: Explanation) -> Measures:
        """Return the value by number of words."""
        words = top_words(explanation)
        values = yield from self.curve(explanation, ~words if self.others else words)
        return {float(n + 1): float(value) for n, value in enumerate(values)}

    @abstractmethod
    def curve(self, explanation: Explanation, sets: Masks) -> Generator[Ask, Any, Floats]:
        """Return the value of each set."""


@dataclass(frozen=True)
class RadiiOfRelevant(TopWords):
    """Smallest perturbation of the embeddings of the first words; infinite if none was found."""

    name = "robustness of relevant"
    paper = "Hsieh et al. 2021, Def. 3.2 (Robustness-Sr)"
    summary = "attack radii of the first words"
    better = "lower"

    def curve(self, explanation: Explanation, sets: Masks) -> Generator[Ask, Any, Floats]:
        """Return the radius of each set."""
        prediction = explanation.prediction.values
        decided = explanation.output.default_target(prediction)
        attacks = yield AttackRadii(sets, prediction, decided, attack=Attack())
        return never_rising(sets, attacks).radii


@dataclass(frozen=True)
class RadiiOfIrrelevant(RadiiOfRelevant):
    """Smallest perturbation of the embeddings of all other words."""

    name = "robustness of irrelevant"
    paper = "Hsieh et al. 2021, Def. 3.2 (Robustness-S̄r)"
    summary = "attack radii of all but the first words"
    better = "higher"
    others = True


@dataclass(frozen=True)
class TopInsertion(TopWords):
    """Logit of the predicted class with only the first words."""

    name = "insertion"
    paper = "Petsiuk, Das & Saenko 2018; Hsieh et al. 2021, Sec. 5.2"
    summary = "the logit with only the first words"
    better = "higher"

    def curve(self, explanation: Explanation, sets: Masks) -> Generator[Ask, Any, Floats]:
        """Return the logit with each set."""
        answer = yield Values(sets, "raw")
        return np.asarray(answer[:, explanation.target])


@dataclass(frozen=True)
class TopDeletion(TopInsertion):
    """Logit of the predicted class without the first words."""

    name = "deletion"
    summary = "the logit without the first words"
    better = "lower"
    others = True
