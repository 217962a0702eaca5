"""Heads: what transformers models read, what their answers mean and how they become numbers.

A head from outside registers itself by ``@heads.register("token-classification")``, or by an entry point in
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


class RegisteredHead(ABC):
    """What `wrap` knows of a head: the transformers models it serves, and how they are wrapped.

    Attributes
    ----------
    summary
        What the head does, in a line.
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
        """Return whether a pair's reader and class name are those of the models that the head serves."""
        if cls.reader != ("image_processor" if hasattr(reader, "do_normalize") else "tokenizer"):
            return False
        names = [base.__name__ for base in type(model).__mro__]
        return not cls.architectures or any(part in name for part in cls.architectures for name in names)

    @classmethod
    def suits(cls, model: Any) -> bool:
        """Return whether a model with a matching class name or task can be wrapped.

        Raise a `ModelError` that names the way out for a model that no head serves.
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

    The encoder's plumbing (tokens, compaction, devices, embeddings) is shared: see `TransformerModel`.

    Attributes
    ----------
    output
        What its numbers mean.
    classes
        A name for each of its columns; empty if these differ from input to input.
    columns_differ
        As in `Model`.
    reading
        The options of `TransformerModel` that `wrap` accepts.
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
    reading: ClassVar[tuple[str, ...]] = ("max_length", "long_texts", "compaction")
    settings: tuple[object, ...] = ()
    segments: tuple[str, ...] = ()
    reads_windows: bool = False
    is_causal: bool = False
    default_removal: str = "attention-mask"

    @classmethod
    def options(cls) -> list[str]:
        """Return the settings of the head, and what a transformer's tokens are read by."""
        return [*constructor_options(cls), *cls.reading]

    @classmethod
    def wrap(cls, model: Any, reader: Any, **options: Any) -> Model:
        """Build the head, and the model with it."""
        reading = {name: options.pop(name) for name in cls.reading if name in options}
        head = cls.from_model(model, **options)
        return head.explained(TransformerModel(model, reader, head=head, **reading))

    @classmethod
    def from_model(cls, model: Any, **settings: Any) -> Self:
        """Return the head of a transformers model."""
        return cls(**settings)

    def explained(self, model: TransformerModel) -> Model:
        """Return the model that is explained, by default the transformer with this head."""
        return model

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
        return modality_named(self.kind).split(raw)

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
