r"""The smallest perturbations of chosen values that change decisions, for many rows at once.

A row's decision holds as long as all its `margins` are positive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pertinent.errors import ModelError

OVERSHOOT, SETTLING = 0.02, 0.8
"""Target distance beyond the boundary, as a fraction of the first margin, and its factor in each step."""

FASTER, SLOWER = 1.3, 0.6
"""Factors of the share of a step towards the input, after a step that helped and one that did not."""

ENOUGH, PATIENCE = 1e-3, 5
"""A row is finished after `PATIENCE` successive steps that reduce its radius by a share below `ENOUGH`."""

LEAVING = 10
"""Number of steps between removals of finished rows from the batch; each removal synchronises the device."""

_NEWTON_STEPS = 4

_FAR = 1e18
"""Larger than any bound, but finite so that products with zero are zero."""


@dataclass(frozen=True, eq=False)
class ChangeBounds:
    """Lower and upper bounds of changes, as one tensor (2, rows, values); ``None`` if unbounded."""

    ends: Tensor | None = None

    def clip(self, change: Tensor) -> Tensor:
        """Return the nearest change within the bounds."""
        return change if self.ends is None else torch.clamp(change, *self.ends)

    def around(self, change: Tensor) -> ChangeBounds:
        """Return the bounds of what can be added to a change."""
        return ChangeBounds(None if self.ends is None else self.ends - change)

    def __getitem__(self, rows: Tensor) -> ChangeBounds:
        """Return the bounds of the selected rows."""
        return ChangeBounds(None if self.ends is None else self.ends[:, rows])


@dataclass(frozen=True, eq=False)
class AttackProblem:
    """Rows of values, some of which may change within bounds.

    Attributes
    ----------
    values
        Unperturbed values (rows, values). Several rows may start from the same point.
    free
        Which values may change (rows, values).
    bounds
        Bounds of the changes.
    margins
        Function from points and their row indices to the margin of the decision over each rival (points,
        rivals); infinite where there is no rival.
    attacked
        Indices of the attacked rows: those with a value that may change.
    origin
        Index of the starting point of each row.
    firsts
        Index of one row for each starting point.
    n_rivals
        Number of rivals compared in the first step: those with the smallest margins.
    norm
        Norm that measures a change.
    keep
        Whether to return the changes in addition to their norms.
    descended
        Like `margins`, but also returns a score for each point (points,) that is descended instead of the
        smallest margin.
    """

    values: Tensor
    free: Tensor
    bounds: ChangeBounds
    margins: Callable[[Tensor, Tensor], Tensor]
    attacked: Tensor
    origin: Tensor
    firsts: Tensor
    n_rivals: int
    norm: Literal["l2", "linf"] = "l2"
    keep: bool = True
    descended: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None

    def differentiate(self, points: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the smallest margin at each point, and the gradient of the score to decrease."""
        with torch.enable_grad():
            leaf = points.detach().requires_grad_()
            if self.descended is None:
                margin = score = self.margins(leaf, rows).amin(dim=1)
            else:
                margins, score = self.descended(leaf, rows)
                margin = margins.amin(dim=1)
            gradient = _gradient(score, leaf)
        return margin.detach(), torch.where(self.free[rows], gradient, 0.0)

    def length(self, change: Tensor) -> Tensor:
        """Return the norm of the change of each row."""
        return change.norm(dim=1) if self.norm == "l2" else change.abs().amax(dim=1)

    def along(self, gradient: Tensor) -> Tensor:
        """Return the direction in which the smallest change lowers the margin most."""
        return gradient if self.norm == "l2" else gradient.sign()

    def nearest_rival(self) -> tuple[Tensor, Tensor]:
        """Return the margin over the rival with the nearest linearised boundary, and its gradient.

        The rival with the smallest margin need not be the nearest: the distance is the margin divided by the
        norm of the gradient, over the values that are free and not at their bound. This takes one backward
        pass per rival of each point, not of each row.
        """
        with torch.enable_grad():
            leaf = self.values[self.firsts].detach().requires_grad_()
            margins, _ = self.margins(leaf, self.firsts).sort(dim=1)
            slopes = [
                _gradient(margins[:, k], leaf, retain_graph=True)
                for k in range(min(self.n_rivals, margins.shape[1]))
            ]
        margins = margins.detach()
        origin, bounds, free = (
            self.origin[self.attacked],
            self.bounds[self.attacked],
            self.free[self.attacked],
        )
        margin, gradient = margins[origin, 0], torch.where(free, slopes[0][origin], 0.0)
        nearest = (margin / self._slope_length(gradient, bounds)).nan_to_num(nan=torch.inf, posinf=torch.inf)
        for k in range(1, len(slopes)):
            other, slope = margins[origin, k], torch.where(free, slopes[k][origin], 0.0)
            distance = other / self._slope_length(slope, bounds)
            nearer = distance < nearest
            nearest = torch.where(nearer, distance, nearest)
            margin = torch.where(nearer, other, margin)
            gradient = torch.where(nearer[:, None], slope, gradient)
        return margin, gradient

    def _slope_length(self, gradient: Tensor, bounds: ChangeBounds) -> Tensor:
        """Return the dual norm of a gradient over the values that can follow it downwards."""
        if bounds.ends is not None:
            available = torch.where(gradient > 0, bounds.ends[0], bounds.ends[1])
            gradient = torch.where(available != 0, gradient, 0.0)
        return gradient.norm(dim=1) if self.norm == "l2" else gradient.abs().sum(dim=1)


