"""The interface of a head: what a transformer reads, what its answers mean and how they become numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from pertinent.array_types import Array, Floats
from pertinent.inputs.base import Features, Input
from pertinent.inputs.modality import modality_named
from pertinent.inputs.text import Text, TextInput
from pertinent.outputs import Output, Scale
from pertinent.removals.base import TokenRows

if TYPE_CHECKING:
    from pertinent.models.transformer import TransformerModel

FollowedScores: TypeAlias = Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor]
"""Makes scores (rows, columns) whose gradients are taken, from the network's answer and attention bias."""


class HeadBatch:
    """One batch of rows that a head answers.

    Attributes
    ----------
    parts
        The rows that the network reads: those asked for, followed by any others that the head needs.
    """

    def __init__(self, parts: Sequence[TokenRows]) -> None:
        self.parts = parts

    def lay_out(self, compact: Sequence[bool], device: torch.device) -> None:
        """Prepare on the device what `scores` needs, before the network runs.

        `compact` says of each part whether tokens that are not attended to are left out of the batch.
        """

    def scores(self, answer: torch.Tensor) -> torch.Tensor:
        """Rows of numbers from what `Head.answer_of` found; computed on the device."""
        return answer

    def collect(self, scores: Array) -> Array:
        """The model's rows (rows, columns), once the scores have come back from the device."""
        return scores


class Head(ABC):
    """The part of a model that turns a transformer's hidden states into an answer.

    The encoder's plumbing (tokens, compaction, devices, embeddings) is shared: see `TransformerModel`.

    Attributes
    ----------
    output
        What its numbers mean.
    classes
        A name for each of its columns; empty if these differ from input to input.
    columns_differ
        As in `Model`.
    settings
        Settings that its answers depend on, besides the network, the tokenizer and the output.
    segments
        The names of the two texts that it reads, if it reads pairs alone.
    reads_windows
        Whether it makes one answer of the answers to all windows of a long text.
    is_causal
        Whether the network's tokens attend to earlier ones alone, as those of a language model.
    default_removal
        The removal used by default.
    """

    output: Output
    classes: tuple[str, ...]
    columns_differ: bool = False
    settings: tuple[object, ...] = ()
    segments: tuple[str, ...] = ()
    reads_windows: bool = False
    is_causal: bool = False
    default_removal: str = "attention-mask"

    def check_encoder(self, encoder: TransformerModel) -> None:
        """Raise an error unless the head suits this encoder, which is complete except for the head."""

    def forget(self) -> None:
        """Forget what was derived from the network's parameters, because they have changed."""

    def prepare_network(self, encoder: TransformerModel) -> None:
        """Find what the head needs of the network, before anything else is found out about it."""

    def network(self, model: Any) -> Any:
        """The part of the user's model, or of a copy of it, that computes what `answer_of` reads."""
        return model

    # -- inputs --------------------------------------------------------------------------------------

    def prepare(self, raw: Any, features: Features | None, encoder: TransformerModel) -> TextInput | None:
        """The tokenised input of a head that does not read plain texts; by default ``None``."""
        return None

    def text_of(self, raw: Any, encoder: TransformerModel) -> Text:
        """The text that is tokenised, with the part of it that is never removed."""
        return Text.from_input(raw)

    def check_input(self, input: TextInput, encoder: TransformerModel) -> None:
        """Raise an error unless the tokenised input can be answered."""

    def removal_of(self, input: TextInput) -> str:
        """The removal used by default for this input."""
        return self.default_removal

    def split(self, raw: Any) -> Iterable[Any] | None:
        """The inputs in `raw`, or ``None`` if it is one."""
        return modality_named("text").split(raw)

    # -- answers -------------------------------------------------------------------------------------

    def columns_of(self, input: Input) -> tuple[str, ...]:
        """A name for each of its columns for this input."""
        return self.classes

    def as_scale(self, input: Input, outputs: Floats, scale: Scale) -> Floats:
        """Its rows for this input on the given scale."""
        return self.output.as_scale(outputs, scale)

    @abstractmethod
    def answer_of(self, network_output: Any) -> torch.Tensor:
        """The answer in what the network returned: (rows, …), or (rows, tokens, …) if each token has one."""

    def batch(self, parts: Sequence[TokenRows]) -> HeadBatch:
        """A batch of these rows; its columns are the model's."""
        return HeadBatch(parts)

    def followed_scores(
        self, seen: Callable[[], list[TokenRows]], encoder: TransformerModel
    ) -> FollowedScores:
        """A function that makes the scores whose gradients are taken; by default the answer itself.

        `seen` returns the rows at which the gradients are taken, as the network sees them.
        """
        return lambda answer, _: answer

    def details(self, input: TextInput, encoder: TransformerModel) -> dict[str, str]:
        """What a person should be told about the prediction besides its numbers."""
        return {}
