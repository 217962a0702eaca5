"""The base of methods that learn to select: features are chosen, and the model says what follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pertinent.asks import NetworkOutputs
from pertinent.explainers.base import Explainer, Finding, Steps, Task
from pertinent.learned.base import LearnedExplainer, Learner, Lesson, Tensor, of_columns
from pertinent.settings import Count

if TYPE_CHECKING:
    from pertinent.results.explanation import Explanation

SELECTED = 10
"""Features kept by default to see how well a selection does, but at most half of them, rounded up."""

CHOICE = "choice"
"""The number by which the best network is chosen: its measure, and among equals how sure the model is."""

THRESHOLD = 0.5
"""What the probability of a selected feature exceeds."""

TINY = 1e-7


@dataclass(frozen=True)
class Prediction(Explainer):
    """Nothing but the model's answer to the whole input; all scores are zero."""

    name = "prediction"
    paper = "–"
    summary = "the answer to the whole input, for selections to learn from"
    columnwise = False

    def evaluations(self, n_features: int) -> int:
        """The whole input is asked about anyway."""
        del n_features
        return 1

    def explain(self, task: Task) -> Steps:
        """Ask nothing."""
        yield from ()
        return Finding(np.zeros(task.n_features))


@dataclass(frozen=True)
class Scores:
    """A network that gives every feature `columns` scores; ``None`` for one for each of the model's columns.

    Without `context` a word is scored by itself, whatever stands around it. With `hidden` it reads the hidden
    states of a model that has them.
    """

    columns: int | None = 1
    context: bool = True
    hidden: bool = False


@dataclass(frozen=True)
class Approximation:
    """A network that predicts the model's answer from an input of which some features are removed."""


class Round(ABC):
    """One batch of training, as the loss of a method sees it.

    Attributes
    ----------
    real
        Which features there are (rows, width): inputs have different numbers of them.
    predictions
        The model's answers to the whole inputs (rows, columns).
    memory
        Numbers that are kept from step to step, and with checkpoints.
    """

    real: Tensor
    predictions: Tensor
    memory: Tensor

    @abstractmethod
    def scores(self, network: str) -> Tensor:
        """The scores (rows, columns, width) of all features by a network; zero where there is none."""

    @abstractmethod
    def approximate(self, network: str, kept: Tensor) -> Tensor:
        """The logits (rows, columns) of a network, if inputs keep a share (rows, width) of each feature."""

    @abstractmethod
    def ask(self, kept: Tensor) -> Tensor:
        """The model's answers (rows, columns) or (rows, samples, columns).

        Inputs keep the features in `kept` (rows, width) or (rows, samples, width) alone.
        """


