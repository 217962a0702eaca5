"""Training a network to score features, by the loss of a method."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch.nn.attention import sdpa_kernel

from pertinent.engine.progress import Callback, progress_callback
from pertinent.explainers.learned.base import Learner
from pertinent.models.base import Model
from pertinent.models.embedded.load import no_bar
from pertinent.models.torch import devices
from pertinent.models.torch.fitted_network import device_of
from pertinent.models.torch.scorers.base import Scorer
from pertinent.results.agreement import spearman
from pertinent.training.folder import Folder
from pertinent.training.lessons import LessonCollator, Lessons
from pertinent.training.settings import ScoreSettings
from pertinent.training.trainer import ExampleTrainer

HISTORY = ("epoch", "loss", "eval_loss", "eval_spearman")
"""What is kept of each epoch; not the time it took, so that the same fit gives the same record."""


class ScoreTrainer(ExampleTrainer):
    """Trains a scorer on lessons; `learner` has the loss, `explained` is the model that is explained.

    `examples` are those to train on, and those to measure on.
    """

    def __init__(
        self,
        learner: Learner,
        explained: Model,
        scorer: Scorer,
        arguments: Any,
        examples: tuple[Lessons, Lessons],
        **options: Any,
    ) -> None:
        data, dev = examples
        placed = copy.copy(explained)
        placed.device = arguments.device  # type: ignore[attr-defined]
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


def train_scorer(
    learner: Learner,
    scorer: Scorer,
    model: Model,
    data: Lessons,
    dev: Lessons,
    *,
    settings: ScoreSettings,
    folder: Folder,
    progress: Callback | bool | None,
) -> dict[str, Any]:
    """Train in place, from the last checkpoint in the folder if there is one; what came of it."""
    device = device_of(model)
    arguments = settings.arguments(folder.checkpoints, measured=True, device=device.type)
    with ExitStack() as stack:
        callback = stack.enter_context(progress_callback(progress, "fit"))
        stack.enter_context(no_bar())
        stack.enter_context(_quick_checkpoints())
        trainer = ScoreTrainer(
            learner,
            model,
            scorer,
            arguments,
            (data, dev),
            progress=callback,
            callbacks=settings.callbacks(),
        )
        stack.enter_context(devices.disable_onednn(device, getattr(torch, settings.precision)))
        stack.enter_context(sdpa_kernel(devices.ATTENTION))
        trainer.train(resume_from_checkpoint=folder.last_checkpoint())
    scorer.to(device).eval()
    state = trainer.state
    history = [{name: log[name] for name in HISTORY if name in log} for log in state.log_history]
    return {f"dev_{learner.measure}": state.best_metric, "steps": state.global_step, "history": history}


@contextmanager
def _quick_checkpoints() -> Iterator[None]:
    """A small network writes several in a second, which transformers warns of and deals with."""
    logger = logging.getLogger("transformers.trainer_utils")

    def other(record: logging.LogRecord) -> bool:
        return "mtime" not in record.getMessage()

    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)


def _correlations(scores: torch.Tensor, batch: Mapping[str, Any]) -> list[float]:
    """Spearman's with the lesson, for each input of several features and column; none counts as 0."""
    arrays = (each.cpu().numpy() for each in (scores, batch["lesson"]["scores"], batch["real"]))
    found: list[float] = []
    for mine, wanted, real in zip(*arrays, strict=True):
        if real.sum() > 1:
            pairs = zip(mine[:, real], wanted[:, real], strict=True)
            found += [spearman(np.stack(pair))[0, 1] for pair in pairs]
    return [0.0 if np.isnan(each) else each for each in found]
