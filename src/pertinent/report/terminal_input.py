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

from pertinent.control_characters import visible
from pertinent.inputs.image import ImageInput
from pertinent.inputs.text import TextInput
from pertinent.report import facts as say
from pertinent.report.colours import DARK, shade
from pertinent.report.pictures import clipping, heat, heat_map, original, resized
from pertinent.report.pieces import pieces
from pertinent.results.explanation import Explanation
from pertinent.types import Array, Floats

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
                yield from _marked_segments(e, e.input, console, options.max_width)
            else:
                yield from _shaded_segments(e, e.input)
            yield from (Text(), legend, Text())
        elif isinstance(e.input, ImageInput):
            grid = Table.grid(padding=(0, 3, 0, 0))
            if colourless:
                grid.add_row(_brightness(e.input), _characters(_MARKS, _marked(_halved(heat(e)))))
            else:
                pictures = original(e.input), heat_map(e)
                grid.add_row(*(_half_blocks(resized(p, _WIDEST, least=16)) for p in pictures))
            grid.add_row(Text("image", style="dim"), legend)
            yield from (grid, Text())
        elif e.pertinence is not None:
            yield from (legend, Text())


def _shaded_segments(e: Explanation, input: TextInput) -> Iterator[RenderableType]:
    """Each segment on a dark background, its features shaded; what is fixed or unread is dim."""
    share, smallest = say.relative_scores(e), say.smallest_set(e)
    texts = [Text(style=f"{DARK.ink}") for _ in input.text.segments]
    for piece in pieces(input):
        feature = piece.strongest(e)
        style = Style(dim=piece.unread or not input.text.removable(piece.segment), strike=piece.unread)
        if feature is not None and abs(share[feature]) >= _PLAIN_BELOW:
            marked = bool(smallest[list(piece.features)].any())
            style = Style(bgcolor=shade(share[feature], DARK), bold=marked, underline=marked)
        texts[piece.segment].append(visible(piece.text), style=style)
    for text in texts:
        yield Padding(text, (0, 2), style=f"on {DARK.ground}")
        if text is not texts[-1]:
            yield Text()


def _marked_segments(
    e: Explanation, input: TextInput, console: Console, width: int
) -> Iterator[RenderableType]:
    """Each segment, with a line of marks below each line that has a strong feature."""
    share = say.relative_scores(e)
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
    if e.chosen:
        line.append(" chosen, the more often the stronger")
        if isinstance(e.input, TextInput):
            line.append("   ").append("underlined", style="bold underline").append(" the smallest set")
    else:
        support, against = say.directions(e)
        line.append(f" {visible(support)}   ")
        line.append("  ", style=f"on {DARK.against}").append(f" {visible(against)}")
    return _with_exceptions(line, e, Text("struck out", style="strike"))


def _marks_legend(e: Explanation) -> Text:
    against, weakly_against, _, weakly, strongly = _MARKS
    if e.chosen:
        line = Text(f"{weakly} chosen, {strongly} chosen often")
    else:
        support, opposes = map(visible, say.directions(e))
        line = Text(
            f"{weakly} {support}, {strongly} strongly   {weakly_against} {opposes}, {against} strongly"
        )
    return _with_exceptions(line, e, Text("~"))


def _with_exceptions(line: Text, e: Explanation, unread: Text) -> Text:
    """The legend, with what some words or pixels need besides."""
    if isinstance(e.input, TextInput) and any(piece.unread for piece in pieces(e.input)):
        line.append("   ").append_text(unread).append(" not read by the model")
    if isinstance(e.input, ImageInput) and clipping(e):
        line.append(f"   {clipping(e)}")
    return line


def _half_blocks(picture: Array) -> Text:
    """Two pixels to a character."""
    if len(picture) % 2:
        picture = np.concatenate([picture, picture[-1:]])
    text = Text(no_wrap=True)
    for upper, lower in zip(picture[::2], picture[1::2], strict=True):
        for top, bottom in zip(upper, lower, strict=True):
            text.append("▀", style=f"#{bytes(top).hex()} on #{bytes(bottom).hex()}")
        text.append("\n")
    text.rstrip()
    return text


def _brightness(input: ImageInput) -> Text:
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
