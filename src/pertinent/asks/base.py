"""What an algorithm may yield (questions of any kind, forks, partial findings), and how it is run in another.

Each kind of question is defined completely in one file. The engine, the meter, the scheduler and the
cache know only this interface, not the kinds, so a new kind changes none of them.
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
    """A question about one input, made of rows that may be answered in different batches.

    Attributes
    ----------
    remembered
        Whether answers are cached for the same question about the same input in the same run.
    refusal
        The reason given by a model that has no handler for this kind of question.
    """

    remembered: ClassVar[bool] = False
    refusal: ClassVar[str] = ""

    @property
    @abstractmethod
    def keys(self) -> Sequence[Hashable]:
        """A key for each row. Rows with the same key have the same answer, which is computed once."""

    def price(self, paid: set[Hashable]) -> int:
        """The price in evaluations of the budget: by default 1 for each row that was not asked for before.

        `paid` holds the keys of this kind that were paid for before, and is updated.
        """
        before = len(paid)
        paid.update(self.keys)
        return len(paid) - before

    def unspent(self, answer: Any) -> int:
        """The part of its price that the answer turned out not to need."""
        return 0

    def on_scale(self, scale: Scale, groups: int = 0) -> Question:
        """The same question on this scale, and with this number of groups of draws, if its kind has them.

        By default only the natural scale is accepted, and groups are ignored.
        """
        if scale == "natural":
            return self
        raise SettingError(
            f"`scale` must be 'natural' for a method that asks for {type(self).__name__}, but got {scale!r}."
        )

    def check(self, input: Input) -> None:
        """Raise a `TypeError` if the question makes no sense for the input."""

    def group(self, model: Model, input: Input) -> Hashable:
        """The group of the rows: rows of different groups never share a batch."""
        return model.group_of(input)

    def costs(self, model: Model, input: Input, removal: Removal, rows: Ints) -> Ints:
        """The cost of computing each of these rows, in the model's unit: by default that of a gradient."""
        return np.full(len(rows), model.gradient_cost(input))

    @classmethod
    def submit(cls, model: Model, parts: Sequence[BatchPart]) -> Answer:
        """Start a batch with the model's own handler for this kind (`Model.handlers`), else with `handle`."""
        own = (model.handlers[kind] for kind in cls.__mro__ if kind in model.handlers)
        return next(own, cls.handle)(model, parts)

    def n_pieces(self, removal: Removal) -> int:
        """The number of pieces into which one row can be divided, if it does not fit into memory."""
        return 1

    @classmethod
    def submit_divided(cls, model: Model, part: BatchPart, n_at_once: int) -> Answer:
        """Compute one row, a few of its pieces at once."""
        raise NotImplementedError

    @classmethod
    def handle(cls, model: Model, parts: Sequence[BatchPart]) -> Answer:
        """Start a batch on any model that has no handler of its own; by default it is refused."""
        raise ModelError(cls.refusal or f"{type(model).__name__} does not answer {cls.__name__} questions.")

    @staticmethod
    @abstractmethod
    def read(model: Model, outputs: Any, parts: Sequence[BatchPart]) -> list[Sequence[Any] | Exception]:
        """For each part of a batch, the answer to each of its rows, or the error if the part failed."""

    @abstractmethod
    def assemble(self, model: Model, input: Input, answers: list[Any]) -> Any:
        """Combine the answers to all rows into what is sent to the algorithm."""


@dataclass(frozen=True, eq=False)
class BatchPart:
    """Rows of one question that go into the same batch, with their input, removal and seed.

    The types of `question` and `input` are known to the handler that gets the part.
    """

    question: Any
    input: Any
    removal: Removal
    rows: Ints
    seed: int


@dataclass(frozen=True, eq=False)
class Fork:
    """Run these algorithms in parallel on the same input.

    Answered with the list of their return values.
    """

    branches: Sequence[Algorithm]


@dataclass(frozen=True, eq=False)
class Publish:
    """Publish what has been found so far. It costs nothing, and is answered with ``None`` at once.

    `finding` is a finding, or a function without arguments that makes one: the engine calls it at once if
    somebody listens, and never otherwise. `evaluations` is the number of evaluations so far, which the
    meter fills in.
    """

    finding: Any
    evaluations: int = 0

    def make(self) -> Any:
        """The finding itself."""
        return self.finding() if callable(self.finding) else self.finding


