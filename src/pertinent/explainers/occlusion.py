"""Occlusion: the drop when a sliding window covers a feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Ints, Masks
from pertinent.asks import Values
from pertinent.config.settings import Count
from pertinent.errors import BudgetError
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, explainers
from pertinent.masks import full_mask


@explainers.register("occlusion")
@dataclass(frozen=True)
class Occlusion(Explainer):
    r"""The mean of :math:`v(N) - v(N \setminus W)` over the windows W that cover a feature.

    Windows are squares of an image, or runs of consecutive features of a text or a row. A feature is covered
    if at least half of it lies in the window; features that no window covers are removed one by one.

    Parameters
    ----------
    window
        Side of the window in pixels, by default a quarter of the image's longer side; for other inputs the
        number of features, by default 3. The default grows if the budget is too small.
    stride
        Distance between windows; by default half the window, or more if the budget is too small.

    Note
    ----
    With ``features="pixels"`` the scores equal captum's ``Occlusion``, summed over channels. With a window
    and a stride of one feature, the method is `leave-one-out`.
    """

    paper = "Zeiler & Fergus 2014, Sec. 4.2"
    summary = "the mean drop when a sliding window covers the feature"
    traits = Traits(reads_numbers=True, min_budget=2, deterministic=True, all_classes=True)
    window: Count | None = None
    stride: Count | None = None

    def explain(self, task: Task) -> Steps:
        """Evaluate the whole input and the input without the features covered by each window."""
        covered = self._affordable(task)
        values = yield Values(np.concatenate([full_mask(task.n_features), ~covered]))
        drops = values[0] - values[1:]
        return Finding(scores=drops.T @ covered / covered.sum(axis=0))

    def _affordable(self, task: Task) -> Masks:
        """Return the features covered by each window (windows, features), within the budget."""
        d, numbers = task.n_features, task.numbers
        is_image = numbers is not None and numbers.owners.ndim == 3
        labels = numbers.owners[0] if numbers is not None and is_image else np.arange(d)[None]
        longest = max(labels.shape)
        default = min(longest, max(1, round(longest / 4)) if is_image else 3)
        for window in [self.window] if self.window else range(default, longest + 1):
            for stride in [self.stride] if self.stride else range(max(1, window // 2), window + 1):
                covered = _find_covered(labels, d, window, stride)
                if len(covered) < task.budget:
                    return covered
        raise BudgetError(
            f"`budget` must be at least {len(covered) + 1} for occlusion with a window of {window} and a "
            f"stride of {stride}, but got {task.budget}: choose a larger window or stride."
        )


def _find_covered(labels: Ints, d: int, window: int, stride: int) -> Masks:
    """Return the distinct sets of features covered by windows, plus each uncovered feature."""
    sizes = np.bincount(labels.ravel(), minlength=d)
    within = [
        np.bincount(labels[r : r + window, c : c + window].ravel(), minlength=d)
        for r in _starts(labels.shape[0], window, stride)
        for c in _starts(labels.shape[1], window, stride)
    ]
    covered = 2 * np.array(within) >= sizes
    covered = np.concatenate([covered, np.eye(d, dtype=np.bool_)[~covered.any(axis=0)]])
    return np.unique(covered[covered.any(axis=1)], axis=0)


def _starts(n: int, window: int, stride: int) -> range:
    """Return the start of each window along a side of n pixels; the last one may extend beyond the side."""
    return range(0, max(0, n - window) + stride, stride)
