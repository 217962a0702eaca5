r"""The smallest perturbations of chosen values that change a decision, of many rows at once.

A row's decision stands as long as all of its `margins` are positive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pertinent.errors import ModelError

OVERSHOOT, SETTLING = 0.02, 0.8
"""Distance behind the boundary to aim at, as a fraction of the first margin, and its factor in each step."""

FASTER, SLOWER = 1.3, 0.6
"""Factors of the part of a step that goes towards the input, if the last step helped and if it did not."""

ENOUGH, PATIENCE = 1e-3, 5
"""A row is done after `PATIENCE` successive steps that reduced its radius by less than `ENOUGH` of it."""

LEAVING = 10
"""Number of steps after which finished rows leave the batch; to find them one must wait for the device."""

_NEWTON_STEPS = 4

_FAR = 1e18
"""Farther than any bound, but finite, so that products with zero are zero."""


@dataclass(frozen=True, eq=False)
class ChangeBounds:
    """The lower and upper ends of changes, as one tensor (2, rows, values); ``None`` without bounds."""

    ends: Tensor | None = None

    def clip(self, change: Tensor) -> Tensor:
        """The nearest change within the bounds."""
        return change if self.ends is None else torch.clamp(change, *self.ends)

    def around(self, change: Tensor) -> ChangeBounds:
        """The bounds of what may be added to a change."""
        return ChangeBounds(None if self.ends is None else self.ends - change)

    def __getitem__(self, rows: Tensor) -> ChangeBounds:
        """The bounds of some of the rows."""
        return ChangeBounds(None if self.ends is None else self.ends[:, rows])


@dataclass(frozen=True, eq=False)
class AttackedRows:
    """The rows that are attacked, and the unperturbed points that they start from, which many rows share.

    Attributes
    ----------
    free
        The indices of the attacked rows: those with a value that may change.
    origin
        The index of the point that each row starts from.
    firsts
        The index of one row for each point.
    rivals
        The number of rivals that the first step compares: those with the least margins.
    """

    free: Tensor
    origin: Tensor
    firsts: Tensor
    rivals: int


@dataclass(frozen=True, eq=False)
class AttackProblem:
    """Rows of values (rows, values), of which the `free` ones may change within the bounds.

    Attributes
    ----------
    margins
        A function of points and the indices of their rows, which returns the margin of the decision over
        each of its rivals (points, rivals); infinite where there is no rival.
    rows
        The rows that are attacked.
    keep
        Whether the changes are returned, or only their norms.
    descended
        As `margins`; returns the margins and a score of each point (points,) that is descended in place of
        the least margin.
    """

    values: Tensor
    free: Tensor
    bounds: ChangeBounds
    margins: Callable[[Tensor, Tensor], Tensor]
    rows: AttackedRows
    norm: Literal["l2", "linf"] = "l2"
    keep: bool = True
    descended: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None

    def differentiate(self, points: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The least margin at each point, and the gradient, by the free values, of what is descended."""
        with torch.enable_grad():
            leaf = points.detach().requires_grad_()
            margins, score = (
                self.descended(leaf, rows) if self.descended else (self.margins(leaf, rows), None)
            )
            margin = margins.amin(dim=1)
            gradient = _gradient(margin if score is None else score, leaf)
        return margin.detach(), torch.where(self.free[rows], gradient, 0.0)

    def length(self, change: Tensor) -> Tensor:
        """The norm of the change of each row."""
        return change.norm(dim=1) if self.norm == "l2" else change.abs().amax(dim=1)

    def along(self, gradient: Tensor) -> Tensor:
        """The direction in which the smallest change lowers the margin most."""
        return gradient if self.norm == "l2" else gradient.sign()

    def nearest_rival(self) -> tuple[Tensor, Tensor]:
        """At the unperturbed values, the margin to the rival whose boundary seems nearest, and its gradient.

        The rival with the least margin need not be the nearest: the distance is the margin divided by the
        norm of the gradient, over the values that are free and not at their bound. Takes one backward pass
        for each rival of each point, not of each row.
        """
        with torch.enable_grad():
            leaf = self.values[self.rows.firsts].detach().requires_grad_()
            margins, _ = self.margins(leaf, self.rows.firsts).sort(dim=1)
            each = [
                _gradient(margins[:, k], leaf, retain_graph=True)
                for k in range(min(self.rows.rivals, margins.shape[1]))
            ]
        rows, margins = self.rows.free, margins.detach()
        origin, bounds, free = self.rows.origin[rows], self.bounds[rows], self.free[rows]
        margin, gradient = margins[origin, 0], torch.where(free, each[0][origin], 0.0)
        nearest = (margin / self._slope_length(gradient, bounds)).nan_to_num(nan=torch.inf, posinf=torch.inf)
        for k in range(1, len(each)):
            own, slope = margins[origin, k], torch.where(free, each[k][origin], 0.0)
            distance = own / self._slope_length(slope, bounds)
            nearer = distance < nearest
            nearest = torch.where(nearer, distance, nearest)
            margin = torch.where(nearer, own, margin)
            gradient = torch.where(nearer[:, None], slope, gradient)
        return margin, gradient

    def _slope_length(self, gradient: Tensor, bounds: ChangeBounds) -> Tensor:
        """The dual norm of a gradient over the values that have room to follow it downwards."""
        if bounds.ends is not None:
            room = torch.where(gradient > 0, bounds.ends[0], bounds.ends[1])
            gradient = torch.where(room != 0, gradient, 0.0)
        return gradient.norm(dim=1) if self.norm == "l2" else gradient.abs().sum(dim=1)


