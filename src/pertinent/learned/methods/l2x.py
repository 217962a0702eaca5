"""L2X: the k features that tell most about the model's answer, by a bound of the mutual information."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pertinent.learned.base import Tensor, learned
from pertinent.learned.selection import (
    Approximation,
    LearnsSelection,
    Round,
    Scores,
    SubsetExplainer,
    relaxed_subset,
)
from pertinent.learned.subsets import APPROXIMATOR, Subsets, approximation_loss
from pertinent.settings import Positive


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

    def networks(self) -> Mapping[str, Scores | Approximation]:
        """The explainer: x → log-probabilities of features; and Q."""
        return {"explainer": Scores(), APPROXIMATOR: Approximation()}

    def compute_loss(self, round: Round) -> Tensor:
        """See what the approximator makes of a relaxed subset."""
        logits = round.scores("explainer")[:, 0]
        kept = relaxed_subset(logits, round.real, self.n_selected(round.real), self.temperature)
        return approximation_loss(round, kept, round.predictions, self.subsets)


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
