"""L2X: the k features with the most mutual information with the model's answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pertinent.learners.base import Tensor, learned
from pertinent.learners.selection import SubsetExplainer, SubsetLearner
from pertinent.learners.subsets import approximation_loss, relaxed_subset

if TYPE_CHECKING:
    from pertinent.learners.networks.joint_networks import SelectionBatch


@dataclass(frozen=True)
class L2XLearner(SubsetLearner):
    r"""Trains an explainer and an approximator Q together, on a bound of the mutual information.

    .. math:: \max_{\theta, \alpha} \mathbb{E}_{X, \zeta}
        \sum_c P_m(c \mid X) \log Q_\alpha(c \mid V(\theta, \zeta) \odot X)

    V is the maximum of k samples of the Concrete distribution, close to k features at low temperatures.

    Parameters
    ----------
    k
        Number of features selected in each input, also in training; by default 10, but at most half of them.
    temperature
        The temperature of the relaxed samples.
    subsets
        The features that Q learns from: ``"random"`` ones, so that it can predict from any features, as the
        bound requires; or the ``"selected"`` ones, as in the paper's experiments, where the choice of
        features can encode the answer.
    """

    def compute_loss(self, batch: SelectionBatch) -> Tensor:
        """Return the loss of the approximator on a relaxed subset."""
        logits = batch.scores("explainer")[:, 0]
        kept = relaxed_subset(logits, batch.real, self.n_selected(batch.real), self.temperature)
        return approximation_loss(batch, kept, batch.predictions, self.subsets)


@learned.register("l2x")
@dataclass(frozen=True)
class L2X(SubsetExplainer):
    """The probability that a feature is drawn as one of the most informative about the model's answer.

    `fit` makes it, and asks the model only about whole inputs.

    Parameters
    ----------
    network
        The fitted network.

    Note
    ----
    Only the approximator learns to answer from some of the features; the model may answer differently.
    """

    learner = L2XLearner
    paper = "Chen et al. 2018"
    summary = "the features that tell most about the answer, by a network"
