"""Attack radii: the smallest perturbations of features that change the prediction."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.asks.base import BatchPart, Question, check_masks, split
from pertinent.config.settings import Count, Positive, Settings
from pertinent.errors import ModelError, SettingError
from pertinent.outputs import Output, column_index

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Model

AttackName: TypeAlias = Literal["auto", "projection", "pgd", "pgd-logit", "decision"]
"""Name of an attack algorithm."""

DECISION_STARTS, DECISION_STEPS = 570, 42
"""Largest number of passes of a decision-based attack, outside its steps and in each step."""

RIVALS = 5
"""Number of most likely other classes whose boundaries a projection compares in its first step."""


@dataclass(frozen=True)
class Attack(Settings):
    """Settings of the search for the smallest perturbation.

    Parameters
    ----------
    algorithm
        ``"projection"`` on the linearised boundary, ``"pgd"``, ``"pgd-logit"``, ``"decision"``, which needs
        no gradients, or ``"auto"``: projection if the model has gradients, else decision. Projected gradient
        descent (pgd) works in balls whose radius is determined by bisection. It decreases the margin of the
        decision; pgd-logit decreases the logit of the predicted class, as Hsieh et al.'s code does.
    norm
        Norm of the perturbation.
    steps
        Largest number of steps; by default 20 for projection, 100 per ball for pgd, and 10 for decision.
    max_radius
        Largest radius that pgd tries.
    tolerance
        Difference in radius at which pgd's bisection stops.
    """

    algorithm: AttackName = "auto"
    norm: Literal["l2", "linf"] = "l2"
    steps: Count | None = None
    max_radius: Positive = 10.0
    tolerance: Positive = 1e-3

    @property
    def descends(self) -> bool:
        """Return whether the algorithm is projected gradient descent."""
        return self.algorithm in ("pgd", "pgd-logit")

    @property
    def n_steps(self) -> int:
        """Return the number of steps; by default that of the algorithm."""
        return self.steps or (100 if self.descends else 20)

    @property
    def most_passes(self) -> int:
        """Return the largest number of passes of an attack; a backward pass counts as one more."""
        if self.descends:
            balls = 2 + int(np.ceil(np.log2(max(2.0, self.max_radius / self.tolerance))))
            return 2 * balls * (self.n_steps + 1)
        if self.algorithm == "projection":
            return 2 * self.n_steps + RIVALS
        return DECISION_STARTS + DECISION_STEPS * self.n_steps


@dataclass(frozen=True, eq=False)
class Radii:
    """The norm of the smallest perturbation of each set; infinite if the attack failed.

    `passes` is the number of passes of each attack; passes shared by all sets count for the first set. If
    requested, `changes` (sets, …) holds the perturbations, and `norms` (sets, features) the norm of each
    perturbation within each feature.
    """

    radii: Floats
    passes: Ints
    changes: Array | None = None
    norms: Floats | None = None


@dataclass(frozen=True, eq=False)
class AttackRadii(Question):
    """Requests the smallest change of the features in each set, and no others, that changes the decision.

    A set is a mask whose features may change. The decision is that of the column `decided`; with `toward`, it
    must become that class. `prediction` is the model's answer to the whole input. Answered with `Radii`, at
    the cost of the passes made. With `keep_changes`, the perturbations are returned.
    """

    refusal = (
        "Attacks perturb numbers, but this model reads something else: the model must read images or table "
        "rows, or be a transformers text classifier."
    )
    sets: Masks
    prediction: Floats
    decided: int
    toward: int | None = None
    attack: Attack = field(default_factory=Attack)
    keep_changes: bool = False

    @property
    def keys(self) -> range:
        """Return the index of each set."""
        return range(len(self.sets))

    def price(self, paid: set[Hashable]) -> int:
        """Return the largest number of passes of all attacks."""
        return self.attack.most_passes * len(self.sets)

    def unspent(self, answer: Radii) -> int:
        """Return the number of passes that were not needed."""
        return self.price(set()) - int(answer.passes.sum())

    @property
    def rivals(self) -> int:
        """Return the number of other classes whose boundaries a projection compares in its first step."""
        if self.attack.algorithm not in ("auto", "projection"):
            return 0
        return 1 if self.toward is not None else min(RIVALS, max(1, len(self.prediction) - 1))

    def check(self, input: Input) -> None:
        """Raise a `TypeError` unless the sets are masks over the input's features."""
        check_masks(self.sets, input)

    def group(self, model: Model, input: Input) -> Hashable:
        """Return a group that depends on the attack's settings."""
        return super().group(model, input), self.attack, self.keep_changes

    @staticmethod
    def read(model: Model, outputs: Any, parts: Sequence[BatchPart]) -> list[Sequence[Any] | Exception]:
        """Return the radius, the passes and, if requested, the perturbation of each row."""
        reason = "The model's answer to a perturbed input, or its gradient, is NaN."
        answers: list[Sequence[Any] | Exception] = []
        several = [[None] * len(outputs[0]) if array is None else array for array in outputs]
        arrays = (split(array, parts) for array in several)
        for part, radii, passes, changes, norms in zip(parts, *arrays, strict=True):
            if part.question.keep_changes:
                norms = norms[:, : part.input.n_features]
            rows = list(zip(radii, passes, changes, norms, strict=True))
            answers.append(ModelError(reason) if np.isnan(radii).any() else rows)
        return answers

    def assemble(self, model: Model, input: Input, answers: list[Any]) -> Radii:
        """Return arrays over the sets."""
        if not answers:
            return Radii(np.empty(0), np.empty(0, dtype=np.int64))
        radii, passes, changes, norms = zip(*answers, strict=True)
        perturbations = (np.array(changes), np.array(norms)) if self.keep_changes else (None, None)
        return Radii(np.array(radii, dtype=np.float64), np.array(passes), *perturbations)


def never_rising(sets: Masks, attacked: Radii) -> Radii:
    """Replace each set's perturbation by that of a subset if it is smaller.

    A perturbation of some features is also a perturbation of any set that contains them.
    """
    outside = sets.astype(np.float32) @ (~sets).T.astype(np.float32)
    within = outside == 0  # [a, b]: a is within b
    radii = np.where(within, attacked.radii[:, None], np.inf)
    best = np.where(np.isfinite(radii).any(axis=0), radii.argmin(axis=0), np.arange(len(sets)))
    changes = None if attacked.changes is None else attacked.changes[best]
    norms = None if attacked.norms is None else attacked.norms[best]
    return Radii(attacked.radii[best], attacked.passes, changes, norms)


def aim_of(toward: Any, decided: int, columns: Sequence[str], output: Output) -> int | None:
    """Return the column of the class that an attack must reach; None for any other class."""
    if toward is None:
        return None
    if output.kind != "class":
        raise SettingError("`toward` must be omitted unless the classes are mutually exclusive.")
    aim = column_index(toward, columns)
    if aim == decided:
        raise SettingError(f"`toward` must differ from the predicted class {columns[aim]!r}.")
    return aim
