"""VIBI: few features that tell the model's decision, and as little else about the input as possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pertinent.learned.base import Tensor, learned
from pertinent.learned.selection import (
    ApproximatingNetwork,
    Layouts,
    LearnsSelection,
    ScoringNetwork,
    SubsetExplainer,
)
from pertinent.learned.subsets import APPROXIMATOR, Subsets, approximation_loss, one_hot, relaxed_subset
from pertinent.settings import NotNegative, Positive

if TYPE_CHECKING:
    from pertinent.learned.networks.joint_networks import SelectionBatch


@dataclass(frozen=True)
class LearnsVIBI(LearnsSelection):
    r"""An explainer and an approximator q, trained together: the bound of the information bottleneck.

    .. math:: \min \; \mathbb{E}_x \mathbb{E}_z [-\log q(y \mid x \odot z)]
        + \beta \, \mathbb{E}_x D_{KL}(p(z \mid x) \,\|\, r(z))

    y is the model's decision, z consists of k independent draws of a feature, and r draws all features alike.

    Parameters
    ----------
    k
        The features that are selected of each input, in training as well; by default 10, but never more than
        half of them.
    beta
        The weight of compression: the larger, the less is known about x from what is selected.
    temperature
        Of the relaxed samples.
    subsets
        What q learns from: ``"random"`` features, or the ``"selected"`` ones as in the paper, where a
        selection can tell the decision by itself, whatever is selected.
    """

    beta: NotNegative = 1e-3
    temperature: Positive = 0.5
    subsets: Subsets = "random"

    def networks(self) -> Layouts:
        """The explainer: x → log p(z | x); and q."""
        return {"explainer": ScoringNetwork(), APPROXIMATOR: ApproximatingNetwork()}

    def compute_loss(self, batch: SelectionBatch) -> Tensor:
        """Both parts of the bound."""
        logits, k = batch.scores("explainer")[:, 0], self.n_selected(batch.real)
        kept = relaxed_subset(logits, batch.real, k, self.temperature)
        informed = approximation_loss(batch, kept, one_hot(batch.predictions), self.subsets)
        return informed + self.beta * (k * divergence_from_uniform(logits, batch.real)).mean()


@learned.register("vibi")
@dataclass(frozen=True)
class VIBI(SubsetExplainer):
    """The probability of every feature to be drawn, of those that tell the decision and little else.

    `fit` makes it, and asks the model only about whole inputs.

    Parameters
    ----------
    network
        The fitted network.

    Note
    ----
    The divergence is that of p(z | x) from r(z), as in the paper; its code has them the other way batch.
    """

    learner = LearnsVIBI
    paper = "Bang et al. 2021"
    summary = "the features that tell the decision and little else, by a network"


def divergence_from_uniform(logits: Tensor, real: Tensor) -> Tensor:
    """The Kullback-Leibler divergence (rows,) of softmax(logits) from all real features being alike."""
    log_p = logits.masked_fill(~real, -1e9).log_softmax(-1)
    return (log_p.exp() * log_p).sum(-1) + real.sum(-1).log()
