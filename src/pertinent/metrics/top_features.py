"""Metrics of the model's decision with only the top K features, or without them (Vo et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Values
from pertinent.config.settings import Count, Share
from pertinent.errors import SettingError, require
from pertinent.metrics.base import Measures, Metric, ask_whole_and_masks, measure_drops, metrics, top_masks
from pertinent.outputs import Classes, column_index, log_odds
from pertinent.results.explanation import Explanation


@dataclass(frozen=True)
class TopFeatures(Metric):
    """A metric of the top K features, the set S in Vo et al. 2023.

    Parameters
    ----------
    k
        Number of top features; all features if there are fewer. ``None`` to use the explanation's sparsities.
    sparsities
        Shares of features, used instead of `k`.
    """

    k: Count | None = 10
    sparsities: tuple[Share, ...] | None = None

    def sets(self, explanation: Explanation) -> dict[float | None, Masks]:
        """Return the set for each sparsity, or the set of the top K features with the key ``None``."""
        if self.k is not None and not self.sparsities:
            return {None: top_mask(explanation, self.k)}
        return {s: explanation.mask(s) for s in self.sparsities or explanation.request.sparsities}


def top_mask(explanation: Explanation, k: int) -> Masks:
    """Return the mask of the k features that rank highest."""
    mask: Masks = top_masks(explanation, [k])[0]
    return mask


def decided_column(explanation: Explanation, whole: Floats) -> int:
    """Return the column of the decision: the class predicted for the whole input, or the explained label."""
    output = explanation.output
    return output.default_target(whole) if isinstance(output, Classes) else explanation.target


def same_decision(explanation: Explanation, whole: Floats, values: Floats) -> Masks:
    """Return whether the decision for each row of `values` equals that for the `whole` input."""
    try:
        return explanation.output.same_decision(values, whole, decided_column(explanation, whole))
    except SettingError:
        raise SettingError(
            "This metric compares decisions, but a plain value is not a decision: choose a metric that "
            "compares values, such as sufficiency."
        ) from None


def overlap(a: Masks, b: Masks) -> float:
    """Return the intersection over union of two sets; 0 if both are empty."""
    return float((a & b).sum() / max((a | b).sum(), 1))


def top_words(explanation: Explanation, mask: Masks) -> list[str]:
    """Return the words of a set in lower case, most important first; raise an error if there are none."""
    input = explanation.input
    if not input.has_words or input.granularity in ("sentences", "lines", "paragraphs"):
        raise SettingError(
            f"This metric counts words, but the features are {input.granularity}: explain a text with "
            "features='words'."
        )
    return [lower(explanation.features[i]) for i in explanation.ranking if mask[i]]


def lower(word: str) -> str:
    """Return a word in lower case, with a straight apostrophe.

    >>> lower("Don’t")
    "don't"
    """
    return word.lower().replace("’", "'")


def mean_by_sparsity(measures: Sequence[dict[float | None, float]]) -> dict[float | None, float]:
    """Return the mean at each sparsity."""
    return {s: float(np.mean([values[s] for values in measures])) for s in measures[0]}


@metrics.register("faithfulness")
@dataclass(frozen=True)
class Faithfulness(TopFeatures):
    r"""Post-hoc accuracy: :math:`[\arg\max f(x_S) = \arg\max f(x)]`, with only the top features S kept.

    It is 1 or 0 for one input; the mean over inputs is a share. The features keep their positions in the
    input. For a multi-label model, the decision is whether the probability of the explained label is at least
    0.5.
    """

    paper = "Vo et al. 2023, App. B.3; Chen et al. 2018"
    summary = "whether the model's decision is the same with only the top K features kept"
    better = "higher"
    within = (0, 1)

    def measure(self, explanation: Explanation) -> Measures:
        """Keep only the top features."""
        sets = self.sets(explanation)
        answers = yield from ask_whole_and_masks(explanation, [*sets.values()])
        same = same_decision(explanation, answers[0], answers[1:])
        return dict(zip(sets, same.astype(float).tolist(), strict=True))


@metrics.register("monotonicity")
@dataclass(frozen=True)
class Monotonicity(Metric):
    """The share of steps to a larger K in which faithfulness does not decrease.

    "As K increases, the explanation is expected to be more faithful" (Sec. 4.2). It is 1 if no larger set
    loses a decision that a smaller set keeps, including the case that no set keeps the decision.

    Parameters
    ----------
    sizes
        Numbers K of top features, at least two.
    sparsities
        Shares of features, used instead of `sizes`: the sets that a search chose for them, or the top
        features.
    """

    paper = "Vo et al. 2023, Sec. 4.2 and App. G"
    summary = "share of steps to more top features in which the model's decision is not lost"
    better = "higher"
    within = (0, 1)
    sizes: tuple[Count, ...] = (5, 10, 20)
    sparsities: tuple[Share, ...] | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        require(len({*self.sizes}) > 1, "sizes", "at least two different numbers", self.sizes)
        one = self.sparsities is not None and len({*self.sparsities}) < 2
        require(not one, "sparsities", "at least two different shares", self.sparsities)

    def measure(self, explanation: Explanation) -> Measures:
        """Keep increasing sets of top features."""
        masks = top_masks(explanation, sorted({*self.sizes}))
        if self.sparsities:
            masks = np.array([explanation.mask(s) for s in sorted({*self.sparsities})])
        answers = yield from ask_whole_and_masks(explanation, masks)
        same = same_decision(explanation, answers[0], answers[1:])
        return {None: float((same[1:] >= same[:-1]).mean())}


@dataclass(frozen=True)
class DeltaLogOdds(TopFeatures):
    r""":math:`\log\frac{p}{1-p}` of the predicted class for the whole input, minus that for a masked input.

    Probabilities are clipped to 10⁻¹² and 1 − 10⁻¹² to keep log-odds finite.
    """

    keep_top: ClassVar[bool]

    def measure(self, explanation: Explanation) -> Measures:
        """Keep only the top features, or remove them."""
        if explanation.output.kind == "value":
            raise SettingError(f"{self.name} needs probabilities, but this model returns plain values.")

        def value(answers: Floats) -> Floats:
            return log_odds(answers[:, decided_column(explanation, answers[0])])

        return (yield from measure_drops(explanation, self.sets(explanation), value, keep=self.keep_top))


@metrics.register("positive-delta-log-odds")
@dataclass(frozen=True)
class PositiveDeltaLogOdds(DeltaLogOdds):
    """The drop of the log-odds when the important features S are masked."""

    paper = "Vo et al. 2023, App. B.5; Schwab & Karlen 2019"
    summary = "drop of the predicted class's log-odds when the top K features are removed"
    better = "higher"
    keep_top = False


@metrics.register("negative-delta-log-odds")
@dataclass(frozen=True)
class NegativeDeltaLogOdds(DeltaLogOdds):
    """The drop of the log-odds when all features outside S are masked."""

    paper = "Vo et al. 2023, App. B.5; Schwab & Karlen 2019"
    summary = "drop of the predicted class's log-odds when only the top K features are kept"
    better = "lower"
    keep_top = True


@metrics.register("class-faithfulness")
@dataclass(frozen=True)
class ClassFaithfulness(TopFeatures):
    r"""Class-specific faithfulness: :math:`[\arg\max f(x_{S_c}) = c]`, with the top features of class c kept.

    It is 1 or 0 for one input and one class. The value is the mean over classes or, as in Table 5, the value
    of one class.

    Parameters
    ----------
    target
        Class, by name or index; by default the mean over all classes. Methods that score one class at a time
        can only be measured for the class that they explained.
    """

    paper = "Vo et al. 2023, Sec. 4.4"
    summary = "whether the model predicts a class with only the top K features of that class kept"
    better = "higher"
    within = (0, 1)
    target: int | str | None = None

    def measure(self, explanation: Explanation) -> Measures:
        """Keep the top features of each class."""
        if explanation.output.kind != "class":
            raise SettingError(
                f"class-faithfulness needs classes, but the model has {explanation.output.plural}."
            )
        classes = [*range(len(explanation.classes))]
        if self.target is not None:
            classes = [column_index(self.target, explanation.classes)]
        sets = [self.sets(_of_class(explanation, column)) for column in classes]
        answers = yield Values(np.array([mask for masks in sets for mask in masks.values()]))
        hits = answers.argmax(axis=1).reshape(len(classes), -1) == np.array(classes)[:, None]
        return dict(zip(sets[0], hits.mean(axis=0).tolist(), strict=True))


@metrics.register("class-iou")
@dataclass(frozen=True)
class ClassIoU(TopFeatures):
    r"""Pairwise IoU: :math:`|S_c \cap S_{c'}| / |S_c \cup S_{c'}|`, averaged over all pairs of classes."""

    paper = "Vo et al. 2023, Sec. 4.4"
    summary = "share of the top K features that two classes have in common, over all pairs of classes"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Compare the top features of all pairs of classes."""
        yield from ()
        columns = range(len(explanation.classes))
        if len(columns) < 2:
            raise SettingError(
                f"class-iou needs at least two {explanation.output.plural}, but there is only one."
            )
        sets = [self.sets(_of_class(explanation, column)) for column in columns]
        return mean_by_sparsity([{s: overlap(a[s], b[s]) for s in a} for a, b in combinations(sets, 2)])


def _of_class(explanation: Explanation, column: int) -> Explanation:
    """Return the explanation of one class."""
    return explanation if column == explanation.target else explanation.for_class(column)
