"""The input of an explanation in the terminal: in colour, or with characters where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from pertinent.array_types import Array, Floats, Masks
from pertinent.control_characters import visible
from pertinent.inputs.image import ImageInput
from pertinent.inputs.text import TextInput
from pertinent.report import facts as say
from pertinent.report.colours import DARK, shade
from pertinent.report.pictures import clipping, heat, heat_map, original, resized
from pertinent.report.pieces import pieces
from pertinent.results.explanation import Explanation

_PLAIN_BELOW = 0.02
_WIDEST = 32
_RAMP = np.array(list(" .:-=+*#%@"))
_MARKS = np.array(list("=-.+#"))
_MARKS_FROM = (-0.5, -0.1, 0.1, 0.5)
"""The shares at which the next mark begins."""


class ColouredInput:
    """A text or an image, coloured by score and with its legend; of a row at most the legend."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        e = self.explanation
        colourless = console.color_system is None or console.no_color
        legend = _marks_legend(e) if colourless else _colours_legend(e)
        if isinstance(e.input, TextInput):
            if colourless:
                share = say.relative_scores(e)
                yield from marked_segments(e, e.input, share, console, options.max_width)
            else:
                yield from shaded_segments(e, e.input, say.relative_scores(e), say.smallest_set(e))
            yield from (Text(), legend, Text())
        elif isinstance(e.input, ImageInput):
            grid = Table.grid(padding=(0, 3, 0, 0))
            if colourless:
                grid.add_row(brightness(e.input), heat_marks(heat(e)))
            else:
                grid.add_row(half_blocks(original(e.input)), half_blocks(heat_map(e)))
            grid.add_row(Text("image", style="dim"), legend)
            yield from (grid, Text())
        elif e.pertinence is not None:
            yield from (legend, Text())


def shaded_segments(
    e: Explanation, input: TextInput, share: Floats, smallest: Masks
) -> Iterator[RenderableType]:
    """Each segment on a dark background, features shaded, a set underlined; what is fixed, unread is dim."""
    texts = [Text(style=f"{DARK.ink}") for _ in input.text.segments]
    for piece in pieces(input):
        feature = piece.strongest(e)
        style = Style(dim=piece.unread or not input.text.removable(piece.segment), strike=piece.unread)
        if feature is not None:
            marked = bool(smallest[list(piece.features)].any())
            colour = shade(share[feature], DARK) if abs(share[feature]) >= _PLAIN_BELOW else None
            style = Style(bgcolor=colour, bold=marked, underline=marked)
        texts[piece.segment].append(visible(piece.text), style=style)
    for text in texts:
        yield Padding(text, (0, 2), style=f"on {DARK.ground}")
        if text is not texts[-1]:
            yield Text()


def marked_segments(
    e: Explanation, input: TextInput, share: Floats, console: Console, width: int
) -> Iterator[RenderableType]:
    """Each segment, with a line of marks below each line that has a strong feature."""
    texts = [Text() for _ in input.text.segments]
    for piece in pieces(input):
        feature = piece.strongest(e)
        mark = "~" if piece.unread else _MARKS[2] if feature is None else str(_MARKS[_marked(share[feature])])
        texts[piece.segment].append(visible(piece.text), style=Style(meta={"mark": mark}))
    for text in texts:
        for line in text.wrap(console, width):
            yield Text(line.plain)
            marks = [" "] * len(line)
            for span in line.spans:
                assert isinstance(span.style, Style)
                for place in range(span.start, min(span.end, len(line))):
                    character = line.plain[place]
                    mark = " " if character.isspace() else span.style.meta["mark"]
                    marks[place] = mark * cell_len(character)
            if set("".join(marks)) - set(" ."):
                yield Text("".join(marks).replace(str(_MARKS[2]), " ").rstrip())
        if text is not texts[-1]:
            yield Text()


def _colours_legend(e: Explanation) -> Text:
    line = Text(style="dim").append("  ", style=f"on {DARK.support}")
    if e.meaning == "membership":
        line.append(" chosen, the more often the stronger")
        if isinstance(e.input, TextInput):
            line.append("   ").append("underlined", style="bold underline").append(" the smallest set")
    else:
        support, against = say.directions(e)
        line.append(f" {visible(support)}")
        if say.has_two_sides(e):
            line.append("   ").append("  ", style=f"on {DARK.against}").append(f" {visible(against)}")
    return _with_exceptions(line, e, Text("struck out", style="strike"))


def _marks_legend(e: Explanation) -> Text:
    against, weakly_against, _, weakly, strongly = _MARKS
    if e.meaning == "membership":
        line = Text(f"{weakly} chosen, {strongly} chosen often")
    else:
        support, opposes = map(visible, say.directions(e))
        line = Text(f"{weakly} {support}, {strongly} strongly")
        if say.has_two_sides(e):
            line.append(f"   {weakly_against} {opposes}, {against} strongly")
    return _with_exceptions(line, e, Text("~"))


def _with_exceptions(line: Text, e: Explanation, unread: Text) -> Text:
    """The legend, with what some words or pixels need besides."""
    if isinstance(e.input, TextInput) and any(piece.unread for piece in pieces(e.input)):
        line.append("   ").append_text(unread).append(" not read by the model")
    if isinstance(e.input, ImageInput) and clipping(e):
        line.append(f"   {clipping(e)}")
    return line


def half_blocks(picture: Array) -> Text:
    """A picture of the terminal's size, two pixels to a character."""
    picture = resized(picture, _WIDEST, least=16)
    if len(picture) % 2:
        picture = np.concatenate([picture, picture[-1:]])
    text = Text(no_wrap=True)
    for upper, lower in zip(picture[::2], picture[1::2], strict=True):
        for top, bottom in zip(upper, lower, strict=True):
            text.append("▀", style=f"#{bytes(top).hex()} on #{bytes(bottom).hex()}")
        text.append("\n")
    text.rstrip()
    return text


def heat_marks(heat: Floats) -> Text:
    """A heat (height, width) in [−1, 1], in characters."""
    return _characters(_MARKS, _marked(_halved(heat)))


def brightness(input: ImageInput) -> Text:
    """The image in characters, denser where it is brighter."""
    light = _halved(original(input).mean(axis=-1) / 255)
    return _characters(_RAMP, np.minimum(light * len(_RAMP), len(_RAMP) - 1).astype(np.int64))


def _marked(share: Floats) -> Array:
    """The number of the mark for each share."""
    return np.digitize(share, _MARKS_FROM)


def _halved(picture: Floats) -> Floats:
    """A picture of the terminal's size with half the rows, because characters are twice as high as wide."""
    picture = resized(picture, _WIDEST, least=16)
    if len(picture) % 2:
        picture = np.concatenate([picture, picture[-1:]])
    return (picture[::2] + picture[1::2]) / 2


def _characters(alphabet: Array, picture: Array) -> Text:
    return Text("\n".join("".join(row) for row in alphabet[picture]), no_wrap=True)
