"""Which features matter over many inputs, in the terminal."""

from __future__ import annotations

from math import isfinite

from rich.table import Table
from rich.text import Text

from pertinent.number_format import measure_text
from pertinent.printable import visible
from pertinent.rendering.tables import importance_caption
from pertinent.rendering.wording import clipped
from pertinent.results.importance import Importance


def show(importance: Importance) -> Table:
    """A line for each feature and group: mean size and mean of its score, and how many inputs have it."""
    several = len(importance.groups) > 1
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for heading in ("feature", *(["group"] if several else [])):
        table.add_column(heading)
    for heading in ("mean |score|", "mean score", "inputs"):
        table.add_column(heading, justify="right")
    for row in importance.rows:
        bounds = f" [{measure_text(row.low)}, {measure_text(row.high)}]" if isfinite(row.low) else ""
        mean = Text(measure_text(row.mean)).append(bounds, style="dim")
        group = [Text(visible(row.group))] if several else []
        effect = Text(f"{row.effect:+.3f}" if isfinite(row.effect) else "–")
        table.add_row(Text(clipped(row.feature)), *group, mean, effect, Text(f"{row.n:,}"))
    table.caption = Text(importance_caption(importance), style="dim")
    table.caption_justify = "left"
    return table
