"""Terminal output of one or several explanations, and of several classes side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from pertinent.number_format import measure_text
from pertinent.printable import visible
from pertinent.rendering import pairs, panels
from pertinent.rendering import wording as say
from pertinent.rendering.by_input import by_input, by_reason, inputs_text, name_of, named
from pertinent.rendering.colours import DARK, LIGHT, MARKS, NEUTRAL
from pertinent.rendering.drawings import drawing_of
from pertinent.rendering.panels import Panel
from pertinent.results.explanation import ByClass, Explanation, Explanations
from pertinent.results.failures import Failure

_COLOURS = {"support": LIGHT.support, "against": LIGHT.against, "plain": NEUTRAL}
_BAR, _SMALL_BAR = 24, 8
_TOP = 8
_MOST_NAMED = 12
_NARROWEST = 36
_GAP = 3
_LONGEST, _LONGEST_NAME = 40, 16
"""Longest feature name next to a bar, and next to a small bar, in characters."""


def show(explanation: Explanation) -> RenderableType:
    """Return the prediction, the input shaded by score, and the method with its costs."""
    return _shown(explanation, "" if explanation.id is None else name_of(explanation))


def show_all(explanations: Explanations, *, by_class: bool = False) -> RenderableType:
    """Return all explanations, optionally also by class, and the failures."""
    parts: list[RenderableType] = []
    for explained in by_input(explanations):
        parts.append(Rule(Text(visible(explained.title)), style="dim"))
        for e in explained.explanations:
            parts += [_shown(e), Text(), show_by_class(e.by_class())] if by_class else [_shown(e)]
    return Group(*parts, *_failures(explanations.failures))


def show_by_class(classes: ByClass) -> RenderableType:
    """Return the prediction, a panel for each class, and the legend."""
    e = classes[0]
    heading = _prediction(e)
    heading.append(f"   {panels.title(classes)}, by {visible(e.method)}", style="dim")
    heading.append("" if e.id is None else f"   {visible(name_of(e))}", style="dim")
    return Padding(Group(heading, Text(), _ClassPanels(classes), *_notes(e)), (0, 1))


def _shown(e: Explanation, name: str = "") -> RenderableType:
    heading = _prediction(e)
    if e.target != say.predicted(e):
        heading.append("   explained: ", style="dim").append(visible(e.target_name), style="bold")
        heading.append(f" {visible(say.amount(e, e.target))}")
    heading.append(f"   {visible(name)}" if name else "", style="dim")
    reason = say.uninformative_reason(e)
    parts: list[RenderableType] = [heading] if reason is None else [heading, Text(reason, style="bold")]
    parts += [Text(), _ColouredInput(e), _bars(e)]
    for extra in (_pairs(e), _sets(e), _measures(e), _facts(e)):
        parts += [] if extra is None else [Text(), extra]
    return Padding(Group(*parts, *_notes(e)), (0, 1))


def _prediction(e: Explanation) -> Text:
    predicted = say.predicted(e)
    line = Text().append(visible(e.classes[predicted]), style="bold")
    return line.append(f" {visible(say.amount(e, predicted))}")


def _notes(e: Explanation) -> Iterator[Text]:
    for line in (*e.warnings, *e.notes):
        is_remark = line in e.input.remarks
        yield (
            Text(visible(line), style="dim") if is_remark else Text(f"⚠ {visible(line)}", style="bold yellow")
        )


class _ColouredInput:
    """A text or image coloured by score, with its legend; for a list of features, at most the legend."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        e, colour = self.explanation, _has_colour(console)
        drawing = drawing_of(e.input)
        drawn = list(drawing.terminal(panels.panel(e), console, options.max_width, colour=colour))
        original = drawing.terminal_input(e.input, colour=colour)
        if original is not None:
            grid = Table.grid(padding=(0, _GAP, 0, 0))
            grid.add_row(original, Group(*drawn))
            grid.add_row(Text(e.input.kind, style="dim"), _legend(e, colour=colour))
            yield from (grid, Text())
        elif drawn:
            yield from (*drawn, Text(), _legend(e, colour=colour), Text())
        elif e.pertinence is not None:
            yield from (_legend(e, colour=colour), Text())


def _has_colour(console: Console) -> bool:
    return console.color_system is not None and not console.no_color


