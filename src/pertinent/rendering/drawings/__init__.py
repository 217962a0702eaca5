"""Drawings of inputs: a base class that lists features, and more detailed subclasses for modalities.

`Modality.drawing` names a modality's drawing; the base class is the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from rich.console import Console, RenderableType

from pertinent.array_types import Array, Floats, Masks
from pertinent.inputs.base import Input
from pertinent.inputs.modality import InputLimits, modality_named
from pertinent.printable import shorten
from pertinent.rendering import pairs
from pertinent.rendering.html import Markup, from_template
from pertinent.rendering.wording import on_one_line

if TYPE_CHECKING:
    from pertinent.models.base import Model
    from pertinent.rendering.panels import Panel
    from pertinent.results.explanation import Explanation

_MOST_IN_HEAT_MAP = 8


class Drawing:
    """Base class of drawings, which lists the features of an input.

    In HTML, an element with the attribute ``data-features="3 4"`` represents these features. On the web page,
    clicking it removes them.

    Attributes
    ----------
    lists_features
        Whether the feature bars are the whole drawing and therefore keep the input's order.
    underlines
        Whether to underline the features of the smallest chosen set.
    plot_height
        Height, in inches, of the axes that `plot` draws above the bars; 0 without such axes.
    """

    lists_features: ClassVar[bool] = True
    underlines: ClassVar[bool] = False
    plot_height: ClassVar[float] = 0.0

    def beginning(self, input: Any) -> str:
        """Return the beginning of the input on one line, or a thumbnail, for a page's index."""
        names, values = input.features, input.value_texts()
        pairs = zip(names, values or names, strict=True)
        return beginning_of(names if values is None else [f"{name}={value}" for name, value in pairs])

    def has_unread(self, input: Any) -> bool:
        """Return whether the drawing shows parts that the model did not read."""
        return False

    def heading(self, e: Explanation) -> str:
        """Return the heading of an explanation: the predicted class."""
        return e.classes[e.prediction.column]

    def column_shares(self, e: Explanation) -> dict[int, Floats]:
        """Return each feature's colour from −1 to 1 by column, if the columns share one scale."""
        return {}

    # -- terminal ------------------------------------------------------------------------------------

    def terminal(
        self, panel: Panel, console: Console, width: int, *, colour: bool
    ) -> Iterator[RenderableType]:
        """Yield the input coloured by score or, without `colour`, with marks; `width` characters wide."""
        yield from ()

    def terminal_input(self, input: Any, *, colour: bool) -> RenderableType | None:
        """Return the original input if the coloured one does not show it."""
        return None

    # -- HTML ----------------------------------------------------------------------------------------

    def html(self, panel: Panel, *, small: bool = False) -> Markup:
        """Return the input coloured by score; `small` if several classes are side by side."""
        return Markup()

    def html_input(self, input: Any) -> Markup:
        """Return the original input if the coloured one does not show it."""
        return Markup()

    def html_set(self, input: Any, mask: Masks, caption: str) -> Markup:
        """Return a picture of the features in a set, if it shows more than their names."""
        return Markup()

    def html_pairs(self, panel: Panel) -> Markup:
        """Return a picture of the strongest pairs of features: a heat map of their interactions."""
        e = panel.explanation
        features, share = pairs.joined_features(e, _MOST_IN_HEAT_MAP), pairs.relative_interactions(e)
        return from_template("heat_map.html", e=e, features=features, share=share, pairs=pairs)

    def form(self, fields: Mapping[str, Any], model: Model, limits: InputLimits) -> Markup:
        """Return the part of the web page's form in which users edit an input.

        `fields` contains ``None`` for empty fields. The names of the elements are the fields that
        `Modality.from_fields` reads: a number input yields a number, a checkbox a boolean, and a named
        fieldset an object.
        """
        return from_template("form_values.html", fields=fields, limits=limits)

    def html_study(self, input: Any, chosen: Masks, *, alone: bool = False, can_mark: bool = False) -> Markup:
        """Return the input in a question of a study, with the chosen features highlighted.

        If `alone`, only the chosen features are shown. If `can_mark`, each feature has a checkbox named
        ``answer`` whose value is the feature's index. Scores must not be visible.
        """
        values = input.value_texts() or ("",) * input.n_features
        shown = np.flatnonzero(chosen if alone else np.ones_like(chosen)).tolist()
        rows = [(i, input.features[i], values[i], chosen[i]) for i in shown]
        left = input.n_features - len(rows)
        return from_template("study_row.html", rows=rows, left=left, can_mark=can_mark, nouns=nouns_of(input))

    # -- plots ---------------------------------------------------------------------------------------

    def pictures(self, panel: Panel) -> tuple[Array, ...]:
        """Return pictures (height, width, 3): the input, its heat map and the marked features, if any."""
        return ()

    def height_of_plot(self, panel: Panel) -> float:
        """Return the height of the axes above the bars for this explanation, in inches."""
        return self.plot_height

    def plot(self, axes: Any, panel: Panel) -> None:
        """Draw the input, coloured by score, on matplotlib axes above the bars."""


def drawing_of(input: Input) -> Drawing:
    """Return the drawing of the input's modality."""
    return drawing_named(input.kind)


@cache
def drawing_named(kind: str) -> Drawing:
    """Return the drawing of a modality."""
    drawing = modality_named(kind).drawing or Drawing
    made: Drawing = (resolve_name(drawing) if isinstance(drawing, str) else drawing)()
    return made


def nouns_of(input: Input) -> tuple[str, str]:
    """Return the everyday nouns for the input and for one of its features."""
    return modality_named(input.kind).nouns


def beginning_of(parts: Sequence[str]) -> str:
    """Return the beginning of several texts, on one line."""
    return shorten(on_one_line(" · ".join(parts)), 120)
