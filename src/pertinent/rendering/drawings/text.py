"""Drawings of texts: features are shaded by score or, in a terminal without colour, marked below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.text import Text

from pertinent.array_types import Floats, Masks
from pertinent.inputs.modality import InputLimits
from pertinent.inputs.text import TextInput
from pertinent.printable import visible
from pertinent.rendering import pairs
from pertinent.rendering import wording as say
from pertinent.rendering.colours import DARK, MARKS, mark_numbers, shade
from pertinent.rendering.drawings import Drawing, beginning_of
from pertinent.rendering.html import Markup, from_template
from pertinent.rendering.panels import Panel
from pertinent.results.explanation import Explanation

if TYPE_CHECKING:
    from pertinent.models.base import Model

_PLAIN_BELOW = 0.02

_LONG, _STRETCH, _CONTEXT = 200, 60, 12
"""On pages, texts with more than `_LONG` features are folded: stretches of more than `_STRETCH` spans (words
and the text between them) are hidden, except for `_CONTEXT` spans at each end."""

_NOTABLE = 0.1
"""Smallest share of the largest score at which a feature is never folded."""


@dataclass(frozen=True)
class TextSpan:
    """Characters of a segment and the features that cover them, if any.

    `unread` marks words that the model did not read, such as those lost to truncation. A label is the name of
    the next part of a trace, which is not in the text.
    """

    segment: int
    text: str
    features: tuple[int, ...] = ()
    unread: bool = False
    is_label: bool = False

    def strongest(self, explanation: Explanation) -> int | None:
        """Return the feature with the largest magnitude, which determines the shade."""
        return max(self.features, key=lambda i: abs(explanation.scores[i]), default=None)


@dataclass
class Paragraph:
    """Spans with their HTML attributes; `folds` maps the first to the last span of hidden stretches."""

    is_fixed: bool
    spans: list[tuple[str, Markup]] = field(default_factory=list)
    strongest: list[int | None] = field(default_factory=list)
    folds: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class AnswerToken:
    """A token of the answer, or the whole answer.

    `share` is the colour of each feature for it, from −1 to 1.
    """

    text: str
    column: int
    amount: str
    share: Floats
    is_token: bool

    def style(self, feature: int) -> str:
        """Return the style declarations that shade a feature when the token is selected."""
        share = self.share[feature].item()
        against = f";--c{self.column}:var(--against)" if share < 0 else ""
        return f";--s{self.column}:{100 * abs(share):.0f}%{against}" if share else ""


class TextDrawing(Drawing):
    """Drawing of the whole text: fixed and unread segments are pale, and a set is underlined.

    Each segment is a paragraph, unless a subclass joins the segments.
    """

    lists_features = False
    underlines = True
    joins_segments: ClassVar[bool] = False

    def beginning(self, input: Any) -> str:
        """Return the first words."""
        return beginning_of(input.text.segments)

    def has_unread(self, input: Any) -> bool:
        """Return whether the model read only part of the text."""
        return any(span.unread for span in spans_of(input))

    def terminal(
        self, panel: Panel, console: Console, width: int, *, colour: bool
    ) -> Iterator[RenderableType]:
        """Yield each segment, separated by blank lines."""
        joined = self.joins_segments
        segments = _shade_segments(panel, joined) if colour else _mark_segments(panel, console, width, joined)
        for number, lines in enumerate(segments):
            yield from ([Text()] if number else [])
            yield from lines

    def html(self, panel: Panel, *, small: bool = False) -> Markup:
        """Return each segment as a paragraph; hovering over a feature shows its score."""
        return from_template("text.html", paragraphs=self.paragraphs(panel))

    def paragraphs(self, panel: Panel, tokens: Sequence[AnswerToken] = ()) -> list[Paragraph]:
        """Return the segments as paragraphs; spans have shades (also for `tokens`), and scores as titles."""
        e = panel.explanation
        input: Any = e.input
        text, scores, is_clickable = input.text, say.score_texts(e), panel.look.interactive
        paragraphs: list[Paragraph] = []
        for span in spans_of(input):
            if not paragraphs or (span.segment >= len(paragraphs) and not self.joins_segments):
                paragraphs.append(Paragraph(not self.joins_segments and not text.removable(span.segment)))
            strongest, marks = span.strongest(e), Markup()
            if strongest is not None:
                share = panel.share[strongest].item()
                is_in = panel.marked[list(span.features)].any()
                kind = f"w{' in' if is_in else ''}{' against' if share < 0 else ''}"
                title = "; ".join(scores[i] for i in span.features)
                shades = "".join(token.style(strongest) for token in tokens)
                marks = Markup(' class="{}" title="{}"').format(kind, title)
                if share or shades:
                    marks += Markup(' style="--share:{:.0f}%{}"').format(100 * abs(share), shades)
                if is_clickable:
                    marks += Markup(' data-features="{}"').format(" ".join(map(str, span.features)))
            elif span.is_label:
                marks = Markup(' class="quiet template"')
            elif span.unread:
                marks = Markup(' class="unread"')
            elif self.joins_segments and not text.removable(span.segment):
                style = self.style_of_fixed(text, span.segment)
                marks = Markup(' class="{}" title="fixed: never removed"').format(style)
            paragraphs[-1].spans.append((span.text, marks))
            paragraphs[-1].strongest.append(strongest)
        for paragraph in paragraphs:
            paragraph.folds = folds(paragraph.strongest, panel)
        return paragraphs

    def style_of_fixed(self, text: Any, segment: int) -> str:
        """Return the HTML class of a segment that is never removed."""
        return "quiet"

    def html_pairs(self, panel: Panel) -> Markup:
        """Return arcs over the words."""
        e = panel.explanation
        arcs = pairs.arcs(e)
        names = [f"{pairs.names_text(e, a.i, a.j)} {pairs.value_text(e, a.i, a.j)}" for a in arcs.arcs]
        label = "Arcs that join words: " + ", ".join(reversed(names))
        return from_template("arcs.html", e=e, panel=panel, arcs=arcs, label=label, pairs=pairs)

    def form(self, fields: Mapping[str, Any], model: Model, limits: InputLimits) -> Markup:
        """Return text boxes for the text and for the second text of a pair."""
        names = tuple(getattr(getattr(model, "head", None), "segments", ()))
        return from_template("form_text.html", fields=fields, names=names, limits=limits)

    def html_study(self, input: Any, chosen: Masks, *, alone: bool = False, can_mark: bool = False) -> Markup:
        """Return the text with highlighted words; omitted words become gaps."""
        segments: list[list[tuple[str, str, bool]]] = [[] for _ in input.text.segments]
        for span in spans_of(input):
            is_chosen = bool(chosen[list(span.features)].any())
            segments[span.segment].append((span.text, ",".join(map(str, span.features)), is_chosen))
        if alone:
            segments = [
                _with_gaps(spans) if input.text.removable(number) else spans
                for number, spans in enumerate(segments)
            ]
        return from_template("study_text.html", segments=segments, can_mark=can_mark)


def folds(strongest: list[int | None], panel: Panel) -> dict[int, int]:
    """Return the first and last span of each fold, i.e. of long stretches without a notable feature.

    `strongest` is the strongest feature of each span. A text with few features is not folded.
    """
    if len(panel.share) <= _LONG or not panel.look.folds:
        return {}
    quiet = [i is None or (abs(panel.share[i]) < _NOTABLE and not panel.marked[i]) for i in strongest]
    folded, start = {}, 0
    for position in range(len(quiet) + 1):
        if position == len(quiet) or not quiet[position]:
            first = start + (_CONTEXT if start else 0)
            last = position - 1 - (_CONTEXT if position < len(quiet) else 0)
            if last - first >= _STRETCH:
                folded[first] = last
            start = position + 1
    return folded


def spans_of(input: TextInput) -> Iterator[TextSpan]:
    """Yield the spans of every segment in order; joined without labels, they are the text.

    Tokens that share characters (the bytes of an emoji) form one span, and a token without characters joins
    its neighbour.
    """
    for segment, text in enumerate(input.text.segments):
        position = 0
        for start, end, features in [*_runs(input, segment), (len(text), len(text), ())]:
            if start > position:
                is_outer = position == 0 or not features
                unread = input.truncation is not None and is_outer and input.text.removable(segment)
                between = text[position:start]
                yield TextSpan(segment, between, unread=unread and not between.isspace())
            if features:
                if input.names_of_parts:
                    name = input.names_of_parts[features[0]]
                    yield TextSpan(segment, f"[{name}] ", is_label=True)
                yield TextSpan(segment, text[start:end], features)
            position = end


def _runs(input: TextInput, segment: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return the feature spans of a segment in order, with overlapping ones joined."""
    spans = [(a, b, i) for i, (s, a, b) in enumerate(input.spans.tolist()) if s == segment]
    runs: list[tuple[int, int, tuple[int, ...]]] = []
    for start, end, feature in sorted(spans):
        if runs:
            first, last, features = runs[-1]
            if start < last or start == end or first == last:
                runs[-1] = (first, max(last, end), (*features, feature))
                continue
        runs.append((start, end, (feature,)))
    return runs


