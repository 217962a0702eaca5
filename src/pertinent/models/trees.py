"""Exact Shapley values of an estimator that is a sum of trees, by shap's tree code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array, Floats, Ints
from pertinent.asks import Part, TreeScores
from pertinent.digests import digest
from pertinent.errors import InputError, ModelError, SettingError
from pertinent.inputs.base import Input
from pertinent.inputs.table import TableInput
from pertinent.masks import empty_mask
from pertinent.models.base import Answer, immediately
from pertinent.outputs import Probabilities, Scale
from pertinent.removal import FromBackground

if TYPE_CHECKING:
    from pertinent.models.base import Model
    from pertinent.models.estimator import EstimatorModel
    from pertinent.removal.base import Removal

MOST_KEPT = 8
"""The most sets of background rows, such as those of several seeds, for which trees are kept."""

_OF_TREES = ("tree_", "estimators_", "_predictors", "get_booster", "booster_")
"""Attributes that the tree estimators of scikit-learn, xgboost and lightgbm have."""

MOST_NODES = 2**15
"""shap 0.51 numbers the nodes of a tree in 16 bits; it crashes on a larger one."""

CATEGORICAL = 1
"""The type of a split that shap reads but walks as a threshold."""

PRECISION = 1e-4
"""Largest relative difference of shap's sums over trees to the answers, which may be in float32."""


class Trees:
    """The trees of an estimator, and the rows from which removed columns are filled."""

    def __init__(self, estimator: Any, background: Floats) -> None:
        shap = optional("shap")
        self.background = background
        masker = shap.maskers.Independent(background, max_samples=len(background))  # all: 100 by default
        try:
            self._explainer = shap.TreeExplainer(estimator, masker, feature_perturbation="interventional")
        except Exception as error:  # shap raises Exception itself where it does not know a model
            said = next(iter(str(error).splitlines()), "")
            raise ModelError(
                f"shap's tree code does not read this {type(estimator).__name__}: use a method that asks "
                f"for values, such as kernel-shap. ({type(error).__name__}: {said})"
            ) from error
        read = self._explainer.model
        if read.thresholds.shape[1] > MOST_NODES or (read.threshold_types == CATEGORICAL).any():
            raise ModelError(
                f"shap's tree code cannot walk this {type(estimator).__name__}, which has categorical splits "
                f"or a tree of more than {MOST_NODES:,} nodes: use a method that asks for values, such as "
                "kernel-shap."
            )
        self._thresholds = []
        for column in range(background.shape[1]):
            own = read.features == column
            found, read.thresholds[own] = np.unique(read.thresholds[own], return_inverse=True)
            self._thresholds.append(found)
        self._explainer.data = self._ranked(background)
        self._offset_missed = _offset_missed(estimator, self._explainer.model.base_offset)

    def outputs(self, rows: Floats) -> Floats:
        """The sums over the trees (rows, columns); one column for two classes if they are log-odds."""
        found = np.asarray(self._explainer.model.predict(self._ranked(rows)))
        return (found[:, None] if found.ndim == 1 else found) + self._offset_missed

    def shapley_values(self, rows: Floats, filling: Ints | None = None) -> Floats:
        """The Shapley values of these sums (rows, columns, features), for some of the rows that fill."""
        explainer = self._explainer
        if filling is not None:
            explainer = copy(explainer)
            explainer.data, explainer.data_missing = explainer.data[filling], explainer.data_missing[filling]
        found = np.asarray(explainer.shap_values(self._ranked(rows), check_additivity=False))
        return found[:, None] if found.ndim == 2 else found.transpose(0, 2, 1)

    def _ranked(self, rows: Floats) -> Floats:
        """For each value, the number of its column's thresholds below it: the trees compare with these ranks.

        shap 0.51 walks with thresholds in float32, and rounds the rows but not the background as the
        estimator does; small whole numbers are compared as the estimator compares.
        """
        rounded = rows.astype(self._explainer.model.input_dtype)
        ranks = [np.searchsorted(own, x) for own, x in zip(self._thresholds, rounded.T, strict=True)]
        return np.where(np.isnan(rounded), np.nan, np.stack(ranks, axis=1))


def tree_values(model: EstimatorModel, parts: Sequence[Part]) -> Answer:
    """The answers to questions for tree values; ``None`` to a tentative one that trees do not answer."""

    def walk() -> Sequence[TreeScores | None]:
        try:
            return _walked(model, parts)
        except Exception:
            if len(parts) > 1 or not parts[0].question.tentative:  # of several, each is tried again by itself
                raise
            return [None]

    return immediately(walk)


def _walked(model: EstimatorModel, parts: Sequence[Part]) -> list[TreeScores]:
    """The answers to all parts; those filled from the same rows are computed together."""
    found: dict[int, TreeScores] = {}
    for trees, scale, places in _together(model, parts):
        rows = np.stack([_row(parts[place].input) for place in places])
        _check_sum(model, trees, scale, rows)
        first = parts[places[0]]
        both = _means(trees, rows, first.removal.groups if first.question.groups else ())
        if both[0][1].shape[0] < len(model.classes):  # log-odds of the second class
            both = [(np.concatenate([-own, own], axis=1), np.array([-1, 1]) * base) for own, base in both]
        scores = np.concatenate([own for own, _ in both], axis=1)
        base_values = np.concatenate([base for _, base in both])
        found |= {place: TreeScores(own, base_values) for place, own in zip(places, scores, strict=True)}
    return [found[place] for place in range(len(parts))]