@dataclass(frozen=True, eq=False)
class Compute:
    """Call a function without arguments that asks nothing: a fit to answers, the choice of the next masks.

    Answered with what it returns. It costs nothing. While a device computes, it runs in another thread, so
    that the fits of many inputs share the processor's cores: it must not change what other threads see. If
    it is `portable`, it may run in another process: what it changes in its arguments is lost there, and it
    has to return what is needed.
    """

    compute: Callable[[], Any]
    portable: bool = False


Ask: TypeAlias = Question | Fork | Publish | Compute
Asking: TypeAlias = Generator[Ask, Any, T]
"""A generator that yields asks, is sent answers, and returns a T."""

Algorithm: TypeAlias = Asking[Any]


def relay(
    algorithm: Algorithm,
    transform: Callable[[Ask], Ask] = lambda ask: ask,
    on_answer: Callable[[Ask, Any], Publish | None] | None = None,
    *,
    into_branches: bool = False,
) -> Algorithm:
    """Run an algorithm, and yield each of its asks as `transform` returns it.

    `on_answer` is called with each ask, as the algorithm made it, and its answer before the algorithm gets
    the answer. A `Publish` that it returns is published. Errors, those of `transform` and `on_answer` too,
    are raised in the algorithm at the ask that they belong to. Closing the relay closes the algorithm.

    With `into_branches`, forks are not passed to `transform`; each of their branches is relayed instead.
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
            except Exception as raised:  # noqa: BLE001  for the algorithm to deal with
                error = raised
    except StopIteration as stop:
        return stop.value
    finally:
        algorithm.close()


def on_scale(algorithm: Algorithm, scale: Scale, groups: int = 0) -> Algorithm:
    """Run an algorithm with each of its questions asked on the scale and for groups of draws."""
    if scale == "natural" and not groups:
        return algorithm

    def ask_on_scale(ask: Ask) -> Ask:
        return ask.on_scale(scale, groups) if isinstance(ask, Question) else ask

    return relay(algorithm, ask_on_scale, into_branches=True)


def check_masks(masks: Masks, input: Input) -> None:
    """Raise a `TypeError` unless these are masks over the input's features."""
    if masks.ndim != 2 or masks.shape[1] != input.n_features or masks.dtype != np.bool_:
        raise TypeError(f"Masks must be bool (n, {input.n_features}), not {masks.dtype} {masks.shape}.")


def split(rows: Any, parts: Sequence[BatchPart], each: Sequence[int] | None = None) -> list[Any]:
    """Split the rows of a batch by part; `each` is the number of array rows per row of a part."""
    ends = np.cumsum(_counts(parts, each)).tolist()
    return [rows[first:end] for first, end in pairwise([0, *ends])]


def _counts(parts: Sequence[BatchPart], each: Sequence[int] | None) -> list[int]:
    """The number of array rows of each part."""
    return [len(part.rows) * n for part, n in zip(parts, each or [1] * len(parts), strict=True)]


def usable_rows(
    model: Model,
    outputs: Any,
    parts: Sequence[BatchPart],
    each: Sequence[int] | None = None,
    flaws: Mapping[int, str] | None = None,
) -> list[Floats | ModelError]:
    """The model's rows of each part (rows, columns of its input), or an error if one of them cannot be used.

    `each` is the number of outputs for each row of a part. `flaws` are further reasons for which an output
    cannot be used, by its number in the batch.
    """
    checked = model.checked(outputs, sum(_counts(parts, each)))
    reasons = {**(flaws or {}), **({} if model.columns_differ else model.output.unusable(checked))}
    found: list[Floats | ModelError] = []
    first = 0
    for part, rows in zip(parts, split(checked, parts, each), strict=True):
        if model.columns_differ:
            rows = _own_columns(model, part.input, rows)
            reasons |= {first + row: why for row, why in model.output.unusable(rows).items()}
        numbers = range(first, first + len(rows)) if reasons else ()
        why = next((reasons[row] for row in numbers if row in reasons), None)
        found.append(rows if why is None else ModelError(f"{why[0].upper()}{why[1:]}."))
        first += len(rows)
    return found


def _own_columns(model: Model, input: Input, rows: Floats) -> Floats:
    """The columns of this input: a batch is as wide as the input with the most columns."""
    n = len(model.columns_of(input))
    if rows.shape[1] < n:
        raise ModelError(f"The input has {n} {model.output.plural}, but the model answered {rows.shape[1]}.")
    return rows[:, :n]
