"""Base class of outputs, the meanings of a model's row of numbers.

Output
├── Probabilities
│   ├── Classes      of mutually exclusive classes
│   └── Labels       of independent labels
└── PlainValues      any other numbers: a regression, an overlap
    └── LogLikelihoods   of an answer and its tokens

Each kind defines its meaning for numpy arrays and, for gradients and attacks, for torch tensors in the same
file. Torch is only imported inside functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.errors import InputError, require, safe_repr, unknown

if TYPE_CHECKING:
    from torch import Tensor

Scale: TypeAlias = Literal["natural", "logit", "log-probability", "raw"]
"""A scale of answers: probabilities or values (natural), log-odds of a class or label against the rest
(logit), log-probabilities, or the model's scores before softmax or sigmoid (raw)."""

SCALES: tuple[Scale, ...] = ("natural", "logit", "log-probability", "raw")

TINY = 1e-12
"""Smallest probability whose logarithm is computed."""


@dataclass(frozen=True)
class Output(ABC):
    """The meaning of a model's outputs (rows, columns).

    Attributes
    ----------
    kind
        Type of a column: a class, a label or a value.
    plural
        Plural of `kind`, for messages.
    no_decision
        Reason why the numbers are not a decision that could change; empty if they are.
    """

    kind: ClassVar[Literal["class", "label", "value"]]
    plural: ClassVar[str]
    no_decision: ClassVar[str] = ""

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the name that `output_named` accepts."""

    @abstractmethod
    def natural(self, outputs: Floats) -> Floats:
        """Return probabilities, or the values themselves."""

    @abstractmethod
    def default_target(self, prediction: Floats) -> int:
        """Return the column to explain by default."""

    @abstractmethod
    def objective(self, values: Floats, prediction: Floats, target: int) -> Floats:
        """Return how well each row of natural `values` preserves the decision (rows,); larger is better."""

    @abstractmethod
    def same_decision(self, values: Floats, prediction: Floats, target: int) -> Masks:
        """Return whether each row's decision about the target is the same as for the whole input."""

    @abstractmethod
    def describe(self, value: float) -> str:
        """Return a probability or value as text."""

    @property
    def scales(self) -> tuple[Scale, ...]:
        """Return the available scales."""
        return ("natural",)

    def as_scale(self, outputs: Floats, scale: Scale) -> Floats:
        """Return the outputs on one of the available scales."""
        return self.natural(outputs)

    def span(self, scale: Scale) -> float:
        """Return the largest possible difference between two outputs on the scale; NaN if unknown."""
        return nan

    def widen(self, outputs: Floats) -> Floats:
        """Return the outputs with one column per class, label or value, adding any that the model omits."""
        return outputs

    def unusable(self, outputs: Floats) -> dict[int, str]:
        """Return the indices of unusable rows, with the reasons."""
        rows = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
        return dict.fromkeys(rows.tolist(), "the model returned NaN or infinity")

    def default_names(self, n_columns: int) -> tuple[str, ...]:
        """Return default names of columns."""
        return tuple(f"{self.kind} {i}" for i in range(n_columns))

    def importance(self, scores: Floats) -> Floats:
        """Return the values by which features are ranked, largest first."""
        return scores

    def to_dict(self) -> dict[str, str]:
        """Return the arguments of `output_named` that recreate this output."""
        return {"name": self.name}

    # -- scores that gradients and attacks follow ----------------------------------------------------

    @abstractmethod
    def followed_scores(self, outputs: Tensor, scale: Scale) -> Tensor:
        """Return the score of each column whose gradient is computed.

        These are plain values, or scores on the scale; on the natural scale, log-probabilities.
        """

    def mean_answer(self, outputs: Tensor, windows: Tensor) -> Tensor:
        """Return outputs (rows, columns) whose natural values are means over several outputs.

        `windows` (rows, most outputs per row) holds the indices of each row's `outputs` (outputs, columns),
        padded with −1.
        """
        real = (windows >= 0)[..., None]
        return outputs.float()[windows].where(real, 0.0).sum(dim=1) / real.sum(dim=1)

    def natural_slopes(self, values: Floats) -> Floats:
        """Return the derivative of each natural value with respect to its followed score."""
        return np.ones_like(values)

    def n_rivals(self, n_columns: int) -> int:
        """Return the number of other possible decisions."""
        return 1

    def side(self, prediction: Floats, target: int) -> float:
        """Return 1 if the decision is for the target, −1 if it is against the target."""
        return 1.0

    @abstractmethod
    def margins(self, outputs: Tensor, decided: Tensor, toward: Tensor, sides: Tensor) -> Tensor:
        """Return the margin, in logits, of each row's decision over each rival (rows, rivals).

        It is positive while the decision holds, and infinite if there is no rival.

        Parameters
        ----------
        outputs
            The model's outputs (rows, columns).
        decided
            Column of the decision (rows, 1).
        toward
            Column that an attack must reach, −1 for any other (rows, 1).
        sides
            Values of `side` (rows,).
        """

    def decided_logits(self, outputs: Tensor, decided: Tensor, toward: Tensor, sides: Tensor) -> Tensor:
        """Return the logits (rows,) that must decrease to change the decisions; arguments as in `margins`."""
        return self.margins(outputs, decided, toward, sides).amin(dim=1)


def column_index(name: Any, columns: Sequence[str], what: str = "class") -> int:
    """Return the index of a column from its name or index; `what` is its kind in error messages.

    An index may also be a string, unless a column has that name.

    >>> column_index("sports", ["world", "sports"]), column_index("0", ["no", "yes"])
    (1, 0)
    """
    if isinstance(name, str):
        if name in columns:
            return list(columns).index(name)
        if not name.isdecimal():
            raise unknown(what, name, columns)
        name = int(name)
    elif getattr(name, "ndim", None) == 0:  # a numpy or torch scalar
        name = name.item()
    if not isinstance(name, int | float) or not isfinite(name) or name % 1:
        raise InputError(f"A {what} must be a name or an index, but got {safe_repr(name)}.")
    require(0 <= name < len(columns), what, f"a name or a number from 0 to {len(columns) - 1}", name)
    return int(name)


def percent(probability: float) -> str:
    """Return a probability as text, such as ``93.1%``."""
    return f"{100 * probability:.1f}%"
