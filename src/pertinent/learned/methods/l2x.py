"""L2X: the k features that tell most about the model's answer, by a bound of the mutual information."""

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
from pertinent.learned.subsets import APPROXIMATOR, Subsets, approximation_loss, relaxed_subset
from pertinent.settings import Positive

if TYPE_CHECKING:
    from pertinent.learned.networks.joint_networks import SelectionBatch


@dataclass(frozen=True)
class LearnsL2X(LearnsSelection):
    r"""An explainer and an approximator Q, trained together: a bound of the mutual information.

    .. math:: \max_{\theta, \alpha} \mathbb{E}_{X, \zeta}
        \sum_c P_m(c \mid X) \log Q_\alpha(c \mid V(\theta, \zeta) \odot X)

    V is the maximum of k samples of the Concrete distribution, close to k features for low temperatures.

    Parameters
    ----------
    k
        The features that are selected of each input, in training as well; by default 10, but never more than
        half of them.
    temperature
        Of the relaxed samples.
    subsets
        What Q learns from: ``"random"`` features, so that it knows what follows from any of them, as the
        bound has it; or the ``"selected"`` ones, as in the paper's experiments, where a selection can tell
        the answer by itself, whatever is selected.
    """

    temperature: Positive = 0.5
    subsets: Subsets = "random"

    def networks(self) -> Layouts:
        """The explainer: x → log-probabilities of features; and Q."""
        return {"explainer": ScoringNetwork(), APPROXIMATOR: ApproximatingNetwork()}

    def compute_loss(self, batch: SelectionBatch) -> Tensor:
        """See what the approximator makes of a relaxed subset."""
        logits = batch.scores("explainer")[:, 0]
        kept = relaxed_subset(logits, batch.real, self.n_selected(batch.real), self.temperature)
        return approximation_loss(batch, kept, batch.predictions, self.subsets)


@learned.register("l2x")
@dataclass(frozen=True)
class L2X(SubsetExplainer):
    """The probability of every feature to be drawn, of those that tell most about the model's answer.

    `fit` makes it, and asks the model only about whole inputs.

    Parameters
    ----------
    network
        The fitted network.

    Note
    ----
    It is the approximator that learns to answer from some of the features: the model itself may answer
    otherwise.
    """

    learner = LearnsL2X
    paper = "Chen et al. 2018"
    summary = "the features that tell most about the answer, by a network"
