"""Attacks on images and table rows that use only the model's decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks import BatchPart
from pertinent.config.fingerprints import generator
from pertinent.errors import InputError, SettingError
from pertinent.models.attacks.attack_space import AttackSpace, require_numbers
from pertinent.models.base import Answer, answer_now

if TYPE_CHECKING:
    from pertinent.models.function import FunctionModel

STARTS = 30
"""Number of random points tried to find a first change of the decision."""

MAX_BACKGROUND, BACKGROUND_BATCH = 400, 100
"""Number of background rows tried after the random points: in total, and per batch."""

PROBES = 24
"""Number of random probes per step that estimate the boundary's normal."""

STEPS = 10
BISECTIONS = 10
HALVINGS = 8
MAX_RESET = 64
"""Largest number of free values in a row for which each value is reset at the end."""


def decision_attacks(model: FunctionModel, parts: Sequence[BatchPart]) -> Answer:
    """Attack images or table rows using only the model's decisions, as HopSkipJump (Chen et al. 2020) does.

    The attack starts at a point with another decision, bisects to the boundary, estimates its normal from
    random probes, steps along it, and repeats. At the end, each value is reset if the decision still differs.
    """
    question = parts[0].question
    attack = question.attack
    if attack.algorithm not in ("auto", "decision"):
        raise SettingError(
            f"`algorithm` must be 'decision' for a model without gradients, but got {attack.algorithm!r}."
        )
    space = AttackSpace.from_parts(model, parts)
    if space.bounds is None:
        raise InputError(
            "A decision attack starts from background values: wrap the model with a `background`."
        )

    def run() -> Any:
        batch = _AttackBatch(model, parts, space)
        batch.run(attack.steps or STEPS)
        best: tuple[Any, Any] = None, None
        if question.keep_changes:
            shape = parts[0].input.array.shape
            best = space.changes(batch.changes, shape), space.norms(batch.changes, attack.norm)
        return batch.radii, batch.passes, *best

    return answer_now(run)


