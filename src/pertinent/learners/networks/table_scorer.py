"""How table rows are read, and a small network that scores their columns."""

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
"""Number of the most frequent values of a column that are told apart; all others are encoded alike."""


@dataclass(frozen=True)
class Column:
    """How one column is encoded: standardised, or one number for each of its `categories`."""

    name: str
    mean: float = 0.0
    deviation: float = 1.0
    categories: tuple[str, ...] | None = None

    @classmethod
    def from_values(cls, name: str, values: Array) -> Column:
        """Derive the encoding from the values that were seen."""
        known = values[~missing(values)]
        try:
            numbers = known.astype(np.float64)
            if any(isinstance(value, str) for value in known.tolist()):
                raise ValueError  # noqa: TRY301  a text is a category even if it reads like a number
        except (TypeError, ValueError):
            counts = Counter(map(str, known.tolist()))
            frequent = sorted(counts, key=lambda value: (-counts[value], value))
            return cls(name, categories=tuple(sorted(frequent[:CATEGORIES])))
        if not len(numbers):
            return cls(name)
        return cls(name, float(numbers.mean()), float(numbers.std()) or 1.0)

    @property
    def width(self) -> int:
        """Number of values that encode it; one of them marks a missing or unknown value."""
        return 2 if self.categories is None else len(self.categories) + 1

    def encode(self, values: Array) -> Floats:
        """Values of several rows, encoded (rows, width)."""
        encoded = np.zeros((len(values), self.width))
        if self.categories is None:
            absent = missing(values)
            numbers = np.where(absent, self.mean, values).astype(np.float64)
            encoded[:, 0], encoded[:, 1] = (numbers - self.mean) / self.deviation, absent
        else:
            places = {value: i for i, value in enumerate(self.categories)}
            known = [places.get(str(value), len(places)) for value in values.tolist()]
            encoded[np.arange(len(values)), known] = 1.0
        return encoded


class RowScorer(Scorer):
    """A scorer that reads encoded columns."""

    def __init__(self, columns: Sequence[Column], n_columns: int) -> None:
        super().__init__(n_columns)
        self.columns = tuple(columns)

    @classmethod
    def from_model(cls, model: Model, inputs: Sequence[Input], n_columns: int, **options: bool) -> Self:
        """A scorer whose encoding of columns is derived from these rows."""
        rows = _rows(inputs)
        names = rows[0].names
        values = [np.array([row.values[i] for row in rows]) for i in range(len(names))]
        return cls([Column.from_values(*each) for each in zip(names, values, strict=True)], n_columns)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], n_columns: int) -> Self:
        """A scorer with the same encoding of columns."""
        columns = [
            Column(**c | {"categories": c["categories"] and tuple(c["categories"])})
            for c in config["columns"]
        ]
        return cls(columns, n_columns)

    def arguments(self) -> dict[str, Any]:
        """How each column is encoded."""
        return {"columns": [asdict(column) for column in self.columns]}

    def read(self, model: Model, inputs: Sequence[Input]) -> ScorerBatch:
        """The encoded columns of several rows."""
        rows = _rows(inputs, [column.name for column in self.columns])
        values = np.stack([row.values for row in rows])
        encoded = [column.encode(values[:, i]) for i, column in enumerate(self.columns)]
        owners = np.stack([row.owners for row in rows])
        return ScorerBatch({"encoded": np.concatenate(encoded, axis=1).astype(np.float32)}, owners)


class TableScorer(RowScorer):
    """Two hidden layers over all columns, with a linear path beside them for what is additive."""

    kind = "table"

    def __init__(self, columns: Sequence[Column], n_columns: int) -> None:
        super().__init__(columns, n_columns)
        n_read, n_scores = sum(column.width for column in columns), len(columns) * n_columns
        self.linear = nn.Linear(n_read, n_scores)
        self.deep = nn.Sequential(
            nn.Linear(n_read, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, n_scores),
        )

    def approximator(self, model: Model, n_columns: int) -> TableApproximator:
        """An approximator that reads columns of the same widths."""
        return TableApproximator([column.width for column in self.columns], n_columns)

    def forward(self, **options: Any) -> torch.Tensor:
        """Scores (rows, columns of the table, columns of the model)."""
        encoded: torch.Tensor = options["encoded"]
        scores: torch.Tensor = self.linear(encoded) + self.deep(encoded)
        return scores.reshape(len(scores), len(self.columns), -1)


class TableApproximator(ArrayApproximator):
    """Two hidden layers over the encoded columns.

    It does not see which numbers are kept, because the selection could then encode the answer by itself. A
    removed category is encoded as none of the known ones.
    """

    repeats: torch.Tensor

    def __init__(self, widths: Sequence[int], n_columns: int) -> None:
        super().__init__()
        self.register_buffer("repeats", torch.tensor(widths))
        self.deep = nn.Sequential(
            nn.Linear(sum(widths), HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HIDDEN), nn.GELU()
        )
        self.head = nn.Linear(HIDDEN, n_columns)

    def forward(self, kept: torch.Tensor, **arrays: torch.Tensor) -> torch.Tensor:
        """Logits (rows, columns) of rows whose removed columns are zeros, the mean of standardised ones."""
        encoded = arrays["encoded"] * kept.repeat_interleave(self.repeats, dim=1)
        logits: torch.Tensor = self.head(self.deep(encoded))
        return logits


def _rows(inputs: Sequence[Input], names: Sequence[str] | None = None) -> list[TableInput]:
    """The inputs, which must be table rows with these columns, by default those of the first row."""
    rows = [input for input in inputs if isinstance(input, TableInput)]
    assert len(rows) == len(inputs)
    names = list(names or rows[0].names)
    for row in rows:
        if list(row.names) != names:
            wanted, got = ", ".join(names), ", ".join(row.names)
            raise InputError(f"The explainer reads rows with the columns {wanted}, but got {got}.")
    return rows
