"""Base class of robustness explainers: features are relevant if attacks depend on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.asks import Asking, Attack, AttackRadii, Radii
from pertinent.asks.attack_radii import AttackName, aim_of
from pertinent.config.settings import Count
from pertinent.errors import ModelError, SettingError
from pertinent.explainers.base import Explainer, Task, Traits
from pertinent.inputs.base import Numbers
from pertinent.masks import full_mask

SUBSETS, MOST_SUBSETS = 6, 5000
"""Default number of random subsets per feature, and the upper limit of the default (the paper's number)."""

UNCHOSEN = 0.1
"""Largest score of an unchosen feature, as a share of the smallest score of a chosen feature."""

NEEDED = 0.01
"""Features that change by less than this share of the largest change count as unchanged."""

ABSENT = 1.5
"""Radius assigned to a set on which no attack succeeded, as a multiple of the largest successful radius."""


@dataclass(frozen=True)
class AttackExplainer(Explainer):
    """An explainer that attacks the prediction.

    Parameters
    ----------
    toward
        Name or index of the class that the prediction must change to: why the predicted class and not this
        one (Eqn. 2)? By default any other class.
    norm
        The norm of the perturbation, ``"l2"`` or ``"linf"``.
    attack
        ``"auto"``, ``"projection"``, ``"pgd"``, ``"pgd-logit"`` or ``"decision"``, as in `attack_radius`.
    attack_steps
        Number of steps of each attack.
    """

    traits = Traits(
        scales=("natural",),
        columnwise=False,
        reads_numbers=True,
        any_target=False,
        meaning="attack",
        asks=(AttackRadii,),
        needs_decision=True,
    )
    toward: int | str | None = field(default=None, kw_only=True)
    norm: Literal["l2", "linf"] = field(default="l2", kw_only=True)
    attack: AttackName = field(default="auto", kw_only=True)
    attack_steps: Count = field(default=10, kw_only=True)

    @property
    def attack_settings(self) -> Attack:
        """Return the settings of each attack."""
        return Attack(self.attack, self.norm, self.attack_steps)

    def ask_radii(self, task: Task, sets: Masks, *, keep: bool = False) -> Asking[Radii]:
        """Run attacks restricted to the features of each set."""
        if task.output.kind == "class" and task.target != task.output.default_target(task.prediction):
            raise SettingError(
                "`target` must be the predicted class: omit it, and set `toward` to the class that the "
                "prediction should become."
            )
        aim = aim_of(self.toward, task.target, task.model.columns, task.output)
        radii: Radii = yield AttackRadii(sets, task.prediction, task.target, aim, self.attack_settings, keep)
        return radii

    @staticmethod
    def missing_text(task: Task) -> str:
        """Return the end of an error message about failed attacks if some values are missing."""
        n = 0 if task.numbers is None else int(np.isnan(task.numbers.values).sum())
        values = "value is" if n == 1 else "values are"
        return f" {n} {values} missing (NaN), and cannot be perturbed." if n else ""

    def ask_pertinence(self, task: Task, relevant: Masks) -> Asking[dict[str, list[int]]]:
        """Attack the relevant features, and return the pertinence of each feature for the details.

        The result is empty for texts, whose words are all present, and if the attack fails.
        """
        if task.numbers is None:
            return {}
        attack = yield from self.ask_radii(task, relevant[None], keep=True)
        if not np.isfinite(attack.radii[0]):
            return {}
        assert attack.changes is not None and attack.norms is not None
        return {"pertinence": pertinence(task.numbers, attack.changes[0], attack.norms[0])}


@dataclass(frozen=True)
class RobustnessExplainer(AttackExplainer):
    """An explainer that orders features by how much they matter to an attacker.

    Parameters
    ----------
    criterion
        ``"irrelevant"``: with the relevant features fixed, attacks on all others need a large perturbation
        (Eqn. 3). ``"relevant"``: attacks on only the relevant features need a small one (Eqn. 4).
    """

    criterion: Literal["irrelevant", "relevant"] = field(default="irrelevant", kw_only=True)

    def values(self, task: Task, relevant: Masks) -> Asking[Floats]:
        """Return how well each row of relevant features meets the criterion; larger is better.

        A failed attack counts as a larger radius than any successful attack.
        """
        attack_others = self.criterion == "irrelevant"
        radii = (yield from self.ask_radii(task, ~relevant if attack_others else relevant)).radii
        finite = radii[np.isfinite(radii)]
        radii = np.where(np.isfinite(radii), radii, ABSENT * finite.max() if len(finite) else 1.0)
        return radii if attack_others else -radii

    def require_attack(self, task: Task) -> Asking[None]:
        """Raise a `ModelError` if even an attack on all features fails."""
        attack = yield from self.ask_radii(task, full_mask(task.n_features))
        if not np.isfinite(attack.radii[0]):
            raise ModelError(
                "No attack changes the prediction: the model may be constant or saturated here; try more "
                "`attack_steps` or another `attack`." + self.missing_text(task)
            )


def n_subsets(subsets: int | None, n_features: int) -> int:
    """Return the number of random subsets: the setting, or 6 per feature limited to between 20 and 5,000."""
    return subsets or min(MOST_SUBSETS, max(20, SUBSETS * n_features))


def from_order(order: Ints, rest: Floats) -> Floats:
    """Return scores that decrease from 1 in the order of choice; unchosen features have scores near 0.

    Unchosen features with equal `rest` get equal scores. If no feature is chosen, all scores are 1.
    """
    scores = np.ones(len(rest))
    if len(order):
        remaining = np.setdiff1d(np.arange(len(rest)), order)
        _, rank = np.unique(rest[remaining], return_inverse=True)
        scores[order] = np.arange(len(order), 0, -1) / len(order)
        scores[remaining] = UNCHOSEN / len(order) * (rank + 1) / (rank.max(initial=0) + 1)
    return scores


def pertinence(numbers: Numbers, change: Array, sizes: Floats) -> list[int]:
    """Return 1 for features that move towards their absent value, −1 for those that move away, else 0.

    Dhurandhar et al.'s (2018) pertinent positive features are present and must disappear for the prediction
    to change; pertinent negative ones are absent and would have to appear. `sizes` are the norms of each
    feature's change; features that change very little get 0.
    """
    before = numbers.values - numbers.absent
    closer = np.nan_to_num(before**2 - (before + change) ** 2)
    by_feature = np.bincount(numbers.owners.ravel(), closer.ravel(), len(sizes))
    needed = sizes > NEEDED * sizes.max(initial=0.0)
    signs: list[int] = np.where(needed, np.sign(by_feature), 0).astype(np.int64).tolist()
    return signs
