"""The loop that trains networks with a learner's loss, and the examples and batches it trains on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
        """The examples at these positions."""
        return TrainingExamples(*([part[i] for i in chosen.tolist()] for part in (self.inputs, self.targets)))


@dataclass(frozen=True, eq=False)
class TrainingBatch:
    """A batch of whole inputs.

    Attributes
    ----------
    model
        The model that is explained, on the device of the training.
    inputs
        The inputs of the rows.
    real
        Which features exist (rows, width); inputs have different numbers of features.
    targets
        The training targets of the inputs, stacked (rows, …).
    passes
        What a network reads: one batch for each group of inputs that go through it together.
    network
        The network that is trained, perhaps in a multi-device wrapper.
    autocast
        Makes the context manager for mixed precision.
    """

    model: Model
    inputs: Sequence[Input]
    real: torch.Tensor
    targets: Mapping[str, torch.Tensor]
    passes: Sequence[ScorerBatch]
    network: Any
    autocast: Callable[[], Any]

    def scores(self, scorer: Scorer, call: Any = None) -> torch.Tensor:
        """The scores (rows, columns, width) of all features, zero where there is none.

        `call` is the scorer in its multi-device wrapper, if it may be in one.
        """
        width = self.real.shape[1]
        return torch.cat([scorer.scores(self.model, batch, width, call) for batch in self.passes])

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Compute without gradients, in the precision of the training."""
        with torch.no_grad(), self.autocast():
            yield


Loss: TypeAlias = Callable[[TrainingBatch], torch.Tensor]
Measurement: TypeAlias = Callable[[Iterable[TrainingBatch]], Mapping[str, float]]
"""Measures the network on the batches of the validation inputs."""


class NetworkTrainer(ExampleTrainer):
    """Trains networks with the loss of a learner, and measures them as the learner does.

    `reader` is a scorer whose batches all networks read; `explained` is the model that is explained.
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
        placed = copy.copy(explained)
        placed.device = arguments.device
        training, validation = examples
        collators = ExampleCollator(training, placed, reader), ExampleCollator(validation, placed, reader)
        super().__init__(
            networks, arguments, training, validation, collators=collators, metrics=lambda _: {}, **options
        )
        self._loss, self._validate, self._explained, self._validation = loss, validate, placed, validation

    def loss_and_outputs(self, model: Any, prepared: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        """The learner's loss."""
        return self._loss(self._batch(prepared, model)), {}

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Measure the networks on the validation inputs."""
        measured = self._validate(self.validation_batches())
        metrics = {f"eval_{name}": value for name, value in measured.items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def validation_batches(self) -> Iterator[TrainingBatch]:
        """The validation inputs in batches; the networks are put into evaluation mode."""
        networks: Any = self.model
        networks.eval()
        n, size = len(self._validation), self.args.per_device_eval_batch_size
        for start in range(0, n, size):
            places = [(0, i) for i in range(start, min(start + size, n))]
            yield self._batch(self._prepare_inputs(self._dev_collator(places)), networks)

    def _batch(self, prepared: dict[str, Any], network: Any) -> TrainingBatch:
        return TrainingBatch(
            model=self._explained, network=network, autocast=self.compute_loss_context_manager, **prepared
        )


@dataclass(frozen=True, eq=False)
class ExampleCollator:
    """Makes the fields of a `TrainingBatch` from indices of examples; rows follow the order of `passes`."""

    examples: TrainingExamples
    model: Model
    scorer: Scorer

    def __call__(self, places: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """The fields by name."""
        groups: dict[Any, list[int]] = {}
        for _, example in places:
            groups.setdefault(self.examples.inputs[example].group, []).append(example)
        chosen = [example for own in groups.values() for example in own]
        inputs, targets = self.examples.inputs, [self.examples.targets[i] for i in chosen]
        real = stacked([np.ones(inputs[i].n_features, dtype=np.bool_) for i in chosen])
        return {
            "inputs": [inputs[i] for i in chosen],
            "real": torch.from_numpy(real),
            "targets": {
                name: torch.from_numpy(stacked([own[name] for own in targets]).astype(np.float32))
                for name in targets[0]
            },
            "passes": [self.scorer.read(self.model, [inputs[i] for i in own]) for own in groups.values()],
        }


def stacked(arrays: Sequence[Array]) -> Array:
    """Arrays of different sizes as one array, padded with zeros."""
    shape = np.max([array.shape for array in arrays], axis=0)
    found = np.zeros((len(arrays), *shape), dtype=arrays[0].dtype)
    for row, array in zip(found, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return found
