"""Base class of scorers, networks that give every part of an input a score for each column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pertinent.array_types import Ints
from pertinent.errors import InputError
from pertinent.files import write_json
from pertinent.inputs.base import Input
from pertinent.inputs.modality import modality_named
from pertinent.learners.schedule import Schedule
from pertinent.models.base import Model
from pertinent.models.torch import devices

if TYPE_CHECKING:
    from typing import Self

CONFIG = "config.json"
KIND = "scorer"
"""The field of a configuration that names the kind of scorer; a transformer's encoder has none."""


@dataclass(frozen=True, eq=False)
class ScorerBatch:
    """What a scorer reads of some inputs, and the feature that each part belongs to, −1 if to none.

    Parts are tokens, words, pixels or columns.
    """

    arrays: Any
    owners: Ints

    def pick(self, rows: Ints) -> ScorerBatch:
        """Return a batch of these rows, which may be repeated."""
        arrays = self.arrays
        if isinstance(arrays, Mapping):
            return ScorerBatch({name: array[rows] for name, array in arrays.items()}, self.owners[rows])
        return ScorerBatch(arrays.pick(rows), self.owners[rows])


class Scorer(torch.nn.Module, ABC):
    """A network that scores the parts of an input; a feature's score is the sum over its parts.

    Scores are in units of `deviation` (columns,), so that training does not depend on the magnitude of the
    learned values.

    Attributes
    ----------
    kind
        The kind of inputs it reads, by which it is looked up when it is loaded.
    schedule
        The default schedule of its training.
    config_names
        Names of the attributes that are saved as its configuration, and of the arguments that set them.
    most_classes
        Largest number of classes for which it learns the scores of all classes by default.
    """

    kind: ClassVar[str]
    schedule: ClassVar[Schedule] = Schedule(epochs=100, learning_rate=1e-3, measurements=30)
    most_classes: ClassVar[int] = 20
    config_names: ClassVar[tuple[str, ...]] = ()
    deviation: torch.Tensor

    def __init__(self, n_columns: int) -> None:
        super().__init__()
        self.register_buffer("deviation", torch.ones(n_columns))

    @classmethod
    @abstractmethod
    def from_model(cls, model: Model, inputs: Sequence[Input], n_columns: int, **options: bool) -> Scorer:
        """Make a scorer for inputs like these, with random weights unless it starts from the model's.

        Of the `options` of a `ScoringNetwork`, `context` and `bias`, a scorer uses those it has.
        """

    @classmethod
    def from_config(cls, config: Mapping[str, Any], n_columns: int) -> Self:
        """Make a scorer of this configuration, to load weights into."""
        return cls(n_columns, **{name: config[name] for name in cls.config_names})

    def configuration(self) -> dict[str, Any]:
        """Return the configuration that `from_config` needs, in plain JSON."""
        return {name: getattr(self, name) for name in self.config_names}

    def sharing_passes(self, model: Model) -> AbstractContextManager[None]:
        """Return a context in which the model keeps what the network reuses of its forward passes."""
        del model
        return nullcontext()

    @abstractmethod
    def read(self, model: Model, inputs: Sequence[Input]) -> ScorerBatch:
        """Read a batch of inputs of one group."""

    @abstractmethod
    def forward(self, **options: Any) -> torch.Tensor:
        """Return scores (rows, parts, columns)."""

    def part_scores(self, model: Model, batch: ScorerBatch, call: Any) -> torch.Tensor:
        """Return the scores of a batch; `call` is the scorer, perhaps in a multi-device wrapper."""
        arrays: Mapping[str, Any] = batch.arrays
        device = self.deviation.device
        scores: torch.Tensor = call(**{name: devices.send(array, device) for name, array in arrays.items()})
        return scores

    def scores(self, model: Model, batch: ScorerBatch, width: int, call: Any = None) -> torch.Tensor:
        """Return scores of features (rows, columns, width), in the unit of the learned values."""
        parts = self.part_scores(model, batch, self if call is None else call).float()
        owners = devices.send(batch.owners, parts.device)
        return feature_scores(parts * self.deviation, owners, width)

    def approximator(self, model: Model, n_columns: int) -> Approximator:
        """Make a network that reads the same batches and predicts the model's answer."""
        raise NotImplementedError(f"{self.title} has no approximator.")

    def save_config(self, folder: Path) -> None:
        """Write the configuration into a folder."""
        write_json(folder / CONFIG, {KIND: self.kind, **self.configuration()})

    @property
    def title(self) -> str:
        """Return the displayed name."""
        return type(self).__name__


class Approximator(torch.nn.Module, ABC):
    """A network that predicts a model's answer to an input without some parts, from a scorer's batches.

    Attributes
    ----------
    copies_model
        Whether it is a copy of the model, so that its outputs are answers before it is trained.
    """

    copies_model: ClassVar[bool] = False

    def logits(self, model: Model, batch: ScorerBatch, kept: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, columns) of inputs that keep a share (rows, width) of each feature."""
        owners = devices.send(batch.owners, kept.device)
        part_shares = kept.gather(1, owners.clamp(min=0)).masked_fill(owners < 0, 1.0)
        return self.part_logits(model, batch, part_shares)

    @abstractmethod
    def part_logits(self, model: Model, batch: ScorerBatch, kept: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, columns) of inputs that keep a share (rows, parts) of each part."""


class ArrayApproximator(Approximator):
    """An approximator that reads arrays by name."""

    def part_logits(self, model: Model, batch: ScorerBatch, kept: torch.Tensor) -> torch.Tensor:
        """Send the arrays to the device, and run the network."""
        arrays: Mapping[str, Any] = batch.arrays
        sent = {name: devices.send(array, kept.device) for name, array in arrays.items()}
        logits: torch.Tensor = self(kept, **sent)
        return logits

    @abstractmethod
    def forward(self, kept: torch.Tensor, **arrays: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, columns) of inputs that keep a share (rows, parts) of each part."""


def device_of(model: Model) -> torch.device:
    """Return the device of the model, and so of its explainer; the CPU if the model has none."""
    return model.device or torch.device("cpu")


def small_scorer_for(inputs: Sequence[Input]) -> type[Scorer]:
    """Return the small network for such inputs, which their modality names."""
    kinds = {input.kind for input in inputs}
    if len(kinds) > 1:
        raise InputError(f"`inputs` must be of one kind, but are {' and '.join(sorted(kinds))}.")
    return scorer_of_modality(kinds.pop())


def scorer_of_modality(kind: str) -> type[Scorer]:
    """Return the network that a modality names."""
    scorer = modality_named(kind).scorer
    if scorer is None:
        raise InputError(f"No network reads inputs of the kind {kind!r}: its modality has no `scorer`.")
    cls: type[Scorer] = resolve_name(scorer) if isinstance(scorer, str) else scorer
    return cls


def run_recurrent(layer: nn.RNNBase, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return the outputs of a recurrent layer for padded sequences (rows, positions, width)."""
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    outputs, _ = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=x.shape[1])
    return outputs


def feature_scores(scores: torch.Tensor, owners: torch.Tensor, width: int) -> torch.Tensor:
    """Return scores of parts (rows, parts, columns) summed by feature (rows, columns, width).

    Parts that belong to no feature, such as special tokens and padding, are ignored.
    """
    n_rows, _, n_columns = scores.shape
    sums = scores.new_zeros(n_rows, width + 1, n_columns)
    indices = (owners + 1)[..., None].expand(-1, -1, n_columns)
    return sums.scatter_add(1, indices, scores)[:, 1:].transpose(1, 2)
