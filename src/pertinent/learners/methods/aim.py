"""AIM: weights of all features for all classes, learned from the model's answers to feature subsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pertinent.config.settings import NotNegative, Positive, ShareOrZero
from pertinent.errors import require
from pertinent.explainers.base import Finding, Steps, Task
from pertinent.learners import selection
from pertinent.learners.base import LearnedClasses, LearnedExplainer, Tensor, learned
from pertinent.learners.score_arrays import squeeze_columns
from pertinent.learners.selection import ApproximatingNetwork, Layouts, ScoringNetwork, SelectionLearner
from pertinent.learners.subsets import cross_entropy, one_hot, random_subset, uniform_like

if TYPE_CHECKING:
    from pertinent.learners.networks.joint_networks import SelectionBatch

ROUNDS = 10
"""Number of iterative scaling rounds, after which intercepts hardly change."""

ALIVE = (0.02, 0.98)
"""Range of mean keep-probabilities π for which a selector distinguishes features."""

UNUSED = {
    "explainer": ("alpha", "temperature", "explore", "infer"),
    "both": (),
    "selector": ("beta", "context", "explore", "infer", "learns_from", "intercept", "centring", "sizes"),
}
"""Settings that have no effect, by the networks that are trained."""


@dataclass(frozen=True)
class AIMLearner(SelectionLearner):
    r"""An explainer network, optionally with a selector and an approximator (Eqn. 5).

    .. math:: \min_\theta \mathcal{L}_1 + \alpha \mathcal{L}_2 + \beta \, \mathbb{E}_x \|W_x\|_{2,1}

    Parameters
    ----------
    trained
        ``"explainer"`` only, with random neighbours (App. D.3); ``"both"`` the explainer and a selector
        that learns to keep the features that the decision depends on, as in the paper; or ``"selector"``
        only (App. D.2).
    beta
        Weight of the norm that makes the weights sparse.
    context
        Whether a word's weights depend on its context; in the paper they do not.
    alpha
        With a selector, weight of the approximator's loss (Eqn. 4).
    temperature
        With a selector, temperature of the relaxed Bernoulli variables.
    explore
        With both, share of inputs whose neighbours keep random features instead of selected ones. With 0, as
        in the paper, the weights of features that the selector drops are hardly learned.
    infer
        With both, the network that explains: ``"explainer"`` or ``"selector"`` (App. D.1).
    learns_from
        ``"probabilities"`` of the model for a neighbour, or as in the paper ``"decisions"``: 1 for the
        predicted class and 0 for others. Decisions are less informative, so the weights of a linear model are
        recovered less accurately.
    intercept
        Whether the explainer's linear classifier has an intercept; in the paper it has none.
    centring
        Whether weights are relative to their mean over classes; in the paper they are not.
    sizes
        Number of features in random neighbours: ``"mostly-few"``, or ``"uniform"`` as in the paper (App.
        D.3).
    layers
        ``"own"`` for this package's networks; for texts also ``"paper"``, the networks of the paper's App. A
        with random embeddings: a bidirectional LSTM with context, three dense layers without.
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
            value, default = getattr(self, name), getattr(AIMLearner, name)
            require(value == default, name, f"{default!r} with trained={self.trained!r}", value)

    def networks(self) -> Layouts:
        """Return the networks E : x → W (features × classes), S : x → π (features), and G."""
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
        """Return the name of the network that explains."""
        return self.infer if self.trained == "both" else self.trained

    @property
    def classes(self) -> tuple[LearnedClasses, ...]:
        """Return all classes for the explainer, the predicted class for the selector."""
        return ("all",) if self.answering == "explainer" else ("predicted",)

    def compute_loss(self, batch: SelectionBatch) -> Tensor:
        """Compute Eqn. 5: sample neighbours, evaluate the model on them, and return the loss."""
        loss = 0.0
        neighbours = random_subset(batch.real, mostly_few=self.sizes == "mostly-few")
        if self.trained != "explainer":
            samples = self._relax(batch.scores("selector")[:, 0]) * batch.real
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
        """Return the features selected by the weights, as in explanations."""
        return super().selected(self._weights(scores), real, predictions)

    def watched(self, batch: SelectionBatch) -> dict[str, Tensor]:
        """Return the mean keep-probability π of each input's features."""
        if self.trained == "explainer":
            return {}
        probabilities = batch.scores("selector")[:, 0].sigmoid() * batch.real
        return {"kept": probabilities.sum(-1) / batch.real.sum(-1)}

    def doubt(self, described: Mapping[str, float]) -> str | None:
        """Return a warning if the selector keeps either no features or all features."""
        share_kept = described.get("dev_kept", 0.5)
        if ALIVE[0] < share_kept < ALIVE[1]:
            return None
        return f"The selector does not select: it keeps {share_kept:.1%} of the features."

    def _weights(self, scores: Tensor) -> Tensor:
        """Return feature weights from the explainer's scores."""
        return centre(scores) if self.centring else scores

    def _relax(self, logits: Tensor) -> Tensor:
        """Sample the Concrete distribution: π is the sigmoid of the selector's logits."""
        uniform = uniform_like(logits)
        return ((logits + uniform.log() - (1 - uniform).log()) / self.temperature).sigmoid()


def centre(weights: Tensor) -> Tensor:
    """Return weights (rows, classes, width) centred over classes, which does not change predictions.

    A component shared by all classes has no effect, but would keep its random initial value.
    """
    return weights - weights.mean(1, keepdim=True) if weights.shape[1] > 1 else weights


def intercepts(decided: Tensor, logits: Tensor) -> Tensor:
    """Return the intercepts (classes,) for which logits predict each class as often as it is decided.

    They are the optimal intercepts of a softmax regression, computed by iterative scaling.
    """
    b, least = logits.new_zeros(logits.shape[1]), 0.5 / len(logits)
    target = decided.mean(0).clamp(min=least).log()
    for _ in range(ROUNDS):
        b = b + target - (logits.detach() + b).softmax(-1).mean(0).clamp(min=least).log()
    return b


@learned.register("aim")
@dataclass(frozen=True)
class AIM(LearnedExplainer):
    """The weights :math:`W_x` of every feature for every class, from one forward pass of a network.

    Created by `fit`. :math:`W_x^T z` is a linear classifier that approximates the model near the input when
    only the features in z are kept.

    Parameters
    ----------
    network
        The fitted network.

    Note
    ----
    In the paper, a selector provides the neighbours. Here they keep random features, mostly few (uniform
    sizes in App. D.3), which is faster and was more faithful on texts and tables; ``trained="both"`` adds a
    selector to the random neighbours. Other differences: learning from probabilities, which recovers words of
    known weight more accurately; an intercept, without which the weights have to represent the prior
    decision; weights that sum to zero over classes; and layers without biases, so an unseen word has no
    weight. The model is evaluated with features kept or removed rather than relaxed, so any model can be
    explained. The temperature is inside the exponent, and the norm has one group per feature, as in the paper
    but not in its code.
    """

    learner = AIMLearner
    paper = "Vo et al. 2023, Eqn. 2, 4 and 5"
    summary = "weights for every class by a network, learned from answers to feature subsets"

    def explain(self, task: Task) -> Steps:
        """Predict the weights, centred over classes if the network was fitted that way."""
        scores = squeeze_columns((yield from self.predict(task)))
        if scores.ndim == 1:
            return selection.finding(selection.probability(scores))
        centring = self.network.card["settings"]["centring"]
        return Finding(scores - scores.mean(axis=0) if centring else scores)
