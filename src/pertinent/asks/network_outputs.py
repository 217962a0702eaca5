"""Network outputs: what does a fitted network say of the features of this input?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.asks.base import BatchPart, Question
from pertinent.errors import ModelError
from pertinent.outputs import Scale

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Answer, Model
    from pertinent.removals.base import Removal


class Network(ABC):
    """A network that was fitted to explain one model; it gives one row of scores for each of its columns.

    Attributes
    ----------
    card
        What it was trained on, and how well it does, in plain JSON.
    folder
        The folder that it was last saved to or loaded from, as an absolute path; ``None`` if there is none.
    """

    card: Mapping[str, Any]
    folder: Path | None = None

    @property
    @abstractmethod
    def fingerprint(self) -> bytes:
        """A digest of its weights and its card."""

    @abstractmethod
    def check(self, model: Model, removal: Removal) -> None:
        """Raise an error unless it was fitted for this model and this removal."""

    def sharing_passes(self, model: Model) -> AbstractContextManager[None]:
        """A context in which the model keeps what the network needs of its passes; by default nothing."""
        del model
        return nullcontext()

    @abstractmethod
    def submit(self, model: Model, inputs: Sequence[Input]) -> Answer:
        """Start a pass over these inputs, on the model's device."""

    @abstractmethod
    def read(self, outputs: Any, inputs: Sequence[Input]) -> list[Floats]:
        """The scores (columns, features) of each input."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the weights and the card, the card last."""


@dataclass(frozen=True, eq=False)
class NetworkOutputs(Question):
    """What does a fitted network say of the features of this input?

    Answered with scores (columns, features). A pass costs 1.
    """

    remembered = True
    network: Network

    @property
    def keys(self) -> list[bytes]:
        """The network's fingerprint, as the key of the only row."""
        return [self.network.fingerprint]

    def on_scale(self, scale: Scale, groups: int = 0) -> NetworkOutputs:
        """The same question on every scale: the scale is part of what the network was fitted to."""
        return self

    def group(self, model: Model, input: Input) -> Hashable:
        """Only questions to the same network share a batch."""
        return super().group(model, input), self.network.fingerprint

    def costs(self, model: Model, input: Input, removal: Removal, rows: Ints) -> Ints:
        """The cost of reading the whole input, after a check that the network fits the model and removal."""
        self.network.check(model, removal)
        return super().costs(model, input, removal, rows)

    @classmethod
    def handle(cls, model: Model, parts: Sequence[BatchPart]) -> Answer:
        """Run the network, which is the same for all parts of a batch."""
        network: Network = parts[0].question.network
        return network.submit(model, [part.input for part in parts])

    @staticmethod
    def read(model: Model, outputs: Any, parts: Sequence[BatchPart]) -> list[Sequence[Any] | Exception]:
        """The scores of each input."""
        network: Network = parts[0].question.network
        reason = "The fitted network answered with NaN or infinity."
        found = network.read(outputs, [part.input for part in parts])
        return [[scores] if np.isfinite(scores).all() else ModelError(reason) for scores in found]

    def assemble(self, model: Model, input: Input, answers: list[Floats]) -> Floats:
        """Scores (columns, features)."""
        return answers[0]
