"""MAGNEx's sufficiency and sparsity: of the features whose score is above a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.config.settings import Count
from pertinent.errors import SettingError
from pertinent.metrics.base import Measures, Metric, ask_whole_and, metrics
from pertinent.metrics.top_features import decided, top_mask
from pertinent.results.explanation import Explanation

HALF = 0.5


@dataclass(frozen=True)
class Selected(Metric):
    """Measures the selected features, μ(i, s) of Eqn. 3: those that score above the threshold ε.

    Parameters
    ----------
    threshold
        The score that a selected feature exceeds. By default one half for methods whose scores are
        probabilities of selection (they have ``details["selected"]``); others need a threshold or `k`.
    k
        Select the top k features instead, as the paper does with methods whose scores are not probabilities:
        as many as MAGNEx selected in the same input.
    """

    threshold: float | None = None
    k: Count | None = None

    def selected(self, explanation: Explanation) -> Masks:
        """The mask of the selected features, of which there may be none."""
        if self.k is not None:
            return top_mask(explanation, self.k)
        if self.threshold is None and "selected" not in explanation.details:
            raise SettingError(
                f"The scores of {explanation.method} are not probabilities of selection: set how many "
                f"features are selected, as in {self.name}:k=5, or the `threshold` that their scores exceed."
            )
        return np.asarray(explanation.scores > (HALF if self.threshold is None else self.threshold))


@metrics.register("sufficiency-of-selected")
@dataclass(frozen=True)
class SufficiencyOfSelected(Selected):
    r""":math:`su = \min(1, 1 - (\max y - \hat y_p))`, y for the whole input, ŷ for what is selected.

    p is the class predicted for the whole input (Eqns. 4 and 7). For an overlap with the answer to the whole
    input, as in question answering, it is that overlap: the Jaccard index.

    Notes
    -----
    Eqn. 7 is said to lie in [0, 1], but exceeds 1 where the model is surer with less: that counts as 1.
    """

    paper = "MAGNEx, Eqns. 4 and 7 (sufficiency)"
    summary = "how much of the predicted class's probability is left with only the selected features kept"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Keep the selected features."""
        answer = yield from ask_whole_and(explanation, self.selected(explanation)[None])
        target = decided(explanation, answer[0])
        if explanation.output.kind == "value":
            _check_overlap(answer[:, target])
        whole, kept = answer[:, target].tolist()
        return {None: min(1.0, 1.0 - (whole - kept))}


@metrics.register("share-removed")
@dataclass(frozen=True)
class ShareRemoved(Selected):
    """The share of features that are not selected: what MAGNEx calls sparsity (sp, Eqn. 5).

    Elsewhere a sparsity is the share of features kept.
    """

    paper = "MAGNEx, Eqn. 5 (sparsity)"
    summary = "share of features that are not selected"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Count what is removed."""
        yield from ()
        return {None: 1.0 - float(self.selected(explanation).mean())}


def _check_overlap(values: Floats) -> None:
    """Raise an error unless the values can be overlaps with the answer to the whole input."""
    if abs(values[0] - 1) > 1e-6 or values.min() < 0 or values.max() > 1 + 1e-6:
        raise SettingError(
            "This sufficiency needs probabilities, or an overlap that is 1 for the whole input, which a "
            "regressor does not have: choose sufficiency."
        )
