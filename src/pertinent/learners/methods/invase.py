"""INVASE: which and how many features to select, learned by an actor and a critic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pertinent.config.settings import NotNegative
from pertinent.explainers.base import Steps, Task
from pertinent.learners import selection
from pertinent.learners.base import LearnedExplainer, Tensor, learned
from pertinent.learners.selection import ApproximatingNetwork, Layouts, ScoringNetwork, SelectionLearner
from pertinent.learners.subsets import (
    Subsets,
    cross_entropy,
    log_probability,
    one_hot,
    random_subset,
    uniform_like,
)

if TYPE_CHECKING:
    from pertinent.learners.networks.joint_networks import SelectionBatch


@dataclass(frozen=True)
class INVASELearner(SelectionLearner):
    r"""Trains a selector π, a predictor that sees selected features, and a baseline that sees all features.

    The selector follows the policy gradient of

    .. math:: \mathbb{E}_{s \sim \pi(x)} [\mathrm{CE}(y, f^\phi(x \odot s)) - \mathrm{CE}(y, f^\gamma(x))]
        + \lambda \, \mathbb{E} \|s\|_0 / d

    where y is the model's decision. The selection s is not relaxed, so no gradient flows through it.

    Parameters
    ----------
    penalty
        λ, the cost of selecting all features, shared equally among them.
    subsets
        Features that the predictor learns from: ``"random"``, or ``"selected"`` as in the paper, where the
        choice of features can encode the decision.
    """

    answering = "selector"
    penalty: NotNegative = 0.1
    subsets: Subsets = "random"

    def networks(self) -> Layouts:
        """Return the selector (x → logits of π), the predictor and the baseline."""
        return {
            "selector": ScoringNetwork(),
            "predictor": ApproximatingNetwork(),
            "baseline": ApproximatingNetwork(),
        }

    def compute_loss(self, batch: SelectionBatch) -> Tensor:
        """Return the sum of the three networks' losses; they share no weights."""
        logits, real = batch.scores("selector")[:, 0], batch.real
        selected = (uniform_like(logits) < logits.sigmoid()) & real
        decided = one_hot(batch.predictions)
        baseline = cross_entropy(decided, batch.approximate("baseline", real.float()))
        predictor = on_selected = cross_entropy(decided, batch.approximate("predictor", selected.float()))
        if self.subsets == "random":
            predictor = cross_entropy(decided, batch.approximate("predictor", random_subset(real)))
        regret = (on_selected - baseline).detach()
        actor = regret * log_probability(logits, selected, real) + self.penalty * share_selected(logits, real)
        return (actor + predictor + baseline).mean()


@learned.register("invase")
@dataclass(frozen=True)
class INVASE(LearnedExplainer):
    """The probability π of each feature being selected.

    Created by `fit`, which evaluates the model only on whole inputs. Features above 0.5 are selected.

    Parameters
    ----------
    network
        The fitted network.

    Note
    ----
    As in the paper's code, λ is the cost of all features together, so its meaning does not depend on their
    number. Its gradient is exact instead of sampled.
    """

    learner = INVASELearner
    paper = "Yoon et al. 2019"
    summary = "the probability that a feature is needed, by an actor and a critic"
    traits = replace(LearnedExplainer.traits, meaning="magnitude")

    def explain(self, task: Task) -> Steps:
        """Predict the probabilities as the sigmoid of the network's outputs."""
        return selection.finding(selection.probability((yield from self.predict(task))[0]))


def share_selected(logits: Tensor, real: Tensor) -> Tensor:
    """Return the expected share (rows,) of real features that are selected."""
    return logits.sigmoid().masked_fill(~real, 0.0).sum(-1) / real.sum(-1)
