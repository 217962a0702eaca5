"""Explanations of every class at once: does each speak for its class, and do they differ?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pertinent.asks import Values
from pertinent.errors import SettingError
from pertinent.metric.base import Measures, metrics
from pertinent.metric.top_features import TopFeatures, mean_by_sparsity, overlap
from pertinent.outputs import column_index
from pertinent.results.explanation import Explanation


@metrics.register("class-faithfulness")
@dataclass(frozen=True)
class ClassFaithfulness(TopFeatures):
    r"""Class-specific Faithfulness: :math:`[\arg\max f(x_{S_c}) = c]`, only the top features of class c kept.

    1 or 0 for one input and one class; the mean over classes, or that of one class, as in Table 5.

    Parameters
    ----------
    target
        The class measured, by name or number; by default the mean over all. A method that scores one class
        at a time can be measured for the class that it explained.
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
                "Class-specific faithfulness asks which class is predicted, but this model answers with "
                f"{explanation.output.plural}, not with classes."
            )
        classes = [*range(len(explanation.classes))]
        if self.target is not None:
            classes = [column_index(self.target, explanation.classes)]
        sets = [self.sets(_of_class(explanation, column)) for column in classes]
        answer = yield Values(np.array([mask for own in sets for mask in own.values()]))
        hits = answer.argmax(axis=1).reshape(len(classes), -1) == np.array(classes)[:, None]
        return dict(zip(sets[0], hits.mean(axis=0).tolist(), strict=True))


@metrics.register("class-iou")
@dataclass(frozen=True)
class ClassIoU(TopFeatures):
    r"""Pairwise IoU: :math:`|S_c \cap S_{c'}| / |S_c \cup S_{c'}|`, averaged over all pairs of classes."""

    paper = "Vo et al. 2023, Sec. 4.4"
    summary = "share of the top K features that two classes have in common, over all pairs of classes"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Compare the top features of every two classes."""
        yield from ()
        columns = range(len(explanation.classes))
        if len(columns) < 2:
            raise SettingError(f"Pairs of {explanation.output.plural} need two, but the model has one.")
        sets = [self.sets(_of_class(explanation, column)) for column in columns]
        return mean_by_sparsity([{s: overlap(a[s], b[s]) for s in a} for a, b in combinations(sets, 2)])


def _of_class(explanation: Explanation, column: int) -> Explanation:
    """The explanation of one class: itself, if that is the class explained."""
    return explanation if column == explanation.target else explanation.for_class(column)
