"""Attacks on sets of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pertinent.array_types import Masks
from pertinent.asks import Algorithm, Attack, AttackRadii, Values
from pertinent.asks.attack_radii import aim_of, never_rising
from pertinent.engine.job import Job
from pertinent.errors import InputError, ModelError
from pertinent.inputs.base import Input
from pertinent.masks import full_mask
from pertinent.models.base import Model
from pertinent.outputs import column_index
from pertinent.removals.base import Removal
from pertinent.results.attack_results import Attacked
from pertinent.runs.executor import Item, RunTask
from pertinent.runs.request import features_of
from pertinent.runs.session import Session, prepare_input


@dataclass(frozen=True)
class AttackTask(RunTask):
    """Task that attacks sets of features of each input; items are pairs of an input and its sets.

    Attributes
    ----------
    attack
        Settings of the search.
    toward
        Class that the prediction must change to; None for any other class.
    features, one
        Kind of features, and whether the run has a single input.
    seed
        Seed of random probes.
    """

    attack: Attack
    toward: Any
    features: Any
    one: bool
    seed: int

    def job(self, session: Session, item: Item, key: int) -> Job:
        """Return the job that attacks an input."""
        raw, sets = item.raw

        def steps(input: Input, _: Removal) -> Algorithm:
            return self._attack(session.model, input, masks_of(sets, input), key)

        input = prepare_input(session.model, raw, features_of(self.features, key, one=self.one))
        return session.job(key, input, steps, seed=self.seed)

    def _attack(self, model: Model, input: Input, masks: Masks, index: int) -> Algorithm:
        prediction = (yield Values(full_mask(input.n_features)))[0]
        decided = model.output.default_target(prediction)
        columns = model.columns_of(input)
        check_rivals(model, columns)
        aim = aim_of(self.toward, decided, columns, model.output)
        radii = yield AttackRadii(masks, prediction, decided, aim, self.attack, keep_changes=True)
        radii = never_rising(masks, radii)
        assert radii.changes is not None
        return Attacked(
            input=input,
            index=index,
            sets=masks,
            radii=radii.radii,
            changes=radii.changes,
            passes=radii.passes,
            prediction=prediction,
            predicted=columns[decided],
            toward=None if aim is None else columns[aim],
            norm=self.attack.norm,
        )


def check_rivals(model: Model, columns: Sequence[str]) -> None:
    """Raise a `ModelError` if the model has a single class, so there is no other class to reach."""
    if model.output.kind == "class" and len(columns) == 1:
        raise ModelError(
            f"The model has only one class, {columns[0]!r}: an attack needs another class to reach."
        )


def masks_of(sets: Any, input: Input) -> Masks:
    """Return sets of features as masks (sets, features)."""
    if sets is None:
        return full_mask(input.n_features)
    several = list(sets) if _is_several(sets) else [sets]
    return np.array([_mask(members, input) for members in several], dtype=np.bool_).reshape(
        -1, input.n_features
    )


def _is_several(sets: Any) -> bool:
    """Return whether these are several sets instead of the members of one set."""
    if isinstance(sets, np.ndarray) and sets.ndim in (1, 2):
        return sets.ndim == 2
    if isinstance(sets, str | bytes | np.ndarray) or not isinstance(sets, Sequence):
        raise InputError(f"`sets` must contain names or indices of features, or booleans, but got {sets!r}.")
    several = [isinstance(each, Sequence | np.ndarray) and not isinstance(each, str | bytes) for each in sets]
    if any(several) and not all(several):
        odd = sets[several.index(False)]
        raise InputError(f"`sets` must contain only sets or only features, but got {odd!r} among sets.")
    return any(several)


def _mask(features: Any, input: Input) -> Masks:
    members = list(np.asarray(features).flat if isinstance(features, np.ndarray) else features)
    if members and all(isinstance(member, bool | np.bool_) for member in members):
        if np.shape(features) != (input.n_features,):
            raise InputError(
                f"A set of booleans must have one value for each of the {input.n_features} features, but "
                f"has shape {np.shape(features)}."
            )
        return np.array(members)
    mask = np.zeros(input.n_features, dtype=np.bool_)
    for member in members:
        mask[column_index(member, input.features, "feature")] = True
    return mask
