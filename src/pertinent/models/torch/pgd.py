"""Projected gradient descent within balls, the attack of the paper."""

from __future__ import annotations

import torch

from pertinent.models.torch.projection_attack import Found, Problem


def pgd(problem: Problem, steps: int, largest: float, tolerance: float) -> Found:
    """Projected gradient descent in balls whose radius is found by bisection (Hsieh et al. 2021, App. C).

    Every iterate is looked at, not only the last, and the norm of the change is returned, not the
    radius of the ball.
    """
    found = Found.nothing(problem)
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
    problem: Problem, every: torch.Tensor, ball: torch.Tensor, found: Found, *, steps: int, size: float
) -> torch.Tensor:
    """Descend in each row's ball; whether an attack was found in it."""
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
