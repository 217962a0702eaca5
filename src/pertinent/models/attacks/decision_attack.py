"""Attacks on the values of images and table rows: their bounds, and attacks that need decisions alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks import BatchPart
from pertinent.config.fingerprints import generator
from pertinent.errors import InputError, SettingError
from pertinent.models.base import Answer, answer_now

if TYPE_CHECKING:
    from pertinent.models.function import FunctionModel


from pertinent.models.attacks.attack_space import AttackSpace, attackable, space_of

TRIES = 30
"""Number of random points tried to find a first change of the decision."""

MOST_KNOWN, KNOWN_AT_ONCE = 400, 100
"""Number of rows of the background tried after the random points: at most in all, and in one batch."""

PROBES = 24
"""Number of random probes from which the boundary's normal is estimated, in each step."""

STEPS = 10
BISECTIONS = 10
HALVINGS = 8
MOST_RESET = 64
"""The most free values of a row for which each one is tried at its unperturbed value at the end."""


# -- attacks by decisions ----------------------------------------------------------------------------


def decision_attacks(model: FunctionModel, parts: Sequence[BatchPart]) -> Answer:
    """Attack images or table rows by decisions alone, in the manner of HopSkipJump (Chen et al. 2020).

    From a first point where the decision differs: bisection to the boundary, an estimate of its normal from
    random probes, a step along it, and again. At last each value is reset if the decision then still differs.
    """
    attack = parts[0].question.attack
    if attack.algorithm not in ("auto", "decision"):
        raise SettingError(
            f"`algorithm` must be 'decision' for a model without gradients, but got {attack.algorithm!r}."
        )
    space = space_of(model, parts)
    if space.bounds is None:
        raise InputError("An attack by decisions starts from other values: wrap the model with a background.")
    shape = attackable(parts[0].input).array.shape

    def run() -> Any:
        found = _AttackBatch(space, _decisions(model, parts, space), _generators(parts), attack.norm)
        found.run(attack.steps or STEPS)
        kept: tuple[Any, Any] = None, None
        if parts[0].question.keep_changes:
            kept = space.changes(found.changes, shape), space.norms(found.changes, attack.norm)
        return found.radii, found.passes, *kept

    return answer_now(run)


def _generators(parts: Sequence[BatchPart]) -> list[np.random.Generator]:
    """A random generator for each row, which depends only on its seed, input and set."""
    return [
        generator(part.seed, "decision-attack", part.input.fingerprint, part.question.sets[row].tobytes())
        for part in parts
        for row in part.rows.tolist()
    ]


def _decisions(
    model: FunctionModel, parts: Sequence[BatchPart], space: AttackSpace
) -> Callable[[Floats, Ints], Masks]:
    """A function that tells whether the decision differs at points (n, values) of the given rows."""
    asked = [part.question for part in parts for _ in part.rows]
    first = attackable(parts[0].input)

    def differs(points: Floats, rows: Ints) -> Masks:
        batch = (points * space.units[space.origin[rows]]).reshape(len(points), *first.array.shape)
        answers = np.asarray(model.submit([first.as_read(batch.astype(first.dtype))]).outputs())
        values = model.output.natural(model.checked(answers, len(points)))
        found = np.empty(len(points), dtype=np.bool_)
        for i, row in enumerate(rows.tolist()):
            question, own = asked[row], values[i : i + 1]
            column = question.decided if question.toward is None else question.toward
            is_column = model.output.same_decision(own, question.prediction, column)[0]
            found[i] = is_column if question.toward is not None else not is_column
        return found

    return differs


