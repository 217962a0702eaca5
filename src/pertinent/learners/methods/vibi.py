"""VIBI: a few features that predict the model's decision and reveal little else about the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pertinent.config.settings import NotNegative
from pertinent.learners.base import Tensor, learned
from pertinent.learners.selection import SubsetExplainer, SubsetLearner
from pertinent.learners.subsets import approximation_loss, one_hot, relaxed_subset

if TYPE_CHECKING:
    from pertinent.learners.networks.joint_networks import SelectionBatch


@dataclass(frozen=True)
class VIBILearner(SubsetLearner):
    r"""Trains an explainer and an approximator q jointly on the bound of the information bottleneck.

    .. math:: \min \; \mathbb{E}_x \mathbb{E}_z [-\log q(y \mid x \odot z)]
        + \beta \, \mathbb{E}_x D_{KL}(p(z \mid x) \,\|\, r(z))

    y is the model's decision, z consists of k independent draws of a feature, and r draws all features with
    equal probability.

    Parameters
    ----------
    k
        Number of features selected per input, also in training; by default 10, but at most half of the
        features.
    beta
        Weight of compression: the larger it is, the less the selection reveals about x.
    temperature
        Temperature of the relaxed samples.
    subsets
        Features that q learns from: ``"random"``, or ``"selected"`` as in the paper, where the choice of
        features can encode the decision.
    """

    beta: NotNegative = 1e-3

    def compute_loss(self, batch: SelectionBatch) -> Tensor:
        """Return the sum of both terms of the bound."""
        logits, k = batch.scores("explainer")[:, 0], self.n_selected(batch.real)
        kept = relaxed_subset(logits, batch.real, k, self.temperature)
        informed = approximation_loss(batch, kept, one_hot(batch.predictions), self.subsets)
        return informed + self.beta * (k * divergence_from_uniform(logits, batch.real)).mean()


@learned.register("vibi")
@dataclass(frozen=True)
class VIBI(SubsetExplainer):
    """The probability of drawing each feature as informative about the decision and little else.

    Created by `fit`, which evaluates the model only on whole inputs.

    Parameters
    ----------
    network
        The fitted network.

    Note
    ----
    The divergence is that of p(z | x) from r(z), as in the paper; the authors' code computes the reverse.
    """

    learner = VIBILearner
    paper = "Bang et al. 2021"
    summary = "the features that reveal the decision and little else, by a network"


def divergence_from_uniform(logits: Tensor, real: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence (rows,) of softmax(logits) from the uniform distribution."""
    log_p = logits.masked_fill(~real, -1e9).log_softmax(-1)
    return (log_p.exp() * log_p).sum(-1) + real.sum(-1).log()
