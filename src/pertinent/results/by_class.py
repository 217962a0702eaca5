"""One explanation for several classes, to be looked at side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent.array_types import Masks
from pertinent.control_characters import visible
from pertinent.outputs import column_index
from pertinent.results.explanation import Explanation, Explanations
from pertinent.settings import Count, checked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_LIKELY = 5


class ByClass(Explanations):
    """One explanation for several classes, labels or values: an `Explanation` for each of them.

    It is shown side by side, on one colour scale, with the chosen set of each class underlined.
    """

    @property
    def sparsity(self) -> float:
        """The smallest sparsity of the explanation, at which the sets are chosen."""
        return min(self[0].sparsities)

    @property
    def sets(self) -> list[Masks]:
        """The chosen set of each class: its top ceil(s·d) features at the smallest sparsity."""
        return [e.mask(self.sparsity) for e in self]

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per class and feature."""
        frame = super().to_dataframe()
        frame[f"chosen at {self.sparsity:g}"] = np.concatenate(self.sets)
        return frame

    @checked
    def plot(self, top: Count | None = None) -> Figure:
        """A matplotlib figure with a panel for each class: bars for texts and rows, heat maps for images.

        `top` is how many features have a bar: by default 5, of a row 20.
        """
        from pertinent.report.plot_by_class import plot_by_class

        return plot_by_class(self, top)

    def __repr__(self) -> str:
        names = ", ".join(repr(e.target_name) for e in self)
        return f"<Explanation by {visible(self[0].method)} for {names}>"

    def _repr_html_(self) -> str:
        from pertinent.report.html_by_class import fragment

        return fragment(self)

    def __rich__(self) -> Any:
        from pertinent.report.terminal_by_class import rendered

        return rendered(self)


def by_class(explanation: Explanation, classes: Sequence[int | str]) -> ByClass:
    """The explanation for the classes named, else for the most likely ones and the target."""
    columns = [column_index(each, explanation.classes, explanation.output.column) for each in classes]
    return ByClass([explanation.for_class(c) for c in dict.fromkeys(columns or _most_likely(explanation))])


def _most_likely(e: Explanation) -> list[int]:
    """The five most likely columns and the target, the most likely first; of plain values the first five."""
    order = np.arange(len(e.classes))
    if e.output.kind != "value":
        order = np.argsort(-e.prediction, kind="stable")
    return [i for place, i in enumerate(order.tolist()) if place < _MOST_LIKELY or i == e.target]
