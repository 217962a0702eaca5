"""The base of explainers by robustness: features are relevant if an attack needs them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pertinent.asks import Ask, Attack, AttackRadii, Radii
from pertinent.errors import SettingError
from pertinent.explainers.base import Explainer, Task
from pertinent.outputs import column_index
from pertinent.settings import Count
from pertinent.types import Array, Floats, Ints, Masks

UNCHOSEN = 0.1
"""The largest score of a feature that was not chosen, as a share of the smallest of those that were."""

ABSENT = 1.5
"""What no attack counts for where a number is needed: so many times the largest radius found."""


@dataclass(frozen=True)
class RobustnessExplainer(Explainer):
    """Orders features by how much they matter to an attacker.

    Parameters
    ----------
    criterion
        ``"irrelevant"``: with the relevant features as they are, attacks on all others need a large
        perturbation (Eqn. 3). ``"relevant"``: attacks on the relevant ones alone need a small one (Eqn. 4).
    toward
        The class, by name or number, that the prediction must be changed to: why this class, and not that
        one (Eqn. 2)? By default any other.
    norm
        Of the perturbation, ``"l2"`` or ``"linf"``.
    attack
        ``"auto"``, ``"projection"``, ``"pgd"`` or ``"decision"``, as in `attack_radius`.
    attack_steps
        Steps of each attack.
    """

    scales = ("natural",)
    columnwise = False
    criterion: Literal["irrelevant", "relevant"] = field(default="irrelevant", kw_only=True)
    toward: int | str | None = field(default=None, kw_only=True)
    norm: Literal["l2", "linf"] = field(default="l2", kw_only=True)
    attack: Literal["auto", "projection", "pgd", "decision"] = field(default="auto", kw_only=True)
    attack_steps: Count = field(default=10, kw_only=True)

    @property
    def how(self) -> Attack:
        """The attack."""
        return Attack(self.attack, self.norm, self.attack_steps)

    def sets(self, relevant: Masks) -> Masks:
        """The features that are attacked if these are relevant."""
        return ~relevant if self.criterion == "irrelevant" else relevant

    def radii(
        self, task: Task, relevant: Masks, start: Array | None = None, *, keep: bool = False
    ) -> Generator[Ask, Any, Radii]:
        """Attack, given the relevant features of each row."""
        stands = task.output.kind != "label" or bool(task.prediction[task.target] >= 0.5)
        aim = None if self.toward is None else column_index(self.toward, task.columns, "toward")
        if aim == task.target:
            raise SettingError(f"`toward` must be another class than the predicted {self.toward!r}.")
        question = AttackRadii(self.sets(relevant), task.target, aim, stands, self.how, keep, start)
        found: Radii = yield question
        return found

    def value(self, radii: Floats) -> Floats:
        """Larger is better; an attack that was not found counts for more than all that were."""
        finite = radii[np.isfinite(radii)]
        absent = ABSENT * finite.max() if len(finite) else 1.0
        radii = np.where(np.isfinite(radii), radii, absent)
        return radii if self.criterion == "irrelevant" else -radii

    def check(self, task: Task) -> None:
        """The decision that is attacked must be the model's own."""
        if task.output.kind == "class" and task.target != task.output.default_target(task.prediction):
            raise SettingError(
                "An attack changes the predicted class: leave out `target`, and set `toward` to the class "
                "that the prediction should become."
            )


def from_order(order: Ints, rest: Floats) -> Floats:
    """Scores that fall from 1 with the order of choice; of features not chosen near 0, ordered by `rest`."""
    left = np.setdiff1d(np.arange(len(rest)), order)
    left = left[np.argsort(-rest[left], kind="stable")]
    scores = np.empty(len(rest))
    scores[order] = np.arange(len(order), 0, -1) / len(order)
    scores[left] = UNCHOSEN / len(order) * np.arange(len(left), 0, -1) / max(1, len(left))
    return scores
