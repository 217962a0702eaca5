"""MAGNEx's sufficiency and sparsity of the features that score above a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.config.settings import Count
from pertinent.errors import SettingError
from pertinent.metrics.base import Measures, Metric, ask_whole_and_masks, metrics
from pertinent.metrics.top_features import decided_column, top_mask
from pertinent.results.explanation import Explanation

HALF = 0.5


@dataclass(frozen=True)
class Selected(Metric):
    """A metric of the selected features, μ(i, s) of Eqn. 3: those that score above the threshold ε.

    Parameters
    ----------
    threshold
        Score that a selected feature exceeds. The default is 0.5 for methods whose scores are probabilities
        of selection (those with ``details["selected"]``); others need a threshold or `k`.
    k
        Number of top features to select instead. The paper uses this for methods whose scores are not
        probabilities, with the number that MAGNEx selected in the same input.
    """

    threshold: float | None = None
    k: Count | None = None

    def selected(self, explanation: Explanation) -> Masks:
        """Return the mask of the selected features, which may be empty."""
        if self.k is not None:
            return top_mask(explanation, self.k)
        if self.threshold is None and "selected" not in explanation.details:
            raise SettingError(
                f"{self.name} needs `k` or `threshold`, as in {self.name}:k=5, because the scores of "
                f"{explanation.method} are not probabilities of selection."
            )
        return np.asarray(explanation.scores > (HALF if self.threshold is None else self.threshold))


@metrics.register("sufficiency-of-selected")
@dataclass(frozen=True)
class SufficiencyOfSelected(Selected):
    r""":math:`su = \min(1, 1 - (\max y - \hat y_p))`, y for the whole input, ŷ for the selected features.

    p is the class predicted for the whole input (Eqns. 4 and 7). If the model returns the overlap of its
    answer with the answer to the whole input, as in question answering, su is this overlap (Jaccard index).

    Notes
    -----
    According to the paper, Eqn. 7 lies in [0, 1], but it exceeds 1 if the model is more certain with fewer
    features. Such values are clipped to 1.
    """

    paper = "MAGNEx, Eqns. 4 and 7 (sufficiency)"
    summary = "share of the predicted class's probability that remains with only the selected features"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Keep the selected features."""
        answers = yield from ask_whole_and_masks(explanation, self.selected(explanation)[None])
        target = decided_column(explanation, answers[0])
        if explanation.output.kind == "value":
            _check_overlap(answers[:, target])
        whole, selected = answers[:, target].tolist()
        return {None: min(1.0, 1.0 - (whole - selected))}


@metrics.register("share-removed")
@dataclass(frozen=True)
class ShareRemoved(Selected):
    """The share of features that are not selected, which MAGNEx calls sparsity (sp, Eqn. 5).

    Elsewhere in this package, sparsity is the share of features kept.
    """

    paper = "MAGNEx, Eqn. 5 (sparsity)"
    summary = "share of features that are not selected"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Count the features that are not selected."""
        yield from ()
        return {None: 1.0 - float(self.selected(explanation).mean())}


def _check_overlap(values: Floats) -> None:
    """Raise a `SettingError` unless the values can be overlaps with the answer to the whole input."""
    if abs(values[0] - 1) > 1e-6 or values.min() < 0 or values.max() > 1 + 1e-6:
        raise SettingError(
            "sufficiency-of-selected needs probabilities, or an overlap that is 1 for the whole input: use "
            "sufficiency for a regressor."
        )
