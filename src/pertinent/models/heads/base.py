"""Heads: what transformers models read, what their outputs mean, and how these become numbers.

A head from outside is registered with ``@heads.register("token-classification")``, or by an entry point in
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
"""A function of the network's answer and attention bias that returns the scores (rows, columns) whose
gradients are taken."""


class HeadBatch:
    """One batch of rows that a head answers.

    Attributes
    ----------
    parts
        The rows that the network reads: the requested ones, followed by any others that the head needs.
    """

    def __init__(self, parts: Sequence[TokenRows]) -> None:
        self.parts = parts

    def lay_out(self, compact: Sequence[bool], device: torch.device) -> None:
        """Prepare on the device what `scores` needs, before the network runs.

        `compact` says for each part whether the batch omits the tokens that are not attended to.
        """

    def scores(self, answer: torch.Tensor) -> torch.Tensor:
        """Compute rows of numbers, on the device, from the tensor that `Head.answer_of` returned."""
        return answer

    def collect(self, scores: Array) -> Array:
        """Return the requested rows (rows, columns), once the scores are on the host."""
        return scores


class RegisteredHead(ABC):
    """The part of a head that `wrap` uses: which transformers models it serves, and how they are wrapped.

    Attributes
    ----------
    summary
        What the head explains, in a line.
    tasks
        The tasks of the pipelines it serves.
    architectures
        Parts of the class names of the models it serves; empty if any class may suit.
    auto_class
        The class of transformers that loads such a model from a folder.
    kind
        The kind of input it reads.
    reader
        What prepares its inputs: ``"tokenizer"`` or ``"image_processor"``.
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
        """Return whether the head serves pairs of such a reader and a model with such a class name."""
        if cls.reader != ("image_processor" if hasattr(reader, "do_normalize") else "tokenizer"):
            return False
        names = [base.__name__ for base in type(model).__mro__]
        return not cls.architectures or any(part in name for part in cls.architectures for name in names)

    @classmethod
    def suits(cls, model: Any) -> bool:
        """Return whether a model with a matching class name or task can be wrapped.

        Raise a `ModelError` that says what to do for a model that no head serves.
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

    `TransformerModel` does what all heads need: tokens, compaction, devices, embeddings.

    Attributes
    ----------
    output
        What the numbers mean.
    classes
        A name for each column; empty if the columns differ from input to input.
    columns_differ
        As in `Model`.
    reading
        The options of `TransformerModel` that `wrap` accepts.
    settings
        Settings that the answers depend on, besides the network, the tokenizer and the output.
    segments
        The names of the two texts of an input, if the head reads only pairs.
    reads_windows
        Whether it combines the answers to all windows of a long text.
    is_causal
        Whether the network's tokens attend only to earlier ones, as in a language model.
    default_removal
        The default removal.
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
        """Return the settings of the head, and the options about reading texts."""
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
        """Return the model that is explained, by default the transformer with this head."""
        return model

    def check_encoder(self, encoder: TransformerModel) -> None:
        """Raise an error unless the head suits this encoder, which is complete except for the head."""

    def forget(self) -> None:
        """Discard what was derived from the network's parameters, because they have changed."""

    def prepare_network(self, encoder: TransformerModel) -> None:
        """Inspect the network; called before the encoder inspects it."""

    def network(self, model: Any) -> Any:
        """Return the part of the user's model, or of a copy of it, whose output `answer_of` reads."""
        return model

    # -- inputs --------------------------------------------------------------------------------------

    def prepare(self, raw: Any, features: Features | None, encoder: TransformerModel) -> TextInput | None:
        """Return the tokenized input of a head that does not read plain texts; by default ``None``."""
        return None

    def text_of(self, raw: Any, encoder: TransformerModel) -> Text:
        """Return the text that is tokenized, including its fixed part."""
        return Text.from_input(raw)

    def check_input(self, input: TextInput, encoder: TransformerModel) -> None:
        """Raise an error unless the tokenized input can be answered."""

    def removal_of(self, input: TextInput) -> str:
        """Return the default removal for this input."""
        return self.default_removal

    def split(self, raw: Any) -> Iterable[Any] | None:
        """Return the inputs in `raw`, or ``None`` if it is one input."""
        return modality_named(self.kind).split(raw)

    # -- answers -------------------------------------------------------------------------------------

    def columns_of(self, input: Input) -> tuple[str, ...]:
        """Return a name for each column for this input."""
        return self.classes

    def as_scale(self, input: Input, outputs: Floats, scale: Scale) -> Floats:
        """Return the rows for this input on the given scale."""
        return self.output.as_scale(outputs, scale)

    @abstractmethod
    def answer_of(self, network_output: Any) -> torch.Tensor:
        """Return the answer in the network's output: (rows, …), or (rows, tokens, …) for one per token."""

    def batch(self, parts: Sequence[TokenRows]) -> HeadBatch:
        """Return a batch of these rows; its columns are the model's."""
        return HeadBatch(parts)

    def followed_scores(
        self, seen: Callable[[], list[TokenRows]], encoder: TransformerModel
    ) -> FollowedScores:
        """Return a function that computes the scores whose gradients are taken; by default the answer itself.

        `seen` returns the rows at which the gradients are taken, as the network sees them.
        """
        return lambda answer, _: answer

    def details(self, input: TextInput, encoder: TransformerModel) -> dict[str, str]:
        """Return facts about the prediction to show besides its numbers."""
        return {}