@dataclass(eq=False)
class _AttackBatch:
    """The attacks on all rows of a batch, each with the best change so far."""

    space: AttackSpace
    differs: Callable[[Floats, Ints], Masks]
    generators: list[np.random.Generator]
    norm: Literal["l2", "linf"]
    changes: Floats = field(init=False)
    radii: Floats = field(init=False)
    passes: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.changes = np.zeros(self.space.free.shape)
        self.radii = np.full(len(self.changes), np.inf)
        self.passes = np.zeros(len(self.changes), dtype=np.int64)

    def run(self, steps: int) -> None:
        """Find a first change of the decision, and make it smaller step by step."""
        self._start()
        rows = np.flatnonzero(np.isfinite(self.radii))
        for step in range(1, steps + 1):
            if len(rows):
                self._step(rows, step)
        if len(rows) and self.space.free.sum(axis=1).max() <= MOST_RESET:
            self._reset(rows)

    def _ask(self, changes: Floats, rows: Ints) -> Masks:
        np.add.at(self.passes, rows, 1)
        return self.differs(self.space.values[self.space.origin[rows]] + changes, rows)

    def _length(self, changes: Floats) -> Floats:
        return np.asarray(np.linalg.norm(changes, axis=-1) if self.norm == "l2" else np.abs(changes).max(-1))

    def _keep(self, rows: Ints, changes: Floats) -> None:
        """Keep the changes that are smaller than the best known of their rows."""
        radii = self._length(changes)
        better = radii < self.radii[rows]
        self.changes[rows[better]], self.radii[rows[better]] = changes[better], radii[better]

    def _start(self) -> None:
        """Try random values within the bounds until the decision differs, then rows of the background."""
        rows = np.flatnonzero(self.space.free.any(axis=1))
        for attempt in range(TRIES):
            if not len(rows):
                return
            drawn = self._drawn(rows, lambda rng, n: rng.random(n))
            lower, upper = self._bounds(rows)
            corner = attempt % 3 == 2  # the ends are reached by chance too rarely
            drawn = np.round(drawn) if corner else drawn
            changes = lower + drawn * (upper - lower)
            differs = self._ask(changes, rows)
            self._keep(rows[differs], self._bisected(rows[differs], changes[differs]))
            rows = rows[~differs]
        if self.space.known is not None:
            self._start_at_known(rows, self.space.known)

    def _start_at_known(self, rows: Ints, known: Floats) -> None:
        """Try rows of the background, batch by batch, and take the nearest at which the decision differs."""
        known = known[np.linspace(0, len(known) - 1, min(len(known), MOST_KNOWN)).astype(np.int64)]
        for first in range(0, len(known), KNOWN_AT_ONCE):
            if not len(rows):
                return
            some = known[first : first + KNOWN_AT_ONCE]
            changes = some - self.space.values[self.space.origin[rows], None]
            changes = np.where(self.space.free[rows, None] & ~np.isnan(changes), changes, 0.0)
            asked = changes.reshape(-1, changes.shape[-1])
            differs = self._ask(asked, np.repeat(rows, len(some))).reshape(len(rows), -1)
            nearest = np.where(differs, self._length(changes), np.inf).argmin(axis=1)
            changes, found = changes[np.arange(len(rows)), nearest], differs.any(axis=1)
            self._keep(rows[found], self._bisected(rows[found], changes[found]))
            rows = rows[~found]

    def _drawn(self, rows: Ints, draw: Callable[[np.random.Generator, int], Floats]) -> Floats:
        n = self.space.values.shape[1]
        return np.stack([draw(self.generators[row], n) for row in rows.tolist()]) * self.space.free[rows]

    def _bisected(self, rows: Ints, far: Floats) -> Floats:
        """Shorten each change by bisection, as far as the decision still differs."""
        if not len(rows):
            return far
        low, high = np.zeros(len(rows)), np.ones(len(rows))
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            differs = self._ask(far * middle[:, None], rows)
            high, low = np.where(differs, middle, high), np.where(differs, low, middle)
        return far * high[:, None]

    def _step(self, rows: Ints, step: int) -> None:
        """Estimate the boundary's normal at the best change, go along it, and come back to the boundary."""
        at, radii = self.changes[rows], self.radii[rows]
        probes = np.stack([self._drawn(rows, lambda rng, n: rng.standard_normal(n)) for _ in range(PROBES)])
        probes /= np.maximum(np.linalg.norm(probes, axis=-1, keepdims=True), 1e-12)
        width = (radii / np.sqrt(step) / 4)[:, None]
        points = np.clip(at + width * probes, *self._bounds(rows))
        probes = points - at
        asked = points.reshape(-1, points.shape[-1])
        sides = np.where(self._ask(asked, np.tile(rows, PROBES)).reshape(PROBES, -1), 1.0, -1.0)
        normal = ((sides - sides.mean(axis=0))[..., None] * probes).mean(axis=0)
        size = np.linalg.norm(normal, axis=1, keepdims=True)
        normal = np.sign(normal) if self.norm == "linf" else normal / np.where(size > 0, size, 1.0)
        length = radii / np.sqrt(step)
        todo = np.flatnonzero(size[:, 0] > 0)
        for _ in range(HALVINGS):
            if not len(todo):
                return
            moved = np.clip(at[todo] + length[todo, None] * normal[todo], *self._bounds(rows[todo]))
            differs = self._ask(moved, rows[todo])
            self._keep(rows[todo[differs]], self._bisected(rows[todo[differs]], moved[differs]))
            todo = todo[~differs]
            length[todo] /= 2

    def _bounds(self, rows: Ints) -> Floats:
        """The least and the greatest change of each row (2, rows, values); 0 where a value is not free."""
        assert self.space.bounds is not None
        return np.asarray(self.space.bounds[:, self.space.origin[rows]] * self.space.free[rows])

    def _reset(self, rows: Ints) -> None:
        """Undo the change of each value, wholly or by half, as far as the decision still differs."""
        order = np.argsort(np.abs(self.changes[rows]), axis=1)
        for place in range(order.shape[1]):
            for share in (0.0, 0.5):
                tried = self.changes[rows].copy()
                tried[np.arange(len(rows)), order[:, place]] *= share
                differs = self._ask(tried, rows)
                self._keep(rows[differs], tried[differs])
