"""Which relevant features are there and must go, and which are not there and would have to come."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Array, Floats, Masks
from pertinent.asks import Ask
from pertinent.explainers.base import Task
from pertinent.inputs.base import Numbers

if TYPE_CHECKING:
    from pertinent.explainers.robustness.base import AttackExplainer

NEEDED = 0.01
"""Features that change less than this share of the largest change are not needed."""


def pertinence_of(
    explainer: AttackExplainer, task: Task, relevant: Masks
) -> Generator[Ask, Any, dict[str, list[int]]]:
    """What to add to a finding's details: the pertinence of each feature, by one attack on the relevant ones.

    Nothing of texts, in which every word is present, and nothing where no attack is found.
    """
    if task.numbers is None:
        return {}
    found = yield from explainer.attacked(task, relevant[None], keep=True)
    if not np.isfinite(found.radii[0]):
        return {}
    assert found.changes is not None and found.norms is not None
    return {"pertinence": pertinence(task.numbers, found.changes[0], found.norms[0])}


def pertinence(numbers: Numbers, change: Array, sizes: Floats) -> list[int]:
    """For each feature 1 if the change takes it towards its absent value, −1 if away from it, else 0.

    Dhurandhar et al.'s (2018) pertinent positive features are present, and must go for the prediction to
    change; pertinent negative ones are absent, and would have to come. `sizes` are the norms of the change
    of each feature; those of no account are 0.
    """
    before = numbers.values - numbers.absent
    closer = np.nan_to_num(before**2 - (before + change) ** 2)
    by_feature = np.bincount(numbers.owners.ravel(), closer.ravel(), len(sizes))
    needed = sizes > NEEDED * sizes.max(initial=0.0)
    signs: list[int] = np.where(needed, np.sign(by_feature), 0).astype(np.int64).tolist()
    return signs
