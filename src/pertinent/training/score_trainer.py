"""Training a network to give the scores that a slower method gave."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.nn.attention import sdpa_kernel

from pertinent.engine.progress import Callback, progress_callback
from pertinent.models.embedded.load import no_bar
from pertinent.models.torch import devices
from pertinent.models.torch.token_network import TokenScorer, feature_scores, token_batch
from pertinent.models.transformer import TransformerModel
from pertinent.results.agreement import spearman
from pertinent.training.folder import Folder
from pertinent.training.scored import Scored
from pertinent.training.settings import TrainerSettings
from pertinent.training.trainer import ExampleTrainer
from pertinent.types import Floats

HISTORY = ("epoch", "loss", "eval_loss", "eval_spearman")
"""What is kept of each epoch; not the time it took, so that the same fit gives the same record."""


@dataclass(frozen=True, eq=False)
class ScoreCollator:
    """Makes batches from indices; `labels` (rows, columns, width) are NaN where there is no feature.

    Labels are in units of `deviation`, and of the same width in every batch.
    """

    examples: Scored
    deviation: Floats
    pad_id: int

    @cached_property
    def width(self) -> int:
        """The largest number of features."""
        return max(input.n_features for input in self.examples.inputs)

    def __call__(self, places: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """A batch of whole texts."""
        chosen = [example for _, example in places]
        batch, owners = token_batch([self.examples.inputs[i] for i in chosen], self.pad_id)
        labels = np.full((len(chosen), len(self.deviation), self.width), np.nan, dtype=np.float32)
        for row, i in zip(labels, chosen, strict=True):
            row[:, : self.examples.inputs[i].n_features] = self.examples.scores[i] / self.deviation[:, None]
        return {"labels": torch.from_numpy(labels), "batch": batch, "owners": torch.from_numpy(owners)}


class ScoreTrainer(ExampleTrainer):
    """The mean squared error over all features; special tokens and padding are none."""

    def __init__(self, wrapped: TransformerModel, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._wrapped = copy.copy(wrapped)
        self._wrapped.device = self.args.device

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Score the tokens, sum by feature, compare."""
        del num_items_in_batch
        labels = inputs["labels"]
        tokens = self._wrapped.forward(inputs["batch"], model).float()
        scores = feature_scores(tokens, inputs["owners"], labels.shape[2])
        real = ~labels.isnan()
        loss = ((scores - labels.nan_to_num()) * real).square().sum() / real.sum()
        return (loss, {"scores": scores}) if return_outputs else loss


def train_scorer(
    scorer: TokenScorer,
    wrapped: TransformerModel,
    data: Scored,
    dev: Scored,
    *,
    settings: TrainerSettings,
    folder: Folder,
    progress: Callback | bool | None,
) -> dict[str, Any]:
    """Train in place, from the last checkpoint in the folder if there is one; what came of it."""
    deviation = scorer.deviation.cpu().numpy().astype(np.float64)
    settings.check_device(wrapped.device.type)
    arguments = settings.arguments(folder.checkpoints, measured=True, device=wrapped.device.type)
    with ExitStack() as stack:
        callback = stack.enter_context(progress_callback(progress, "fit"))
        stack.enter_context(no_bar())
        trainer = ScoreTrainer(
            wrapped,
            scorer,
            arguments,
            data,
            dev,
            collators=(
                ScoreCollator(data, deviation, wrapped.pad_id),
                ScoreCollator(dev, deviation, wrapped.pad_id),
            ),
            metrics=_mean_spearman,
            progress=callback,
            callbacks=settings.callbacks(),
        )
        stack.enter_context(devices.disable_onednn(wrapped.device, getattr(torch, settings.precision)))
        stack.enter_context(sdpa_kernel(devices.ATTENTION))
        trainer.train(resume_from_checkpoint=folder.last_checkpoint())
    scorer.to(wrapped.device).eval()
    state = trainer.state
    history = [{name: log[name] for name in HISTORY if name in log} for log in state.log_history]
    return {"dev_spearman": state.best_metric, "steps": state.global_step, "history": history}


def _mean_spearman(answers: Any) -> dict[str, float]:
    """The mean over inputs and columns; one without any correlation counts as 0."""
    found = []
    for scores, labels in zip(answers.predictions, answers.label_ids, strict=True):
        real = ~np.isnan(labels[0])
        if real.sum() > 1:
            pairs = zip(scores[:, real], labels[:, real], strict=True)
            found += [spearman(np.stack(pair))[0, 1] for pair in pairs]
    return {"spearman": float(np.nan_to_num(found).mean()) if found else 0.0}