def _means(trees: Trees, rows: Floats, groups: Sequence[Ints]) -> list[tuple[Floats, Floats]]:
    """Shapley values (rows, columns, features) and base values, for all rows, then without each group."""
    outputs, n = trees.outputs(trees.background), len(trees.background)
    if not groups:
        return [(trees.shapley_values(rows), outputs.mean(axis=0))]
    sums = [len(group) * trees.shapley_values(rows, group) for group in groups]
    total = np.sum(sums, axis=0)
    found = [(total / n, outputs.mean(axis=0))]
    for group, own in zip(groups, sums, strict=True):
        found.append(((total - own) / (n - len(group)), np.delete(outputs, group, axis=0).mean(axis=0)))
    return found


def may_be_walked(model: Model, input: Input, removal: Removal) -> bool:
    """Whether trees may give the values, as far as can be told without walking them."""
    return (
        any(hasattr(model.wrapped, own) for own in _OF_TREES)
        and isinstance(input, TableInput)
        and all(len(own) == 1 for own in input.columns)
        and not input.without_numbers()
        and (not removal.is_random or isinstance(removal, FromBackground))
        and find_spec("shap") is not None
    )


def _offset_missed(estimator: Any, read: Any) -> Floats:
    """The number to add to each column: shap 0.51 reads only the first of xgboost's offsets of columns."""
    offsets = np.atleast_1d(getattr(estimator, "intercept_", 0.0))
    return np.asarray(offsets - read if len(offsets) > 1 else np.zeros(1), dtype=np.float64)


def _together(model: EstimatorModel, parts: Sequence[Part]) -> Iterator[tuple[Trees, Scale, list[int]]]:
    """The places of the parts that have the same background rows and scale, with the trees for them."""
    groups: dict[tuple[bytes, Scale, int], list[int]] = {}
    backgrounds: dict[bytes, Floats] = {}
    for place, part in enumerate(parts):
        background = _background(part)
        key = digest(background)
        backgrounds[key] = background
        groups.setdefault((key, part.question.scale, part.question.groups), []).append(place)
    for (key, scale, _), places in groups.items():
        if key not in model.trees:
            if len(model.trees) >= MOST_KEPT:
                model.trees.clear()
            model.trees[key] = Trees(model.estimator, backgrounds[key])
        yield model.trees[key], scale, places


def _background(part: Part) -> Floats:
    """The rows that fill removed columns, which must be the same whatever is removed."""
    removal, input = part.removal, part.input
    if removal.is_random and not isinstance(removal, FromBackground):
        raise SettingError(
            f"The removal {removal.name!r} fills columns otherwise for each mask, but trees need the same "
            "rows for all: choose 'background'."
        )
    return _numbers(input, removal(input, empty_mask(input.n_features), part.seed))


def _row(input: Any) -> Floats:
    """The row as numbers, or an error if a feature is a group of columns."""
    grouped = [name for name, own in zip(input.features, input.columns, strict=True) if len(own) > 1]
    if grouped:
        raise InputError(
            "The Shapley value of a group is not the sum of its columns' values, which are all that trees "
            f"give, but these features are groups: {', '.join(grouped)}. Wrap the model without `groups`, "
            "or use a method that asks for values, such as kernel-shap."
        )
    return _numbers(input, input.values)


def _numbers(input: Any, values: Any) -> Floats:
    """A row, or the rows that fill it, as numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        names = ", ".join(input.without_numbers()) or "the background"
        raise InputError(
            f"shap's tree code reads numbers alone, but these are none: {names}. Use a method that asks for "
            "values, such as kernel-shap."
        ) from error


def _check_sum(model: EstimatorModel, trees: Trees, scale: Scale, rows: Array) -> None:
    """Raise a `ModelError` unless the sums over the trees give what the estimator answers.

    They do not where a link function comes after the sum, as in a boosted classifier's probabilities.
    """
    rows = np.concatenate([trees.background, rows])
    answers = model.output.natural(model.checked(model.submit([rows]).outputs(), len(rows)))
    sums = trees.outputs(rows)
    if scale != "natural":
        assert isinstance(model.output, Probabilities)
        several = sums.shape[1] > 1 and model.output.kind == "class"
        if scale == "log-probability" or (scale == "logit" and several):
            raise ModelError(
                f"Trees do not give the Shapley values of {'log-odds' if several else 'log-probabilities'}: "
                "choose scale='raw', or a method that asks for values, such as kernel-shap."
            )
        logits = replace(model.output, from_logits=True)
        sums = logits.natural(logits.widen(sums))
    if sums.shape != answers.shape or np.abs(sums - answers).max() > PRECISION * np.abs(answers).max():
        what, other = ("probabilities", "raw") if scale == "natural" else ("logits", "natural")
        hint = f"try scale={other!r}, or"
        if model.output.kind == "value":
            what, hint = "answers", "use"
        raise ModelError(
            f"The {what} of this {type(model.estimator).__name__} are not the sum over its trees, so trees "
            f"do not give their Shapley values: {hint} a method that asks for values, such as kernel-shap."
        )
