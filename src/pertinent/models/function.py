"""Any function from inputs to rows of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pertinent.errors import ModelError, require, unknown
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import Background, Columns
from pertinent.inputs.text import Text
from pertinent.models.arrays import DEFAULT_REMOVAL, KINDS, prepare_any, split_inputs
from pertinent.models.base import Answer, Model, immediately
from pertinent.outputs import Output, output_named
from pertinent.removal.base import Removal, Rows
from pertinent.types import Array, Ints, Masks

ROW_BYTES = 16 * 1024
"""An image of more bytes than this counts for several rows, so that batches of large ones fit into memory."""


class FunctionModel(Model):
    """Calls `function` with a list of strings (or pairs), or an array whose first axis is rows."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        kind: str | None = None,
        classes: Sequence[str] = (),
        names: Sequence[str] = (),
        output: str = "probability",
        unit: str | None = None,
        background: Any = None,
        columns: Sequence[str] | None = None,
        groups: dict[str, Sequence[str]] | None = None,
    ) -> None:
        if kind is not None and kind not in KINDS:
            raise unknown("kind", kind, KINDS)
        self.function = function
        self.kind = kind
        self.output = output_named(output, unit)
        self.classes = column_names(classes, names, self.output)
        if columns is None and hasattr(background, "columns"):
            columns = [str(name) for name in background.columns]
        self.background = Background(background) if background is not None else None
        self.columns = Columns(tuple(columns), groups) if columns is not None else None

    def prepare(self, raw: Any, features: str | None = None) -> Input:
        """Cut a text into words, an image into patches, a row into columns."""
        return prepare_any(raw, self.kind, features, self.columns)

    def split(self, raw: Any) -> Iterable[Any] | None:
        """The inputs in `raw`, if it holds several."""
        return split_inputs(raw, self.kind)

    def default_removal(self, input: Input) -> str:
        """`constant` for a table without background, else the default of the kind of input."""
        if input.kind == "table" and self.background is None:
            return "constant"
        return DEFAULT_REMOVAL[input.kind]

    def identity(self) -> object:
        """The function: its code and the variables it closes over."""
        return self.function, self.output.to_dict(), self.kind, self.columns

    def cost(self, removal: Removal, input: Input, masks: Masks) -> Ints:
        """Rows; a large image counts for several."""
        return np.full(len(masks), removal.draws * self.gradient_cost(input))

    def gradient_cost(self, input: Input) -> int:
        """One, or more for a large image."""
        return max(1, input.pixels.nbytes // ROW_BYTES) if isinstance(input, ImageInput) else 1

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Call the function once for the whole batch."""
        batch = self._batch(rows)
        return immediately(lambda: self._evaluate(batch))

    def _evaluate(self, batch: Any) -> Array:
        answer = self._named(self.function(batch))
        return np.asarray(answer.detach().cpu() if hasattr(answer, "detach") else answer)

    def _named(self, answer: Any) -> Any:
        """An answer whose columns have names as rows of numbers, in the order of the model's classes.

        A data frame, a list of mappings from label to score, or what a transformers pipeline returns.
        """
        if hasattr(answer, "columns") and hasattr(answer, "to_dict"):
            answer = answer.to_dict("records")
        if not isinstance(answer, list) or not answer:
            return answer
        if isinstance(answer[0], list) and answer[0] and isinstance(answer[0][0], Mapping):
            answer = [{each["label"]: each["score"] for each in row} for row in answer]
        if not isinstance(answer[0], Mapping):
            return answer
        names = self.classes or tuple(map(str, answer[0]))
        rows = [{str(name): value for name, value in row.items()} for row in answer]
        for row in rows:
            if set(row) != set(names):
                wanted = ", ".join(names)
                raise ModelError(f"The model must score {wanted} for every input, but scored {list(row)}.")
        self.classes = names
        return [[row[name] for name in names] for row in rows]

    def _batch(self, rows: Sequence[Rows]) -> Any:
        if isinstance(rows[0], list):
            return [_string(text) for part in rows for text in part]  # type: ignore[union-attr]
        return np.concatenate(rows)  # type: ignore[arg-type]


def column_names(classes: Sequence[str], names: Sequence[str], output: Output) -> tuple[str, ...]:
    """The names of the columns: `classes` of a classifier, `names` of a regressor's values."""
    wrong, right = ("classes", "names") if output.kind == "value" else ("names", "classes")
    chosen = {"classes": classes, "names": names}
    require(
        len(chosen[wrong]) == 0, wrong, f"left out for output={output.name!r}, use `{right}`", chosen[wrong]
    )
    return tuple(map(str, chosen[right]))


def _string(text: Text) -> str | tuple[str, str]:
    return text.first if text.second is None else (text.first, text.second)
