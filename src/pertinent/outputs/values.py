"""Plain values: numbers that are not probabilities, such as a regression or an overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.errors import SettingError
from pertinent.number_format import number_text
from pertinent.outputs.base import Output, Scale

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class PlainValues(Output):
    """Numbers that are not probabilities, with a `unit`.

    The objective is the closeness to the value for the whole input.
    """

    unit: str = ""
    kind = "value"
    plural = "values"
    name = "value"
    no_decision = (
        "This method compares decisions, but a plain value is not a decision: choose a method that measures "
        "changes of the value, such as parallel-local-search or kernel-shap."
    )

    def natural(self, outputs: Floats) -> Floats:
        """Return the values."""
        return outputs

    def default_target(self, prediction: Floats) -> int:
        """Return the first column."""
        return 0

    def objective(self, values: Floats, prediction: Floats, target: int) -> Floats:
        """Return minus the distance to the value for the whole input."""
        return np.asarray(-np.abs(values[:, target] - prediction[target]))

    def importance(self, scores: Floats) -> Floats:
        """Return magnitudes: features that lower the value matter as much as those that raise it."""
        return np.abs(scores)

    def same_decision(self, values: Floats, prediction: Floats, target: int) -> Masks:
        """Raise a `SettingError`, because a plain value is not a decision."""
        raise SettingError(self.no_decision)

    def describe(self, value: float) -> str:
        """Return a value with four significant digits and the unit, such as ``3.142 m²``."""
        return f"{number_text(value)} {self.unit}".rstrip()

    def default_names(self, n_columns: int) -> tuple[str, ...]:
        """Return default names of columns; a single value has no number."""
        return ("value",) if n_columns == 1 else super().default_names(n_columns)

    def to_dict(self) -> dict[str, str]:
        """Return the arguments of `output_named` that recreate this output."""
        return {"name": self.name, "unit": self.unit}

    def followed_scores(self, outputs: Tensor, scale: Scale) -> Tensor:
        """Return the values."""
        return outputs.float()

    def side(self, prediction: Floats, target: int) -> float:
        """Raise a `SettingError`, because a plain value is not a decision."""
        raise SettingError(self.no_decision)

    def margins(self, outputs: Tensor, decided: Tensor, toward: Tensor, sides: Tensor) -> Tensor:
        """Raise a `SettingError`, because a plain value is not a decision."""
        raise SettingError(self.no_decision)