def _legend(e: Explanation, *, colour: bool) -> Text:
    """Return the meaning of the colours, or of the marks if there is no colour."""
    drawing, (support, against) = drawing_of(e.input), map(visible, say.directions(e))
    strongly_against, weakly_against, _, weakly, strongly = MARKS
    line = Text(style="dim" if colour else "")
    if colour and e.meaning == "membership":
        _key(line, DARK.support, "chosen; stronger colours are chosen more often")
    elif colour:
        _key(line, DARK.support, support)
        if say.has_two_sides(e):
            _key(line.append("   "), DARK.against, against)
    elif e.meaning == "membership":
        line.append(f"{weakly} chosen, {strongly} chosen often")
    else:
        line.append(f"{weakly} {support}, {strongly} strongly")
        if say.has_two_sides(e):
            line.append(f"   {weakly_against} {against}, {strongly_against} strongly")
    if colour and drawing.underlines and e.chosen:
        line.append("   ").append("underlined", style="bold underline").append(" the smallest set")
    if drawing.has_unread(e.input):
        unread = Text("struck out", style="strike") if colour else Text("~")
        line.append("   ").append_text(unread).append(" not read by the model")
    clipping = panels.clipping(e)
    return line.append(f"   {clipping}") if clipping else line


def _key(line: Text, colour: str, meaning: str) -> Text:
    return line.append("  ", style=f"on {colour}").append(f" {meaning}")


def _bars(e: Explanation) -> RenderableType:
    """Return bars for all features of a list, or for the strongest features of other inputs."""
    shown = say.strongest(e, None if drawing_of(e.input).lists_features else _TOP)
    values, share = e.input.value_texts(), say.relative_scores(e)
    grid = Table.grid(padding=(0, 2, 0, 0))
    for i in shown.tolist():
        grid.add_row(
            Text(say.clipped(e.features[i], _LONGEST), no_wrap=True),
            *([] if values is None else [Text(say.clipped(values[i], _LONGEST), style="dim", no_wrap=True)]),
            Text(say.score_text(e, i), justify="right", no_wrap=True),
            Text(say.error_text(e, i), style="dim", no_wrap=True),
            _bar(e, i, share[i], _BAR),
            Text(say.pertinence_text(e, i), style="dim"),
        )
    left = len(e.features) - len(shown)
    return Group(grid, Text(f"and {left:,} weaker", style="dim")) if left else grid


def _bar(e: Explanation, feature: int, share: float, longest: int) -> Text:
    return _line(share, longest, _COLOURS[say.side(e, feature)])


def _line(share: float, longest: int, colour: str) -> Text:
    """Return a bar of `share` times `longest` characters, rounded to eighths."""
    full, eighths = divmod(round(abs(share) * longest * 8), 8)
    line = "█" * full + ("▏▎▍▌▋▊▉"[eighths - 1] if eighths else "")
    return Text(line, style=colour, no_wrap=True)


def _pairs(e: Explanation) -> RenderableType | None:
    """Return the strongest pairs of features, or ``None`` if the method does not score pairs."""
    if e.interactions is None:
        return None
    strongest, share = pairs.shown_pairs(e), pairs.relative_interactions(e)
    if not len(strongest):
        return Text("No pair of features interacts measurably.", style="dim")
    grid = Table.grid(padding=(0, 2, 0, 0))
    for i, j in strongest.tolist():
        grid.add_row(
            Text(pairs.names_text(e, i, j), no_wrap=True),
            Text(pairs.value_text(e, i, j), justify="right", no_wrap=True),
            Text(pairs.error_text(e, i, j), style="dim", no_wrap=True),
            _line(share[i, j], _BAR, _COLOURS["support" if share[i, j] > 0 else "against"]),
        )
    more, less = map(visible, pairs.directions(e))
    triples = [Text(f"{names}  {value}") for names, value in pairs.shown_triples(e)]
    return Group(
        Text("acting together", style="bold"), grid, *triples, Text(f"+ {more}   - {less}", style="dim")
    )


def _sets(e: Explanation) -> RenderableType | None:
    """Return the features that a search chose at each sparsity, or ``None`` without a search."""
    if not e.chosen:
        return None
    grid = Table.grid(padding=(0, 2, 0, 0))
    for row, chosen in enumerate(say.chosen_sets(e)):
        members = [say.clipped(e.features[i], _LONGEST) for i in np.flatnonzero(chosen.mask)]
        names = Text().append(" · ".join(members[:_MOST_NAMED]), style="" if row else "bold underline")
        if len(members) > _MOST_NAMED:
            names.append(f" and {len(members) - _MOST_NAMED} more", style="dim")
        grid.add_row(Text(f"best at {chosen.sparsities}", style="dim"), Text(f"{len(members)}"), names)
    return grid


