"""Greedy-AS: the features whose aggregated contribution to robustness is largest, a few at a time."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks import PathGradients
from pertinent.explainers.base import Finding, Steps, Task, explainers, n_kept
from pertinent.explainers.robustness.base import RobustnessExplainer, from_order, n_subsets
from pertinent.explainers.robustness.pertinence import pertinence_of
from pertinent.settings import Count, ProperShare, Share


@explainers.register("greedy-as")
@dataclass(frozen=True)
class GreedyAS(RobustnessExplainer):
    r"""Greedy choice by set aggregation scores (Sec. 4.2).

    In each step random subsets S of the unchosen features join the chosen ones, and a regression with
    intercept (Eqn. 6) tells what each feature contributes to the criterion, its Banzhaf value:

    .. math:: \min_{w, c} \sum_S \bigl(w^T b(S) + c - v(S_r \cup S)\bigr)^2

    The features with the largest w are chosen. Scores fall with the order of choice. It ends early where all
    subsets are as good; the features left have the same score.

    Parameters
    ----------
    subsets
        Random subsets in each step; by default 6 for each feature, at most 5,000.
    step
        The share of features chosen in each step.
    share
        The probability with which an unchosen feature is in a subset.
    chosen
        Stop when this share of features is chosen.
    start
        ``"nothing"``, or ``"gradient"``: the first step takes the features with the largest gradient.
    """

    paper = "Hsieh et al. 2021, Sec. 4.2, Eqn. 6"
    summary = "features whose fixing (or freeing) makes attacks hardest (or easiest), by regression"
    subsets: Count | None = None
    step: Share = 0.05
    share: ProperShare = 0.2
    chosen: Share = 0.5
    start: Literal["nothing", "gradient"] = "nothing"

    def evaluations(self, n_features: int) -> int:
        """The attacks of all steps, if none ends early, and one for the pertinence."""
        wanted = n_kept(self.chosen, n_features)
        steps = ceil(wanted / n_kept(self.step, n_features))
        return (steps * n_subsets(self.subsets, n_features) + 1) * self.how.most_passes + 2

    def explain(self, task: Task) -> Steps:
        """Choose step by step."""
        d = task.n_features
        each, wanted = n_kept(self.step, d), n_kept(self.chosen, d)
        order = np.empty(0, dtype=np.int64)
        rest = np.zeros(d)
        if self.start == "gradient":
            found = yield PathGradients(np.ones(1), task.target, times="itself")
            rest = np.abs(found.gradients[0])
            order = np.argsort(-rest, kind="stable")[:each] if rest.any() else order
        while len(order) < wanted:
            left = np.setdiff1d(np.arange(d), order)
            drawn = task.rng.random((n_subsets(self.subsets, d), len(left))) < self.share
            values = yield from self.values(task, joined(order, left, drawn, d))
            rest = np.zeros(d)
            if np.ptp(values) == 0:
                break
            rest[left] = contributions(drawn, values)
            best = left[np.argsort(-rest[left], kind="stable")]
            order = np.concatenate([order, best[: min(each, wanted - len(order))]])
        if not len(order):
            yield from self.need_an_attack(task)
            return Finding(from_order(order, rest))
        details = yield from pertinence_of(self, task, np.isin(np.arange(d), order))
        return Finding(from_order(order, rest), details=details)


def joined(chosen: Ints, left: Ints, drawn: Masks, n_features: int) -> Masks:
    """The chosen features together with each subset of those left."""
    masks = np.zeros((len(drawn), n_features), dtype=np.bool_)
    masks[:, chosen] = True
    masks[:, left] = drawn
    return masks


def contributions(drawn: Masks, values: Floats) -> Floats:
    """The slopes of the regression of values on subsets, with intercept; of many solutions the smallest."""
    response = values - values.mean()
    if len(drawn) > 2 * drawn.shape[1] and drawn.any(axis=0).all() and not drawn.all(axis=0).any():
        members = drawn.astype(np.float32)  # counts of subsets are exact in it, and it is twice as fast
        together = (members.T @ members).astype(np.float64)
        mean = together.diagonal() / len(drawn)
        try:  # many times as fast as least squares, and as exact for a design as well conditioned as this
            return np.asarray(np.linalg.solve(together - len(drawn) * np.outer(mean, mean), response @ drawn))
        except np.linalg.LinAlgError:
            pass
    return np.asarray(np.linalg.lstsq(drawn - drawn.mean(axis=0), response, rcond=None)[0])
