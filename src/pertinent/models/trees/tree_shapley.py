"""Exact Shapley values of an estimator that is a sum of trees or a function of one, also in a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Array, Floats, Ints
from pertinent.asks import BatchPart, NotWalked, TreeScores
from pertinent.config.fingerprints import digest, generator
from pertinent.errors import ModelError, SettingError
from pertinent.inputs.base import Input
from pertinent.inputs.table import TableInput
from pertinent.masks import empty_mask, shapley_values_of
from pertinent.models.base import Answer, answer_now
from pertinent.models.trees.read_trees import has_trees, read_forest
from pertinent.models.trees.tree_walk import TreeWalk
from pertinent.outputs import Labels, Probabilities, Scale
from pertinent.removals import FromBackground

if TYPE_CHECKING:
    from pertinent.models.base import Model
    from pertinent.models.estimator import EstimatorModel
    from pertinent.removals.base import Removal

MAX_KEPT = 8
"""Largest number of background sets, such as those of several seeds, for which trees are cached."""

MAX_SUMS = 2**22
"""Largest number of tree sums, over all masks and background rows, that are computed for one row."""

PRECISION = {np.float32: 1e-3, np.float64: 1e-5}
"""Largest difference between tree sums and answers, relative to the spread of the answers.

XGBoost sums its trees in float32: with 300 trees and a mean of 2,000 the error is 0.01.
"""

ROUNDING = 16
"""Allowed rounding difference for answers without spread, in units of `eps`."""

MIXED = 64
"""Smallest number of mixed rows used to compare trees and estimator, and to trace columns."""


class Trees:
    """An estimator's trees, and the background rows that fill removed columns.

    Parameters
    ----------
    model
        The estimator, by itself or as the last step of a pipeline.
    background
        Rows that fill removed columns, in the form that the pipeline reads.
    players
        Feature of each column of these rows.
    """

    def __init__(self, model: EstimatorModel, background: Array, players: Ints) -> None:
        self._model, self._background, self._players = model, background, players
        self._steps, self._estimator = unwrap_pipeline(model.estimator)
        self._forest = read_forest(self._estimator)
        self._encoded = self._encode(background)
        self._depends = np.zeros((background.shape[1], self._encoded.shape[1]), dtype=bool)
        self._walks: dict[bytes, _BackgroundWalk] = {}
        self._link = self._find_link()

    def scores(self, rows: Array, scale: Scale, groups: Sequence[Ints]) -> list[tuple[Floats, Floats]]:
        """Return Shapley values (rows, columns, features) and base values.

        The first result uses all background rows, the others leave out the background rows of one group each.
        """
        encoded = self._encode(rows)
        sources = self._find_sources(rows, encoded)
        prepared = self._prepare_walk(self._players[sources])
        self._check_mixed(rows, encoded, sources, prepared.walk)
        if self._is_sum(scale):
            return self._scores_of_sums(encoded, prepared, groups)
        n, walk = len(self._background), prepared.walk
        if 2**walk.n_players * n * len(self._forest.offset) > MAX_SUMS:
            raise ModelError(
                f"On this scale, the answers of this {type(self._estimator).__name__} are not a sum over its "
                f"trees, and {walk.n_players} features and {n} background rows are too many to enumerate all "
                "masks: choose scale='raw' for a classifier, fewer background rows, or a model-agnostic "
                "method, such as kernel-shap."
            )
        samples = [np.arange(n), *(np.delete(np.arange(n), group) for group in groups)]
        games: list[list[Floats]] = [[] for _ in samples]
        for row in walk.violations(encoded, by_player=True).T:
            sums = walk.all_sums(prepared.by_player, row)
            values = self._on_scale(sums.reshape(-1, sums.shape[2]), scale).reshape(*sums.shape[:2], -1)
            for sample, game in zip(samples, games, strict=True):
                game.append(values[:, sample].mean(axis=1))
        return [(np.stack([shapley_values_of(row).T for row in game]), game[0][0]) for game in games]

    def _is_sum(self, scale: Scale) -> bool:
        """Return whether the answers on this scale are a sum over the trees."""
        if self._link == "logits":
            has_one = len(self._forest.offset) == 1 or self._model.output.kind == "label"
            return scale == "raw" or (scale == "logit" and has_one)
        if scale == "raw":
            raise ModelError(
                f"The logits of this {type(self._estimator).__name__} are not the sum over its trees: choose "
                "scale='natural'."
            )
        return self._link == "sum" and scale == "natural"

    def _scores_of_sums(
        self, encoded: Floats, prepared: _BackgroundWalk, groups: Sequence[Ints]
    ) -> list[tuple[Floats, Floats]]:
        """Return `scores` if the answers are a sum over the trees."""
        walk = prepared.walk
        violations, sums = walk.violations(encoded), walk.sums(prepared.violations)
        parts = groups or [np.arange(len(self._background))]
        phi = [walk.shapley_values(prepared.violations[:, part], violations) for part in parts]
        bases = [sums[part].sum(axis=0) for part in parts]
        if len(self._forest.offset) < len(self._model.classes):  # log-odds of the second class
            phi = [np.concatenate([-second, second], axis=1) for second in phi]
            bases = [np.concatenate([-second, second]) for second in bases]
        n, total, base = len(sums), np.sum(phi, axis=0), np.sum(bases, axis=0)
        without = [
            ((total - part_phi) / (n - len(group)), (base - part_base) / (n - len(group)))
            for part_phi, part_base, group in zip(phi, bases, groups, strict=False)
        ]
        return [(total / n, base / n), *without]

    def _on_scale(self, sums: Floats, scale: Scale) -> Floats:
        """Convert tree sums (rows, outputs) to answers on this scale."""
        output = self._model.output
        if self._link == "logits":
            assert isinstance(output, Probabilities)
            if sums.shape[1] == 1 and scale == "natural":  # several times faster than a softmax
                return output.widen(Labels(from_logits=True).natural(sums))
            output = replace(output, from_logits=True)
        elif self._link == "exponential":
            sums = np.exp(sums)
        return output.as_scale(output.widen(sums), scale)

    def _find_link(self) -> str:
        """Return the name of the function that maps tree sums to the answers for the background rows."""
        answers = self._answers(self._background)
        walk = TreeWalk(self._forest, np.zeros(self._encoded.shape[1], dtype=np.int64), 1)
        sums = walk.sums(walk.violations(self._encoded))
        for link in ("sum", "exponential" if self._model.output.kind == "value" else "logits"):
            self._link = link
            with np.errstate(over="ignore"):
                # Relative to the magnitude, as one row has no spread; `_check_mixed` compares by spread.
                if _equal_up_to(self._on_scale(sums, "natural"), answers, np.abs(answers).max(axis=0)):
                    return link
        raise self._difference_error()

    def _difference_error(self) -> ModelError:
        return ModelError(
            f"The answers of this {type(self._model.estimator).__name__} do not match its trees, so the "
            "trees cannot be used for Shapley values: use a model-agnostic method, such as kernel-shap."
        )

    def _answers(self, rows: Array) -> Floats:
        """Return the estimator's answers on the natural scale."""
        model = self._model
        return model.output.natural(model.checked(model.submit([rows]).outputs(), len(rows)))

    def _encode(self, rows: Array) -> Floats:
        """Return the rows of numbers that the trees compare."""
        encoded: Any = rows if self._model.frame is None else self._model.frame.from_array(rows)
        for step in self._steps:
            encoded = step.transform(encoded)
        if hasattr(encoded, "toarray"):
            encoded = encoded.toarray()
        return self._forest.clean(_to_numbers(encoded, self._estimator))

    def _prepare_walk(self, players: Ints) -> _BackgroundWalk:
        """Return the walk in which each encoded column belongs to one of these players."""
        key = players.tobytes()
        if key not in self._walks:
            walk = TreeWalk(self._forest, players, int(self._players.max()) + 1)
            self._walks[key] = _BackgroundWalk(walk, self._encoded)
        return self._walks[key]

    def _find_sources(self, rows: Array, encoded: Floats) -> Ints:
        """Return the original column that each encoded column depends on."""
        if not self._steps:
            return np.arange(rows.shape[1])
        self._trace(rows, encoded, *_pairs(len(rows), len(self._background)))
        differ = ~_equal(encoded[:, None], self._encoded)
        untraced = np.flatnonzero(differ.any(axis=(0, 1)) & ~self._depends.any(axis=0))
        if len(untraced):
            first = differ[:, :, untraced].reshape(-1, len(untraced)).argmax(axis=0)
            self._trace(rows, encoded, *np.divmod(first, len(self._background)))
        counts = self._depends.sum(axis=0)
        if (counts > 1).any() or not counts[untraced].all():
            raise ModelError(
                "The pipeline combines several columns into one number that its trees compare: use a "
                "model-agnostic method, such as kernel-shap."
            )
        return np.asarray(self._depends.argmax(axis=0))

    def _trace(self, rows: Array, encoded: Floats, index: Ints, other: Ints) -> None:
        """Record which encoded columns change if one column of a row is taken from a background row."""
        width = rows.shape[1]
        changed = np.repeat(rows[index][None], width, axis=0)
        for column in range(width):
            changed[column, :, column] = self._background[other, column]
        after = self._encode(changed.reshape(-1, width)).reshape(width, len(index), -1)
        self._depends |= ~_equal(after, encoded[index]).all(axis=1)

    def _check_mixed(self, rows: Array, encoded: Floats, sources: Ints, walk: TreeWalk) -> None:
        """Raise a `ModelError` unless trees and estimator agree on these rows, whole and mixed.

        A mixed row combines some features of a row with the other features of a background row. The walk
        takes each encoded column from one of the two, so this also checks the column dependencies. Each pair
        is mixed in two opposite ways, so every feature of every background row is used.
        """
        index, other = (np.tile(indices, 2) for indices in _pairs(len(rows), len(self._background)))
        kept = generator(0, "mixed rows", walk.n_players).random((len(index) // 2, walk.n_players)) < 0.5
        kept = np.concatenate([kept, ~kept])[:, self._players]
        mixed = np.where(kept, rows[index], self._background[other])
        composed = np.where(kept[:, sources], encoded[index], self._encoded[other])
        sums = walk.sums(walk.violations(np.concatenate([encoded, composed])))
        answers = self._answers(np.concatenate([rows, mixed]))
        if not _equal_up_to(self._on_scale(sums, "natural"), answers, np.ptp(answers, axis=0)):
            raise self._difference_error()


@dataclass(frozen=True, eq=False)
class _BackgroundWalk:
    """A walk, and the background rows' violations by slot and by player."""

    walk: TreeWalk
    encoded: Floats

    @cached_property
    def violations(self) -> Array:
        return self.walk.violations(self.encoded)

    @cached_property
    def by_player(self) -> Array:
        return self.walk.violations(self.encoded, by_player=True)


def unwrap_pipeline(estimator: Any) -> tuple[list[Any], Any]:
    """Return a pipeline's transformers, including the last estimator's encoder, and that estimator."""
    steps: list[Any] = []
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            if len(estimator.steps) > 1:
                steps.append(estimator[:-1])
            estimator = estimator.steps[-1][1]
        else:
            encoder = getattr(estimator, "_preprocessor", None)
            return [*steps, encoder] if encoder is not None else steps, estimator


def _to_numbers(rows: Any, estimator: Any) -> Floats:
    """Return rows as numbers; categories of a data frame become the codes used by the estimator."""
    if hasattr(rows, "dtypes") and hasattr(rows, "columns"):
        categorical = [name for name in rows.columns if hasattr(rows[name].dtype, "categories")]
        categories = getattr(getattr(estimator, "booster_", None), "pandas_categorical", None)
        rows = rows.copy()
        for i, name in enumerate(categorical):
            column = rows[name] if not categories else rows[name].cat.set_categories(categories[i])
            rows[name] = column.cat.codes.astype(np.float64).where(column.notna())
    try:
        return np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(
            "Trees compare numbers, but some columns are not numeric: use a model-agnostic method, such as "
            "kernel-shap."
        ) from error


def _pairs(n_rows: int, n_background: int) -> tuple[Ints, Ints]:
    """Return indices of rows and background rows, each at least once, in many different combinations."""
    pairs = np.arange(max(n_rows, n_background, MIXED))
    return pairs % n_rows, (pairs + pairs // lcm(n_rows, n_background)) % n_background


def _equal(first: Floats, second: Floats) -> Array:
    return np.asarray((first == second) | (np.isnan(first) & np.isnan(second)))


def _equal_up_to(sums: Floats, answers: Floats, scale: Floats) -> bool:
    """Return whether tree sums equal the answers (rows, columns), given the scale of each column."""
    if sums.shape != answers.shape:
        return False
    with np.errstate(over="ignore"):
        precision = np.float32 if (answers.astype(np.float32) == answers).all() else np.float64
    allowed = PRECISION[precision] * scale + ROUNDING * np.finfo(precision).eps * np.abs(answers).max()
    return bool((np.abs(sums - answers).max(axis=0) <= allowed).all())


def tree_values(model: EstimatorModel, parts: Sequence[BatchPart]) -> Answer:
    """Answer questions about tree values; `NotWalked` if a tentative question cannot be answered."""

    def walk() -> Sequence[TreeScores | NotWalked]:
        try:
            return _walk_parts(model, parts)
        except Exception as error:
            if len(parts) > 1 or not parts[0].question.tentative:  # several parts are retried one by one
                raise
            return [NotWalked(str(error))]

    return answer_now(walk)


def _walk_parts(model: EstimatorModel, parts: Sequence[BatchPart]) -> list[TreeScores]:
    """Return the answers to all parts; parts with equal background rows and scale are computed together."""
    together: dict[tuple[bytes, Scale, int], list[int]] = {}
    for i, part in enumerate(parts):
        together.setdefault((_key(part), part.question.scale, part.question.groups), []).append(i)
    answers: dict[int, TreeScores] = {}
    for (key, scale, n_groups), indices in together.items():
        first = parts[indices[0]]
        if key not in model.trees:
            if len(model.trees) >= MAX_KEPT:
                model.trees.clear()
            model.trees[key] = Trees(model, _background(first), first.input.owners)
        rows = np.stack([parts[i].input.values for i in indices])
        pairs = model.trees[key].scores(rows, scale, first.removal.groups if n_groups else ())
        scores = np.concatenate([phi for phi, _ in pairs], axis=1)
        base_values = np.concatenate([base for _, base in pairs])
        answers |= {i: TreeScores(phi, base_values) for i, phi in zip(indices, scores, strict=True)}
    return [answers[i] for i in range(len(parts))]


def may_be_walked(model: Model, input: Input, removal: Removal) -> bool:
    """Return whether trees may provide the values, as far as can be told without walking them."""
    return (
        isinstance(input, TableInput)
        and (not removal.is_random or isinstance(removal, FromBackground))
        and has_trees(unwrap_pipeline(model.wrapped)[1])
    )


def _key(part: BatchPart) -> bytes:
    """Return a digest of the rows that fill removed columns, and of the columns of each feature."""
    removal, columns = part.removal, part.input.columns
    if isinstance(removal, FromBackground):
        return digest(removal.fingerprint, part.seed if removal.is_random else 0, columns)
    return digest(_background(part), columns)


def _background(part: BatchPart) -> Array:
    """Return the rows that fill removed columns; raise an error unless they are the same for all masks."""
    removal, input = part.removal, part.input
    if removal.is_random and not isinstance(removal, FromBackground):
        raise SettingError(
            f"The removal {removal.name!r} fills columns differently for each mask, but tree methods need "
            "the same rows for all masks: choose 'background'."
        )
    return np.asarray(removal(input, empty_mask(input.n_features), part.seed))