@dataclass(frozen=True)
class LearnsSelection(Learner):
    """Learns by selecting features in every step.

    Attributes
    ----------
    answering
        The network that explains when all have been trained.
    n_memory
        How many numbers are kept from step to step.

    Parameters
    ----------
    k
        Features that are kept when the selection is measured on dev inputs; by default 10, but never more
        than half of them.
    """

    teacher = Prediction()
    scales = ("natural",)
    all_classes = False
    classes = "predicted"
    outputs: ClassVar[tuple[str, ...]] = ("class",)
    steps = 4000
    checks = 10
    measure: ClassVar[Literal["faithfulness", "quality"]] = "faithfulness"
    answering: ClassVar[str] = "explainer"
    n_memory: ClassVar[int] = 0
    k: Count | None = field(default=None, kw_only=True)

    @abstractmethod
    def networks(self) -> Mapping[str, Scores | Approximation]:
        """The networks that are trained together, by name."""

    @abstractmethod
    def compute_loss(self, round: Round) -> Tensor:
        """The loss of a batch."""

    def lesson(self, explanation: Explanation, columns: Sequence[int], label: Any) -> Lesson:
        """The answer to the whole input."""
        del columns, label
        return {"predictions": explanation.prediction}

    def n_selected(self, real: Tensor) -> Tensor:
        """How many features (rows,) are selected of each input."""
        n_features = real.sum(-1)
        most = ((n_features + 1) // 2).clamp(max=SELECTED) if self.k is None else n_features.clamp(max=self.k)
        return most.clamp(min=1)

    def selected(self, scores: Tensor, real: Tensor, predictions: Tensor) -> Tensor:
        """The features (rows, width) that are selected by scores (rows, columns, width)."""
        own = of_predicted(scores, predictions)
        place = own.masked_fill(~real, -np.inf).argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
        return (place < self.n_selected(real)[:, None]) & real

    def quality(self, answers: Tensor, kept: Tensor, real: Tensor, predictions: Tensor) -> Tensor:
        """How good each selection (rows,) is: whether the model decides as it does for the whole input."""
        del kept, real
        return (answers.argmax(-1) == predictions.argmax(-1)).float()

    def described(
        self, answers: Tensor, kept: Tensor, real: Tensor, predictions: Tensor
    ) -> dict[str, Tensor]:
        """Other measures (rows,) of each selection by name, for the card."""
        del answers, kept, real, predictions
        return {}


@dataclass(frozen=True)
class SelectionExplainer(LearnedExplainer):
    """A network that learned to select, and scores features in one pass.

    Parameters
    ----------
    network
        The fitted network.
    """

    learner: ClassVar[type[LearnsSelection]]

    def explain(self, task: Task) -> Steps:
        """Predict."""
        self.columns(task)
        scores = yield NetworkOutputs(self.network)
        return Finding(of_columns(scores))


@dataclass(frozen=True)
class SubsetExplainer(SelectionExplainer):
    """A network whose scores are log-probabilities of features, up to a constant.

    Parameters
    ----------
    network
        The fitted network.
    """

    meaning = "magnitude"

    def explain(self, task: Task) -> Steps:
        """The probability of each feature to be drawn first."""
        self.columns(task)
        logits = yield NetworkOutputs(self.network)
        chances = np.exp(logits[0] - logits[0].max())
        return Finding(chances / chances.sum())


def probability(logits: Any) -> Any:
    """The sigmoid of an array, without overflow."""
    return 0.5 + 0.5 * np.tanh(logits / 2)


def selecting(probabilities: Any) -> Finding:
    """Probabilities to be selected as scores, and how many features are: those above one half."""
    details = {"selected": int((probabilities > THRESHOLD).sum())}
    return Finding(probabilities, details=details, meaning="magnitude")


def of_predicted(scores: Tensor, predictions: Tensor) -> Tensor:
    """The scores (rows, width) of the predicted class, or the only ones."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    own = predictions.argmax(-1)[:, None, None].expand(-1, 1, scores.shape[2])
    return scores.gather(1, own)[:, 0]


def cross_entropy(wanted: Tensor, logits: Tensor) -> Tensor:
    """The cross-entropy (rows,) of logits (rows, columns) against probabilities."""
    return -(wanted * logits.log_softmax(-1)).sum(-1)


def one_hot(answers: Tensor) -> Tensor:
    """The decision (…, columns): 1 for the column with the largest answer."""
    decided = answers.new_zeros(answers.shape)
    return decided.scatter(-1, answers.argmax(-1, keepdim=True), 1.0)


def uniform_like(tensor: Tensor) -> Tensor:
    """Random numbers between 0 and 1, neither included."""
    return tensor.new_empty(tensor.shape).uniform_().clamp(TINY, 1 - TINY)


def log_probability(logits: Tensor, kept: Tensor, real: Tensor) -> Tensor:
    """The log-probability (…) of masks (…, width), if each real feature is kept by itself."""
    zero = logits.new_zeros(())
    return (kept * logits - logits.logaddexp(zero)).masked_fill(~real, 0.0).sum(-1)


def gumbel_like(tensor: Tensor) -> Tensor:
    """Gumbel noise: −log(−log u)."""
    return -(-uniform_like(tensor).log()).log()


def relaxed_subset(logits: Tensor, real: Tensor, k: Tensor, temperature: float) -> Tensor:
    """Shares (rows, width) of features: the maximum over `k` (rows,) samples of the Concrete distribution.

    At a low temperature each sample is one feature, so that at most k are kept (Chen et al. 2018).
    """
    noise = gumbel_like(logits[:, None].expand(-1, int(k.max()), -1))
    samples = ((logits.masked_fill(~real, -np.inf)[:, None] + noise) / temperature).softmax(-1)
    number = k.new_ones(samples.shape[1]).cumsum(0)
    return samples.masked_fill((number > k[:, None])[..., None], 0.0).amax(1)