@dataclass(frozen=True, eq=False)
class AttackResult:
    """For each row: norm of the smallest change found (infinite: none), the change, and number of passes."""

    radii: Tensor
    changes: Tensor
    passes: Tensor

    @classmethod
    def from_problem(cls, problem: AttackProblem) -> AttackResult:
        """A result in which nothing is found yet."""
        n = len(problem.values)
        radii = problem.values.new_full((n,), torch.inf)
        passes = torch.zeros(n, dtype=torch.int64, device=radii.device)
        return cls(radii, torch.zeros_like(problem.values if problem.keep else problem.values[:, :0]), passes)

    def note(self, rows: Tensor, radii: Tensor, changes: Tensor | None) -> None:
        """Set the smallest norms and changes of these rows."""
        self.radii[rows] = radii
        if changes is not None:
            self.changes[rows] = changes


def _gradient(margin: Tensor, leaf: Tensor, *, retain_graph: bool = False) -> Tensor:
    """The gradient of the margin of each row, or an error if the model has none."""
    if not margin.requires_grad:
        raise ModelError(
            "The model's answers have no gradients, as after a comparison, rounding or `no_grad`: attack "
            "images and table rows with algorithm='decision', which needs answers alone."
        )
    (gradient,) = torch.autograd.grad(margin.sum(), leaf, retain_graph=retain_graph)
    return gradient


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return torch.einsum("ij,ij->i", a, b)


def project(problem: AttackProblem, gradient: Tensor, wanted: Tensor, bounds: ChangeBounds) -> Tensor:
    r"""The smallest change with gradient · change = wanted, within the bounds as far as they allow.

    A value changes by :math:`\min(\lambda, r)\,e`, where e is the gradient (L2) or its sign (L∞) and r how
    often e fits into the bounds. The product is concave in :math:`\lambda` and linear between the r, so
    Newton's steps approach the solution from below.
    """
    along = problem.along(gradient)
    weight = gradient * along
    along = torch.where(wanted[:, None] < 0, -along, along)
    wanted = wanted.abs()
    if bounds.ends is None:
        return along * _divided(wanted, weight.sum(dim=1))[:, None]
    room = torch.where(along < 0, bounds.ends[0], bounds.ends[1])
    reach = torch.where(along == 0, 0.0, room / along).clamp_max(_FAR)
    factor = torch.zeros_like(wanted)
    for _ in range(_NEWTON_STEPS):
        slope = torch.where(reach > factor[:, None], weight, 0.0).sum(dim=1)
        missing = wanted - _dot(weight, torch.minimum(reach, factor[:, None]))
        factor = factor + _divided(missing, slope)
    return bounds.clip(along * torch.minimum(reach, factor[:, None]))


def _divided(wanted: Tensor, slope: Tensor) -> Tensor:
    """The quotient, 0 where the slope is not positive."""
    return torch.where(slope > 0, wanted / slope, 0.0).clamp_max(_FAR)


