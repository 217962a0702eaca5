"""What a model's row of numbers means.

Output
├── Probabilities
│   ├── Classes      of mutually exclusive classes
│   └── Labels       of independent labels
└── PlainValues      any other numbers: a regression, a log-likelihood, an overlap
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.errors import InputError, SettingError, require, unknown

Scale: TypeAlias = Literal["natural", "logit"]
"""The scale an algorithm asks for: natural (probabilities or values), or logits."""

SCALES: tuple[Scale, ...] = ("natural", "logit")

NAMES = ("probability", "logit", "label-probability", "label-logit", "value")
"""What `wrap` accepts as ``output``."""

TINY = 1e-12

ROUNDING = 0.02
"""How far from one the sum of class probabilities may be: some models round them to two digits."""


@dataclass(frozen=True)
class Output(ABC):
    """How to interpret a model's outputs (rows, columns).

    The `natural` scale is the one a person would read: probabilities, or the values themselves.
    """

    kind: ClassVar[Literal["class", "label", "value"]]
    column: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """One of `NAMES`."""

    @abstractmethod
    def natural(self, outputs: Floats) -> Floats:
        """Probabilities, or the values themselves."""

    @abstractmethod
    def logits(self, outputs: Floats) -> Floats:
        """Logits: log-probabilities of classes, log-odds of labels."""

    @abstractmethod
    def average(self, outputs: Floats, draws: int) -> Floats:
        """The mean over each group of `draws` rows, computed on the natural scale."""

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

    def as_scale(self, outputs: Floats, scale: Scale) -> Floats:
        """The outputs on the given scale."""
        return self.natural(outputs) if scale == "natural" else self.logits(outputs)

    def widen(self, outputs: Floats) -> Floats:
        """The outputs with one column per class, label or value."""
        return outputs

    def unusable(self, outputs: Floats) -> dict[int, str]:
        """The rows that cannot be used, each with the reason."""
        rows = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
        return dict.fromkeys(rows.tolist(), "the model answered with NaN or infinity")

    def default_names(self, n_columns: int) -> tuple[str, ...]:
        """The default names of columns."""
        return tuple(f"{self.column} {i}" for i in range(n_columns))

    def to_dict(self) -> dict[str, str]:
        """Plain strings, from which `output_named` recreates this output."""
        return {"name": self.name}


@dataclass(frozen=True)
class Probabilities(Output):
    """What classes and labels share: probabilities, or the logits that the model returns instead."""

    from_logits: bool = False

    def average(self, outputs: Floats, draws: int) -> Floats:
        """The mean of the probabilities, as logits if the model returns logits."""
        mean = _mean(self.natural(outputs), draws)
        return self.to_logits(mean) if self.from_logits else mean

    def logits(self, outputs: Floats) -> Floats:
        """Logits as the model gives them, or those of its probabilities."""
        return outputs if self.from_logits else self.to_logits(outputs)

    @staticmethod
    @abstractmethod
    def to_logits(probabilities: Floats) -> Floats:
        """Logits that give these probabilities."""

    def default_target(self, prediction: Floats) -> int:
        """The most probable class or label."""
        return int(prediction.argmax())

    def objective(self, values: Floats, prediction: Floats, target: int) -> Floats:
        """The target's probability."""
        del prediction
        return values[:, target]

    def describe(self, value: float) -> str:
        """As ``93.1%``."""
        return percent(value)


@dataclass(frozen=True)
class Classes(Probabilities):
    """Class probabilities that sum to one, or logits whose softmax gives them."""

    kind = "class"
    column = "class"

    @property
    def name(self) -> str:
        """``"probability"`` or ``"logit"``."""
        return "logit" if self.from_logits else "probability"

    def natural(self, outputs: Floats) -> Floats:
        """Probabilities."""
        return softmax(outputs) if self.from_logits else outputs

    @staticmethod
    def to_logits(probabilities: Floats) -> Floats:
        """Their logarithms."""
        return np.asarray(np.log(np.clip(probabilities, TINY, None)))

    def same_decision(self, values: Floats, prediction: Floats, target: int) -> Masks:
        """Whether the target is predicted."""
        del prediction
        return np.asarray(values.argmax(axis=1) == target)

    def widen(self, outputs: Floats) -> Floats:
        """A single column is the second of two classes; add the first."""
        if outputs.shape[1] != 1:
            return outputs
        other = np.zeros_like(outputs) if self.from_logits else 1.0 - outputs
        return np.concatenate([other, outputs], axis=1)

    def unusable(self, outputs: Floats) -> dict[int, str]:
        """Probabilities must lie in [0, 1] and sum to one."""
        reasons = super().unusable(outputs)
        if not self.from_logits:
            with np.errstate(invalid="ignore"):
                bad = ~(_are_probabilities(outputs) & (np.abs(outputs.sum(axis=1) - 1) < ROUNDING))
            for row in np.flatnonzero(bad):
                hint = "output='logit' if they are logits, output='value' if it is a regressor"
                if _are_probabilities(outputs[row : row + 1])[0]:
                    hint = (
                        "output='label-probability' if several labels may be true at once, "
                        "output='value' if it is a regressor"
                    )
                answer = outputs[row, 1:] if _is_widened(outputs[row]) else outputs[row]
                reasons.setdefault(
                    int(row),
                    f"the model answered {np.round(answer, 3).tolist()}, which are not probabilities "
                    f"of classes: wrap it with {hint}",
                )
        return reasons


