"""Greedy, Greedy-AS and One-Step Banzhaf: the features that matter most to an attacker."""

from __future__ import annotations

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
"""Largest number of features d for which all subsets are attacked, if `subsets` is at least 2^d."""


@dataclass(frozen=True)
class GreedyExplainer(RobustnessExplainer):
    """Chooses features step by step, each time those that improve the criterion most."""

    def choose(self, task: Task, wanted: int, each: int, order: Ints, rest: Floats) -> Steps:
        """Choose `each` features in every step until `wanted` are chosen.

        `order` are the features already chosen, and `rest` the ratings of all features. It ends early if all
        subsets are equally good; the features left then have the same score.
        """
        d = task.n_features
        while len(order) < wanted:
            left = np.setdiff1d(np.arange(d), order)
            drawn, rest = self.draw(task, len(left)), np.zeros(d)
            values = yield from self.values(task, joined(order, left, drawn, d))
            if np.ptp(values) == 0:
                break
            rest[left] = self.rate(drawn, values)
            best = left[np.argsort(-rest[left], kind="stable")]
            order = np.concatenate([order, best[: min(each, wanted - len(order))]])
        if not len(order):
            yield from self.need_an_attack(task)
            return Finding(from_order(order, rest))
        details = yield from self.pertinence_of(task, np.isin(np.arange(d), order))
        return Finding(from_order(order, rest), details=details)

    def draw(self, task: Task, n_left: int) -> Masks:
        """The subsets of the features left whose values are asked for."""
        return np.eye(n_left, dtype=np.bool_)

    def rate(self, drawn: Masks, values: Floats) -> Floats:
        """The rating of each feature left, from the subsets and their values."""
        return values


@explainers.register("greedy")
@dataclass(frozen=True)
class Greedy(GreedyExplainer):
    """In each step the features that improve the criterion most, each alone (Sec. 4.1, Eqn. 5).

    Scores fall with the order of choice. It ends early where all features left are equally good; those have
    the same score.

    Parameters
    ----------
    step
        The share of features chosen in each step, as 0.05 (App. C); by default one feature.
    chosen
        Stop when this share of features is chosen.
    """

    paper = "Hsieh et al. 2021, Sec. 4.1, Eqn. 5"
    summary = "one feature after the other, each making attacks hardest (or easiest)"
    step: Share | None = None
    chosen: Share = 0.5

    def evaluations(self, n_features: int) -> int:
        """An attack for every feature left, in every step, and one for the pertinence."""
        chosen = range(0, n_kept(self.chosen, n_features), self._each(n_features))
        return (sum(n_features - n for n in chosen) + 1) * self.attack_settings.most_passes

    def explain(self, task: Task) -> Steps:
        """Choose step by step."""
        d = task.n_features
        nothing = np.empty(0, dtype=np.int64)
        return self.choose(task, n_kept(self.chosen, d), self._each(d), nothing, np.zeros(d))

    def _each(self, n_features: int) -> int:
        """Number of features chosen in each step."""
        return 1 if self.step is None else n_kept(self.step, n_features)


@explainers.register("greedy-as")
@dataclass(frozen=True)
class GreedyAS(GreedyExplainer):
    r"""Greedy choice by set aggregation scores (Sec. 4.2).

    In each step random subsets S of the unchosen features join the chosen ones, and a regression with
    intercept (Eqn. 6) tells what each feature contributes to the criterion, its Banzhaf value:

    .. math:: \min_{w, c} \sum_S \bigl(w^T b(S) + c - v(S_r \cup S)\bigr)^2

    The features with the largest w are chosen. Scores fall with the order of choice. It ends early where all
    subsets are equally good; the features left have the same score.

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
        return (steps * n_subsets(self.subsets, n_features) + 1) * self.attack_settings.most_passes + 2

    def explain(self, task: Task) -> Steps:
        """Choose step by step."""
        d = task.n_features
        each, wanted = n_kept(self.step, d), n_kept(self.chosen, d)
        order, rest = np.empty(0, dtype=np.int64), np.zeros(d)
        if self.start == "gradient":
            found = yield PathGradients(np.ones(1), task.target, times="itself")
            rest = np.abs(found.gradients[0])
            order = np.argsort(-rest, kind="stable")[:each] if rest.any() else order
        return (yield from self.choose(task, wanted, each, order, rest))

    def draw(self, task: Task, n_left: int) -> Masks:
        """Random subsets."""
        return task.rng.random((n_subsets(self.subsets, task.n_features), n_left)) < self.share

    def rate(self, drawn: Masks, values: Floats) -> Floats:
        """By the regression."""
        return contributions(drawn, values)


@explainers.register("one-step-banzhaf")
@dataclass(frozen=True)
class OneStepBanzhaf(RobustnessExplainer):
    """The first step of Greedy-AS alone: the Banzhaf value of each feature (Hsieh et al. 2021, App. E).

    Parameters
    ----------
    subsets
        Random subsets; by default 6 for each feature, at most 5,000. With 2^d or more, and at most 10
        features, all subsets, which gives the exact value.
    share
        The probability with which a feature is in a subset.
    """

    paper = "Hsieh et al. 2021, App. E; Hammer & Holzman 1992"
    summary = "what each feature contributes to robustness, by one regression on random subsets"
    subsets: Count | None = None
    share: ProperShare = 0.5

    def evaluations(self, n_features: int) -> int:
        """An attack for every subset, and one for the pertinence."""
        return (n_subsets(self.subsets, n_features) + 1) * self.attack_settings.most_passes

    def explain(self, task: Task) -> Steps:
        """Attack, and regress."""
        d, n = task.n_features, n_subsets(self.subsets, task.n_features)
        exact = d <= MOST_EXACT and n >= 2**d
        drawn = all_coalitions(d) if exact else task.rng.random((n, d)) < self.share
        values = yield from self.values(task, drawn)
        scores = contributions(drawn, values)
        relevant = largest(scores, n_kept(max(task.sparsities), d))
        return Finding(scores, details=(yield from self.pertinence_of(task, relevant)))


def joined(chosen: Ints, left: Ints, drawn: Masks, n_features: int) -> Masks:
    """The chosen features together with each subset of those left."""
    masks = np.zeros((len(drawn), n_features), dtype=np.bool_)
    masks[:, chosen] = True
    masks[:, left] = drawn
    return masks


def contributions(drawn: Masks, values: Floats) -> Floats:
    """The slopes of the regression of values on subsets, with intercept; the solution of smallest norm."""
    response = values - values.mean()
    if len(drawn) > 2 * drawn.shape[1] and drawn.any(axis=0).all() and not drawn.all(axis=0).any():
        members = drawn.astype(np.float32)  # exact for these counts, and twice as fast
        together = (members.T @ members).astype(np.float64)
        mean = together.diagonal() / len(drawn)
        try:  # much faster than least squares, and as accurate, since the design is well conditioned
            return np.asarray(np.linalg.solve(together - len(drawn) * np.outer(mean, mean), response @ drawn))
        except np.linalg.LinAlgError:
            pass
    return np.asarray(np.linalg.lstsq(drawn - drawn.mean(axis=0), response, rcond=None)[0])