def projection(problem: AttackProblem, steps: int) -> AttackResult:
    r"""Projections on the linearised boundary, in the manner of FAB (Croce & Hein 2020).

    At a change δ with margin L and gradient g the boundary is about where g · (δ′ − δ) = −L. A row moves
    to the point of it that is nearest to δ; once an attack is found, part of the way further, to the
    point that is nearest to the input. The part is adapted to each row.
    """
    found = AttackResult.from_problem(problem)
    rows = problem.rows.free
    if not len(rows):
        return found
    margin, gradient = problem.nearest_rival()
    behind = OVERSHOOT * margin.abs()
    values, bounds = problem.values[rows], problem.bounds[rows]
    change = project(problem, gradient, -margin - behind, bounds)
    best, part = torch.full_like(margin, torch.inf), torch.full_like(margin, 0.5)
    smallest = torch.zeros_like(change) if problem.keep else None
    stalled = torch.zeros_like(rows)
    for step in range(1, steps + 1):
        if step == steps:
            margin = problem.margins(values + change, rows).amin(dim=1)
        else:
            margin, gradient = problem.differentiate(values + change, rows)
        found.passes[rows] += 1 if step == steps else 2
        radius = problem.length(change)
        better = (margin < 0) & (radius < best)
        gained = better & (radius < best * (1 - ENOUGH))
        attacked = best.isfinite()
        best = torch.where(margin.isnan(), torch.nan, torch.where(better, radius, best))
        smallest = None if smallest is None else torch.where(better[:, None], change, smallest)
        if step == steps:
            break
        part = torch.where(attacked, torch.where(better, part * FASTER, part * SLOWER), part).clamp(0.02, 1.0)
        stalled = torch.where(gained | best.isinf(), 0, stalled + 1)
        behind = behind * SETTLING
        near = change + project(problem, gradient, -margin - behind, bounds.around(change))
        small = project(problem, gradient, _dot(gradient, change) - margin - behind, bounds)
        share = torch.where(best.isfinite(), part, 0.0)[:, None]
        change = bounds.clip(torch.lerp(near, small, share))
        if step % LEAVING == 0:
            found.note(rows, best, smallest)
            going = torch.nonzero((stalled < PATIENCE) & (gradient != 0).any(dim=1))[:, 0]
            rows, values, change, best, part, stalled, behind = (
                own[going] for own in (rows, values, change, best, part, stalled, behind)
            )
            smallest = None if smallest is None else smallest[going]
            bounds = bounds[going]
            if not len(rows):
                break
    found.note(rows, best, smallest)
    return found


def pgd(problem: AttackProblem, steps: int, largest: float, tolerance: float) -> AttackResult:
    """Projected gradient descent in balls whose radius is found by bisection (Hsieh et al. 2021, App. C).

    Every iterate is looked at, not only the last, and the norm of the change is returned, not the
    radius of the ball.
    """
    found = AttackResult.from_problem(problem)
    every = problem.rows.free
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
    problem: AttackProblem, every: Tensor, ball: Tensor, found: AttackResult, *, steps: int, size: float
) -> Tensor:
    """Descend in the ball of each row, and tell in which rows an attack was found."""
    succeeded = torch.zeros(len(problem.values), dtype=torch.bool, device=ball.device)
    rows = every
    change = torch.zeros_like(problem.values[rows])
    for _ in range(steps + 1):
        if not len(rows):
            break
        margin, gradient = problem.differentiate(problem.values[rows] + change, rows)
        found.passes[rows] += 2
        attacked = margin < 0
        radius = problem.length(change)
        better = attacked & (radius < found.radii[rows])
        found.note(rows[better], radius[better], change[better] if problem.keep else None)
        succeeded[rows[attacked]] = True
        rows, change, gradient = (own[~attacked] for own in (rows, change, gradient))
        bounds, longest = problem.bounds[rows], ball[rows, None]
        if problem.norm == "l2":
            moved = change - size * gradient / gradient.norm(dim=1, keepdim=True).clamp_min(1e-30)
            share = (longest / moved.norm(dim=1, keepdim=True).clamp_min(1e-30)).clamp_max(1.0)
            change = bounds.clip(moved * share)
        else:
            moved = change - size * gradient.sign()
            change = bounds.clip(torch.clamp(moved, -longest, longest))
    return succeeded[every]
