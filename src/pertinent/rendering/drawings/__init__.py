"""How inputs are drawn: the base, which lists features, and one drawing for each modality that has its own.

A modality names its drawing (`Modality.drawing`); one without is drawn by the base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Console, RenderableType

from pertinent.array_types import Array, Floats, Masks
from pertinent.inputs.base import Input
from pertinent.inputs.modality import modality_named
from pertinent.printable import shorten
from pertinent.rendering import pairs
from pertinent.rendering.html import Markup, from_template
from pertinent.rendering.wording import on_one_line

if TYPE_CHECKING:
    from pertinent.rendering.panels import Panel
    from pertinent.results.explanation import Explanation

_MOST_IN_HEAT_MAP = 8


class Drawing:
    """Draws inputs that are nothing but a list of features; subclasses draw what else there is to see.

    Attributes
    ----------
    lists_features
        Whether the bars of the features are all that is drawn, so that they stand in the input's order.
    clips_outliers
        Whether colours are clipped, so that a few large scores do not make all others pale.
    underlines
        Whether features of the smallest chosen set are underlined.
    plot_height
        The height of what `plot` draws above the bars, in inches; 0 if it draws nothing.
    """

    lists_features: ClassVar[bool] = True
    clips_outliers: ClassVar[bool] = False
    underlines: ClassVar[bool] = False
    plot_height: ClassVar[float] = 0.0

    def beginning(self, input: Any) -> str:
        """The beginning of the input in a line, or a small picture of it, for the index of a page."""
        names, values = input.features, input.shown()
        pairs = zip(names, values or names, strict=True)
        return beginning_of(names if values is None else [f"{name}={value}" for name, value in pairs])

    def has_unread(self, input: Any) -> bool:
        """Whether some of what is drawn was not read by the model."""
        return False

    def plain(self, input: Any) -> dict[str, Any]:
        """What the web page draws besides the features' names and values, as plain data."""
        return {}

    def heat_map(self, input: Any, share: Floats) -> str | None:
        """The features in colours, from −1 to 1, as the data URI of a picture that lies over the input."""
        return None

    def column_shares(self, e: Explanation) -> dict[int, Floats]:
        """How strongly each feature is coloured for each column, if the columns share one scale."""
        return {}

    def terminal(
        self, panel: Panel, console: Console, width: int, *, colour: bool
    ) -> Iterator[RenderableType]:
        """The input coloured by score or, without `colour`, with marks, `width` characters wide."""
        yield from ()

    def terminal_input(self, input: Any, *, colour: bool) -> RenderableType | None:
        """The input as it was given, if it cannot be made out where it is coloured."""
        return None

    def html(self, panel: Panel, *, small: bool = False) -> Markup:
        """The input coloured by score; `small` if several classes stand side by side."""
        return Markup()

    def html_input(self, input: Any) -> Markup:
        """The input as it was given, if it cannot be made out where it is coloured."""
        return Markup()

    def html_set(self, input: Any, mask: Masks, caption: str) -> Markup:
        """The features of a set as a picture, if they are better seen than named."""
        return Markup()

    def html_pairs(self, panel: Panel) -> Markup:
        """A picture of the strongest pairs of features: a heat map of their interactions."""
        e = panel.explanation
        features, share = pairs.joined_features(e, _MOST_IN_HEAT_MAP), pairs.relative_interactions(e)
        return from_template("heat_map.html", e=e, features=features, share=share, pairs=pairs)

    def pictures(self, panel: Panel) -> tuple[Array, ...]:
        """Pictures (height, width, 3) for a plot: the input, its heat map and the marked features, if any."""
        return ()

    def height_of_plot(self, panel: Panel) -> float:
        """The height of what `plot` draws of this explanation, in inches."""
        return self.plot_height

    def plot(self, axes: Any, panel: Panel) -> None:
        """Draw the input, coloured by score, on matplotlib axes above the bars."""


def drawing_of(input: Input) -> Drawing:
    """The drawing of the input's modality."""
    return _drawing(modality_named(input.kind).drawing or Drawing)


@cache
def _drawing(named: Any) -> Drawing:
    made: Drawing = (resolve_name(named) if isinstance(named, str) else named)()
    return made


def beginning_of(parts: Sequence[str]) -> str:
    """The beginning of several texts, on one line."""
    return shorten(on_one_line(" · ".join(parts)), 120)
