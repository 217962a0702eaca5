"""What an algorithm may yield: questions of any kind, forks, and partial findings.

Each kind of question is defined completely in one file. The engine, the meter, the scheduler and the
cache know only this interface, not the kinds, so a new kind changes none of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.errors import ModelError, SettingError
from pertinent.outputs import Scale

if TYPE_CHECKING:
    from pertinent.inputs.base import Input
    from pertinent.models.base import Answer, Model
    from pertinent.removal.base import Removal

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
        """What it costs the budget: by default 1 for each row that was not asked for before.

        `paid` holds the keys of this kind that were paid for before, and is updated.
        """
        before = len(paid)
        paid.update(self.keys)
        return len(paid) - before

    def unspent(self, answer: Any) -> int:
        """The part of its price that the answer turned out not to need."""
        return 0

    def on_scale(self, scale: Scale) -> Question:
        """The same question, answered on the scale; most kinds have the natural one alone."""
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
    def submit(cls, model: Model, parts: Sequence[Part]) -> Answer:
        """Start a batch with the model's own handler for this kind (`Model.handlers`), else with `handle`."""
        own = (model.handlers[kind] for kind in cls.__mro__ if kind in model.handlers)
        return next(own, cls.handle)(model, parts)

    @classmethod
    def handle(cls, model: Model, parts: Sequence[Part]) -> Answer:
        """Start a batch on any model that has no handler of its own; by default it is refused."""
        raise ModelError(cls.refusal or f"{type(model).__name__} does not answer {cls.__name__} questions.")

    @staticmethod
    @abstractmethod
    def read(model: Model, outputs: Any, parts: Sequence[Part]) -> list[Sequence[Any] | Exception]:
        """For each part of a batch, the answer to each of its rows, or the error if the part failed."""

    @abstractmethod
    def assemble(self, model: Model, input: Input, answers: list[Any]) -> Any:
        """Combine the answers to all rows into what is sent to the algorithm."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one question that go into the same batch, with their input, removal and seed."""

    question: Any
    input: Input
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
class Partial:
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


Ask: TypeAlias = Question | Fork | Partial
Asking: TypeAlias = Generator[Ask, Any, T]
"""A generator that yields asks, is sent answers, and returns a T."""

Algorithm: TypeAlias = Asking[Any]


def check_masks(masks: Masks, input: Input) -> None:
    """Raise a `TypeError` unless these are masks over the input's features."""
    if masks.ndim != 2 or masks.shape[1] != input.n_features or masks.dtype != np.bool_:
        wanted = f"bool (n, {input.n_features})"
        raise TypeError(f"Masks must be {wanted}, not {masks.dtype} {masks.shape}.")


def split(rows: Any, parts: Sequence[Part], each: Sequence[int] | None = None) -> list[Any]:
    """Split the rows of a batch by part; `each` is the number of array rows per row of a part."""
    pieces, first = [], 0
    for i, part in enumerate(parts):
        end = first + len(part.rows) * (each[i] if each else 1)
        pieces.append(rows[first:end])
        first = end
    return pieces


def usable_rows(
    model: Model,
    outputs: Any,
    parts: Sequence[Part],
    each: Sequence[int] | None = None,
    flaws: Mapping[int, str] | None = None,
) -> list[Floats | ModelError]:
    """The model's rows of each part (rows, columns of its input), or an error if one of them cannot be used.

    `each` is the number of outputs for each row of a part. `flaws` are further reasons for which an output
    cannot be used, by its number in the batch.
    """
    counts = [len(part.rows) * n for part, n in zip(parts, each or [1] * len(parts), strict=True)]
    checked = model.checked(outputs, sum(counts))
    pieces: list[Floats] = split(checked, parts, each)
    firsts = [end - n for end, n in zip(accumulate(counts), counts, strict=True)]
    if not model.columns_differ:
        reasons = model.output.unusable(checked)
    else:
        pieces = [_own_columns(model, part.input, rows) for part, rows in zip(parts, pieces, strict=True)]
        own = [model.output.unusable(rows) for rows in pieces]
        reasons = {
            first + row: why for first, said in zip(firsts, own, strict=True) for row, why in said.items()
        }
    reasons = {**(flaws or {}), **reasons}
    found: list[Floats | ModelError] = []
    for first, rows in zip(firsts, pieces, strict=True):
        bad = (row for row in range(first, first + len(rows)) if row in reasons) if reasons else iter(())
        row = next(bad, None)
        found.append(rows if row is None else ModelError(f"{reasons[row][0].upper()}{reasons[row][1:]}."))
    return found


def _own_columns(model: Model, input: Input, rows: Floats) -> Floats:
    """The columns of this input: a batch is as wide as the input with the most columns."""
    n = len(model.columns_of(input))
    if rows.shape[1] < n:
        raise ModelError(f"The input has {n} {model.output.plural}, but the model answered {rows.shape[1]}.")
    return rows[:, :n]
