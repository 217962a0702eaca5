"""The training loop for networks with a learner's loss, and its examples and batches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import torch

from pertinent.array_types import Array, Ints
from pertinent.finetuning.batches import InputSet
from pertinent.finetuning.trainer import ExampleTrainer
from pertinent.inputs.base import Input
from pertinent.learners.base import TrainingTargets
from pertinent.learners.networks.scorer import Scorer, ScorerBatch
from pertinent.models.base import Model


@dataclass(frozen=True, eq=False)
class TrainingExamples(InputSet):
    """Inputs with their training targets."""

    targets: Sequence[TrainingTargets]

    def pick(self, chosen: Ints) -> TrainingExamples:
        """Return the examples at these indices."""
        return TrainingExamples(*([part[i] for i in chosen.tolist()] for part in (self.inputs, self.targets)))


@dataclass(frozen=True, eq=False)
class TrainingBatch:
    """A batch of whole inputs.

    Attributes
    ----------
    model
        The explained model, on the training device.
    inputs
        The inputs of the rows.
    real
        Mask of existing features (rows, width); the number of features varies between inputs.
    targets
        The training targets of the inputs, stacked (rows, …).
    passes
        The inputs of the networks: one scorer batch per group of inputs that is processed together.
    network
        The network being trained, possibly in a multi-device wrapper.
    autocast
        Function that returns the context manager for mixed precision.
    """

    model: Model
    inputs: Sequence[Input]
    real: torch.Tensor
    targets: Mapping[str, torch.Tensor]
    passes: Sequence[ScorerBatch]
    network: Any
    autocast: Callable[[], Any]

    def scores(self, scorer: Scorer, call: Any = None) -> torch.Tensor:
        """Return the scores (rows, columns, width) of all features, zero for padding.

        `call` is the scorer in its multi-device wrapper, if there is one.
        """
        width = self.real.shape[1]
        return torch.cat([scorer.scores(self.model, batch, width, call) for batch in self.passes])

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Disable gradients, using the training precision."""
        with torch.no_grad(), self.autocast():
            yield


Loss: TypeAlias = Callable[[TrainingBatch], torch.Tensor]
Measurement: TypeAlias = Callable[[Iterable[TrainingBatch]], Mapping[str, float]]
"""Function that measures the network on batches of validation inputs."""


class NetworkTrainer(ExampleTrainer):
    """A trainer of networks with a learner's loss and measures.

    All networks read the batches of `reader`, a scorer; `explained` is the explained model.
    """

    def __init__(
        self,
        networks: torch.nn.Module,
        reader: Scorer,
        explained: Model,
        arguments: Any,
        examples: tuple[TrainingExamples, TrainingExamples],
        *,
        loss: Loss,
        validate: Measurement,
        **options: Any,
    ) -> None:
        explained = copy.copy(explained)
        explained.device = arguments.device
        training, validation = examples
        collate = partial(ExampleCollator, model=explained, scorer=reader)
        collators = collate(training), collate(validation)
        super().__init__(
            networks, arguments, training, validation, collators=collators, metrics=lambda _: {}, **options
        )
        self._loss, self._validate, self._explained, self._validation = loss, validate, explained, validation

    def loss_and_outputs(self, model: Any, prepared: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        """Return the learner's loss."""
        return self._loss(self._batch(prepared, model)), {}

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Measure the networks on the validation inputs."""
        measured = self._validate(self.validation_batches())
        metrics = {f"eval_{name}": value for name, value in measured.items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def validation_batches(self) -> Iterator[TrainingBatch]:
        """Yield the validation inputs in batches, with the networks in evaluation mode."""
        networks: Any = self.model
        networks.eval()
        n, size = len(self._validation), self.args.per_device_eval_batch_size
        for start in range(0, n, size):
            indices = [(0, i) for i in range(start, min(start + size, n))]
            yield self._batch(self._prepare_inputs(self._dev_collator(indices)), networks)

    def _batch(self, prepared: dict[str, Any], network: Any) -> TrainingBatch:
        return TrainingBatch(
            model=self._explained, network=network, autocast=self.compute_loss_context_manager, **prepared
        )


@dataclass(frozen=True, eq=False)
class ExampleCollator:
    """Makes the fields of a `TrainingBatch` from example indices; rows follow the order of `passes`."""

    examples: TrainingExamples
    model: Model
    scorer: Scorer

    def __call__(self, indices: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """Return the fields by name."""
        batch = self.examples.pick(np.array([example for _, example in indices]))
        groups = group_indices(batch.inputs)
        batch = batch.pick(np.concatenate(groups))
        ends = np.cumsum([len(group) for group in groups]).tolist()
        return {
            "inputs": batch.inputs,
            "real": torch.from_numpy(
                stack_padded([np.ones(input.n_features, dtype=np.bool_) for input in batch.inputs])
            ),
            "targets": {
                name: torch.from_numpy(stack_padded([t[name] for t in batch.targets]).astype(np.float32))
                for name in batch.targets[0]
            },
            "passes": [
                self.scorer.read(self.model, batch.inputs[start:end]) for start, end in pairwise([0, *ends])
            ],
        }


def group_indices(inputs: Sequence[Input]) -> list[list[int]]:
    """Return the indices of the inputs in each group; a network processes each group together."""
    groups: dict[Any, list[int]] = {}
    for i, input in enumerate(inputs):
        groups.setdefault(input.group, []).append(i)
    return list(groups.values())


def stack_padded(arrays: Sequence[Array]) -> Array:
    """Stack arrays of different sizes, padded with zeros."""
    shape = np.max([array.shape for array in arrays], axis=0)
    padded = np.zeros((len(arrays), *shape), dtype=arrays[0].dtype)
    for row, array in zip(padded, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return padded
