"""The base of explainers by robustness: features are relevant if an attack needs them."""

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

SUBSETS, MOST_SUBSETS = 6, 5000
"""Default number of random subsets per feature, and the largest default, which is the paper's number."""

UNCHOSEN = 0.1
"""The largest score of a feature that was not chosen, as a share of the smallest of those that were."""

NEEDED = 0.01
"""Features that change less than this share of the largest change are not needed."""

ABSENT = 1.5
"""An attack that was not found counts as this multiple of the largest radius found."""


@dataclass(frozen=True)
class AttackExplainer(Explainer):
    """Attacks the prediction.

    Parameters
    ----------
    toward
        The class, by name or number, that the prediction must be changed to: why this class, and not that
        one (Eqn. 2)? By default any other.
    norm
        The norm of the perturbation, ``"l2"`` or ``"linf"``.
    attack
        ``"auto"``, ``"projection"``, ``"pgd"``, ``"pgd-logit"`` or ``"decision"``, as in `attack_radius`.
    attack_steps
        Steps of each attack.
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
        """The settings of each attack."""
        return Attack(self.attack, self.norm, self.attack_steps)

    def attacked(self, task: Task, sets: Masks, *, keep: bool = False) -> Asking[Radii]:
        """Attack the features of each set."""
        if task.output.kind == "class" and task.target != task.output.default_target(task.prediction):
            raise SettingError(
                "An attack changes the predicted class: leave out `target`, and set `toward` to the class "
                "that the prediction should become."
            )
        aim = aim_of(self.toward, task.target, task.model.columns, task.output)
        found: Radii = yield AttackRadii(sets, task.prediction, task.target, aim, self.attack_settings, keep)
        return found

    @staticmethod
    def missing(task: Task) -> str:
        """The end of an error message about attacks that were not found, if some values are missing."""
        n = 0 if task.numbers is None else int(np.isnan(task.numbers.values).sum())
        are = "value is" if n == 1 else "values are"
        return f" {n} {are} missing (NaN), and cannot be perturbed." if n else ""

    def pertinence_of(self, task: Task, relevant: Masks) -> Asking[dict[str, list[int]]]:
        """Each feature's pertinence, as an entry of a finding's details, by one attack on the relevant ones.

        There is no entry for texts, in which every word is present, nor if no attack is found.
        """
        if task.numbers is None:
            return {}
        found = yield from self.attacked(task, relevant[None], keep=True)
        if not np.isfinite(found.radii[0]):
            return {}
        assert found.changes is not None and found.norms is not None
        return {"pertinence": pertinence(task.numbers, found.changes[0], found.norms[0])}


@dataclass(frozen=True)
class RobustnessExplainer(AttackExplainer):
    """Orders features by how much they matter to an attacker.

    Parameters
    ----------
    criterion
        ``"irrelevant"``: with the relevant features as they are, attacks on all others need a large
        perturbation (Eqn. 3). ``"relevant"``: attacks on the relevant ones alone need a small one (Eqn. 4).
    """

    criterion: Literal["irrelevant", "relevant"] = field(default="irrelevant", kw_only=True)

    def values(self, task: Task, relevant: Masks) -> Asking[Floats]:
        """How well each row of relevant features meets the criterion; larger is better.

        An attack that was not found counts as a larger radius than any that was.
        """
        irrelevant = self.criterion == "irrelevant"
        radii = (yield from self.attacked(task, ~relevant if irrelevant else relevant)).radii
        finite = radii[np.isfinite(radii)]
        radii = np.where(np.isfinite(radii), radii, ABSENT * finite.max() if len(finite) else 1.0)
        return radii if irrelevant else -radii

    def need_an_attack(self, task: Task) -> Asking[None]:
        """Raise a `ModelError` if not even an attack on all features together is found."""
        found = yield from self.attacked(task, np.ones((1, task.n_features), dtype=np.bool_))
        if not np.isfinite(found.radii[0]):
            raise ModelError(
                "No attack on any set of features was found that changes the prediction: the model may be "
                "constant or saturated here; try more `attack_steps` or another `attack`."
                + self.missing(task)
            )


def n_subsets(subsets: int | None, n_features: int) -> int:
    """Number of random subsets: the setting, or by default 6 per feature, between 20 and 5,000."""
    return subsets or min(MOST_SUBSETS, max(20, SUBSETS * n_features))


def from_order(order: Ints, rest: Floats) -> Floats:
    """Scores that fall from 1 with the order of choice; of features not chosen near 0, ordered by `rest`.

    Features not chosen with the same `rest` have the same score. If none is chosen, all are 1.
    """
    scores = np.ones(len(rest))
    if len(order):
        left = np.setdiff1d(np.arange(len(rest)), order)
        _, place = np.unique(rest[left], return_inverse=True)
        scores[order] = np.arange(len(order), 0, -1) / len(order)
        scores[left] = UNCHOSEN / len(order) * (place + 1) / (place.max(initial=0) + 1)
    return scores


def pertinence(numbers: Numbers, change: Array, sizes: Floats) -> list[int]:
    """For each feature 1 if the change takes it towards its absent value, −1 if away from it, else 0.

    Dhurandhar et al.'s (2018) pertinent positive features are present, and must go for the prediction to
    change; pertinent negative ones are absent, and would have to come. `sizes` are the norms of the change
    of each feature; features that change very little have the sign 0.
    """
    before = numbers.values - numbers.absent
    closer = np.nan_to_num(before**2 - (before + change) ** 2)
    by_feature = np.bincount(numbers.owners.ravel(), closer.ravel(), len(sizes))
    needed = sizes > NEEDED * sizes.max(initial=0.0)
    signs: list[int] = np.where(needed, np.sign(by_feature), 0).astype(np.int64).tolist()
    return signs
