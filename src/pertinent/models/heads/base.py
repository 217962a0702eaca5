"""Heads define what transformers models read, what their outputs mean, and how to compute them.

Third-party heads are registered with ``@heads.register("token-classification")`` or through an entry point in
the group ``pertinent.heads``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self, TypeAlias

import torch

from pertinent.array_types import Array, Floats
from pertinent.config.registry import Registry
from pertinent.inputs.base import Features, Input
from pertinent.inputs.modality import modality_named
from pertinent.inputs.text import Text, TextInput
from pertinent.models.base import Model, constructor_options
from pertinent.models.transformer import TransformerModel
from pertinent.outputs import Output, Scale
from pertinent.removals.base import TokenRows

FollowedScores: TypeAlias = Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor]
"""Function from the network's answer and attention bias to the scores (rows, columns) whose gradients
are computed."""


class HeadBatch:
    """One batch of rows for a head to answer.

    Attributes
    ----------
    parts
        The rows that the network reads: the requested rows, followed by any others that the head needs.
    """

    def __init__(self, parts: Sequence[TokenRows]) -> None:
        self.parts = parts

    def lay_out(self, compact: Sequence[bool], device: torch.device) -> None:
        """Prepare what `scores` needs on the device, before the network runs.

        `compact` tells for each part whether the batch omits tokens that are not attended to.
        """

    def scores(self, answer: torch.Tensor) -> torch.Tensor:
        """Compute rows of numbers on the device from the tensor returned by `Head.answer_of`."""
        return answer

    def collect(self, scores: Array) -> Array:
        """Return the requested rows (rows, columns) once the scores are on the host."""
        return scores


class RegisteredHead(ABC):
    """The part of a head used by `wrap`: which transformers models it supports, and how to wrap them.

    Attributes
    ----------
    summary
        What the head explains, in one line.
    tasks
        Pipeline tasks that it supports.
    architectures
        Substrings of the class names of supported models; empty if any class may be suitable.
    auto_class
        Transformers class that loads such a model from a folder.
    kind
        Kind of input that it reads.
    reader
        Attribute that prepares inputs: ``"tokenizer"`` or ``"image_processor"``.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]] = ()
    architectures: ClassVar[tuple[str, ...]] = ()
    auto_class: ClassVar[str] = "AutoModel"
    kind: ClassVar[str] = "text"
    reader: ClassVar[str] = "tokenizer"

    @classmethod
    def reads_pair(cls, model: Any, reader: Any) -> bool:
        """Return whether the head supports this reader and a model with this class name."""
        if cls.reader != ("image_processor" if hasattr(reader, "do_normalize") else "tokenizer"):
            return False
        names = [base.__name__ for base in type(model).__mro__]
        return not cls.architectures or any(part in name for part in cls.architectures for name in names)

    @classmethod
    def suits(cls, model: Any) -> bool:
        """Return whether a model with a matching class name or task can be wrapped.

        Raise a `ModelError` with advice for a model that no head supports.
        """
        return True

    @classmethod
    @abstractmethod
    def options(cls) -> list[str]:
        """Return the names of the options that `wrap` accepts."""

    @classmethod
    @abstractmethod
    def wrap(cls, model: Any, reader: Any, **options: Any) -> Model:
        """Return the wrapped model."""


heads: Registry[RegisteredHead] = Registry("head", "pertinent.models.heads", "pertinent.heads")