@dataclass(frozen=True)
class Labels(Probabilities):
    """Probabilities of independent labels, or logits whose sigmoid gives them."""

    kind = "label"
    column = "label"

    @property
    def name(self) -> str:
        """``"label-probability"`` or ``"label-logit"``."""
        return "label-logit" if self.from_logits else "label-probability"

    def natural(self, outputs: Floats) -> Floats:
        """Probabilities."""
        return np.asarray(0.5 * (1 + np.tanh(outputs / 2))) if self.from_logits else outputs

    @staticmethod
    def to_logits(probabilities: Floats) -> Floats:
        """Log-odds."""
        return log_odds(probabilities)

    def same_decision(self, values: Floats, prediction: Floats, target: int) -> Masks:
        """Whether the target's probability is on the same side of 0.5 as for the whole input."""
        return np.asarray((values[:, target] >= 0.5) == (prediction[target] >= 0.5))

    def unusable(self, outputs: Floats) -> dict[int, str]:
        """Probabilities must lie in [0, 1]."""
        reasons = super().unusable(outputs)
        if not self.from_logits:
            with np.errstate(invalid="ignore"):
                bad = ~_are_probabilities(outputs)
            for row in np.flatnonzero(bad):
                reasons.setdefault(
                    int(row),
                    f"the model answered {np.round(outputs[row], 3).tolist()}, which are not "
                    "probabilities of labels: wrap it with output='label-logit' if they are logits, "
                    "output='value' if it is a regressor",
                )
        return reasons


@dataclass(frozen=True)
class PlainValues(Output):
    """Numbers that are not probabilities, with a `unit`.

    The objective is how close a value is to the value for the whole input.
    """

    unit: str = ""
    kind = "value"
    column = "value"
    name = "value"

    def natural(self, outputs: Floats) -> Floats:
        """The values."""
        return outputs

    def logits(self, outputs: Floats) -> Floats:
        """Raise an error: plain values have no logits."""
        del outputs
        raise SettingError(
            "Plain values are not probabilities: they have no logits and no weight of evidence."
        )

    def average(self, outputs: Floats, draws: int) -> Floats:
        """The mean."""
        return _mean(outputs, draws)

    def default_target(self, prediction: Floats) -> int:
        """The first value."""
        del prediction
        return 0

    def objective(self, values: Floats, prediction: Floats, target: int) -> Floats:
        """Minus the distance to the value for the whole input."""
        return np.asarray(-np.abs(values[:, target] - prediction[target]))

    def same_decision(self, values: Floats, prediction: Floats, target: int) -> Masks:
        """Raise an error: a plain value is not a decision."""
        del values, prediction, target
        raise SettingError(
            "This method asks whether the decision stays the same, but a plain value is no decision: "
            "choose one that asks how much the value changes, such as parallel-local-search or kernel-shap."
        )

    def describe(self, value: float) -> str:
        """As ``3.14 m²``: four significant digits and the unit."""
        number = f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
        return f"{number} {self.unit}".rstrip()

    def default_names(self, n_columns: int) -> tuple[str, ...]:
        """A single value is not numbered."""
        return ("value",) if n_columns == 1 else super().default_names(n_columns)

    def to_dict(self) -> dict[str, str]:
        """The plain strings, with the unit."""
        return {"name": self.name, "unit": self.unit}


def output_named(name: str, unit: str | None = None) -> Output:
    """The output called `name`; only plain values have a unit.

    >>> output_named("value", "m²").describe(3.14159)
    '3.142 m²'
    """
    if name not in NAMES:
        raise unknown("output", name, NAMES)
    if name == "value":
        return PlainValues(unit or "")
    require(not unit, "unit", "left out unless output='value'", unit)
    kind = Labels if name.startswith("label-") else Classes
    return kind(from_logits=name.endswith("logit"))


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
    elif hasattr(name, "item"):
        name = name.item()
    if not isinstance(name, int | float) or not isfinite(name) or name % 1:
        raise InputError(f"A {what} must be given by its name or number, but got {name!r}.")
    require(0 <= name < len(columns), what, f"a name or a number from 0 to {len(columns) - 1}", name)
    return int(name)


def softmax(logits: Floats) -> Floats:
    """Probabilities of logits, row by row."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def log_odds(probabilities: Floats) -> Floats:
    """Log-odds, clipped where a probability is 0 or 1."""
    p = np.clip(probabilities, TINY, 1 - TINY)
    return np.asarray(np.log(p) - np.log1p(-p))


def percent(probability: float) -> str:
    """As ``93.1%``."""
    return f"{100 * probability:.1f}%"


def _is_widened(row: Floats) -> bool:
    """Whether the model answered with the second of these numbers alone."""
    return len(row) == 2 and bool(row.sum() == 1) and bool(row.min() < 0)


def _mean(outputs: Floats, draws: int) -> Floats:
    return np.asarray(outputs.reshape(-1, draws, outputs.shape[1]).mean(axis=1))


def _are_probabilities(outputs: Floats) -> Masks:
    return np.asarray(((outputs > -1e-6) & (outputs < 1 + 1e-6)).all(axis=1))
