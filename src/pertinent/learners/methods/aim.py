"""AIM: weights of all features for all classes, learned from the model's answers to parts of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pertinent.config.settings import NotNegative, Positive, ShareOrZero
from pertinent.errors import require
from pertinent.explainers.base import Finding, Steps, Task
from pertinent.learners.base import LearnedClasses, Tensor, learned
from pertinent.learners.selection import (
    ApproximatingNetwork,
    Layouts,
    ScoringNetwork,
    SelectionExplainer,
    SelectionLearner,
    probability,
    selecting,
)
from pertinent.learners.subsets import cross_entropy, one_hot, random_subset, uniform_like

if TYPE_CHECKING:
    from pertinent.learners.networks.joint_networks import SelectionBatch

SCALINGS = 10
"""Rounds of iterative scaling, after which intercepts hardly change."""

ALIVE = (0.02, 0.98)
"""The range of the mean keep-probability π of a selector that tells features apart."""

UNUSED = {
    "explainer": ("alpha", "temperature", "explore", "infer"),
    "both": (),
    "selector": ("beta", "context", "explore", "infer", "learns_from", "intercept", "centring", "sizes"),
}
"""The settings that have no effect, by which networks are trained."""


@dataclass(frozen=True)
class AIMLearner(SelectionLearner):
    r"""An explainer, alone or with a selector and an approximator (Eqn. 5).

    .. math:: \min_\theta \mathcal{L}_1 + \alpha \mathcal{L}_2 + \beta \, \mathbb{E}_x \|W_x\|_{2,1}

    Parameters
    ----------
    trained
        The ``"explainer"`` alone, by neighbours of random features (App. D.3); ``"both"`` it and a selector
        that learns to keep what the decision rests on, as in the paper; or the ``"selector"`` alone
        (App. D.2).
    beta
        The weight of the norm of the weights, by which few features have any.
    context
        Whether a word's weights depend on the words around it; in the paper they do not.
    alpha
        With a selector, the weight of the approximator's loss (Eqn. 4).
    temperature
        With a selector, that of the relaxed Bernoulli variables.
    explore
        With both, the share of inputs whose neighbours keep a random number of random features, not the
        selector's. With 0, as in the paper, the weights of features that it drops are hardly learned.
    infer
        With both, from the ``"explainer"`` or from the ``"selector"`` (App. D.1).
    learns_from
        The model's ``"probabilities"`` for a neighbour, or as in the paper its ``"decisions"``, 1 for the
        class it decides for and 0 for others. Decisions tell less: weights of a linear model are found worse.
    intercept
        Whether the explainer's linear classifier has an intercept; in the paper it has none.
    centring
        Whether weights are relative to their mean over classes; in the paper they are not.
    sizes
        Number of features in random neighbours: ``"mostly-few"``, or ``"uniform"`` as in the paper
        (App. D.3).
    layers
        ``"own"``, or for texts ``"paper"``, the networks of the paper's App. A with random embeddings: a
        bidirectional LSTM with context, three dense layers without.
    """

    spec = replace(SelectionLearner.spec, classes=("predicted", "all"))
    trained: Literal["explainer", "both", "selector"] = "explainer"
    beta: NotNegative = 1e-3
    context: bool = True
    alpha: NotNegative = 1.0
    temperature: Positive = 0.2
    explore: ShareOrZero = 0.5
    infer: Literal["explainer", "selector"] = "explainer"
    learns_from: Literal["probabilities", "decisions"] = "probabilities"
    intercept: bool = True
    centring: bool = True
    sizes: Literal["mostly-few", "uniform"] = "mostly-few"
    layers: Literal["own", "paper"] = "own"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        for name in UNUSED[self.trained]:
            own = getattr(self, name)
            require(own == getattr(AIMLearner, name), name, f"left out with trained={self.trained!r}", own)

    def networks(self) -> Layouts:
        """E : x → W (features × classes), S : x → π (features), and G."""
        networks: dict[str, ScoringNetwork | ApproximatingNetwork] = {}
        if self.trained != "selector":
            options = {"context": self.context, "bias": self.layers == "paper"}
            networks["explainer"] = ScoringNetwork(columns=None, layers=self.layers, **options)
        if self.trained != "explainer":
            networks |= {
                "selector": ScoringNetwork(layers=self.layers),
                "approximator": ApproximatingNetwork(),
            }
        return networks

    @property
    def answering(self) -> str:  # type: ignore[override]
        """The network that is inferred from."""
        return self.infer if self.trained == "both" else self.trained

    @property
    def classes(self) -> tuple[LearnedClasses, ...]:
        """The explainer has scores of all classes, the selector of none in particular."""
        return ("all",) if self.answering == "explainer" else ("predicted",)

    def compute_loss(self, batch: SelectionBatch) -> Tensor:
        """Eqn. 5: sample the neighbourhood, ask the model about it, and fit the networks to it."""
        loss = 0.0
        neighbours = random_subset(batch.real, mostly_few=self.sizes == "mostly-few")
        if self.trained != "explainer":
            samples = self._relaxed(batch.scores("selector")[:, 0]) * batch.real
            logits = batch.approximate("approximator", samples)
            loss = self.alpha * cross_entropy(one_hot(batch.predictions), logits).mean()  # Eqn. 4
            neighbours = neighbours.where(uniform_like(samples[:, :1]) < self.explore, samples)
        if self.trained != "selector":
            weights = self._weights(batch.scores("explainer"))
            answers = batch.ask(neighbours > 0.5)
            decided = one_hot(answers) if self.learns_from == "decisions" else answers
            logits = (weights * neighbours[:, None]).sum(-1)
            if self.intercept:
                logits = logits + intercepts(decided, logits)
            loss = loss + cross_entropy(decided, logits).mean()  # Eqn. 2
            loss = loss + self.beta * weights.square().sum(1).add(1e-12).sqrt().mul(batch.real).sum(-1).mean()
        return loss

    def selected(self, scores: Tensor, real: Tensor, predictions: Tensor) -> Tensor:
        """By weights as they are explained."""
        return super().selected(self._weights(scores), real, predictions)

    def watched(self, batch: SelectionBatch) -> dict[str, Tensor]:
        """The mean keep-probability π of each input's features."""
        if self.trained == "explainer":
            return {}
        kept = batch.scores("selector")[:, 0].sigmoid() * batch.real
        return {"kept": kept.sum(-1) / batch.real.sum(-1)}

    def doubt(self, described: Mapping[str, float]) -> str | None:
        """Say so if the selector keeps nothing or everything."""
        kept = described.get("dev_kept", 0.5)
        if ALIVE[0] < kept < ALIVE[1]:
            return None
        return f"The selector does not select: it keeps {kept:.1%} of the features."

    def _weights(self, scores: Tensor) -> Tensor:
        """The weights of features, from the scores of the explainer."""
        return centred(scores) if self.centring else scores

    def _relaxed(self, logits: Tensor) -> Tensor:
        """Samples of the Concrete distribution: π is the sigmoid of the selector's logits."""
        uniform = uniform_like(logits)
        return ((logits + uniform.log() - (1 - uniform).log()) / self.temperature).sigmoid()