def _with_gaps(spans: Iterable[tuple[str, str, bool]]) -> list[tuple[str, str, bool]]:
    """Return the chosen spans, with an ellipsis for the words in between."""
    shown: list[tuple[str, str, bool]] = []
    gap = ""
    for text, features, is_chosen in spans:
        if is_chosen:
            shown += [(gap, "", False)] if gap else []
            shown.append((text, features, True))
            gap = ""
        else:
            gap = (gap or " ") if text.isspace() else " … "
    return [*shown, (gap, "", False)] if gap.strip() else shown


def _shade_segments(panel: Panel, joined: bool) -> Iterator[list[RenderableType]]:
    """Yield each segment on a dark background, with shaded features."""
    input: Any = panel.explanation.input
    texts = [Text(style=DARK.ink) for _ in range(1 if joined else len(input.text.segments))]
    for span in spans_of(input):
        feature = span.strongest(panel.explanation)
        is_fixed = span.is_label or not input.text.removable(span.segment)
        style = Style(dim=span.unread or is_fixed, strike=span.unread)
        if feature is not None:
            marked, share = bool(panel.marked[list(span.features)].any()), panel.share[feature]
            colour = shade(share, DARK) if abs(share) >= _PLAIN_BELOW else None
            style = Style(bgcolor=colour, bold=marked, underline=marked)
        texts[0 if joined else span.segment].append(visible(span.text), style=style)
    for text in texts:
        yield [Padding(text, (0, 2), style=f"on {DARK.ground}")]


def _mark_segments(
    panel: Panel, console: Console, width: int, joined: bool
) -> Iterator[list[RenderableType]]:
    """Yield the lines of each segment, with a line of marks below lines that have strong features."""
    input: Any = panel.explanation.input
    texts = [Text() for _ in range(1 if joined else len(input.text.segments))]
    for span in spans_of(input):
        feature = span.strongest(panel.explanation)
        mark = MARKS[2] if feature is None else str(MARKS[mark_numbers(panel.share[feature])])
        style = Style(meta={"mark": "~" if span.unread else mark})
        texts[0 if joined else span.segment].append(visible(span.text), style=style)
    for text in texts:
        lines: list[RenderableType] = []
        for line in text.wrap(console, width):
            marks = [" "] * len(line)
            for run in line.spans:
                assert isinstance(run.style, Style)
                for column in range(run.start, min(run.end, len(line))):
                    character = line.plain[column]
                    mark = " " if character.isspace() else run.style.meta["mark"]
                    marks[column] = mark * cell_len(character)
            below = "".join(marks)
            lines.append(Text(line.plain))
            lines += [Text(below.replace(str(MARKS[2]), " ").rstrip())] if set(below) - set(" .") else []
        yield lines
