"""Several classes side by side in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pertinent.control_characters import visible
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.inputs.text import TextInput
from pertinent.report import facts as say
from pertinent.report.by_class import Panel, directions, panels, set_text, title
from pertinent.report.colours import DARK
from pertinent.report.numbering import name_of
from pertinent.report.pictures import original, painted
from pertinent.report.terminal import bar, clipped
from pertinent.report.terminal_input import (
    brightness,
    half_blocks,
    heat_marks,
    marked_segments,
    shaded_segments,
)
from pertinent.results.explanation import ByClass

_NARROWEST = 36
_GAP = 3
_BAR = 8
_LONGEST_NAME = 16


def rendered(found: ByClass) -> RenderableType:
    """What was predicted, a panel for each class, and what the colours mean."""
    e = found[0]
    predicted = say.predicted(e)
    heading = Text().append(visible(e.classes[predicted]), style="bold")
    heading.append(f" {visible(say.amount(e, predicted))}")
    heading.append(f"   {title(found)}, by {visible(e.method)}", style="dim")
    heading.append("" if e.id is None else f"   {visible(name_of(e))}", style="dim")
    said = [Text(f"⚠ {visible(line)}", style="bold yellow") for line in (*e.warnings, *e.notes)]
    return Padding(Group(heading, Text(), _Panels(found), *said), (0, 1))


class _Panels:
    """As many panels in a line as fit, and the legend."""

    def __init__(self, found: ByClass) -> None:
        self.found = found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        colourless = console.color_system is None or console.no_color
        input, every = self.found[0].input, panels(self.found)
        room = options.max_width + _GAP
        lines = -(-len(every) // max(1, room // (_NARROWEST + _GAP)))
        beside = -(-len(every) // lines)
        width = room // beside - _GAP
        if isinstance(input, ImageInput):
            yield from (brightness(input) if colourless else half_blocks(original(input)), Text())
        for first in range(0, len(every), beside):
            grid = Table.grid(padding=(0, _GAP, 0, 0))
            for _ in range(beside):
                grid.add_column(width=width)
            line = every[first : first + beside]
            grid.add_row(*(Group(*_panel(p, console, width, colourless=colourless)) for p in line))
            yield from (grid, Text())
        yield from _legend(self.found, colourless=colourless)


def _panel(panel: Panel, console: Console, width: int, *, colourless: bool) -> Iterator[RenderableType]:
    e = panel.explanation
    yield Text(visible(panel.name), style="bold").append(f" {visible(panel.amount)}", style="not bold")
    nothing = say.says_nothing(e)
    if nothing is not None:
        yield Text(nothing, style="bold")
    if isinstance(e.input, TextInput) and colourless:
        yield from marked_segments(e, e.input, panel.share, console, width)
        yield Text()
    elif isinstance(e.input, TextInput):
        yield from shaded_segments(e, e.input, panel.share, panel.chosen)
        yield Text()
    elif isinstance(e.input, ImageInput):
        heat = panel.share[e.input.labels]
        yield heat_marks(heat) if colourless else half_blocks(painted(e.input, heat))
        yield Text()
    yield _bars(panel, colourless=colourless)


def _bars(panel: Panel, *, colourless: bool) -> Table:
    """A line for each feature shown, those of the set marked; the names of patches leave no room for bars."""
    e = panel.explanation
    values = e.input.shown() if isinstance(e.input, TableInput) else None
    is_image = isinstance(e.input, ImageInput)
    grid = Table.grid(padding=(0, 1, 0, 0))
    for i in panel.shown.tolist():
        most = _NARROWEST - 10 if is_image else _LONGEST_NAME
        name = Text(clipped(say.on_one_line(e.features[i]), most), no_wrap=True)
        if panel.chosen[i] and colourless:
            name.append("*")
        elif panel.chosen[i]:
            name.stylize("bold underline")
        value = [Text(clipped(values[i], _LONGEST_NAME // 2), style="dim", no_wrap=True)] if values else []
        score = Text(say.score_text(e, i), justify="right", no_wrap=True)
        grid.add_row(name, *value, score, "" if is_image else bar(e, i, panel.share[i], _BAR))
    return grid


def _legend(found: ByClass, *, colourless: bool) -> Iterator[Text]:
    supports, opposes = directions(found)
    if colourless:
        if not isinstance(found[0].input, TableInput):
            yield Text(f"+ {supports}, # strongly   - {opposes}, = strongly")
        yield Text(f"* {set_text(found)}")
        return
    line = Text(style="dim").append("  ", style=f"on {DARK.support}").append(f" {supports}   ")
    line.append("  ", style=f"on {DARK.against}").append(f" {opposes}   ")
    yield line.append("underlined", style="bold underline").append(f" {set_text(found)}")
