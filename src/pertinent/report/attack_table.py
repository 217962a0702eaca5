"""The result of `attack_radius`: in the terminal, as HTML and as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pertinent.control_characters import visible
from pertinent.inputs.table import TableInput
from pertinent.report.colours import LIGHT
from pertinent.report.failures import failure_notes
from pertinent.report.markup import Markup
from pertinent.report.plots import QUIET, clipped, new_figure, tidy
from pertinent.report.style import FRAGMENT
from pertinent.results.attack_results import Attacked, Attacks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED = 6
"""Features of a set, and columns that changed, that are named at most."""

_HEAD = ("input", "decided", "features that may change", "radius", "passes")
_CHANGED = "columns that changed"

_TABLE = Markup(
    '<article class="pertinent"><header><h3>Attack radii</h3></header>'
    '<div class="scroll"><table class="rows"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    "</div>{notes}</article>"
)
_COLUMN = Markup('<th scope="col">{}</th>')
_ROW = Markup("<tr>{}</tr>")
_CELL = Markup("<td>{}</td>")
_NOTE = Markup('<p class="legend">{}</p>')


def rendered(attacks: Attacks) -> RenderableType:
    """A line for each set of each input."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in _head(attacks):
        number = heading in ("radius", "passes")
        table.add_column(heading, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for cells in _lines(attacks):
        table.add_row(*(Text(visible(cell)) for cell in cells))
    notes = [Text(visible(line), style="dim") for line in _notes(attacks)]
    return Padding(Group(table, Text(), *notes), (0, 0, 0, 1))


def html(attacks: Attacks) -> str:
    """The same lines as a table with its own style."""
    rows = [_ROW.format(Markup().join(map(_CELL.format, cells))) for cells in _lines(attacks)]
    table = _TABLE.format(
        head=Markup().join(map(_COLUMN.format, _head(attacks))),
        rows=Markup().join(rows),
        notes=Markup().join(map(_NOTE.format, _notes(attacks))),
    )
    return str(FRAGMENT + table)


def plot_attacks(attacks: Attacks, top: int = 40) -> Figure:
    """A bar for the radius of each of the first `top` sets; sets without attack have no bar."""
    lines = list(_lines(attacks))[:top]
    radii = [row["radius"] for row in attacks.rows[:top]]
    figure = new_figure(6.4, 1.2 + 0.27 * len(lines))
    axes = figure.subplots()
    axes.barh(range(len(radii)), [r if isfinite(r) else 0.0 for r in radii], height=0.7, color=LIGHT.support)
    names = [f"{number} · {clipped(features)}" for number, _, features, *_ in lines]
    axes.set_yticks(range(len(names)), names, parse_math=False)
    tidy(axes, len(names))
    axes.set_xlabel(_notes(attacks)[0], fontsize=8, color=QUIET, parse_math=False)
    return figure


def _head(attacks: Attacks) -> list[str]:
    of_rows = any(isinstance(one.input, TableInput) for one in attacks)
    return [*_HEAD, *[_CHANGED] * of_rows]


def _lines(attacks: Attacks) -> Iterator[list[str]]:
    """The cells of each set of each input."""
    changed = _CHANGED in _head(attacks)
    for one in attacks:
        for place, radius in enumerate(one.radii.tolist()):
            shown = f"{radius:.4g}" if isfinite(radius) else "none found"
            cells = [str(one.index + 1), one.decided, _named(one, place), shown, f"{one.passes[place]:,}"]
            yield [*cells, _changed(one, place)] if changed else cells


def _named(one: Attacked, place: int) -> str:
    members = np.flatnonzero(one.sets[place]).tolist()
    if len(members) == one.sets.shape[1]:
        return f"all {len(members)}"
    names = [one.input.features[i] for i in members[:_NAMED]]
    return ", ".join(names) + (f" … {len(members)} in all" if len(members) > _NAMED else "") or "none"


def _changed(one: Attacked, place: int) -> str:
    """The columns of a table row that changed most, relative to what they were."""
    if not isinstance(one.input, TableInput) or not one.found[place]:
        return ""
    before, after = one.input.values.astype(np.float64), one.perturbed[place]
    share = np.abs(after - before) / np.maximum(np.abs(before), np.finfo(np.float64).tiny)
    order = [i for i in np.argsort(-share, kind="stable").tolist() if share[i] > 0]
    shown = [f"{one.input.names[i]} {before[i]:.4g} → {after[i]:.4g}" for i in order[:_NAMED]]
    return ", ".join(shown) + (" …" if len(order) > _NAMED else "")


def _notes(attacks: Attacks) -> list[str]:
    aims = {one.toward for one in attacks} - {None}
    aim = f"to {', '.join(map(repr, sorted(map(str, aims))))}" if aims else "to any other class"
    norms = ", ".join(sorted({one.norm for one in attacks}))
    lines = [f"The {norms} norm of the smallest perturbation found that changes the prediction {aim}."]
    return [*lines, *failure_notes(attacks.failures)]
