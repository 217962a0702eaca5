"""Base class of methods that learn to select features and evaluate the model on them in every step."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.config.settings import Count, Positive
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits
from pertinent.learners.base import LearnedExplainer, Learner, LearnerSpec, Tensor, TrainingTargets
from pertinent.learners.schedule import Schedule
from pertinent.learners.subsets import APPROXIMATOR, Subsets, of_predicted, random_features
from pertinent.outputs import softmax

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.learners.networks.joint_networks import SelectionBatch
    from pertinent.learners.training_context import TrainingContext
    from pertinent.models.base import Model
    from pertinent.results.explanation import Explanation

logger = logging.getLogger(__name__)

SELECTED = 10
"""Default number of selected features, limited to half of the features, rounded up."""

CHOICE = "choice"
"""Name of the value that selects the best network: its measure, with the model's certainty as tie-breaker."""

DIGITS = 4
"""Number of decimals used to compare networks."""

THRESHOLD = 0.5
"""A feature is selected if its probability exceeds this."""


@dataclass(frozen=True)
class PredictionTeacher(Explainer):
    """A teacher that records the model's prediction for each input and scores no features."""

    name = "prediction"
    paper = "–"
    summary = "the answer to the whole input, as a training target"
    traits = Traits(columnwise=False)

    def evaluations(self, n_features: int) -> int:
        """Return 1, for the whole input."""
        return 1

    def explain(self, task: Task) -> Steps:
        """Return zero scores."""
        yield from ()
        return Finding(np.zeros(task.n_features))


@dataclass(frozen=True)
class ScoringNetwork:
    """A network that gives every feature `columns` scores; ``None`` for one score per model column.

    Without `context`, the score of a word does not depend on the words around it; without `bias`, an unseen
    word has a score of zero. With `hidden`, the network reads the hidden states of a model that has them. The
    `layers` of word networks are ``"own"``, those of this package, or those of Vo et al. 2023.
    """

    columns: int | None = 1
    context: bool = True
    bias: bool = True
    hidden: bool = False
    layers: Literal["own", "paper"] = "own"


@dataclass(frozen=True)
class ApproximatingNetwork:
    """A network that predicts the model's answer to an input with some features removed."""


Layouts: TypeAlias = Mapping[str, ScoringNetwork | ApproximatingNetwork]
"""Jointly trained networks, by name."""


