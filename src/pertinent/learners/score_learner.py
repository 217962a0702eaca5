"""Base class of methods that learn scores from a teacher's explanations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pertinent.array_types import Floats
from pertinent.learners.base import LearnedClasses, Learner, Tensor, TrainingTargets
from pertinent.learners.schedule import Schedule
from pertinent.stats import spearman

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.learners.network_trainer import TrainingBatch
    from pertinent.learners.training_context import TrainingContext
    from pertinent.models.base import Model
    from pertinent.results.explanation import Explanation


@dataclass(frozen=True)
class ScoreLearner(Learner):
    """Base class of learners of feature scores from a teacher's explanations.

    Attributes
    ----------
    measure
        Measure on the validation inputs that selects the best network: ``"loss"``, or ``"spearman"`` for the
        mean rank correlation with the targets named ``scores``.
    """

    measure: ClassVar[Literal["loss", "spearman"]] = "loss"

    @abstractmethod
    def targets(self, explanation: Explanation, columns: Sequence[int], label: Any) -> TrainingTargets:
        """Return an input's targets from the teacher's explanation, for these columns of the model.

        `label` is the true class or value of the input, ``None`` if the user passed no labels.
        """

    @abstractmethod
    def deviation(self, targets: Sequence[TrainingTargets]) -> Floats:
        """Return the unit (columns,) of the network's scores: their typical magnitude."""

    @abstractmethod
    def compute_loss(
        self, scores: Tensor, targets: Mapping[str, Tensor], real: Tensor, deviation: Tensor
    ) -> Tensor:
        """Return the loss of scores (rows, columns, width) for stacked targets (rows, …).

        `real` (rows, width) marks existing features; padding has zero scores.
        """

    def default_classes(
        self, model: Model, inputs: Sequence[Input], explanations: Sequence[Explanation]
    ) -> LearnedClasses:
        """Return all classes if the teacher scored all classes and the network can learn that many."""
        from pertinent.learners.networks.token_scorers import scorer_for

        most = scorer_for(model, inputs).most_classes if "all" in self.classes else 0
        has_all = all(e.class_scores is not None for e in explanations)
        return "all" if has_all and len(explanations[0].classes) <= most else self.classes[0]

    def schedule(self, model: Model, inputs: Sequence[Input]) -> Schedule | None:
        """Return the network's schedule for these inputs."""
        from pertinent.learners.networks.token_scorers import scorer_for

        return scorer_for(model, inputs).schedule

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
        """Return the targets of a training step; by default those from the teacher's explanations."""
        return batch.targets

    def _loss(
        self, batch: TrainingBatch, scorer: Any, targets: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of a batch and the scores (rows, columns, width)."""
        scores = batch.scores(scorer, batch.network)
        return self.compute_loss(scores, targets, batch.real, scorer.deviation), scores

    def _validate(self, batches: Iterable[TrainingBatch], scorer: Any) -> dict[str, float]:
        """Return the mean loss on the validation inputs, and the rank correlation if it is the measure."""
        n, total, correlations = 0, 0.0, list[float]()
        for batch in batches:
            with batch.inference():
                loss, scores = self._loss(batch, scorer, batch.targets)
            n, total = n + len(batch.inputs), total + float(loss) * len(batch.inputs)
            if self.measure == "spearman":
                correlations += _correlations(scores, batch)
        if self.measure == "loss":
            return {"loss": total / n}
        return {"loss": total / n, "spearman": float(np.mean(correlations)) if correlations else 0.0}


def _correlations(scores: Tensor, batch: TrainingBatch) -> list[float]:
    """Return Spearman's correlation for each input and column; 0 where it is undefined."""
    arrays = (tensor.cpu().numpy() for tensor in (scores, batch.targets["scores"], batch.real))
    correlations: list[float] = []
    for predicted, target, real in zip(*arrays, strict=True):
        if real.sum() > 1:
            pairs = zip(predicted[:, real], target[:, real], strict=True)
            correlations += [spearman(np.stack(pair))[0, 1] for pair in pairs]
    return [0.0 if np.isnan(correlation) else correlation for correlation in correlations]
