"""Training a network to score features, by the loss of a method."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from pertinent.learned.base import LearnsScores
from pertinent.learned.networks.scorer import Scorer
from pertinent.learned.training_data import LessonCollator, Lessons
from pertinent.models.base import Model
from pertinent.rank_correlation import spearman
from pertinent.training.trainer import ExampleTrainer


class ScoreTrainer(ExampleTrainer):
    """Trains a scorer on lessons; `learner` has the loss, `explained` is the model that is explained.

    `examples` are those to train on, and those to measure on.
    """

    def __init__(
        self,
        learner: LearnsScores,
        explained: Model,
        scorer: Scorer,
        arguments: Any,
        examples: tuple[Lessons, Lessons],
        **options: Any,
    ) -> None:
        data, dev = examples
        placed = copy.copy(explained)
        placed.device = arguments.device
        collators = LessonCollator(data, placed, scorer), LessonCollator(dev, placed, scorer)
        super().__init__(scorer, arguments, data, dev, collators=collators, metrics=lambda _: {}, **options)
        self._learner, self._explained, self._scorer, self._dev = learner, placed, scorer, dev

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Score the features in one or more passes, and compare."""
        del num_items_in_batch
        real = inputs["real"]
        passes = [
            self._scorer.scores(self._explained, batch, real.shape[1], model) for batch in inputs["passes"]
        ]
        scores = torch.cat(passes)
        loss = self._learner.compute_loss(scores, inputs["lesson"], real, self._scorer.deviation)
        return (loss, {"scores": scores}) if return_outputs else loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The mean loss of the dev inputs, and what the learner wants to be measured."""
        self._scorer.eval()
        losses, found = [], []
        size = self.args.per_device_eval_batch_size
        for start in range(0, len(self._dev), size):
            chosen = range(start, min(start + size, len(self._dev)))
            batch = self._prepare_inputs(self._dev_collator([(0, i) for i in chosen]))
            with torch.no_grad(), self.compute_loss_context_manager():
                loss, outputs = self.compute_loss(self.model, batch, return_outputs=True)
            losses.append(float(loss) * len(chosen))
            found += _correlations(outputs["scores"], batch) if self._learner.measure == "spearman" else []
        metrics = {"eval_loss": sum(losses) / len(self._dev)}
        if self._learner.measure == "spearman":
            metrics["eval_spearman"] = float(np.mean(found)) if found else 0.0
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


def _correlations(scores: torch.Tensor, batch: Mapping[str, Any]) -> list[float]:
    """Spearman's with the lesson, for each input of several features and column; none counts as 0."""
    arrays = (each.cpu().numpy() for each in (scores, batch["lesson"]["scores"], batch["real"]))
    found: list[float] = []
    for mine, wanted, real in zip(*arrays, strict=True):
        if real.sum() > 1:
            pairs = zip(mine[:, real], wanted[:, real], strict=True)
            found += [spearman(np.stack(pair))[0, 1] for pair in pairs]
    return [0.0 if np.isnan(each) else each for each in found]
