"""The interface of a model: what the engine needs to know about it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
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
from pertinent.outputs import Output, Scale
from pertinent.removals.base import Removal, Rows

if TYPE_CHECKING:
    import torch

SHOWN_NAMES = 5
"""The largest number of columns whose names `repr` shows."""


@dataclass(frozen=True)
class Answer:
    """A batch in progress: `outputs()` waits for the result; `seconds()` is the time the device took.

    `done()` says whether the result is ready.
    """

    outputs: Callable[[], Any]
    seconds: Callable[[], float]
    done: Callable[[], bool] = lambda: True


_OUT_OF_MEMORY = ("OutOfMemoryError", "ResourceExhaustedError")
_SAID = ("out of memory", "can't allocate memory", "alloc_failed", "resource_exhausted")

Handlers: TypeAlias = Mapping[type[Question], Callable[[Any, Sequence[BatchPart]], Answer]]
"""By the type of question, the function that starts a batch of such questions on a model."""


class Model(ABC):
    """Anything that maps an input to a row of numbers, evaluated in batches.

    Attributes
    ----------
    classes
        A name for each column of its answers: a class, a label or a value; empty until the first
        answer if the names are not known before, and if the columns differ from input to input.
    columns_differ
        Whether each input has columns of its own, of which there may be more or fewer (`columns_of`). A
        batch is then as wide as the input with the most columns; the others' further columns are ignored.
    output
        What its answers mean.
    handlers
        How it answers each kind of question that needs more than `submit`, by the type of the question. A
        kind that is not here, nor a base of it, is answered by the question's own `handle`.
    kind
        The kind of input it reads, if it reads one alone: ``"text"``, ``"image"`` or ``"table"``.
    device, dtype
        Where and in which precision torch computes it; ``None`` for a model that does not use torch.
    wrapped
        The user's own object, if the model wraps one.
    module
        The torch module that computes its answers, if there is one.
    tokenizer
        The tokenizer it reads texts with.
    processor
        The image processor it reads images with.
    unit
        The unit in which the cost of a batch is counted.
    first_batch, largest_batch
        The batch cost with which the search for a good batch size starts, and the largest it may try.
    launch_overhead
        The fixed cost of launching a batch, in `unit`.
    mixed_length_penalty
        How much slower a batch is if its rows differ in length, not counting padding: 0.25 is 25% slower.
    in_flight
        How many batches may be queued on the device while the next one is prepared.
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
    in_flight: int = 1
    _guessed: bool = False

    def __repr__(self) -> str:
        """On one line: what is wrapped, its columns, what it reads and where it computes."""
        names = [type(self).__name__]
        if self.wrapped is not None:
            names.append(getattr(self.wrapped, "__name__", type(self.wrapped).__name__))
        facts = [self._described_columns()]
        if self.kind:
            facts.append(f"reads {self.kind}")
        if self.device is not None:
            facts.append(f"{self.device} {str(self.dtype).removeprefix('torch.')}")
        return f"<{' '.join(names)}: {', '.join(facts)}>"

    def _described_columns(self) -> str:
        """As ``3 classes (world, sports, …)``."""
        names, output = self.classes, self.output
        if not names:
            return f"{output.plural} {'of each input' if self.columns_differ else 'not known yet'}"
        shown = [" ".join(name.split()) for name in names[:SHOWN_NAMES]]
        more = ["…"] if len(names) > SHOWN_NAMES else []
        kind = output.plural if len(names) > 1 else output.kind
        return f"{len(names)} {kind} ({', '.join([*shown, *more])})"

    @abstractmethod
    def prepare(self, raw: Any, features: str | None = None) -> Input:
        """Divide what the user gave into features."""

    @abstractmethod
    def split(self, raw: Any) -> Iterable[Any] | None:
        """The inputs in `raw` if it holds several, or ``None`` if it is one."""

    @abstractmethod
    def default_removal(self, input: Input) -> str:
        """The removal used by default."""

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of everything that its answers depend on, as far as it can be inspected."""
        background = None if self.background is None else self.background.fingerprint
        return digest(self.identity(), background)

    def identity(self) -> object:
        """Everything that its answers and their meaning depend on: weights, code, settings."""
        return type(self).__qualname__, self.output.to_dict()

    def forget(self) -> None:
        """Forget what was derived from the parameters, because they have changed."""
        vars(self).pop("fingerprint", None)

    @property
    def words(self) -> Ints | None:
        """The ids of all tokens that are not special, of a model with a tokenizer."""
        return None

    def details(self, input: Input) -> dict[str, str]:
        """What a person should be told about its prediction besides the numbers, such as an answer in words.

        It is called once the prediction is known.
        """
        return {}

    def columns_of(self, input: Input) -> tuple[str, ...]:
        """A name for each column of its answers about this input; known once it has answered."""
        return self.classes

    def as_scale(self, input: Input, outputs: Floats, scale: Scale) -> Floats:
        """Its answers about this input (rows, columns) on the given scale."""
        return self.output.as_scale(outputs, scale)

    def require_common_columns(self, purpose: str) -> None:
        """Raise a `ModelError` if columns differ from input to input, which this purpose does not allow."""
        if self.columns_differ:
            raise ModelError(
                f"{purpose} needs a model that has the same {self.output.plural} for every input, but those "
                "of this model differ from input to input."
            )

    def refusal(self, kind: type[Question]) -> str:
        """Why it cannot answer questions of this kind, as far as that is known before; empty if it may."""
        answered = any(
            own in self.handlers or "handle" in vars(own) for own in kind.__mro__ if own != Question
        )
        return "" if answered else kind.refusal or f"The model does not answer {kind.__name__} questions."

    def group_of(self, input: Input) -> Hashable:
        """The group of an input: inputs of different groups never share a batch."""
        return input.group

    def cost(self, removal: Removal, input: Input, masks: Masks) -> Ints:
        """The cost of each mask, in `unit`."""
        return np.full(len(masks), removal.draws)

    @abstractmethod
    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Start the evaluation of a batch of rows, made by removals."""

    def gradient_cost(self, input: Input) -> int:
        """The cost of one gradient, in `unit`."""
        return 1

    @staticmethod
    def is_out_of_memory(error: BaseException) -> bool:
        """Whether an error means that a batch was too large, whichever library raised it."""
        if isinstance(error, MemoryError) or type(error).__name__ in _OUT_OF_MEMORY:
            return True
        return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _SAID)

    def checked(self, outputs: Array, n: int) -> Floats:
        """The model's answer as (rows, columns) float64, or an error that says what is wrong."""
        outputs = np.asarray(outputs)
        if outputs.dtype.kind not in "biuf":
            raise ModelError(f"The model must answer with numbers, but got dtype {outputs.dtype}.")
        if outputs.ndim == 1:
            outputs = outputs[:, None]
        if outputs.ndim != 2 or len(outputs) != n:
            raise ModelError(
                f"The model must answer {n} inputs with {n} rows of numbers, "
                f"but the answer has shape {outputs.shape}."
            )
        if not outputs.shape[1]:
            raise ModelError("The model must answer with at least one number for each input, but gave none.")
        outputs = self.output.widen(outputs.astype(np.float64))
        if self.columns_differ:
            return outputs
        if not self.classes and len(self.output.unusable(outputs)) < n:
            self.guess_names(self.output.default_names(outputs.shape[1]))
        n_known, n_now = len(self.classes), outputs.shape[1]
        if n_known not in (0, n_now):
            self.forget_guess()
            raise ModelError(
                f"The model has {n_known} {self.output.plural}, but answered with {n_now} columns."
            )
        return outputs

    def guess_names(self, names: tuple[str, ...]) -> None:
        """Name the columns by what an answer shows; another answer may show that this was wrong."""
        self.classes, self._guessed = names, True

    def forget_guess(self) -> None:
        """Forget guessed names, which did not fit an answer: the next answer names the columns."""
        if self._guessed:
            self.classes, self._guessed = (), False


def answer_now(evaluate: Callable[[], Any]) -> Answer:
    """Evaluate at once, and measure the seconds it took."""
    start = time.perf_counter()
    outputs = evaluate()
    seconds = time.perf_counter() - start
    return Answer(lambda: outputs, lambda: seconds)


def constructor_options(cls: type) -> list[str]:
    """Return the keyword-only arguments of the constructors of a class and its bases, each once."""
    constructors = [vars(base)["__init__"] for base in cls.__mro__ if "__init__" in vars(base)]
    named = [p for each in constructors for p in signature(each).parameters.values()]
    return list(dict.fromkeys(p.name for p in named if p.kind is p.KEYWORD_ONLY))
