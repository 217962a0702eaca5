"""A surrogate: a network that learns to give the model's answer from any of the features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from pertinent.array_types import Floats, Ints, Masks
from pertinent.finetuning.run_folder import RunFolder
from pertinent.inputs.base import Input
from pertinent.learners.network_trainer import TrainingBatch, TrainingExamples
from pertinent.learners.networks.scorer import Approximator, Scorer, ScorerBatch, device_of
from pertinent.learners.subsets import cross_entropy, random_subset
from pertinent.models.base import Model
from pertinent.outputs import Output, Probabilities, Scale

if TYPE_CHECKING:
    from pertinent.learners.training_context import TrainingContext

TINY = 1e-6
"""The smallest probability of which a logarithm is taken."""

READ = 32
"""Number of inputs that are read together."""

LARGEST_BATCH = 2**18
"""Number of tokens, pixels or columns, at most, in one pass."""


class Surrogate(nn.Module):
    r"""Gives the model's expected answer, :math:`\mathbb{E}[f(x) \mid x_S]`, from any set S of features.

    Plain values are learned in units of `deviation` (columns,); unless the network is a copy of the model,
    its outputs are added to their `mean` (columns,).
    """

    mean: torch.Tensor
    deviation: torch.Tensor

    def __init__(self, model: Model, reader: Scorer, network: Approximator, predictions: Floats) -> None:
        super().__init__()
        self.model, self.network = model, network
        self._read = reader.read
        values = predictions if model.output.kind == "value" else np.zeros_like(predictions)
        deviation = values.std(axis=0)
        self.register_buffer("mean", torch.from_numpy(values.mean(axis=0)).float())
        self.register_buffer("deviation", torch.from_numpy(np.where(deviation > 0, deviation, 1.0)).float())

    @property
    def output(self) -> Output:
        """The meaning of its outputs: that of the model's, with logits in place of probabilities."""
        own = self.model.output
        return replace(own, from_logits=True) if isinstance(own, Probabilities) else own

    def forward(self, batch: ScorerBatch, kept: torch.Tensor) -> torch.Tensor:
        """Outputs (rows, columns) for inputs of which the features `kept` (rows, width) are kept."""
        outputs = self.network.logits(self.model, batch, kept)
        if outputs.shape[1] < len(self.mean):  # one logit, of the second of two classes
            outputs = torch.cat([torch.zeros_like(outputs), outputs], dim=1)
        return outputs if self.network.copies_model else self.mean + self.deviation * outputs

    def divergence(self, outputs: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        """How far outputs are from the model's answers, both (rows, columns), in each row.

        The Kullback-Leibler divergence of probabilities; the squared error of values, in their variance.
        """
        kind = self.output.kind
        if kind == "value":
            return ((outputs - answers) / self.deviation).square().sum(-1)
        if kind == "label":
            least = binary_cross_entropy_with_logits(answers.logit(TINY), answers, reduction="none")
            return (binary_cross_entropy_with_logits(outputs, answers, reduction="none") - least).sum(-1)
        least = cross_entropy(answers, answers.clamp(min=TINY).log())
        return torch.as_tensor(cross_entropy(answers, outputs) - least)

    def ask(self, inputs: Sequence[Input], masks: Sequence[Masks], scale: Scale = "natural") -> list[Floats]:
        """The answers (n, columns) to the masks (n, features) of each input."""
        found: list[Floats] = []
        for start in range(0, len(inputs), READ):
            found += self._ask_some(inputs[start : start + READ], masks[start : start + READ], scale)
        return found

    def _ask_some(self, inputs: Sequence[Input], masks: Sequence[Masks], scale: Scale) -> list[Floats]:
        """The answers of a few inputs, those of one group together."""
        groups: dict[Any, list[int]] = {}
        for i, input in enumerate(inputs):
            groups.setdefault(input.group, []).append(i)
        found: dict[int, Floats] = {}
        for own in groups.values():
            batch = self._read(self.model, [inputs[i] for i in own])
            numbers, width = [len(masks[i]) for i in own], max(masks[i].shape[1] for i in own)
            kept = np.concatenate([np.pad(masks[i], ((0, 0), (0, width - masks[i].shape[1]))) for i in own])
            outputs = self._outputs(batch, np.repeat(np.arange(len(own)), numbers), kept)
            answers = np.split(self.output.as_scale(outputs, scale), np.cumsum(numbers)[:-1])
            found |= dict(zip(own, answers, strict=True))
        return [found[i] for i in range(len(inputs))]

    def _outputs(self, batch: ScorerBatch, rows: Ints, kept: Masks) -> Floats:
        """Outputs (n, columns) for rows of a batch, in several passes if they are many."""
        device, step = self.mean.device, max(1, LARGEST_BATCH // batch.owners.shape[1])
        found = [np.zeros((0, len(self.mean)))]
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            for start in range(0, len(rows), step):
                some = slice(start, start + step)
                own = torch.from_numpy(kept[some]).float().to(device)
                found.append(self(batch.pick(rows[some]), own).cpu().numpy())
        return np.concatenate(found).astype(np.float64)


def train_surrogate(context: TrainingContext) -> tuple[Surrogate, dict[str, Any]]:
    """Train a surrogate on random features of the inputs, and describe it for the card.

    Only the model's answers to the whole inputs are used. The description has the divergence from them on the
    validation inputs of the surrogate, given random features, and of the mean answer; the mean absolute
    difference given all features; and the mean answer to no features, on the scale of the fit.
    """
    answers = [{"answers": e.prediction.values} for e in context.explanations]
    training, validation = context.split(TrainingExamples(context.inputs, answers))
    predictions = np.array([each["answers"] for each in training.targets])
    reader, network = context.new_approximator(training.inputs, predictions.shape[1])
    surrogate = Surrogate(context.model, reader, network, predictions).to(device_of(context.model))
    # Features are drawn anew in each step, so there is no need to stop early.
    settings = replace(context.fit.training, patience=None)
    folder = RunFolder(context.folder.checkpoints / "surrogate", {})
    own = replace(context, fit=replace(context.fit, training=settings), folder=folder)
    card = own.optimise(
        surrogate,
        reader,
        training,
        validation,
        loss=lambda batch: _loss(surrogate, batch).mean(),
        validate=lambda batches: {"loss": _validation_loss(surrogate, batches)},
        measure="loss",
    )
    known = np.array([each["answers"] for each in validation.targets])
    whole = surrogate.ask(validation.inputs, [_every(input) for input in validation.inputs])
    none = [~_every(input) for input in context.inputs]
    empty = surrogate.ask(context.inputs, none, context.fit.request.scale)
    return surrogate, {
        "dev_loss": card["dev_loss"],
        "dev_loss_of_mean": _loss_of_mean(surrogate, predictions.mean(axis=0), known),
        "dev_error_of_whole": float(abs(np.concatenate(whole) - known).mean()),
        "base_values": np.concatenate(empty).mean(axis=0).tolist(),
        "steps": card["steps"],
    }


def _loss(surrogate: Surrogate, batch: TrainingBatch) -> torch.Tensor:
    """The divergence (rows,) for random features; all numbers of features are equally frequent."""
    kept = random_subset(batch.real)
    shares = torch.split(kept, [len(own.owners) for own in batch.passes])
    outputs = [surrogate(own, share) for own, share in zip(batch.passes, shares, strict=True)]
    return surrogate.divergence(torch.cat(outputs), batch.targets["answers"])


def _validation_loss(surrogate: Surrogate, batches: Iterable[TrainingBatch]) -> float:
    """The mean loss, for the same random features whenever it is measured."""
    found = []
    for number, batch in enumerate(batches):
        device = batch.real.device
        with batch.inference(), torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(number)
            found.append(_loss(surrogate, batch).cpu())
    return float(torch.cat(found).mean())


def _loss_of_mean(surrogate: Surrogate, mean: Floats, answers: Floats) -> float:
    """The mean divergence of the mean answer."""
    output = surrogate.output
    if isinstance(output, Probabilities):
        scale: Scale = "logit" if output.kind == "label" else "log-probability"
        mean = replace(output, from_logits=False).as_scale(mean[None], scale)[0]
    both = (torch.from_numpy(np.broadcast_to(each, answers.shape).copy()) for each in (mean, answers))
    return float(surrogate.divergence(*(each.to(surrogate.mean) for each in both)).mean())


def _every(input: Input) -> Masks:
    """The mask (1, features) that keeps all features."""
    return np.ones((1, input.n_features), dtype=np.bool_)
