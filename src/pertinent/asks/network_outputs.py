"""Network outputs: the scores that a fitted network assigns to the features of an input."""

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
    """A network fitted to explain one model that returns a row of scores for each column.

    Attributes
    ----------
    card
        Training data and accuracy, as plain JSON.
    folder
        Folder that it was last saved to or loaded from, as an absolute path; None if there is none.
    """

    card: Mapping[str, Any]
    folder: Path | None = None

    @property
    @abstractmethod
    def fingerprint(self) -> bytes:
        """Return a digest of the weights and the card."""

    @abstractmethod
    def check(self, model: Model, removal: Removal) -> None:
        """Raise an error unless the network was fitted for this model and removal."""

    def sharing_passes(self, model: Model) -> AbstractContextManager[None]:
        """Return a context in which the model caches the forward passes that the network reuses."""
        del model
        return nullcontext()

    @abstractmethod
    def submit(self, model: Model, inputs: Sequence[Input]) -> Answer:
        """Start a pass over these inputs on the model's device."""

    @abstractmethod
    def read(self, outputs: Any, inputs: Sequence[Input]) -> list[Floats]:
        """Return the scores (columns, features) of each input."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the weights, then the card."""


@dataclass(frozen=True, eq=False)
class NetworkOutputs(Question):
    """Requests the scores that a fitted network assigns to the features of this input.

    Answered with scores (columns, features). A pass costs 1.
    """

    remembered = True
    network: Network

    @property
    def keys(self) -> list[bytes]:
        """Return the network's fingerprint as the key of the only row."""
        return [self.network.fingerprint]

    def on_scale(self, scale: Scale, groups: int = 0) -> NetworkOutputs:
        """Return the question unchanged, because the network was fitted to one scale."""
        return self

    def group(self, model: Model, input: Input) -> Hashable:
        """Return a group that depends on the network."""
        return super().group(model, input), self.network.fingerprint

    def costs(self, model: Model, input: Input, removal: Removal, rows: Ints) -> Ints:
        """Return the cost of a pass over the input; raise an error if the network does not fit the model."""
        self.network.check(model, removal)
        return super().costs(model, input, removal, rows)

    @classmethod
    def handle(cls, model: Model, parts: Sequence[BatchPart]) -> Answer:
        """Run the network, which is the same for all parts of a batch."""
        network: Network = parts[0].question.network
        return network.submit(model, [part.input for part in parts])

    @staticmethod
    def read(model: Model, outputs: Any, parts: Sequence[BatchPart]) -> list[Sequence[Any] | Exception]:
        """Return the scores of each input."""
        network: Network = parts[0].question.network
        error = ModelError("The fitted network returned NaN or infinity.")
        answers = network.read(outputs, [part.input for part in parts])
        return [[scores] if np.isfinite(scores).all() else error for scores in answers]

    def assemble(self, model: Model, input: Input, answers: list[Floats]) -> Floats:
        """Return scores (columns, features)."""
        return answers[0]
