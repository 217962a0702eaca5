"""The things an algorithm may yield: questions of any kind, forks, partial findings and arithmetic.

Each kind of question is defined entirely in one file. The engine, the meter, the scheduler and the cache only
use this interface, so they do not change when a kind of question is added.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.errors import ModelError, SettingError
from pertinent.outputs import Scale

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Answer, Model
    from pertinent.removals.base import Removal

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Question(ABC):
    """A question about one input, consisting of rows that may be answered in different batches.

    Attributes
    ----------
    remembered
        Whether answers are cached for identical questions about the same input in a run.
    refusal
        Error message for models that have no handler for this kind of question.
    """

    remembered: ClassVar[bool] = False
    refusal: ClassVar[str] = ""

    @property
    @abstractmethod
    def keys(self) -> Sequence[Hashable]:
        """Return a key for each row. Rows with equal keys have equal answers, which are computed once."""

    def price(self, paid: set[Hashable]) -> int:
        """Return the price in evaluations; by default 1 for each new row.

        `paid` holds the keys of this kind that have been paid for; it is updated.
        """
        before = len(paid)
        paid.update(self.keys)
        return len(paid) - before

    def unspent(self, answer: Any) -> int:
        """Return how much of the price the answer did not need."""
        return 0

    def on_scale(self, scale: Scale, groups: int = 0) -> Question:
        """Return the question on a scale and for a number of groups of draws.

        By default, only the natural scale is accepted, and groups are ignored.
        """
        if scale == "natural":
            return self
        raise SettingError(
            f"`scale` must be 'natural' for methods that use {type(self).__name__}, but got {scale!r}."
        )

    def check(self, input: Input) -> None:
        """Raise an error if the question is invalid for the input."""

    def group(self, model: Model, input: Input) -> Hashable:
        """Return the group of the rows; rows of different groups never share a batch."""
        return model.group_of(input)

    def costs(self, model: Model, input: Input, removal: Removal, rows: Ints) -> Ints:
        """Return the cost of computing these rows, in the model's unit; by default that of a gradient."""
        return np.full(len(rows), model.gradient_cost(input))

    @classmethod
    def submit(cls, model: Model, parts: Sequence[BatchPart]) -> Answer:
        """Start a batch with the model's handler for this kind (`Model.handlers`), else with `handle`."""
        handlers = (model.handlers[kind] for kind in cls.__mro__ if kind in model.handlers)
        return next(handlers, cls.handle)(model, parts)

    def n_pieces(self, removal: Removal) -> int:
        """Return the number of pieces into which a row can be split if it does not fit into memory."""
        return 1

    @classmethod
    def submit_divided(cls, model: Model, part: BatchPart, n_at_once: int) -> Answer:
        """Compute one row, a few pieces at a time."""
        raise NotImplementedError

    @classmethod
    def handle(cls, model: Model, parts: Sequence[BatchPart]) -> Answer:
        """Start a batch on a model without a handler for this kind; by default raise a `ModelError`."""
        raise ModelError(cls.refusal or f"{type(model).__name__} does not answer {cls.__name__} questions.")

    @staticmethod
    @abstractmethod
    def read(model: Model, outputs: Any, parts: Sequence[BatchPart]) -> list[Sequence[Any] | Exception]:
        """Return the answers to the rows of each part of a batch, or an error for the part."""

    @abstractmethod
    def assemble(self, model: Model, input: Input, answers: list[Any]) -> Any:
        """Combine the answers to all rows into the answer for the algorithm."""


@dataclass(frozen=True, eq=False)
class BatchPart:
    """Rows of one question in a batch, with their input, removal and seed.

    The handler of the part knows the types of `question` and `input`.
    """

    question: Any
    input: Any
    removal: Removal
    rows: Ints
    seed: int


@dataclass(frozen=True, eq=False)
class Fork:
    """Algorithms to run in parallel on the same input, answered with the list of their return values."""

    branches: Sequence[Algorithm]


@dataclass(frozen=True, eq=False)
class Publish:
    """A partial finding to publish. It costs nothing and is answered immediately with None.

    `finding` is a finding or a function without arguments that creates one, which the engine calls only if
    there is a listener. The meter sets `evaluations`, the number of evaluations so far.
    """

    finding: Any
    evaluations: int = 0

    def make(self) -> Any:
        """Return the finding."""
        return self.finding() if callable(self.finding) else self.finding


@dataclass(frozen=True, eq=False)
class Compute:
    """A function without arguments to call: arithmetic such as fitting a model or choosing masks.

    Answered with its return value, at no cost. While a device is busy, it runs in another thread, so the fits
    of many inputs share the CPU cores: it must not modify data of other threads. If it is `portable`, it may
    run in another process, where changes to its arguments are lost.
    """

    compute: Callable[[], Any]
    portable: bool = False


