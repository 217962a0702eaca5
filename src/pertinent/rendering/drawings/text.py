"""Texts: each feature is shaded by its score or, in a terminal without colour, has marks below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.text import Text

from pertinent.inputs.text import TextInput
from pertinent.printable import visible
from pertinent.rendering import pairs
from pertinent.rendering import wording as say
from pertinent.rendering.colours import DARK, MARKS, mark_numbers, shade
from pertinent.rendering.drawings import Drawing, beginning_of
from pertinent.rendering.html import Markup, from_template
from pertinent.rendering.panels import Panel
from pertinent.results.explanation import Explanation

_PLAIN_BELOW = 0.02

_LONG, _STRETCH, _CONTEXT = 200, 60, 12
"""On pages a text with more features than the first number is folded: stretches of more pieces (words, and
what is between them) than the second, but for the third at each end."""

_NOTABLE = 0.1
"""The share of the largest score from which a feature is not folded away."""


@dataclass(frozen=True)
class TextSpan:
    """Some characters of a segment and the features that cover them, if any.

    `unread` marks words that the model did not see, such as those after truncation.
    """

    segment: int
    text: str
    features: tuple[int, ...] = ()
    unread: bool = False

    def strongest(self, explanation: Explanation) -> int | None:
        """The feature with the largest magnitude, by which the piece is shaded."""
        return max(self.features, key=lambda i: abs(explanation.scores[i]), default=None)


class TextDrawing(Drawing):
    """Draws the whole text: what is fixed or was not read is pale, and a set is underlined.

    Each segment is a paragraph, unless a subclass joins them.
    """

    lists_features = False
    underlines = True
    joins_segments: ClassVar[bool] = False

    def beginning(self, input: Any) -> str:
        """The first words."""
        return beginning_of(input.text.segments)

    def has_unread(self, input: Any) -> bool:
        """Whether the model read only a part of the text."""
        return any(piece.unread for piece in pieces(input))

    def plain(self, input: Any) -> dict[str, Any]:
        """Pieces: characters, their features, whether they were not read or can go, and their paragraph."""
        return {
            "pieces": [
                [
                    own.text,
                    list(own.features),
                    own.unread,
                    input.text.removable(own.segment),
                    0 if self.joins_segments else own.segment,
                ]
                for own in pieces(input)
            ]
        }

    def terminal(
        self, panel: Panel, console: Console, width: int, *, colour: bool
    ) -> Iterator[RenderableType]:
        """Each segment, a blank line between them."""
        joined = self.joins_segments
        segments = _shaded(panel, joined) if colour else _marked(panel, console, width, joined)
        for number, lines in enumerate(segments):
            yield from ([Text()] if number else [])
            yield from lines

    def html(self, panel: Panel, *, small: bool = False) -> Markup:
        """Each segment as a paragraph; hovering over a feature shows its score."""
        e = panel.explanation
        input: Any = e.input
        segments: list[list[tuple[TextSpan, int | None, str]]] = [[] for _ in input.text.segments]
        scores = say.told_scores(e)
        for piece in pieces(input):
            told = "; ".join(scores[i] for i in piece.features)
            segments[piece.segment].append((piece, piece.strongest(e), told))
        folded = [folds([i for _, i, _ in own], panel) for own in segments]
        return from_template("text.html", panel=panel, segments=segments, folded=folded, text=input.text)

    def html_pairs(self, panel: Panel) -> Markup:
        """Arcs over the words."""
        e = panel.explanation
        found = pairs.arcs(e)
        named = [f"{pairs.names_text(e, a.i, a.j)} {pairs.value_text(e, a.i, a.j)}" for a in found.arcs]
        label = "Arcs that join words: " + ", ".join(reversed(named))
        return from_template("arcs.html", e=e, panel=panel, found=found, label=label, pairs=pairs)


def folds(strongest: list[int | None], panel: Panel) -> dict[int, int]:
    """The first and last of the pieces that are folded away: long stretches without a notable feature.

    `strongest` is the strongest feature of each piece. Of a text with few features none is folded.
    """
    if len(panel.share) <= _LONG:
        return {}
    quiet = [i is None or (abs(panel.share[i]) < _NOTABLE and not panel.marked[i]) for i in strongest]
    found, start = {}, 0
    for place in range(len(quiet) + 1):
        if place == len(quiet) or not quiet[place]:
            first = start + (_CONTEXT if start else 0)
            last = place - 1 - (_CONTEXT if place < len(quiet) else 0)
            if last - first >= _STRETCH:
                found[first] = last
            start = place + 1
    return found


def pieces(input: TextInput) -> Iterator[TextSpan]:
    """The pieces of every segment, in order; together they are the text, character by character.

    Tokens that share characters (the bytes of an emoji) form one piece, and a token without
    characters joins its neighbour.
    """
    for segment, text in enumerate(input.text.segments):
        position = 0
        runs = _runs(input, segment)
        for start, end, features in [*runs, (len(text), len(text), ())]:
            if start > position:
                outer = position == 0 or not features
                unread = input.truncation is not None and outer and input.text.removable(segment)
                between = text[position:start]
                yield TextSpan(segment, between, unread=unread and not between.isspace())
            if features:
                yield TextSpan(segment, text[start:end], features)
            position = end


def _runs(input: TextInput, segment: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """Spans of one segment in order, those that overlap joined."""
    own = [(a, b, i) for i, (s, a, b) in enumerate(input.spans.tolist()) if s == segment]
    runs: list[tuple[int, int, tuple[int, ...]]] = []
    for start, end, feature in sorted(own):
        if runs:
            first, last, features = runs[-1]
            if start < last or start == end or first == last:
                runs[-1] = (first, max(last, end), (*features, feature))
                continue
        runs.append((start, end, (feature,)))
    return runs


def _shaded(panel: Panel, joined: bool) -> Iterator[list[RenderableType]]:
    """Each segment on a dark background, its features shaded."""
    input: Any = panel.explanation.input
    texts = [Text(style=DARK.ink) for _ in range(1 if joined else len(input.text.segments))]
    for piece in pieces(input):
        feature = piece.strongest(panel.explanation)
        style = Style(dim=piece.unread or not input.text.removable(piece.segment), strike=piece.unread)
        if feature is not None:
            marked, share = bool(panel.marked[list(piece.features)].any()), panel.share[feature]
            colour = shade(share, DARK) if abs(share) >= _PLAIN_BELOW else None
            style = Style(bgcolor=colour, bold=marked, underline=marked)
        texts[0 if joined else piece.segment].append(visible(piece.text), style=style)
    for text in texts:
        yield [Padding(text, (0, 2), style=f"on {DARK.ground}")]


def _marked(panel: Panel, console: Console, width: int, joined: bool) -> Iterator[list[RenderableType]]:
    """The lines of each segment, with a line of marks below each line that has a strong feature."""
    input: Any = panel.explanation.input
    texts = [Text() for _ in range(1 if joined else len(input.text.segments))]
    for piece in pieces(input):
        feature = piece.strongest(panel.explanation)
        mark = MARKS[2] if feature is None else str(MARKS[mark_numbers(panel.share[feature])])
        style = Style(meta={"mark": "~" if piece.unread else mark})
        texts[0 if joined else piece.segment].append(visible(piece.text), style=style)
    for text in texts:
        lines: list[RenderableType] = []
        for line in text.wrap(console, width):
            marks = [" "] * len(line)
            for span in line.spans:
                assert isinstance(span.style, Style)
                for place in range(span.start, min(span.end, len(line))):
                    character = line.plain[place]
                    mark = " " if character.isspace() else span.style.meta["mark"]
                    marks[place] = mark * cell_len(character)
            below = "".join(marks)
            lines.append(Text(line.plain))
            lines += [Text(below.replace(str(MARKS[2]), " ").rstrip())] if set(below) - set(" .") else []
        yield lines