def _measures(e: Explanation) -> Text | None:
    measures = say.measures(e)
    line = Text("   ").join(
        Text(f"{visible(m.name)} {m.arrow} ", style="dim").append(measure_text(m.mean), style="not dim bold")
        for m in measures
    )
    sparsities = say.measured_sparsities(e)
    if sparsities:
        line.append(f"   mean over {', '.join(f'{100 * s:g}%' for s in sparsities)}", style="dim")
    return line if measures else None


def _facts(e: Explanation) -> Text:
    facts = say.facts(e)
    method = Text(visible(facts.pop("method")), style="bold")
    rest = "".join(f" · {visible(label)} {visible(value)}" for label, value in facts.items())
    return method.append(rest, style="not bold dim")


def _failures(failures: Sequence[Failure]) -> Iterator[RenderableType]:
    if failures:
        yield Rule(Text(f"{len(failures)} failed"), style="red")
    for reason, names in by_reason(named(failures)).items():
        line = Text(f" {visible(inputs_text(names))}: ", style="red")
        yield line.append(visible(reason), style="default")


class _ClassPanels:
    """Rows of panels that fit the width, and the legend."""

    def __init__(self, classes: ByClass) -> None:
        self.classes = classes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        colour, input = _has_colour(console), self.classes[0].input
        class_panels = panels.class_panels(self.classes)
        total = options.max_width + _GAP
        lines = -(-len(class_panels) // max(1, total // (_NARROWEST + _GAP)))
        columns = -(-len(class_panels) // lines)
        width = total // columns - _GAP
        original = drawing_of(input).terminal_input(input, colour=colour)
        if original is not None:
            yield from (original, Text())
        for first in range(0, len(class_panels), columns):
            grid = Table.grid(padding=(0, _GAP, 0, 0))
            for _ in range(columns):
                grid.add_column(width=width)
            line = class_panels[first : first + columns]
            grid.add_row(*(Group(*_class(panel, console, width, colour=colour)) for panel in line))
            yield from (grid, Text())
        yield from _classes_legend(self.classes, colour=colour)


def _class(panel: Panel, console: Console, width: int, *, colour: bool) -> Iterator[RenderableType]:
    e = panel.explanation
    yield Text(visible(panel.name), style="bold").append(f" {visible(panel.amount)}", style="not bold")
    reason = say.uninformative_reason(e)
    if reason is not None:
        yield Text(reason, style="bold")
    drawn = list(drawing_of(e.input).terminal(panel, console, width, colour=colour))
    yield from (*drawn, Text()) if drawn else ()
    yield _class_bars(panel, colour=colour)


def _class_bars(panel: Panel, *, colour: bool) -> Table:
    """Return a row for each shown feature; pictures have longer names and no bars."""
    e, values = panel.explanation, panel.explanation.input.value_texts()
    has_bars = not e.input.is_picture
    grid = Table.grid(padding=(0, 1, 0, 0))
    for i in panel.shown.tolist():
        most = _LONGEST_NAME if has_bars else _NARROWEST - 10
        name = Text(say.clipped(e.features[i], most), no_wrap=True)
        if panel.marked[i] and colour:
            name.stylize("bold underline")
        elif panel.marked[i]:
            name.append("*")
        value = (
            [Text(say.clipped(values[i], _LONGEST_NAME // 2), style="dim", no_wrap=True)] if values else []
        )
        score = Text(say.score_text(e, i), justify="right", no_wrap=True)
        grid.add_row(name, *value, score, _bar(e, i, panel.share[i], _SMALL_BAR) if has_bars else "")
    return grid


def _classes_legend(classes: ByClass, *, colour: bool) -> Iterator[Text]:
    supports, opposes = panels.directions(classes)
    if colour:
        line = _key(Text(style="dim"), DARK.support, supports)
        line = _key(line.append("   "), DARK.against, opposes).append("   ")
        yield line.append("underlined", style="bold underline").append(f" {panels.set_text(classes)}")
        return
    if not drawing_of(classes[0].input).lists_features:
        yield Text(f"+ {supports}, # strongly   - {opposes}, = strongly")
    yield Text(f"* {panels.set_text(classes)}")