Ask: TypeAlias = Question | Fork | Publish | Compute
Asking: TypeAlias = Generator[Ask, Any, T]
"""A generator that yields asks, receives answers, and returns a T."""

Algorithm: TypeAlias = Asking[Any]


def relay(
    algorithm: Algorithm,
    transform: Callable[[Ask], Ask] = lambda ask: ask,
    on_answer: Callable[[Ask, Any], Publish | None] | None = None,
    *,
    into_branches: bool = False,
) -> Algorithm:
    """Run an algorithm, passing each of its asks through `transform`.

    `on_answer` is called with each ask of the algorithm and its answer, before the algorithm gets the answer.
    If it returns a `Publish`, that is published. Errors, including those of `transform` and `on_answer`, are
    raised in the algorithm at the ask that they belong to. Closing the relay closes the algorithm.

    With `into_branches`, forks are not passed to `transform`; instead, each of their branches is relayed.
    """

    def relayed(ask: Ask) -> Ask:
        if into_branches and isinstance(ask, Fork):
            return Fork([relay(each, transform, on_answer, into_branches=True) for each in ask.branches])
        return transform(ask)

    answer: Any = None
    error: Exception | None = None
    try:
        while True:
            ask = algorithm.send(answer) if error is None else algorithm.throw(error)
            error = None
            try:
                answer = yield relayed(ask)
                partial = on_answer(ask, answer) if on_answer is not None else None
                if partial is not None:
                    yield partial
            except Exception as raised:  # noqa: BLE001  raised in the algorithm
                error = raised
    except StopIteration as stop:
        return stop.value
    finally:
        algorithm.close()


def on_scale(algorithm: Algorithm, scale: Scale, groups: int = 0) -> Algorithm:
    """Run an algorithm with its questions on a scale and for a number of groups of draws."""
    if scale == "natural" and not groups:
        return algorithm

    def ask_on_scale(ask: Ask) -> Ask:
        return ask.on_scale(scale, groups) if isinstance(ask, Question) else ask

    return relay(algorithm, ask_on_scale, into_branches=True)


def check_masks(masks: Masks, input: Input) -> None:
    """Raise a `TypeError` unless these are masks over the input's features."""
    if masks.ndim != 2 or masks.shape[1] != input.n_features or masks.dtype != np.bool_:
        raise TypeError(f"Masks must be bool (n, {input.n_features}), not {masks.dtype} {masks.shape}.")


def split(rows: Any, parts: Sequence[BatchPart], per_row: Sequence[int] | None = None) -> list[Any]:
    """Split the rows of a batch by part; `per_row` is the number of rows for each row of a part."""
    counts = [len(part.rows) * n for part, n in zip(parts, per_row or [1] * len(parts), strict=True)]
    return [rows[first:end] for first, end in pairwise([0, *np.cumsum(counts).tolist()])]


def usable_rows(
    model: Model,
    outputs: Any,
    parts: Sequence[BatchPart],
    per_row: Sequence[int] | None = None,
    flaws: Mapping[int, str] | None = None,
) -> list[Floats | ModelError]:
    """Return the model's outputs for each part (rows, columns), or an error if an output is unusable.

    `per_row` is the number of outputs for each row of a part. `flaws` maps indices in the batch to further
    reasons why an output is unusable.
    """
    n = sum(len(part.rows) * n for part, n in zip(parts, per_row or [1] * len(parts), strict=True))
    checked = model.checked(outputs, n)
    reasons = {**(flaws or {}), **({} if model.columns_differ else model.output.unusable(checked))}
    usable: list[Floats | ModelError] = []
    first = 0
    for part, rows in zip(parts, split(checked, parts, per_row), strict=True):
        if model.columns_differ:
            rows = _columns_of(model, part.input, rows)
            reasons |= {first + row: reason for row, reason in model.output.unusable(rows).items()}
        numbers = range(first, first + len(rows)) if reasons else ()
        reason = next((reasons[row] for row in numbers if row in reasons), None)
        usable.append(rows if reason is None else ModelError(f"{reason[0].upper()}{reason[1:]}."))
        first += len(rows)
    return usable


def _columns_of(model: Model, input: Input, rows: Floats) -> Floats:
    """Return the columns of an input: a batch is as wide as the input with the most columns."""
    n = len(model.columns_of(input))
    if rows.shape[1] < n:
        raise ModelError(f"The input has {n} {model.output.plural}, but the model returned {rows.shape[1]}.")
    return rows[:, :n]