@dataclass(frozen=True, eq=False)
class AttackResult:
    """Norm of each row's smallest change (infinite if none), the change, and the number of passes."""

    radii: Tensor
    changes: Tensor
    passes: Tensor

    @classmethod
    def from_problem(cls, problem: AttackProblem) -> AttackResult:
        """Return an empty result."""
        n = len(problem.values)
        radii = problem.values.new_full((n,), torch.inf)
        passes = torch.zeros(n, dtype=torch.int64, device=radii.device)
        return cls(radii, torch.zeros_like(problem.values if problem.keep else problem.values[:, :0]), passes)

    def update(self, rows: Tensor, radii: Tensor, changes: Tensor | None) -> None:
        """Set the smallest norms and changes of these rows."""
        self.radii[rows] = radii
        if changes is not None:
            self.changes[rows] = changes


def _gradient(score: Tensor, leaf: Tensor, *, retain_graph: bool = False) -> Tensor:
    """Return the gradient of each row's score; raise a `ModelError` if the model has no gradients."""
    if not score.requires_grad:
        raise ModelError(
            "The model's answers have no gradients, for example because of a comparison, rounding or "
            "`no_grad`: attack images and table rows with algorithm='decision', which needs only answers."
        )
    (gradient,) = torch.autograd.grad(score.sum(), leaf, retain_graph=retain_graph)
    return gradient


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return torch.einsum("ij,ij->i", a, b)


def project(problem: AttackProblem, gradient: Tensor, product: Tensor, bounds: ChangeBounds) -> Tensor:
    r"""Return the smallest change with gradient · change = product, within the bounds as far as possible.

    A value changes by :math:`\min(\lambda, r)\,e`, where e is the gradient (L2) or its sign (L∞) and r is how
    many multiples of e fit into the bounds. The product is concave and piecewise linear in :math:`\lambda`,
    so Newton steps approach the solution from below.
    """
    along = problem.along(gradient)
    weight = gradient * along
    along = torch.where(product[:, None] < 0, -along, along)
    product = product.abs()
    if bounds.ends is None:
        return along * _divide(product, weight.sum(dim=1))[:, None]
    available = torch.where(along < 0, bounds.ends[0], bounds.ends[1])
    reach = torch.where(along == 0, 0.0, available / along).clamp_max(_FAR)
    factor = torch.zeros_like(product)
    for _ in range(_NEWTON_STEPS):
        slope = torch.where(reach > factor[:, None], weight, 0.0).sum(dim=1)
        missing = product - _dot(weight, torch.minimum(reach, factor[:, None]))
        factor = factor + _divide(missing, slope)
    return bounds.clip(along * torch.minimum(reach, factor[:, None]))


def _divide(product: Tensor, slope: Tensor) -> Tensor:
    """Return the quotient, or 0 if the slope is not positive."""
    return torch.where(slope > 0, product / slope, 0.0).clamp_max(_FAR)


