"""Drawings of table rows: a list of columns, and a form with an input for each column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pertinent.config.serialization import decode
from pertinent.errors import InputError
from pertinent.inputs.modality import InputLimits
from pertinent.inputs.table import find_categories
from pertinent.rendering.drawings import Drawing
from pertinent.rendering.html import Markup, from_template

if TYPE_CHECKING:
    from pertinent.models.base import Model


class RowDrawing(Drawing):
    """Drawing of a table row as a list of columns."""

    def form(self, fields: Mapping[str, Any], model: Model, limits: InputLimits) -> Markup:
        """Return an input for each column: a number, or a choice of the background's categories."""
        if fields["row"] is None:
            raise InputError("The model has no column names: pass some rows to wrap(…, background=rows).")
        row = decode(Mapping[str, str | float | None], fields["row"], "row")
        categories, numbers = dict[str, list[str]](), set[str]()
        background = model.background
        if background is not None and background.values.shape[1] == len(row):
            categories = find_categories(background, list(row))
            columns = zip(row, background.values.T.tolist(), strict=True)
            numbers = {name for name, column in columns if not any(isinstance(v, str) for v in column)}
        return from_template("form_table.html", row=row, categories=categories, numbers=numbers)
