"""Base class of scorers: networks that score every element of an input for each column."""

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
"""Field of a configuration that names the kind of scorer; absent for a transformer's encoder."""


@dataclass(frozen=True, eq=False)
class ScorerBatch:
    """What a scorer reads of some inputs, and the feature index of each element (−1 for none).

    Elements are tokens, words, pixels or columns.
    """

    arrays: Any
    owners: Ints

    def pick(self, rows: Ints) -> ScorerBatch:
        """Return a batch of these rows; rows may be repeated."""
        arrays = self.arrays
        if isinstance(arrays, Mapping):
            return ScorerBatch({name: array[rows] for name, array in arrays.items()}, self.owners[rows])
        return ScorerBatch(arrays.pick(rows), self.owners[rows])


class Scorer(torch.nn.Module, ABC):
    """A network that scores the elements of an input; a feature's score is the sum over its elements.

    Scores are in units of `deviation` (columns,), so training does not depend on the magnitude of the learned
    values.

    Attributes
    ----------
    kind
        Kind of inputs it reads, which identifies the class on loading.
    schedule
        Default training schedule.
    config_names
        Names of the attributes saved as the configuration, and of the arguments that set them.
    most_classes
        Largest number of classes for which all classes are learned by default.
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
        """Create a scorer for inputs like these, with random weights unless it starts from the model's.

        The `options` are those of a `ScoringNetwork` (`context` and `bias`); a scorer ignores those it lacks.
        """

    @classmethod
    def from_config(cls, config: Mapping[str, Any], n_columns: int) -> Self:
        """Create a scorer with this configuration, to load weights into."""
        return cls(n_columns, **{name: config[name] for name in cls.config_names})

    def configuration(self) -> dict[str, Any]:
        """Return the configuration that `from_config` needs, as plain JSON."""
        return {name: getattr(self, name) for name in self.config_names}

    def sharing_passes(self, model: Model) -> AbstractContextManager[None]:
        """Return a context in which the model caches the forward passes that the network reuses."""
        del model
        return nullcontext()

    @abstractmethod
    def read(self, model: Model, inputs: Sequence[Input]) -> ScorerBatch:
        """Read a batch of inputs of one group."""

    @abstractmethod
    def forward(self, **options: Any) -> torch.Tensor:
        """Return scores (rows, parts, columns)."""

    def part_scores(self, model: Model, batch: ScorerBatch, call: Any) -> torch.Tensor:
        """Return the scores of a batch; `call` is the scorer, possibly in a multi-device wrapper."""
        arrays: Mapping[str, Any] = batch.arrays
        device = self.deviation.device
        scores: torch.Tensor = call(**{name: devices.send(array, device) for name, array in arrays.items()})
        return scores

    def scores(self, model: Model, batch: ScorerBatch, width: int, call: Any = None) -> torch.Tensor:
        """Return feature scores (rows, columns, width) in the unit of the learned values."""
        parts = self.part_scores(model, batch, self if call is None else call).float()
        owners = devices.send(batch.owners, parts.device)
        return feature_scores(parts * self.deviation, owners, width)

    def approximator(self, model: Model, n_columns: int) -> Approximator:
        """Create a network that reads the same batches and predicts the model's answer."""
        raise NotImplementedError(f"{self.title} has no approximator.")

    def save_config(self, folder: Path) -> None:
        """Write the configuration into a folder."""
        write_json(folder / CONFIG, {KIND: self.kind, **self.configuration()})

    @property
    def title(self) -> str:
        """Return the display name."""
        return type(self).__name__


class Approximator(torch.nn.Module, ABC):
    """A network that predicts a model's answer to an input with missing elements, from a scorer's batches.

    Attributes
    ----------
    copies_model
        Whether it is a copy of the model, so its outputs are meaningful before training.
    """

    copies_model: ClassVar[bool] = False

    def logits(self, model: Model, batch: ScorerBatch, kept: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, columns) given the kept share (rows, width) of each feature."""
        owners = devices.send(batch.owners, kept.device)
        part_shares = kept.gather(1, owners.clamp(min=0)).masked_fill(owners < 0, 1.0)
        return self.part_logits(model, batch, part_shares)

    @abstractmethod
    def part_logits(self, model: Model, batch: ScorerBatch, kept: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, columns) given the kept share (rows, parts) of each element."""


class ArrayApproximator(Approximator):
    """An approximator that reads arrays by name."""

    def part_logits(self, model: Model, batch: ScorerBatch, kept: torch.Tensor) -> torch.Tensor:
        """Send the arrays to the device and run the network."""
        arrays: Mapping[str, Any] = batch.arrays
        sent = {name: devices.send(array, kept.device) for name, array in arrays.items()}
        logits: torch.Tensor = self(kept, **sent)
        return logits

    @abstractmethod
    def forward(self, kept: torch.Tensor, **arrays: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, columns) given the kept share (rows, parts) of each element."""


def device_of(model: Model) -> torch.device:
    """Return the device of the model, which its explainer shares; the CPU if the model has none."""
    return model.device or torch.device("cpu")


def small_scorer_for(inputs: Sequence[Input]) -> type[Scorer]:
    """Return the small network that the inputs' modality declares."""
    kinds = {input.kind for input in inputs}
    if len(kinds) > 1:
        raise InputError(f"`inputs` must be of one kind, but are {' and '.join(sorted(kinds))}.")
    return scorer_of_modality(kinds.pop())


def scorer_of_modality(kind: str) -> type[Scorer]:
    """Return the network that a modality declares."""
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
    """Return element scores (rows, parts, columns) summed by feature (rows, columns, width).

    Elements that belong to no feature, such as special tokens and padding, are ignored.
    """
    n_rows, _, n_columns = scores.shape
    sums = scores.new_zeros(n_rows, width + 1, n_columns)
    indices = (owners + 1)[..., None].expand(-1, -1, n_columns)
    return sums.scatter_add(1, indices, scores)[:, 1:].transpose(1, 2)
