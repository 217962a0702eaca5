"""The K top features of an explanation and what the model decides from them, which many metrics share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.errors import SettingError
from pertinent.metric.base import Metric
from pertinent.outputs import Classes
from pertinent.results.explanation import Explanation
from pertinent.settings import Count, Share


@dataclass(frozen=True)
class TopFeatures(Metric):
    """Measures the K top features, S in Vo et al. 2023.

    Parameters
    ----------
    k
        How many features; all, if there are fewer. ``None``: as many as the explanation's sparsities say.
    sparsities
        Shares of features that count instead of `k`.
    """

    k: Count | None = 10
    sparsities: tuple[Share, ...] | None = None

    def sets(self, explanation: Explanation) -> dict[float | None, Masks]:
        """The set measured at each sparsity, or of the top K features under ``None``."""
        if self.k is not None and not self.sparsities:
            return {None: top_mask(explanation, self.k)}
        return {s: explanation.mask(s) for s in self.sparsities or explanation.sparsities}


def top_mask(explanation: Explanation, k: int) -> Masks:
    """The k features that rank highest."""
    mask = np.zeros(len(explanation.features), dtype=np.bool_)
    mask[explanation.ranking[:k]] = True
    return mask


def decided(explanation: Explanation, whole: Floats) -> int:
    """The column that the decision is about: the class predicted for the whole, or the label explained."""
    output = explanation.output
    return output.default_target(whole) if isinstance(output, Classes) else explanation.target


def same_decision(explanation: Explanation, whole: Floats, values: Floats) -> Masks:
    """Whether the decision is the same in each row of `values` as for the `whole` input."""
    try:
        return explanation.output.same_decision(values, whole, decided(explanation, whole))
    except SettingError:
        raise SettingError(
            "This metric asks whether the decision stays the same, but a plain value is no decision: "
            "choose one that asks how much the value changes, such as sufficiency."
        ) from None


def overlap(a: Masks, b: Masks) -> float:
    """The intersection of two sets over their union; 0 if both are empty."""
    return float((a & b).sum() / max((a | b).sum(), 1))


def top_words(explanation: Explanation, mask: Masks) -> list[str]:
    """The words of a set in lower case, the most important first; an error unless features are words."""
    input = explanation.input
    if input.kind != "text" or input.granularity == "sentences":
        raise SettingError(
            f"This metric is about words, but the features are {input.granularity}: "
            "explain a text with features='words'."
        )
    return [lower(explanation.features[i]) for i in explanation.ranking if mask[i]]


def lower(word: str) -> str:
    """In lower case, with a plain apostrophe.

    >>> lower("Don’t")
    "don't"
    """
    return word.lower().replace("’", "'")


def mean_by_sparsity(several: Sequence[dict[float | None, float]]) -> dict[float | None, float]:
    """The mean at each sparsity."""
    return {s: float(np.mean([values[s] for values in several])) for s in several[0]}
