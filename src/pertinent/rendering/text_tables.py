"""Evaluations as tables for papers and notes: Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Callable

from pertinent.printable import visible
from pertinent.rendering.tables import READING, summary
from pertinent.rendering.wording import arrow, on_one_line
from pertinent.results.evaluation import Evaluation

_LATEX = {each: f"\\{each}" for each in "&%$#_{}"} | {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "−": "$-$",
}


def markdown(evaluation: Evaluation) -> str:
    """A table of means with intervals; its caption and notes stand below it."""
    head, *rows = _cells(evaluation, _escaped_markdown, "**{}**")
    lines = [head, ["---", *["---:"] * len(evaluation.better)], *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n\n".join([table, *map(_escaped_markdown, _said(evaluation))])


def latex(evaluation: Evaluation) -> str:
    """A ``tabular`` of means with intervals, with the rules of ``booktabs``; the notes are comments."""
    head, *rows = (" & ".join(line) + r" \\" for line in _cells(evaluation, _escaped_latex, r"\textbf{{{}}}"))
    columns = "l" + "r" * len(evaluation.better)
    table = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *rows]
    said = [f"% {line}" for line in _said(evaluation)]
    return "\n".join([*said, *table, r"\bottomrule", r"\end{tabular}"])


def _cells(evaluation: Evaluation, escaped: Callable[[str], str], bold: str) -> list[list[str]]:
    """The heading and a line for each method."""
    found = summary(evaluation).cells
    lines = [["method", *(f"{metric} {arrow(better)}" for metric, better in evaluation.better.items())]]
    lines = [[escaped(cell) for cell in line] for line in lines]
    for method in evaluation.methods:
        line = [escaped(method)]
        for metric in evaluation.better:
            cell = found.get((method, metric))
            mean = "" if cell is None else bold.format(cell.text) if cell.best else cell.text
            line.append("–" if cell is None else f"{mean} {cell.interval.bounds}".rstrip())
        lines.append(line)
    return lines


def _said(evaluation: Evaluation) -> list[str]:
    """The caption and the notes, a sentence each."""
    found = summary(evaluation)
    return [visible(on_one_line(f"{line}.")) for line in (f"{found.caption}. {READING}", *found.notes)]


def _escaped_markdown(text: str) -> str:
    return "".join(f"\\{each}" if each in r"\|*_`<[]" else each for each in visible(on_one_line(text)))


def _escaped_latex(text: str) -> str:
    return "".join(_LATEX.get(each, each) for each in visible(on_one_line(text)))
