"""What a model's row of numbers means: the interface of each kind, and what the kinds share.

Output
├── Probabilities
│   ├── Classes      of mutually exclusive classes
│   └── Labels       of independent labels
└── PlainValues      any other numbers: a regression, an overlap
    └── LogLikelihoods   of an answer and its tokens

What a kind says of numpy arrays it says of torch tensors in the same file: gradients and attacks ask it
which score they follow. The package itself never imports torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.errors import InputError, require, safe_repr, unknown

if TYPE_CHECKING:
    from torch import Tensor

Scale: TypeAlias = Literal["natural", "logit", "log-probability", "raw"]
"""What an algorithm asks for: probabilities or values (natural), log-odds of a class or label against the
rest (logit), log-probabilities, or the model's own scores before softmax or sigmoid (raw)."""

SCALES: tuple[Scale, ...] = ("natural", "logit", "log-probability", "raw")

TINY = 1e-12
"""The smallest probability of which a logarithm is taken."""


@dataclass(frozen=True)
class Output(ABC):
    """How to interpret a model's outputs (rows, columns).

    The `natural` scale is the one a person would read: probabilities, or the values themselves.
    `no_decision` is the reason why its numbers are no decision that could change; empty if they are one.
    """

    kind: ClassVar[Literal["class", "label", "value"]]
    plural: ClassVar[str]
    no_decision: ClassVar[str] = ""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name by which `output_named` knows it."""

    @abstractmethod
    def natural(self, outputs: Floats) -> Floats:
        """Probabilities, or the values themselves."""

    @abstractmethod
    def default_target(self, prediction: Floats) -> int:
        """The column that is explained by default."""

    @abstractmethod
    def objective(self, values: Floats, prediction: Floats, target: int) -> Floats:
        """How well each row of natural `values` (rows, columns) preserves the decision; larger is better."""

    @abstractmethod
    def same_decision(self, values: Floats, prediction: Floats, target: int) -> Masks:
        """Whether the decision about the target is the same in each row as for the whole input."""

    @abstractmethod
    def describe(self, value: float) -> str:
        """A probability or value, formatted for people."""

    @property
    def scales(self) -> tuple[Scale, ...]:
        """The scales it has."""
        return ("natural",)

    def as_scale(self, outputs: Floats, scale: Scale) -> Floats:
        """The outputs on the given scale, which it has."""
        return self.natural(outputs)

    def span(self, scale: Scale) -> float:
        """Return the largest possible difference of two outputs on the scale; NaN if it is unknown."""
        return nan

    def widen(self, outputs: Floats) -> Floats:
        """The outputs with one column per class, label or value, even where the model left one out."""
        return outputs

    def unusable(self, outputs: Floats) -> dict[int, str]:
        """The rows that cannot be used, each with the reason."""
        rows = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
        return dict.fromkeys(rows.tolist(), "the model answered with NaN or infinity")

    def default_names(self, n_columns: int) -> tuple[str, ...]:
        """The default names of columns."""
        return tuple(f"{self.kind} {i}" for i in range(n_columns))

    def importance(self, scores: Floats) -> Floats:
        """The scores by which features are ranked, largest first."""
        return scores

    def to_dict(self) -> dict[str, str]:
        """Plain strings, from which `output_named` recreates this output."""
        return {"name": self.name}

    def n_tokens(self, columns: Sequence[str]) -> Ints:
        """Number of tokens of an answer over which each of these columns sums; 1 of other outputs."""
        return np.ones(len(columns), dtype=np.int64)

    # -- scores that gradients and attacks follow ----------------------------------------------------

    @abstractmethod
    def followed_scores(self, outputs: Tensor, scale: Scale) -> Tensor:
        """The score of each column whose gradient is taken.

        Plain values, or the scores on the scale; on the natural one, log-probabilities.
        """

    def mean_answer(self, outputs: Tensor, windows: Tensor) -> Tensor:
        """Outputs (rows, columns) whose natural values are the mean over several outputs.

        `outputs` are (outputs, columns); `windows` (rows, most outputs of a row) are the numbers of those
        that each row is the mean of, −1 where it has fewer.
        """
        real = (windows >= 0)[..., None]
        return outputs.float()[windows].where(real, 0.0).sum(dim=1) / real.sum(dim=1)

    def natural_slopes(self, values: Floats) -> Floats:
        """The derivative of each natural value by its followed score."""
        return np.ones_like(values)

    def n_rivals(self, n_columns: int) -> int:
        """The number of other decisions that may be made about a column."""
        return 1

    def side(self, prediction: Floats, target: int) -> float:
        """1 if a decision is made for the target, −1 if it is made against it."""
        return 1.0

    @abstractmethod
    def margins(self, outputs: Tensor, decided: Tensor, toward: Tensor, sides: Tensor) -> Tensor:
        """The margin, in logits, of each row's decision over each of its rivals (rows, rivals).

        Positive while the decision stands; infinite where there is no rival. `decided` (rows, 1) is the
        column that was decided for, `toward` (rows, 1) the column that an attack must reach (−1: any other);
        `sides` (rows,) are from `side`.
        """

    def decided_logits(self, outputs: Tensor, decided: Tensor, toward: Tensor, sides: Tensor) -> Tensor:
        """The logit (rows,) that must fall for each row's decision to change; arguments as in `margins`."""
        return self.margins(outputs, decided, toward, sides).amin(dim=1)


def column_index(name: Any, columns: Sequence[str], what: str = "class") -> int:
    """The index of a column given by name or number; errors call it `what`.

    A number may also be a string, unless a column has that name.

    >>> column_index("sports", ["world", "sports"]), column_index("0", ["no", "yes"])
    (1, 0)
    """
    if isinstance(name, str):
        if name in columns:
            return list(columns).index(name)
        if not name.isdecimal():
            raise unknown(what, name, columns)
        name = int(name)
    elif getattr(name, "ndim", None) == 0:  # a number of numpy or torch
        name = name.item()
    if not isinstance(name, int | float) or not isfinite(name) or name % 1:
        raise InputError(f"A {what} must be given by its name or number, but got {safe_repr(name)}.")
    require(0 <= name < len(columns), what, f"a name or a number from 0 to {len(columns) - 1}", name)
    return int(name)


def percent(probability: float) -> str:
    """As ``93.1%``."""
    return f"{100 * probability:.1f}%"
