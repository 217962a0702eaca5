"""A surrogate: a network that learns to predict the model's answer from any subset of features."""

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
from pertinent.learners.network_trainer import TrainingBatch, TrainingExamples, group_indices
from pertinent.learners.networks.scorer import Approximator, Scorer, ScorerBatch, device_of
from pertinent.learners.subsets import cross_entropy, random_subset
from pertinent.masks import empty_mask, full_mask
from pertinent.models.base import Model
from pertinent.outputs import Output, Probabilities, Scale

if TYPE_CHECKING:
    from pertinent.learners.training_context import TrainingContext

TINY = 1e-6
"""Smallest probability whose logarithm is used."""

READ = 32
"""Number of inputs read together."""

LARGEST_BATCH = 2**18
"""Largest number of tokens, pixels or columns per pass."""


class Surrogate(nn.Module):
    r"""A network for the model's expected answer :math:`\mathbb{E}[f(x) \mid x_S]` from any features S.

    Plain values are learned in units of `deviation` (columns,). Unless the network is a copy of the model,
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
        """Return the model's output type, with logits instead of probabilities."""
        output = self.model.output
        return replace(output, from_logits=True) if isinstance(output, Probabilities) else output

    def forward(self, batch: ScorerBatch, kept: torch.Tensor) -> torch.Tensor:
        """Return outputs (rows, columns) for inputs with only the features `kept` (rows, width)."""
        outputs = self.network.logits(self.model, batch, kept)
        if outputs.shape[1] < len(self.mean):  # a single logit, for the second of two classes
            outputs = torch.cat([torch.zeros_like(outputs), outputs], dim=1)
        return outputs if self.network.copies_model else self.mean + self.deviation * outputs

    def divergence(self, outputs: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        """Return the divergence between outputs and the model's answers, both (rows, columns), for each row.

        Kullback-Leibler divergence for probabilities; for values, the squared error in units of their
        variance.
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
        """Return the answers (n, columns) to the masks (n, features) of each input."""
        answers: list[Floats] = []
        for start in range(0, len(inputs), READ):
            answers += self._ask_some(inputs[start : start + READ], masks[start : start + READ], scale)
        return answers

    def _ask_some(self, inputs: Sequence[Input], masks: Sequence[Masks], scale: Scale) -> list[Floats]:
        """Return the answers for a few inputs, batched by group."""
        answers: dict[int, Floats] = {}
        for group in group_indices(inputs):
            batch = self._read(self.model, [inputs[i] for i in group])
            counts, width = [len(masks[i]) for i in group], max(masks[i].shape[1] for i in group)
            kept = np.concatenate([np.pad(masks[i], ((0, 0), (0, width - masks[i].shape[1]))) for i in group])
            outputs = self._outputs(batch, np.repeat(np.arange(len(group)), counts), kept)
            parts = np.split(self.output.as_scale(outputs, scale), np.cumsum(counts)[:-1])
            answers |= dict(zip(group, parts, strict=True))
        return [answers[i] for i in range(len(inputs))]

    def _outputs(self, batch: ScorerBatch, rows: Ints, kept: Masks) -> Floats:
        """Return outputs (n, columns) for rows of a batch, split into several passes if necessary."""
        device, step = self.mean.device, max(1, LARGEST_BATCH // batch.owners.shape[1])
        outputs = [np.zeros((0, len(self.mean)))]
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            for start in range(0, len(rows), step):
                chunk = slice(start, start + step)
                shares = torch.from_numpy(kept[chunk]).float().to(device)
                outputs.append(self(batch.pick(rows[chunk]), shares).cpu().numpy())
        return np.concatenate(outputs).astype(np.float64)


def train_surrogate(context: TrainingContext) -> tuple[Surrogate, dict[str, Any]]:
    """Train a surrogate on random features of the inputs, and describe it for the card.

    Only the model's answers to whole inputs are used. The description has the validation divergence of the
    surrogate, given random features, and of the mean answer; the mean absolute difference given all features;
    and the mean answer to no features, on the scale of the fit.
    """
    targets = [{"answers": e.prediction.values} for e in context.explanations]
    training, validation = context.split(TrainingExamples(context.inputs, targets))
    predictions, expected = (
        np.array([t["answers"] for t in part.targets]) for part in (training, validation)
    )
    reader, network = context.new_approximator(training.inputs, predictions.shape[1])
    surrogate = Surrogate(context.model, reader, network, predictions).to(device_of(context.model))
    # Features are redrawn in every step, so early stopping is not needed.
    settings = replace(context.fit.training, patience=None)
    folder = RunFolder(context.folder.checkpoints / "surrogate", {})
    card = replace(context, fit=replace(context.fit, training=settings), folder=folder).optimise(
        surrogate,
        reader,
        training,
        validation,
        loss=lambda batch: _loss(surrogate, batch).mean(),
        validate=lambda batches: {"loss": _validation_loss(surrogate, batches)},
        measure="loss",
    )
    whole = surrogate.ask(validation.inputs, [full_mask(input.n_features) for input in validation.inputs])
    none = [empty_mask(input.n_features) for input in context.inputs]
    empty = surrogate.ask(context.inputs, none, context.fit.request.scale)
    return surrogate, {
        "dev_loss": card["dev_loss"],
        "dev_loss_of_mean": _loss_of_mean(surrogate, predictions.mean(axis=0), expected),
        "dev_error_of_whole": float(abs(np.concatenate(whole) - expected).mean()),
        "base_values": np.concatenate(empty).mean(axis=0).tolist(),
        "steps": card["steps"],
    }


def _loss(surrogate: Surrogate, batch: TrainingBatch) -> torch.Tensor:
    """Return the divergence (rows,) for random features; all subset sizes are equally frequent."""
    kept = random_subset(batch.real)
    shares = torch.split(kept, [len(part.owners) for part in batch.passes])
    outputs = [surrogate(part, share) for part, share in zip(batch.passes, shares, strict=True)]
    return surrogate.divergence(torch.cat(outputs), batch.targets["answers"])


def _validation_loss(surrogate: Surrogate, batches: Iterable[TrainingBatch]) -> float:
    """Return the mean loss, with the same random features in every call."""
    losses = []
    for number, batch in enumerate(batches):
        device = batch.real.device
        with batch.inference(), torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(number)
            losses.append(_loss(surrogate, batch).cpu())
    return float(torch.cat(losses).mean())


def _loss_of_mean(surrogate: Surrogate, mean: Floats, answers: Floats) -> float:
    """Return the mean divergence of the mean answer."""
    output = surrogate.output
    if isinstance(output, Probabilities):
        scale: Scale = "logit" if output.kind == "label" else "log-probability"
        mean = replace(output, from_logits=False).as_scale(mean[None], scale)[0]
    both = (torch.from_numpy(np.broadcast_to(array, answers.shape).copy()) for array in (mean, answers))
    return float(surrogate.divergence(*(tensor.to(surrogate.mean) for tensor in both)).mean())
