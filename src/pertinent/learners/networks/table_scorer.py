"""The encoding of table rows, and a small network that scores columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from pertinent.array_types import Array, Floats
from pertinent.errors import InputError
from pertinent.inputs.base import Input
from pertinent.inputs.rows import missing
from pertinent.inputs.table import TableInput
from pertinent.learners.networks.scorer import ArrayApproximator, Scorer, ScorerBatch
from pertinent.models.base import Model

if TYPE_CHECKING:
    from typing import Self

HIDDEN = 128
CATEGORIES = 50
"""Number of most frequent values of a column with a separate code; all others share one code."""


@dataclass(frozen=True)
class EncodedColumn:
    """The encoding of one column: standardised, or one number for each of its `categories`."""

    name: str
    mean: float = 0.0
    deviation: float = 1.0
    categories: tuple[str, ...] | None = None

    @classmethod
    def from_values(cls, name: str, values: Array) -> EncodedColumn:
        """Derive the encoding from training values."""
        present = values[~missing(values)]
        try:
            numbers = present.astype(np.float64)
            if any(isinstance(value, str) for value in present.tolist()):
                raise ValueError  # noqa: TRY301  a text is a category even if it reads like a number
        except (TypeError, ValueError):
            counts = Counter(map(str, present.tolist()))
            frequent = sorted(counts, key=lambda value: (-counts[value], value))
            return cls(name, categories=tuple(sorted(frequent[:CATEGORIES])))
        if not len(numbers):
            return cls(name)
        return cls(name, float(numbers.mean()), float(numbers.std()) or 1.0)

    @property
    def width(self) -> int:
        """Return the number of encoded values; one of them marks a missing or unknown value."""
        return 2 if self.categories is None else len(self.categories) + 1

    def encode(self, values: Array) -> Floats:
        """Return the encoded values (rows, width) of several rows."""
        encoded = np.zeros((len(values), self.width))
        if self.categories is None:
            absent = missing(values)
            numbers = np.where(absent, self.mean, values).astype(np.float64)
            encoded[:, 0], encoded[:, 1] = (numbers - self.mean) / self.deviation, absent
        else:
            indices = {value: i for i, value in enumerate(self.categories)}
            codes = [indices.get(str(value), len(indices)) for value in values.tolist()]
            encoded[np.arange(len(values)), codes] = 1.0
        return encoded


class RowScorer(Scorer):
    """A scorer that reads encoded columns."""

    def __init__(self, n_columns: int, columns: Sequence[EncodedColumn]) -> None:
        super().__init__(n_columns)
        self.columns = tuple(columns)

    @classmethod
    def from_model(cls, model: Model, inputs: Sequence[Input], n_columns: int, **options: bool) -> Self:
        """Return a scorer whose column encoding is derived from these rows."""
        rows = _rows(inputs)
        names = rows[0].names
        values = [np.array([row.values[i] for row in rows]) for i in range(len(names))]
        return cls(n_columns, list(map(EncodedColumn.from_values, names, values)))

    @classmethod
    def from_config(cls, config: Mapping[str, Any], n_columns: int) -> Self:
        """Return a scorer with the saved column encoding."""
        columns = [
            EncodedColumn(**c | {"categories": c["categories"] and tuple(c["categories"])})
            for c in config["columns"]
        ]
        return cls(n_columns, columns)

    def configuration(self) -> dict[str, Any]:
        """Return the encoding of each column."""
        return {"columns": [asdict(column) for column in self.columns]}

    def read(self, model: Model, inputs: Sequence[Input]) -> ScorerBatch:
        """Read the encoded columns of several rows."""
        rows = _rows(inputs, [column.name for column in self.columns])
        values = np.stack([row.values for row in rows])
        encoded = [column.encode(values[:, i]) for i, column in enumerate(self.columns)]
        owners = np.stack([row.owners for row in rows])
        return ScorerBatch({"encoded": np.concatenate(encoded, axis=1).astype(np.float32)}, owners)


class TableScorer(RowScorer):
    """Two hidden layers over all columns, with a parallel linear path for additive effects."""

    kind = "table"

    def __init__(self, n_columns: int, columns: Sequence[EncodedColumn]) -> None:
        super().__init__(n_columns, columns)
        n_read, n_scores = sum(column.width for column in columns), len(columns) * n_columns
        self.linear = nn.Linear(n_read, n_scores)
        self.deep = nn.Sequential(*_hidden_layers(n_read), nn.Linear(HIDDEN, n_scores))

    def approximator(self, model: Model, n_columns: int) -> TableApproximator:
        """Return an approximator for columns of the same widths."""
        return TableApproximator([column.width for column in self.columns], n_columns)

    def forward(self, **options: Any) -> torch.Tensor:
        """Return scores (rows, table columns, model columns)."""
        encoded: torch.Tensor = options["encoded"]
        scores: torch.Tensor = self.linear(encoded) + self.deep(encoded)
        return scores.reshape(len(scores), len(self.columns), -1)


class TableApproximator(ArrayApproximator):
    """Two hidden layers over the encoded columns.

    It does not see which numbers are kept, because the selection itself could then encode the answer. A
    removed category is encoded as an unknown category.
    """

    repeats: torch.Tensor

    def __init__(self, widths: Sequence[int], n_columns: int) -> None:
        super().__init__()
        self.register_buffer("repeats", torch.tensor(widths))
        self.deep = nn.Sequential(*_hidden_layers(sum(widths)))
        self.head = nn.Linear(HIDDEN, n_columns)

    def forward(self, kept: torch.Tensor, **arrays: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, columns) of rows with removed columns set to 0, the standardised mean."""
        encoded = arrays["encoded"] * kept.repeat_interleave(self.repeats, dim=1)
        logits: torch.Tensor = self.head(self.deep(encoded))
        return logits


def _hidden_layers(n_inputs: int) -> list[nn.Module]:
    return [nn.Linear(n_inputs, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HIDDEN), nn.GELU()]


def _rows(inputs: Sequence[Input], names: Sequence[str] | None = None) -> list[TableInput]:
    """Return the inputs, which must be table rows with these columns (default: those of the first row)."""
    rows = [input for input in inputs if isinstance(input, TableInput)]
    assert len(rows) == len(inputs)
    names = list(names or rows[0].names)
    for row in rows:
        if list(row.names) != names:
            expected, got = ", ".join(names), ", ".join(row.names)
            raise InputError(f"The explainer reads rows with the columns {expected}, but got {got}.")
    return rows