def centred(weights: Tensor) -> Tensor:
    """Weights (rows, classes, width) that sum to zero over classes, which changes no prediction.

    What all classes have in common says nothing, and would stay as it was at random in the beginning.
    """
    return weights - weights.mean(1, keepdim=True) if weights.shape[1] > 1 else weights


def intercepts(decided: Tensor, logits: Tensor) -> Tensor:
    """The constants (classes,) with which the logits of a batch predict each class as often as it is decided.

    They are the best intercepts of a softmax regression, by iterative scaling.
    """
    found, least = logits.new_zeros(logits.shape[1]), 0.5 / len(logits)
    often = decided.mean(0).clamp(min=least).log()
    for _ in range(SCALINGS):
        found = found + often - (logits.detach() + found).softmax(-1).mean(0).clamp(min=least).log()
    return found


@learned.register("aim")
@dataclass(frozen=True)
class AIM(SelectionExplainer):
    r"""The weights :math:`W_x` of every feature for every class, by one pass of a network.

    `fit` makes it. :math:`W_x^T z` is a linear classifier that answers like the model near the input, with
    the features in z alone.

    Parameters
    ----------
    network
        The fitted network.

    Note
    ----
    The paper's neighbours come from a selector. Here they keep random features, most of them few (in App. D.3
    sizes are uniform), which takes less time and was more faithful on texts and tables; with
    ``trained="both"`` there is a selector, and random neighbours beside its own. Ours are also: learning from
    probabilities, by which words of known weight are found better; an intercept, without which the weights
    have to say what is decided when nothing is known; weights that sum to zero over classes; and layers
    without biases, so that a word never seen has no weight of its own. The model is asked about features that
    are kept or removed, not about relaxed ones, so that it may be any model. The temperature is inside the
    exponent, and the norm has a group for each feature, as in the paper and not in its code.
    """

    learner = AIMLearner
    paper = "Vo et al. 2023, Eqn. 2, 4 and 5"
    summary = "weights for every class by a network, learned from answers to parts of inputs"

    def explain(self, task: Task) -> Steps:
        """Predict, relative to the mean of all classes if it was fitted so."""
        found = yield from super().explain(task)
        assert found.scores is not None
        if found.scores.ndim == 2:
            centring = self.network.card["settings"]["centring"]
            return Finding(found.scores - found.scores.mean(axis=0) if centring else found.scores)
        return selecting(probability(found.scores))