def projection(problem: AttackProblem, steps: int) -> AttackResult:
    r"""Attack by projecting onto the linearised boundary, as FAB (Croce & Hein 2020) does.

    At a change δ with margin L and gradient g, the boundary is approximately where g · (δ′ − δ) = −L. A row
    moves to the point on it nearest to δ. Once an attack has succeeded, the row moves part of the way towards
    the point nearest to the input instead; the share is adapted for each row.
    """
    result = AttackResult.from_problem(problem)
    rows = problem.attacked
    if not len(rows):
        return result
    margin, gradient = problem.nearest_rival()
    behind = OVERSHOOT * margin.abs()
    values, bounds = problem.values[rows], problem.bounds[rows]
    change = project(problem, gradient, -margin - behind, bounds)
    best, share = torch.full_like(margin, torch.inf), torch.full_like(margin, 0.5)
    smallest = torch.zeros_like(change) if problem.keep else None
    stalled = torch.zeros_like(rows)
    for step in range(1, steps + 1):
        if step == steps:
            margin = problem.margins(values + change, rows).amin(dim=1)
        else:
            margin, gradient = problem.differentiate(values + change, rows)
        result.passes[rows] += 1 if step == steps else 2
        radius = problem.length(change)
        better = (margin < 0) & (radius < best)
        gained = better & (radius < best * (1 - ENOUGH))
        succeeded = best.isfinite()
        best = torch.where(margin.isnan(), torch.nan, torch.where(better, radius, best))
        smallest = None if smallest is None else torch.where(better[:, None], change, smallest)
        if step == steps:
            break
        adapted = torch.where(better, share * FASTER, share * SLOWER)
        share = torch.where(succeeded, adapted, share).clamp(0.02, 1.0)
        stalled = torch.where(gained | best.isinf(), 0, stalled + 1)
        behind = behind * SETTLING
        near = change + project(problem, gradient, -margin - behind, bounds.around(change))
        small = project(problem, gradient, _dot(gradient, change) - margin - behind, bounds)
        change = bounds.clip(torch.lerp(near, small, torch.where(best.isfinite(), share, 0.0)[:, None]))
        if step % LEAVING == 0:
            result.update(rows, best, smallest)
            remaining = torch.nonzero((stalled < PATIENCE) & (gradient != 0).any(dim=1))[:, 0]
            rows, values, change, best, share, stalled, behind = (
                tensor[remaining] for tensor in (rows, values, change, best, share, stalled, behind)
            )
            smallest = None if smallest is None else smallest[remaining]
            bounds = bounds[remaining]
            if not len(rows):
                break
    result.update(rows, best, smallest)
    return result


def pgd(problem: AttackProblem, steps: int, largest: float, tolerance: float) -> AttackResult:
    """Attack by projected gradient descent in balls of bisected radius (Hsieh et al. 2021, App. C).

    All iterates are compared, not only the last one, and the result is the norm of the change, not the radius
    of the ball.
    """
    result = AttackResult.from_problem(problem)
    rows = problem.attacked
    low = problem.values.new_zeros(len(problem.values))
    high = torch.full_like(low, largest)
    ball = high.clone()
    while len(rows):
        succeeded = _descend(problem, rows, ball, result, steps=steps, size=largest / 10)
        high[rows] = torch.where(succeeded, torch.minimum(ball[rows], result.radii[rows]), high[rows])
        low[rows] = torch.where(succeeded, low[rows], ball[rows])
        rows = rows[(high[rows] - low[rows] > tolerance) & (low[rows] < largest)]
        ball[rows] = (low[rows] + high[rows]) / 2
    return result


def _descend(
    problem: AttackProblem, attacked: Tensor, ball: Tensor, result: AttackResult, *, steps: int, size: float
) -> Tensor:
    """Descend within the ball of each row, and return for which rows the attack succeeded."""
    succeeded = torch.zeros(len(problem.values), dtype=torch.bool, device=ball.device)
    rows = attacked
    change = torch.zeros_like(problem.values[rows])
    for _ in range(steps + 1):
        if not len(rows):
            break
        margin, gradient = problem.differentiate(problem.values[rows] + change, rows)
        result.passes[rows] += 2
        changed = margin < 0
        radius = problem.length(change)
        better = changed & (radius < result.radii[rows])
        result.update(rows[better], radius[better], change[better] if problem.keep else None)
        succeeded[rows[changed]] = True
        rows, change, gradient = (tensor[~changed] for tensor in (rows, change, gradient))
        bounds, longest = problem.bounds[rows], ball[rows, None]
        if problem.norm == "l2":
            moved = change - size * gradient / gradient.norm(dim=1, keepdim=True).clamp_min(1e-30)
            moved = moved * (longest / moved.norm(dim=1, keepdim=True).clamp_min(1e-30)).clamp_max(1.0)
        else:
            moved = torch.clamp(change - size * gradient.sign(), -longest, longest)
        change = bounds.clip(moved)
    return succeeded[attacked]
