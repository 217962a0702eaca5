"""Greedy, Greedy-AS and One-Step Banzhaf: the features that matter most to an attacker."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.asks import PathGradients
from pertinent.config.settings import Count, ProperShare, Share
from pertinent.explainers.base import Finding, Steps, Task, explainers, n_kept
from pertinent.explainers.robustness.base import RobustnessExplainer, from_order, n_subsets
from pertinent.explainers.search.base import largest
from pertinent.masks import all_coalitions

MOST_EXACT = 10
"""Largest number of features d for which all subsets are attacked if `subsets` is at least 2^d."""


@dataclass(frozen=True)
class GreedyExplainer(RobustnessExplainer):
    """Base class of explainers that repeatedly choose the features that improve the criterion most."""

    def choose(self, task: Task, n_chosen: int, step_size: int, order: Ints, ratings: Floats) -> Steps:
        """Choose `step_size` features per step until `n_chosen` are chosen.

        `order` holds the features already chosen, `ratings` the ratings of all features. The search ends
        early if all subsets are equally good; the remaining features then have the same score.
        """
        d = task.n_features
        while len(order) < n_chosen:
            remaining = np.setdiff1d(np.arange(d), order)
            drawn, ratings = self.draw(task, len(remaining)), np.zeros(d)
            values = yield from self.values(task, join_subsets(order, remaining, drawn, d))
            if np.ptp(values) == 0:
                break
            ratings[remaining] = self.rate(drawn, values)
            best = remaining[np.argsort(-ratings[remaining], kind="stable")]
            order = np.concatenate([order, best[: min(step_size, n_chosen - len(order))]])
        if not len(order):
            yield from self.require_attack(task)
            return Finding(from_order(order, ratings))
        details = yield from self.ask_pertinence(task, np.isin(np.arange(d), order))
        return Finding(from_order(order, ratings), details=details)

    def draw(self, task: Task, n_remaining: int) -> Masks:
        """Return the subsets of the remaining features to evaluate."""
        return np.eye(n_remaining, dtype=np.bool_)

    def rate(self, drawn: Masks, values: Floats) -> Floats:
        """Return the rating of each remaining feature, from the subsets and their values."""
        return values


@explainers.register("greedy")
@dataclass(frozen=True)
class Greedy(GreedyExplainer):
    """Greedy choice of the features that each improve the criterion most (Sec. 4.1, Eqn. 5).

    Scores decrease in the order of choice. The search ends early if all remaining features are equally good;
    they then have the same score.

    Parameters
    ----------
    step
        Share of features chosen in each step, such as 0.05 (App. C); by default one feature.
    chosen
        Stop when this share of features is chosen.
    """

    paper = "Hsieh et al. 2021, Sec. 4.1, Eqn. 5"
    summary = "features chosen one by one, each making attacks hardest (or easiest)"
    step: Share | None = None
    chosen: Share = 0.5

    def evaluations(self, n_features: int) -> int:
        """Return the evaluations of one attack per remaining feature and step, plus one for pertinence."""
        chosen = range(0, n_kept(self.chosen, n_features), self._step_size(n_features))
        return (sum(n_features - n for n in chosen) + 1) * self.attack_settings.most_passes

    def explain(self, task: Task) -> Steps:
        """Choose features step by step."""
        d, order = task.n_features, np.empty(0, dtype=np.int64)
        return self.choose(task, n_kept(self.chosen, d), self._step_size(d), order, np.zeros(d))

    def _step_size(self, n_features: int) -> int:
        """Return the number of features chosen in each step."""
        return 1 if self.step is None else n_kept(self.step, n_features)


@explainers.register("greedy-as")
@dataclass(frozen=True)
class GreedyAS(GreedyExplainer):
    r"""Greedy choice by set aggregation scores (Sec. 4.2).

    In each step random subsets S of the unchosen features are added to the chosen ones, and a regression with
    intercept (Eqn. 6) estimates the contribution of each feature to the criterion, its Banzhaf value:

    .. math:: \min_{w, c} \sum_S \bigl(w^T b(S) + c - v(S_r \cup S)\bigr)^2

    The features with the largest w are chosen. Scores decrease in the order of choice. The search ends early
    if all subsets are equally good; the remaining features then have the same score.

    Parameters
    ----------
    subsets
        Number of random subsets in each step; by default 6 per feature, at most 5,000.
    step
        Share of features chosen in each step.
    share
        Probability that an unchosen feature is in a subset.
    chosen
        Stop when this share of features is chosen.
    start
        ``"nothing"``, or ``"gradient"`` to choose the features with the largest gradient in the first step.
    """

    paper = "Hsieh et al. 2021, Sec. 4.2, Eqn. 6"
    summary = "features whose fixing (or freeing) makes attacks hardest (or easiest), by regression"
    subsets: Count | None = None
    step: Share = 0.05
    share: ProperShare = 0.2
    chosen: Share = 0.5
    start: Literal["nothing", "gradient"] = "nothing"

    def evaluations(self, n_features: int) -> int:
        """Return the evaluations of the attacks in all steps, plus one for the pertinence."""
        steps = ceil(n_kept(self.chosen, n_features) / n_kept(self.step, n_features))
        return (steps * n_subsets(self.subsets, n_features) + 1) * self.attack_settings.most_passes + 2

    def explain(self, task: Task) -> Steps:
        """Choose features step by step."""
        d = task.n_features
        step_size = n_kept(self.step, d)
        order, ratings = np.empty(0, dtype=np.int64), np.zeros(d)
        if self.start == "gradient":
            answer = yield PathGradients(np.ones(1), task.target, times="itself")
            ratings = np.abs(answer.gradients[0])
            order = np.argsort(-ratings, kind="stable")[:step_size] if ratings.any() else order
        return (yield from self.choose(task, n_kept(self.chosen, d), step_size, order, ratings))

    def draw(self, task: Task, n_remaining: int) -> Masks:
        """Return random subsets."""
        return task.rng.random((n_subsets(self.subsets, task.n_features), n_remaining)) < self.share

    def rate(self, drawn: Masks, values: Floats) -> Floats:
        """Return the coefficients of the regression."""
        return contributions(drawn, values)


@explainers.register("one-step-banzhaf")
@dataclass(frozen=True)
class OneStepBanzhaf(RobustnessExplainer):
    """The first step of Greedy-AS: the Banzhaf value of each feature (Hsieh et al. 2021, App. E).

    Parameters
    ----------
    subsets
        Number of random subsets; by default 6 per feature, at most 5,000. With 2^d or more, and at most 10
        features, all subsets are used, which gives the exact value.
    share
        Probability that a feature is in a subset.
    """

    paper = "Hsieh et al. 2021, App. E; Hammer & Holzman 1992"
    summary = "each feature's contribution to robustness, by one regression on random subsets"
    subsets: Count | None = None
    share: ProperShare = 0.5

    def evaluations(self, n_features: int) -> int:
        """Return the evaluations of one attack per subset, plus one for the pertinence."""
        return (n_subsets(self.subsets, n_features) + 1) * self.attack_settings.most_passes

    def explain(self, task: Task) -> Steps:
        """Attack the subsets and fit the regression."""
        d, n = task.n_features, n_subsets(self.subsets, task.n_features)
        exact = d <= MOST_EXACT and n >= 2**d
        drawn = all_coalitions(d) if exact else task.rng.random((n, d)) < self.share
        values = yield from self.values(task, drawn)
        scores = contributions(drawn, values)
        relevant = largest(scores, n_kept(max(task.sparsities), d))
        return Finding(scores, details=(yield from self.ask_pertinence(task, relevant)))


def join_subsets(chosen: Ints, remaining: Ints, drawn: Masks, n_features: int) -> Masks:
    """Return the chosen features together with each subset of the remaining ones."""
    masks = np.zeros((len(drawn), n_features), dtype=np.bool_)
    masks[:, chosen] = True
    masks[:, remaining] = drawn
    return masks


def contributions(drawn: Masks, values: Floats) -> Floats:
    """Return the slopes of the regression of values on subsets (the minimum-norm solution)."""
    response = values - values.mean()
    if len(drawn) > 2 * drawn.shape[1] and drawn.any(axis=0).all() and not drawn.all(axis=0).any():
        members = drawn.astype(np.float32)  # exact for these counts, and twice as fast
        gram = (members.T @ members).astype(np.float64)
        mean = gram.diagonal() / len(drawn)
        with suppress(np.linalg.LinAlgError):  # faster than least squares and equally accurate here
            return np.asarray(np.linalg.solve(gram - len(drawn) * np.outer(mean, mean), response @ drawn))
    return np.asarray(np.linalg.lstsq(drawn - drawn.mean(axis=0), response, rcond=None)[0])