@dataclass(frozen=True)
class SelectionLearner(Learner):
    """Base class of learners that select features in every step.

    Attributes
    ----------
    answering
        Name of the network that explains after training.
    n_memory
        Number of values stored between steps.
    measure
        Measure on the validation inputs: ``"faithfulness"``, the share of inputs for which the model's
        decision is the same with only the selected features, or ``"quality"``, as defined by the method.

    Parameters
    ----------
    k
        Number of features selected per validation input; by default 10, but at most half of the features.
    """

    spec: ClassVar[LearnerSpec] = LearnerSpec(
        PredictionTeacher(), classes=("predicted",), outputs=("class",), scales=("natural",)
    )
    answering: ClassVar[str] = "explainer"
    n_memory: ClassVar[int] = 0
    measure: ClassVar[Literal["faithfulness", "quality"]] = "faithfulness"
    k: Count | None = field(default=None, kw_only=True)

    @abstractmethod
    def networks(self) -> Layouts:
        """Return the jointly trained networks, by name."""

    @abstractmethod
    def compute_loss(self, batch: SelectionBatch) -> Tensor:
        """Return the loss of a batch."""

    def targets(self, explanation: Explanation, columns: Sequence[int], label: Any) -> TrainingTargets:
        """Return the model's answer to the whole input."""
        return {"predictions": explanation.prediction.values}

    def schedule(self, model: Model, inputs: Sequence[Input]) -> Schedule | None:
        """Return a schedule of about 4,000 steps of a small network."""
        from pertinent.learners.networks.scorer import small_scorer_for

        del model
        return replace(small_scorer_for(inputs).schedule, measurements=10, steps=4000)

    def train(self, context: TrainingContext) -> tuple[Any, dict[str, Any]]:
        """Train all networks jointly on batches with selected features, evaluating the model each step."""
        from pertinent.learners.networks.joint_networks import SelectionBatch

        training, validation = context.split(context.examples(self.targets))
        n_columns = len(training.targets[0]["predictions"])
        networks = context.new_networks(training, self.networks(), n_columns, self.n_memory)
        as_selection = partial(SelectionBatch, networks, context.answers)
        card = context.optimise(
            networks,
            networks.reader,
            training,
            validation,
            loss=lambda batch: self.compute_loss(as_selection(batch)),
            validate=lambda batches: self._validate(map(as_selection, batches)),
            describe=lambda batches: self._describe(map(as_selection, batches)),
            measure=self.measure,
            choose_by=CHOICE,
        )
        return networks.parts[self.answering], card

    def n_selected(self, real: Tensor) -> Tensor:
        """Return the number of features (rows,) to select in each input."""
        n_features = real.sum(-1)
        n = ((n_features + 1) // 2).clamp(max=SELECTED) if self.k is None else n_features.clamp(max=self.k)
        return n.clamp(min=1)

    def selected(self, scores: Tensor, real: Tensor, predictions: Tensor) -> Tensor:
        """Return the features (rows, width) selected by scores (rows, columns, width)."""
        scores = of_predicted(scores, predictions).masked_fill(~real, -np.inf)
        rank = scores.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
        return (rank < self.n_selected(real)[:, None]) & real

    def quality(self, answers: Tensor, kept: Tensor, real: Tensor, predictions: Tensor) -> Tensor:
        """Return the quality (rows,) of each selection: 1 if the model's decision is unchanged, else 0."""
        return (answers.argmax(-1) == predictions.argmax(-1)).float()

    def described(
        self, answers: Tensor, kept: Tensor, real: Tensor, predictions: Tensor
    ) -> dict[str, Tensor]:
        """Return additional measures (rows,) of each selection, by name, for the card."""
        return {}

    def watched(self, batch: SelectionBatch) -> dict[str, Tensor]:
        """Return numbers (rows,) about the networks, by name, for the history and the card."""
        return {}

    def doubt(self, described: Mapping[str, float]) -> str | None:
        """Return a warning for the card and the log if entries in `described` show that training failed."""
        return None

    def _validate(self, batches: Iterable[SelectionBatch]) -> dict[str, float]:
        """Return the mean quality of the selections, and the value that selects the best network.

        Among equally faithful networks, the one for which the model is most certain of its decisions is
        chosen.
        """
        n, sums = 0, dict[str, float]()
        for batch, kept, watched in self._selections(batches):
            answers = batch.ask(kept)
            n += len(kept)
            quality = self.quality(answers, kept, batch.real, batch.predictions)
            certainty = answers.gather(-1, batch.predictions.argmax(-1, keepdim=True))
            _add(sums, {self.measure: quality, "certainty": certainty, **watched})
        certainty_mean = sums.pop("certainty") / n
        chosen_by = round(sums[self.measure], DIGITS) / n  # answers vary slightly between batches
        if self.measure == "faithfulness":  # smaller than the effect of one decision
            chosen_by += 0.5 * round(certainty_mean, DIGITS) / n
        return {name: total / n for name, total in sums.items()} | {CHOICE: chosen_by}

    def _describe(self, batches: Iterable[SelectionBatch]) -> dict[str, Any]:
        """Return more card entries: other measures, and all measures for equally many random features."""
        n, sums = 0, dict[str, float]()
        for batch, kept, watched in self._selections(batches):
            random, whole = random_features(kept, batch.real), (batch.real, batch.predictions)
            random_answers = batch.ask(random)
            measures = self.described(batch.ask(kept), kept, *whole)
            random_measures = self.described(random_answers, random, *whole)
            measures |= {f"random_{name}": values for name, values in random_measures.items()}
            n += len(kept)
            _add(sums, measures | {"random": self.quality(random_answers, random, *whole)} | watched)
        described = {f"dev_{name}": total / n for name, total in sums.items()}
        if doubt := self.doubt(described):
            logger.warning(doubt)
            return described | {"doubt": doubt}
        return described

    def _selections(
        self, batches: Iterable[SelectionBatch]
    ) -> Iterator[tuple[SelectionBatch, Tensor, dict[str, Tensor]]]:
        """Yield each batch, the features (rows, width) selected by the network, and watched numbers."""
        for batch in batches:
            with batch.inference():
                scores, watched = batch.scores(self.answering), self.watched(batch)
            yield batch, self.selected(scores, batch.real, batch.predictions), watched


def _add(sums: dict[str, float], measures: Mapping[str, Tensor]) -> None:
    """Add the numbers of a batch to sums by name."""
    for name, values in measures.items():
        sums[name] = sums.get(name, 0.0) + float(values.sum())


@dataclass(frozen=True)
class SubsetLearner(SelectionLearner):
    """Base class of learners of feature log-probabilities, from which k features are drawn."""

    temperature: Positive = 0.5
    subsets: Subsets = "random"

    def networks(self) -> Layouts:
        """Return the explainer (x → log-probabilities of features) and the approximator."""
        return {"explainer": ScoringNetwork(), APPROXIMATOR: ApproximatingNetwork()}


@dataclass(frozen=True)
class SubsetExplainer(LearnedExplainer):
    """A network whose scores are log-probabilities of features, up to a constant.

    Parameters
    ----------
    network
        The fitted network.
    """

    traits = replace(LearnedExplainer.traits, meaning="magnitude")

    def explain(self, task: Task) -> Steps:
        """Return the probability of drawing each feature first."""
        return Finding(softmax((yield from self.predict(task)))[0])


def probability(logits: Any) -> Any:
    """Return the sigmoid of an array, without overflow."""
    return 0.5 + 0.5 * np.tanh(logits / 2)


def finding(probabilities: Any) -> Finding:
    """Return the finding with selection probabilities as scores, and the number of selected features."""
    details = {"selected": int((probabilities > THRESHOLD).sum())}
    return Finding(probabilities, details=details, meaning="magnitude")
