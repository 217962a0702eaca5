"""Interface between models and the engine."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.asks import BatchPart, Question
from pertinent.config.fingerprints import digest
from pertinent.errors import ModelError
from pertinent.inputs.background import Background
from pertinent.inputs.base import Input
from pertinent.models.threads import ThreadCount
from pertinent.outputs import Output, Scale
from pertinent.removals.base import Removal, Rows

if TYPE_CHECKING:
    import torch

SHOWN_NAMES = 5
"""Largest number of column names shown by `repr`."""

_OUT_OF_MEMORY_TYPES = ("OutOfMemoryError", "ResourceExhaustedError")
_OUT_OF_MEMORY_WORDS = ("out of memory", "can't allocate memory", "alloc_failed", "resource_exhausted")


@dataclass(frozen=True)
class Answer:
    """The answer to a batch, which may still be in progress.

    Attributes
    ----------
    outputs
        Function that waits for the result and returns it.
    seconds
        Function that returns the device time in seconds.
    done
        Function that returns whether the result is ready.
    """

    outputs: Callable[[], Any]
    seconds: Callable[[], float]
    done: Callable[[], bool] = lambda: True


Handlers: TypeAlias = Mapping[type[Question], Callable[[Any, Sequence[BatchPart]], Answer]]
"""For each question type, the function that starts a batch of such questions on a model."""


class Model(ABC):
    """Base class of models: each maps inputs to rows of numbers, in batches.

    Attributes
    ----------
    classes
        Names of the answer columns: classes, labels or values. Empty if the columns differ between inputs, or
        while unknown names have not been inferred from a first answer.
    columns_differ
        Whether the columns depend on the input (`columns_of`). A batch is as wide as the input with the most
        columns, and the extra columns of other inputs are ignored.
    output
        Meaning of the answers.
    handlers
        Functions that answer question types for which `submit` is not enough, by type. Other types, unless a
        base type is listed, are answered by the question's `handle`.
    kind
        Kind of input, if the model reads only one: ``"text"``, ``"image"`` or ``"table"``.
    device, dtype
        Torch device and dtype; ``None`` for a model that does not use torch.
    wrapped
        The wrapped object, if any.
    module
        The torch module that computes the answers, if any.
    tokenizer
        The tokenizer, if the model has one.
    processor
        The image processor, if the model has one.
    unit
        Unit of a batch's cost.
    first_batch, largest_batch
        Batch cost at which the search for a good batch size starts, and the largest cost to try.
    launch_overhead
        Fixed cost of launching a batch, in `unit`.
    mixed_length_penalty
        Relative slowdown of a batch with rows of different lengths, not counting padding: 0.25 is 25% slower.
    is_random
        Whether answers are known to be random, so they are not checked for it.
    in_flight
        Number of batches that may be queued on the device while the next one is prepared.
    """

    handlers: ClassVar[Handlers] = {}
    classes: tuple[str, ...] = ()
    columns_differ: bool = False
    background: Background | None = None
    output: Output
    kind: str | None = None
    device: torch.device | None = None
    dtype: torch.dtype | None = None
    wrapped: Any = None
    module: Any = None
    tokenizer: Any = None
    processor: Any = None
    unit: ClassVar[str] = "rows"
    first_batch: int = 256
    largest_batch: int = 65536
    launch_overhead: int = 64
    mixed_length_penalty: float = 0.0
    is_random: bool = False
    in_flight: int = 1
    _guessed: bool = False

    def __repr__(self) -> str:
        """Return the wrapped object, columns, input kind and device on one line."""
        names = [type(self).__name__]
        if self.wrapped is not None:
            names.append(getattr(self.wrapped, "__name__", type(self.wrapped).__name__))
        facts = [self._describe_columns()]
        if self.kind:
            facts.append(f"reads {self.kind}")
        if self.device is not None:
            facts.append(f"{self.device} {str(self.dtype).removeprefix('torch.')}")
        return f"<{' '.join(names)}: {', '.join(facts)}>"

    def _describe_columns(self) -> str:
        """Return a description of the columns, such as ``3 classes (world, sports, …)``."""
        names, output = self.classes, self.output
        if not names:
            return f"{output.plural} {'of each input' if self.columns_differ else 'not known yet'}"
        shown = [" ".join(name.split()) for name in names[:SHOWN_NAMES]]
        more = ["…"] if len(names) > SHOWN_NAMES else []
        kind = output.plural if len(names) > 1 else output.kind
        return f"{len(names)} {kind} ({', '.join([*shown, *more])})"

    @abstractmethod
    def prepare(self, raw: Any, features: str | None = None) -> Input:
        """Divide a raw input into features."""

    @abstractmethod
    def split(self, raw: Any) -> Iterable[Any] | None:
        """Return the inputs in a collection, or ``None`` if `raw` is a single input."""

    @abstractmethod
    def default_removal(self, input: Input) -> str:
        """Return the name of the default removal."""

    @cached_property
    def fingerprint(self) -> bytes:
        """Return a digest of everything the answers depend on, as far as it can be inspected."""
        background = None if self.background is None else self.background.fingerprint
        return digest(self.identity(), background)

    @cached_property
    def thread_counts(self) -> defaultdict[type, ThreadCount]:
        """Return the number of threads for batches of each type of question; used on a CPU."""
        return defaultdict(ThreadCount)

    def identity(self) -> object:
        """Return everything that determines the answers and their meaning: weights, code, settings."""
        return type(self).__qualname__, self.output.to_dict()

    def forget(self) -> None:
        """Discard everything derived from the parameters, because they have changed."""
        vars(self).pop("fingerprint", None)

    @property
    def words(self) -> Ints | None:
        """Return the ids of all non-special tokens; ``None`` without a tokenizer."""
        return None

    def details(self, input: Input) -> dict[str, str]:
        """Return additional facts about the prediction, such as an answer in words.

        Called after the prediction.
        """
        return {}

    def columns_of(self, input: Input) -> tuple[str, ...]:
        """Return the names of the answer's columns for this input; available after the first answer."""
        return self.classes

    def as_scale(self, input: Input, outputs: Floats, scale: Scale) -> Floats:
        """Convert answers for this input (rows, columns) to the scale."""
        return self.output.as_scale(outputs, scale)

    def require_common_columns(self, purpose: str) -> None:
        """Raise a `ModelError` if the columns differ between inputs."""
        if self.columns_differ:
            raise ModelError(
                f"{purpose} needs a model with the same {self.output.plural} for every input, but those of "
                "this model differ between inputs."
            )

    def refusal(self, kind: type[Question]) -> str:
        """Return why the model cannot answer this type of question; empty if no reason is evident."""
        answered = any(
            base in self.handlers or "handle" in vars(base) for base in kind.__mro__ if base != Question
        )
        return "" if answered else kind.refusal or f"The model does not answer {kind.__name__} questions."

    def check_question(self, kind: type[Question], input: Input, removal: Removal) -> None:
        """Raise a `SettingError` if questions of this type cannot be answered with this removal."""

    def group_of(self, input: Input) -> Hashable:
        """Return the group of an input; inputs of different groups never share a batch."""
        return input.group

    def cost(self, removal: Removal, input: Input, masks: Masks) -> Ints:
        """Return the cost of each mask, in `unit`."""
        return np.full(len(masks), removal.draws)

    @abstractmethod
    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Start the evaluation of a batch of rows created by removals."""

    def resubmit(self, rows: Sequence[Rows]) -> Answer:
        """Evaluate rows again, to find out whether the answers are random; kept answers are not used."""
        return self.submit(rows)

    def bind_removal(self, removal: Removal) -> Removal:
        """Return a removal with the data that it needs from the model."""
        return removal.bind(self)

    def gradient_cost(self, input: Input) -> int:
        """Return the cost of one gradient, in `unit`."""
        return 1

    @staticmethod
    def is_out_of_memory(error: BaseException) -> bool:
        """Return whether an error, of any library, means that a batch was too large."""
        if isinstance(error, MemoryError) or type(error).__name__ in _OUT_OF_MEMORY_TYPES:
            return True
        message = str(error).lower()
        return isinstance(error, RuntimeError) and any(words in message for words in _OUT_OF_MEMORY_WORDS)

    def checked(self, outputs: Array, n: int) -> Floats:
        """Return the answers to n inputs as float64 (rows, columns); raise a `ModelError` if invalid."""
        outputs = np.asarray(outputs)
        if outputs.dtype.kind not in "biuf":
            raise ModelError(f"The model must return numbers, but returned dtype {outputs.dtype}.")
        if outputs.ndim == 1:
            outputs = outputs[:, None]
        if outputs.ndim != 2 or len(outputs) != n:
            raise ModelError(
                f"The model must return {n} rows of numbers for {n} inputs, but returned shape "
                f"{outputs.shape}."
            )
        if not outputs.shape[1]:
            raise ModelError("The model must return at least one number for each input, but returned none.")
        outputs = self.output.widen(outputs.astype(np.float64))
        if self.columns_differ:
            return outputs
        if not self.classes and len(self.output.unusable(outputs)) < n:
            self.guess_names(self.output.default_names(outputs.shape[1]))
        if self.classes and outputs.shape[1] != len(self.classes):
            columns = f"{len(self.classes)} {self.output.plural}"
            self.forget_guess()
            raise ModelError(f"The model has {columns}, but returned {outputs.shape[1]} columns.")
        return outputs

    def guess_names(self, names: tuple[str, ...]) -> None:
        """Set column names inferred from an answer; a later answer may contradict them."""
        self.classes, self._guessed = names, True

    def forget_guess(self) -> None:
        """Discard inferred names that did not fit an answer, so the next answer names the columns."""
        if self._guessed:
            self.classes, self._guessed = (), False


def answer_now(evaluate: Callable[[], Any]) -> Answer:
    """Evaluate immediately and measure the time in seconds."""
    start = time.perf_counter()
    outputs = evaluate()
    seconds = time.perf_counter() - start
    return Answer(lambda: outputs, lambda: seconds)


def constructor_options(cls: type) -> list[str]:
    """Return the keyword-only constructor arguments of a class and its bases."""
    constructors = [vars(base)["__init__"] for base in cls.__mro__ if "__init__" in vars(base)]
    return list(dict.fromkeys(name for init in constructors for name in keyword_options(init)))


def keyword_options(function: Callable[..., Any]) -> list[str]:
    """Return the keyword-only arguments of a function."""
    return [p.name for p in signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
