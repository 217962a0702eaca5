"""The result of `attack_radius` in the terminal."""

from __future__ import annotations

from math import isfinite

import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pertinent.control_characters import visible
from pertinent.inputs.table import TableInput
from pertinent.report.failures import failure_notes
from pertinent.results.attack_results import Attacked, Attacks

_NAMED = 6
"""Features of a set, and columns that changed, that are named at most."""

_HEAD = ("input", "decided", "features that may change", "radius", "passes")
_CHANGED = "columns that changed"


def rendered(attacks: Attacks) -> RenderableType:
    """A line for each set of each input."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    of_rows = any(isinstance(one.input, TableInput) for one in attacks)
    for heading in (*_HEAD, *[_CHANGED] * of_rows):
        number = heading in ("radius", "passes")
        table.add_column(heading, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for one in attacks:
        for place, radius in enumerate(one.radii.tolist()):
            shown = f"{radius:.4g}" if isfinite(radius) else "none found"
            cells = [str(one.index + 1), one.decided, _named(one, place), shown, f"{one.passes[place]:,}"]
            cells += [_changed(one, place)] * of_rows
            table.add_row(*(Text(visible(cell)) for cell in cells))
    notes = [Text(visible(line), style="dim") for line in _notes(attacks)]
    return Padding(Group(table, Text(), *notes), (0, 0, 0, 1))


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