class _AttackBatch:
    """The attacks on all rows of a batch, with the smallest change of each row so far."""

    def __init__(self, model: FunctionModel, parts: Sequence[BatchPart], space: AttackSpace) -> None:
        self._model, self._space = model, space
        self._first = require_numbers(parts[0].input)
        self._questions = [part.question for part in parts for _ in part.rows]
        self._norm = self._questions[0].attack.norm
        # The draws of a row depend only on its seed, input and set.
        self._generators = [
            generator(part.seed, "decision-attack", part.input.fingerprint, part.question.sets[row].tobytes())
            for part in parts
            for row in part.rows.tolist()
        ]
        self.changes = np.zeros(space.free.shape)
        self.radii = np.full(len(self.changes), np.inf)
        self.passes = np.zeros(len(self.changes), dtype=np.int64)

    def run(self, steps: int) -> None:
        """Find a first change of the decision and reduce it step by step."""
        self._start()
        rows = np.flatnonzero(np.isfinite(self.radii))
        for step in range(1, steps + 1):
            if len(rows):
                self._step(rows, step)
        if len(rows) and self._space.free.sum(axis=1).max() <= MAX_RESET:
            self._reset(rows)

    def _differs(self, changes: Floats, rows: Ints) -> Masks:
        """Return whether the decision differs after these changes (n, values) of the rows (n,)."""
        np.add.at(self.passes, rows, 1)
        space, model, first = self._space, self._model, self._first
        points = (space.values[space.origin[rows]] + changes) * space.units[space.origin[rows]]
        batch = points.reshape(len(points), *first.array.shape).astype(first.dtype)
        answers = np.asarray(model.submit([first.as_read(batch)]).outputs())
        values = model.output.natural(model.checked(answers, len(points)))
        differs = np.empty(len(points), dtype=np.bool_)
        for i, row in enumerate(rows.tolist()):
            question = self._questions[row]
            column = question.decided if question.toward is None else question.toward
            is_column = model.output.same_decision(values[i : i + 1], question.prediction, column)[0]
            differs[i] = is_column if question.toward is not None else not is_column
        return differs

    def _length(self, changes: Floats) -> Floats:
        lengths = np.linalg.norm(changes, axis=-1) if self._norm == "l2" else np.abs(changes).max(-1)
        return np.asarray(lengths)

    def _keep(self, rows: Ints, changes: Floats) -> None:
        """Store the changes that are smaller than their rows' smallest changes so far."""
        radii = self._length(changes)
        better = radii < self.radii[rows]
        self.changes[rows[better]], self.radii[rows[better]] = changes[better], radii[better]

    def _start(self) -> None:
        """Try random values within the bounds until the decision differs, then background rows."""
        rows = np.flatnonzero(self._space.free.any(axis=1))
        for attempt in range(STARTS):
            if not len(rows):
                return
            shares = self._draw(rows, lambda rng, n: rng.random(n))
            if attempt % 3 == 2:  # every third point is a corner, which random points rarely reach
                shares = np.round(shares)
            lower, upper = self._bounds(rows)
            changes = lower + shares * (upper - lower)
            differs = self._differs(changes, rows)
            self._keep(rows[differs], self._bisect(rows[differs], changes[differs]))
            rows = rows[~differs]
        if self._space.background is not None:
            self._start_at_background(rows, self._space.background)

    def _start_at_background(self, rows: Ints, background: Floats) -> None:
        """Try background rows, batch by batch; choose the nearest row with a different decision."""
        n_tried = min(len(background), MAX_BACKGROUND)
        background = background[np.linspace(0, len(background) - 1, n_tried).astype(np.int64)]
        for first in range(0, n_tried, BACKGROUND_BATCH):
            if not len(rows):
                return
            batch = background[first : first + BACKGROUND_BATCH]
            changes = batch - self._space.values[self._space.origin[rows], None]
            changes = np.where(self._space.free[rows, None] & ~np.isnan(changes), changes, 0.0)
            flat = changes.reshape(-1, changes.shape[-1])
            differs = self._differs(flat, np.repeat(rows, len(batch))).reshape(len(rows), -1)
            nearest = np.where(differs, self._length(changes), np.inf).argmin(axis=1)
            changes, changed = changes[np.arange(len(rows)), nearest], differs.any(axis=1)
            self._keep(rows[changed], self._bisect(rows[changed], changes[changed]))
            rows = rows[~changed]

    def _draw(self, rows: Ints, draw: Callable[[np.random.Generator, int], Floats]) -> Floats:
        n = self._space.values.shape[1]
        draws = np.stack([draw(self._generators[row], n) for row in rows.tolist()])
        return draws * self._space.free[rows]

    def _bisect(self, rows: Ints, changes: Floats) -> Floats:
        """Shorten each change by bisection while the decision still differs."""
        if not len(rows):
            return changes
        low, high = np.zeros(len(rows)), np.ones(len(rows))
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            differs = self._differs(changes * middle[:, None], rows)
            high, low = np.where(differs, middle, high), np.where(differs, low, middle)
        return changes * high[:, None]

    def _step(self, rows: Ints, step: int) -> None:
        """Estimate the normal of the boundary at the smallest change, step along it, and return to it."""
        changes, radii = self.changes[rows], self.radii[rows]
        probes = np.stack([self._draw(rows, lambda rng, n: rng.standard_normal(n)) for _ in range(PROBES)])
        probes /= np.maximum(np.linalg.norm(probes, axis=-1, keepdims=True), 1e-12)
        width = (radii / np.sqrt(step) / 4)[:, None]
        points = np.clip(changes + width * probes, *self._bounds(rows))
        probes = points - changes
        flat = points.reshape(-1, points.shape[-1])
        sides = np.where(self._differs(flat, np.tile(rows, PROBES)).reshape(PROBES, -1), 1.0, -1.0)
        normal = ((sides - sides.mean(axis=0))[..., None] * probes).mean(axis=0)
        size = np.linalg.norm(normal, axis=1, keepdims=True)
        normal = np.sign(normal) if self._norm == "linf" else normal / np.where(size > 0, size, 1.0)
        length = radii / np.sqrt(step)
        todo = np.flatnonzero(size[:, 0] > 0)
        for _ in range(HALVINGS):
            if not len(todo):
                return
            moved = changes[todo] + length[todo, None] * normal[todo]
            moved = np.clip(moved, *self._bounds(rows[todo]))
            differs = self._differs(moved, rows[todo])
            self._keep(rows[todo[differs]], self._bisect(rows[todo[differs]], moved[differs]))
            todo = todo[~differs]
            length[todo] /= 2

    def _bounds(self, rows: Ints) -> Floats:
        """Return the smallest and largest change of each row (2, rows, values); 0 for fixed values."""
        assert self._space.bounds is not None
        return np.asarray(self._space.bounds[:, self._space.origin[rows]] * self._space.free[rows])

    def _reset(self, rows: Ints) -> None:
        """Undo each value's change, fully or by half, if the decision still differs."""
        order = np.argsort(np.abs(self.changes[rows]), axis=1)
        for column in range(order.shape[1]):
            for share in (0.0, 0.5):
                changes = self.changes[rows].copy()
                changes[np.arange(len(rows)), order[:, column]] *= share
                differs = self._differs(changes, rows)
                self._keep(rows[differs], changes[differs])
