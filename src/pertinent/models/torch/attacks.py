r"""The smallest perturbations of chosen values that change a decision, of many rows at once.

A row's `margin` is positive as long as its decision stands. Rows that are done leave the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

OVERSHOOT, SETTLING = 0.02, 0.8
"""How far behind the boundary to aim, as a share of the first margin, and how fast that shrinks."""

FASTER, SLOWER = 1.3, 0.6
"""How the share of a step towards the smallest perturbation grows when it helped, and shrinks when not."""

ENOUGH, PATIENCE = 1e-3, 5
"""A row is done when its radius has not become smaller by this share so many times in a row."""

_NEWTON_STEPS = 6


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of values (rows, values), of which the `free` ones may change within the bounds.

    `lower` and `upper` bound the change, or are ``None``. `margin` gets points and the rows that they
    belong to.
    """

    values: torch.Tensor
    free: torch.Tensor
    lower: torch.Tensor | None
    upper: torch.Tensor | None
    margin: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    norm: Literal["l2", "linf"] = "l2"

    def pick(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, Bounds]:
        """The values, which of them are free, and the bounds of some rows."""
        lower, upper = (None if own is None else own[rows] for own in (self.lower, self.upper))
        return self.values[rows], self.free[rows], Bounds(lower, upper)

    def differentiate(self, points: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The margin at the points, and its gradient."""
        with torch.enable_grad():
            leaf = points.detach().requires_grad_()
            margin = self.margin(leaf, rows)
            (gradient,) = torch.autograd.grad(margin.sum(), leaf)
        return margin.detach(), gradient

    def length(self, change: torch.Tensor) -> torch.Tensor:
        """The norm of each row."""
        return change.norm(dim=1) if self.norm == "l2" else change.abs().amax(dim=1)


@dataclass(frozen=True, eq=False)
class Bounds:
    """What a change must stay within."""

    lower: torch.Tensor | None
    upper: torch.Tensor | None

    def clip(self, change: torch.Tensor) -> torch.Tensor:
        """The nearest change within."""
        if self.lower is None or self.upper is None:
            return change
        return torch.minimum(torch.maximum(change, self.lower), self.upper)

    def around(self, change: torch.Tensor) -> Bounds:
        """The bounds of what is added to a change."""
        if self.lower is None or self.upper is None:
            return self
        return Bounds(self.lower - change, self.upper - change)


@dataclass(frozen=True, eq=False)
class Found:
    """The smallest norm found for each row, infinite if none was, its change, and the passes made."""

    radii: torch.Tensor
    changes: torch.Tensor
    passes: torch.Tensor

    @classmethod
    def nothing(cls, problem: Problem) -> Found:
        """Before the first pass."""
        n = len(problem.values)
        radii = problem.values.new_full((n,), torch.inf)
        passes = torch.zeros(n, dtype=torch.int64, device=radii.device)
        return cls(radii, torch.zeros_like(problem.values), passes)

    def keep(self, rows: torch.Tensor, changes: torch.Tensor, radii: torch.Tensor) -> None:
        """Note changes that change the decision."""
        self.radii[rows] = radii
        self.changes[rows] = changes


def project(problem: Problem, gradient: torch.Tensor, wanted: torch.Tensor, bounds: Bounds) -> torch.Tensor:
    r"""The smallest change with gradient · change = wanted, within the bounds as far as they allow.

    It is :math:`\mathrm{clip}(\lambda e)`, where e is the gradient (L2) or its sign (L∞). The product
    grows with :math:`|\lambda|`, linearly between the points where a value reaches its bound, and is
    concave, so Newton's steps approach the solution from below.
    """
    along = gradient if problem.norm == "l2" else gradient.sign()
    tiny = torch.finfo(gradient.dtype).tiny
    factor = wanted / (gradient * along).sum(dim=1).clamp_min(tiny)
    for _ in range(_NEWTON_STEPS if bounds.lower is not None else 0):
        raw = factor[:, None] * along
        change = bounds.clip(raw)
        slope = (gradient * along * (raw == change)).sum(dim=1)
        missing = wanted - (gradient * change).sum(dim=1)
        factor = factor + torch.where(slope > 0, missing / slope.clamp_min(tiny), 0.0)
    return bounds.clip(factor[:, None] * along)


def projection(problem: Problem, steps: int) -> Found:
    r"""Projections on the linearised boundary, in the manner of FAB (Croce & Hein 2020).

    At a change δ with margin L and gradient g the boundary is about where g · (δ′ − δ) = −L. A row moves
    to the point of it that is nearest to δ; once an attack is found, part of the way further, to the
    point that is nearest to the input. The part is adapted to each row.
    """
    found = Found.nothing(problem)
    rows = torch.nonzero(problem.free.any(dim=1))[:, 0]
    values, free, bounds = problem.pick(rows)
    change = torch.zeros_like(values)
    best, part = values.new_full((len(rows),), torch.inf), values.new_full((len(rows),), 0.5)
    stalled = torch.zeros_like(rows)
    behind = None
    for step in range(steps):
        if not len(rows):
            break
        margin, gradient = problem.differentiate(values + change, rows)
        gradient = torch.where(free, gradient, 0.0)
        found.passes[rows] += 2
        found.radii[rows[margin.isnan()]] = torch.nan
        behind = OVERSHOOT * margin.abs() if behind is None else behind * SETTLING
        radius = problem.length(change)
        better = (margin < 0) & (radius < best)
        gained = better & (radius < best * (1 - ENOUGH))
        found.keep(rows[better], change[better], radius[better])
        attacked = best.isfinite()
        part = torch.where(attacked, torch.where(better, part * FASTER, part * SLOWER), part).clamp(0.02, 1.0)
        best = torch.where(better, radius, best)
        stalled = torch.where(gained | best.isinf(), 0, stalled + 1)
        near = change + project(problem, gradient, -margin - behind, bounds.around(change))
        small = project(problem, gradient, (gradient * change).sum(dim=1) - margin - behind, bounds)
        share = torch.where(best.isfinite(), part, 0.0)[:, None] if step else 1.0
        change = bounds.clip(near + share * (small - near))
        going = (stalled < PATIENCE) & (gradient.abs().amax(dim=1) > 0)
        if step % 4 == 3 and not bool(going.all()):
            rows, values, free, change, best, part, stalled, behind = (
                own[going] for own in (rows, values, free, change, best, part, stalled, behind)
            )
            _, _, bounds = problem.pick(rows)
    return found


def pgd(problem: Problem, steps: int, largest: float, tolerance: float) -> Found:
    """Projected gradient descent in balls whose radius is found by bisection (Hsieh et al. 2021, App. C).

    Every iterate is looked at, not only the last, and the norm of the change is returned, not the
    radius of the ball.
    """
    found = Found.nothing(problem)
    every = torch.nonzero(problem.free.any(dim=1))[:, 0]
    low = problem.values.new_zeros(len(problem.values))
    high = torch.full_like(low, largest)
    ball = high.clone()
    while len(every):
        succeeded = _descend(problem, every, ball, found, steps=steps, size=largest / 10)
        high[every] = torch.where(succeeded, torch.minimum(ball[every], found.radii[every]), high[every])
        low[every] = torch.where(succeeded, low[every], ball[every])
        every = every[(high[every] - low[every] > tolerance) & (low[every] < largest)]
        ball[every] = (low[every] + high[every]) / 2
    return found


def _descend(
    problem: Problem, every: torch.Tensor, ball: torch.Tensor, found: Found, *, steps: int, size: float
) -> torch.Tensor:
    """Descend in each row's ball; whether an attack was found in it."""
    succeeded = torch.zeros(len(problem.values), dtype=torch.bool, device=ball.device)
    rows = every
    values, free, bounds = problem.pick(rows)
    change = torch.zeros_like(values)
    for _ in range(steps + 1):
        if not len(rows):
            break
        margin, gradient = problem.differentiate(values + change, rows)
        found.passes[rows] += 2
        attacked = margin < 0
        radius = problem.length(change)
        better = attacked & (radius < found.radii[rows])
        found.keep(rows[better], change[better], radius[better])
        succeeded[rows[attacked]] = True
        rows, values, free, change, gradient = (
            own[~attacked] for own in (rows, values, free, change, gradient)
        )
        _, _, bounds = problem.pick(rows)
        gradient = torch.where(free, gradient, 0.0)
        if problem.norm == "l2":
            moved = change - size * gradient / gradient.norm(dim=1, keepdim=True).clamp_min(1e-30)
            longest = (ball[rows] / moved.norm(dim=1).clamp_min(1e-30)).clamp_max(1.0)[:, None]
            change = bounds.clip(moved * longest)
        else:
            moved = change - size * gradient.sign()
            change = bounds.clip(torch.maximum(torch.minimum(moved, ball[rows, None]), -ball[rows, None]))
    return succeeded[every]