class Head(RegisteredHead):
    """The part of a model that turns a transformer's hidden states into an answer.

    `TransformerModel` provides what all heads need: tokens, compaction, devices, embeddings.

    Attributes
    ----------
    output
        Meaning of the numbers.
    classes
        Names of the columns; empty if the columns differ between inputs.
    columns_differ
        As in `Model`.
    reading
        Options of `TransformerModel` that `wrap` accepts.
    settings
        Settings that the answers depend on, besides the network, the tokenizer and the output.
    segments
        Names of the two texts of an input if the head reads only pairs.
    reads_windows
        Whether the answers to all windows of a long text can be combined.
    is_causal
        Whether tokens attend only to earlier tokens, as in a language model.
    default_removal
        Name of the default removal.
    """

    output: Output
    classes: tuple[str, ...]
    columns_differ: bool = False
    reading: ClassVar[tuple[str, ...]] = ("max_length", "long_texts", "compaction")
    settings: tuple[object, ...] = ()
    segments: tuple[str, ...] = ()
    reads_windows: bool = False
    is_causal: bool = False
    default_removal: str = "attention-mask"

    @classmethod
    def options(cls) -> list[str]:
        """Return the head's settings and the options for reading texts."""
        return [*constructor_options(cls), *cls.reading]

    @classmethod
    def wrap(cls, model: Any, reader: Any, **options: Any) -> Model:
        """Return the model with this head, constructed from its settings."""
        reading = {name: options.pop(name) for name in cls.reading if name in options}
        head = cls.from_model(model, **options)
        return head.finish(TransformerModel(model, reader, head=head, **reading))

    @classmethod
    def from_model(cls, model: Any, **settings: Any) -> Self:
        """Return the head of a transformers model."""
        return cls(**settings)

    def finish(self, model: TransformerModel) -> Model:
        """Return the model to explain; by default the transformer with this head."""
        return model

    def check_encoder(self, encoder: TransformerModel) -> None:
        """Raise an error unless the head suits this encoder, which is complete except for the head."""

    def forget(self) -> None:
        """Discard everything derived from the network's parameters, because they have changed."""

    def prepare_network(self, encoder: TransformerModel) -> None:
        """Inspect the network; called before the encoder inspects it."""

    def network(self, model: Any) -> Any:
        """Return the part of a model, the user's or a copy, whose output `answer_of` reads."""
        return model

    # -- inputs --------------------------------------------------------------------------------------

    def prepare(self, raw: Any, features: Features | None, encoder: TransformerModel) -> TextInput | None:
        """Return the tokenized input if the head does not read plain texts; by default ``None``."""
        return None

    def text_of(self, raw: Any, encoder: TransformerModel) -> Text:
        """Return the text to tokenize, including its fixed part."""
        return Text.from_input(raw)

    def check_input(self, input: TextInput, encoder: TransformerModel) -> None:
        """Raise an error unless the head can answer the tokenized input."""

    def removal_of(self, input: TextInput) -> str:
        """Return the default removal for this input."""
        return self.default_removal

    def split(self, raw: Any) -> Iterable[Any] | None:
        """Return the inputs in a collection, or ``None`` if `raw` is a single input."""
        return modality_named(self.kind).split(raw)

    # -- answers -------------------------------------------------------------------------------------

    def columns_of(self, input: Input) -> tuple[str, ...]:
        """Return the names of the columns for this input."""
        return self.classes

    def as_scale(self, input: Input, outputs: Floats, scale: Scale) -> Floats:
        """Convert rows for this input to the scale."""
        return self.output.as_scale(outputs, scale)

    @abstractmethod
    def answer_of(self, network_output: Any) -> torch.Tensor:
        """Return the answer in the network's output: (rows, …), or (rows, tokens, …) with one per token."""

    def batch(self, parts: Sequence[TokenRows]) -> HeadBatch:
        """Return a batch of these rows with the model's columns."""
        return HeadBatch(parts)

    def followed_scores(
        self, seen: Callable[[], list[TokenRows]], encoder: TransformerModel
    ) -> FollowedScores:
        """Return a function that computes the scores to differentiate; by default the answer itself.

        `seen` returns the rows at which gradients are computed, as seen by the network.
        """
        return lambda answer, _: answer

    def details(self, input: TextInput, encoder: TransformerModel) -> dict[str, str]:
        """Return additional facts about the prediction."""
        return {}
