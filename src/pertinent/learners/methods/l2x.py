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
    r"""Trains an explainer and an approximator Q jointly on a lower bound of the mutual information.

    .. math:: \max_{\theta, \alpha} \mathbb{E}_{X, \zeta}
        \sum_c P_m(c \mid X) \log Q_\alpha(c \mid V(\theta, \zeta) \odot X)

    V is the maximum of k samples of the Concrete distribution, which is close to k features at low
    temperatures.

    Parameters
    ----------
    k
        Number of features selected per input, also in training; by default 10, but at most half of the
        features.
    temperature
        Temperature of the relaxed samples.
    subsets
        Features that Q learns from: ``"random"``, so it can predict from any features, as the bound requires;
        or ``"selected"``, as in the paper's experiments, where the choice of features can encode the answer.
    """

    def compute_loss(self, batch: SelectionBatch) -> Tensor:
        """Return the approximator's loss on a relaxed subset."""
        logits = batch.scores("explainer")[:, 0]
        kept = relaxed_subset(logits, batch.real, self.n_selected(batch.real), self.temperature)
        return approximation_loss(batch, kept, batch.predictions, self.subsets)


@learned.register("l2x")
@dataclass(frozen=True)
class L2X(SubsetExplainer):
    """The probability of drawing each feature as one of the most informative about the model's answer.

    Created by `fit`, which evaluates the model only on whole inputs.

    Parameters
    ----------
    network
        The fitted network.

    Note
    ----
    Only the approximator learns to answer from some features; the model may answer differently.
    """

    learner = L2XLearner
    paper = "Chen et al. 2018"
    summary = "the features that reveal most about the answer, by a network"
