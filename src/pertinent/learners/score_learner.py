"""The base of methods that learn scores from the explanations of a teacher."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pertinent.array_types import Floats
from pertinent.learners.base import LearnedClasses, Learner, Schedule, Tensor, TrainingTargets
from pertinent.stats import spearman

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.learners.network_trainer import TrainingBatch
    from pertinent.learners.training_context import TrainingContext
    from pertinent.models.base import Model
    from pertinent.results.explanation import Explanation


@dataclass(frozen=True)
class ScoreLearner(Learner):
    """Learns to score features from the explanations of a teacher.

    Attributes
    ----------
    measure
        What is measured on the validation inputs, to keep the best network: the ``"loss"``, or the mean rank
        correlation (``"spearman"``) with the targets named ``scores``.
    """

    measure: ClassVar[Literal["loss", "spearman"]] = "loss"

    @abstractmethod
    def targets(self, explanation: Explanation, columns: Sequence[int], label: Any) -> TrainingTargets:
        """The targets of an input from the teacher's explanation, for these columns of the model.

        `label` is the right class or value of the input, ``None`` if the user gave no labels.
        """

    @abstractmethod
    def deviation(self, targets: Sequence[TrainingTargets]) -> Floats:
        """The unit (columns,) of the network's scores: their typical magnitude."""

    @abstractmethod
    def compute_loss(
        self, scores: Tensor, targets: Mapping[str, Tensor], real: Tensor, deviation: Tensor
    ) -> Tensor:
        """The loss of scores (rows, columns, width) for stacked targets (rows, …).

        `real` (rows, width) says which features exist; the scores of the others are zero.
        """

    def default_classes(
        self, model: Model, inputs: Sequence[Input], explanations: Sequence[Explanation]
    ) -> LearnedClasses:
        """All classes if the teacher scored all of them and they are not too many for the network."""
        from pertinent.learners.networks.token_scorers import scorer_for

        most = scorer_for(model, inputs).most_classes if "all" in self.classes else 0
        known = all(e.class_scores is not None for e in explanations)
        return "all" if known and len(explanations[0].classes) <= most else self.classes[0]

    def schedule(self, model: Model, inputs: Sequence[Input]) -> Schedule | None:
        """The schedule of the network for such inputs."""
        from pertinent.learners.networks.token_scorers import scorer_for

        scorer = scorer_for(model, inputs)
        return Schedule(scorer.epochs, scorer.learning_rate, scorer.measurements)

    def train(self, context: TrainingContext) -> tuple[Any, dict[str, Any]]:
        """Train one network on the targets of each input."""
        training, validation = context.split(context.examples(self.targets))
        scorer = context.new_scorer(training, self.deviation(training.targets))
        card = context.optimise(
            scorer,
            scorer,
            training,
            validation,
            loss=lambda batch: self._loss(batch, scorer, self.step_targets(batch, context))[0],
            validate=lambda batches: self._validate(batches, scorer),
            measure=self.measure,
        )
        return scorer, card

    def step_targets(self, batch: TrainingBatch, context: TrainingContext) -> Mapping[str, Tensor]:
        """The targets of a training step, by default those made from the teacher's explanations."""
        return batch.targets

    def _loss(
        self, batch: TrainingBatch, scorer: Any, targets: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The loss of a batch, and the scores (rows, columns, width)."""
        scores = batch.scores(scorer, batch.network)
        return self.compute_loss(scores, targets, batch.real, scorer.deviation), scores

    def _validate(self, batches: Iterable[TrainingBatch], scorer: Any) -> dict[str, float]:
        """The mean loss of the validation inputs, and the mean rank correlation if it is the measure."""
        n, total, correlations = 0, 0.0, list[float]()
        for batch in batches:
            with batch.inference():
                loss, scores = self._loss(batch, scorer, batch.targets)
            n, total = n + len(batch.inputs), total + float(loss) * len(batch.inputs)
            if self.measure == "spearman":
                correlations += _correlations(scores, batch)
        measured = {"loss": total / n}
        if self.measure == "spearman":
            measured["spearman"] = float(np.mean(correlations)) if correlations else 0.0
        return measured


def _correlations(scores: Tensor, batch: TrainingBatch) -> list[float]:
    """Spearman's correlation for each input of several features and each column; 0 where there is none."""
    arrays = (each.cpu().numpy() for each in (scores, batch.targets["scores"], batch.real))
    found: list[float] = []
    for mine, wanted, real in zip(*arrays, strict=True):
        if real.sum() > 1:
            pairs = zip(mine[:, real], wanted[:, real], strict=True)
            found += [spearman(np.stack(pair))[0, 1] for pair in pairs]
    return [0.0 if np.isnan(each) else each for each in found]
