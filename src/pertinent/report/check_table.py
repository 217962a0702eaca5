"""A removal check in the terminal and as HTML."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pertinent.control_characters import visible
from pertinent.diagnostics.removal_check import RemovalCheck
from pertinent.report import advice as say
from pertinent.report.markup import Markup
from pertinent.report.style import FRAGMENT

_STYLES = {"in distribution": "", "somewhat out": "yellow", "badly out": "bold red"}

_TABLE = Markup(
    '<article class="pertinent"><header><h3>Is removal in distribution?</h3></header><p>{advice}</p>'
    '<div class="scroll"><table class="rows"><thead><tr><th scope="col">removal</th>{head}'
    '<th scope="col" class="number">confidence</th><th scope="col">verdict</th></tr></thead>'
    "<tbody>{rows}</tbody></table></div>{notes}</article>"
)
_SHARE = Markup('<th scope="col" class="number">{}</th>')
_ROW = Markup('<tr><th scope="row" class="name">{}</th>{}<td class="number">{}</td><td>{}</td></tr>')
_CELL = Markup('<td class="number">{}<span class="quiet">{}</span></td>')
_NOTE = Markup('<p class="legend">{}</p>')


def rendered(check: RemovalCheck) -> RenderableType:
    """A line for each removal, then the advice."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("removal", no_wrap=True)
    for share in check.shares:
        table.add_column(say.percent(share), justify="right")
    table.add_column("confidence", justify="right")
    table.add_column("verdict")
    for removal in check.removals:
        verdict = check.verdict(removal)
        cells = [Text(text).append(bounds, style="dim") for text, bounds in say.cells(check, removal)]
        name = Text(visible(removal), style="bold" if removal == check.best else "")
        table.add_row(
            name, *cells, say.confidence(check, removal), Text(verdict, style=_STYLES.get(verdict, "dim"))
        )
    parts: list[RenderableType] = [table, Text(), Text(say.caption(check), style="dim")]
    parts += [Text(visible(line), style="dim") for line in say.left_out(check)]
    return Padding(Group(*parts, Text(), Text(visible(say.advice(check)), style="bold")), (0, 0, 0, 1))


def html(check: RemovalCheck) -> str:
    """The same with its own style."""
    rows = []
    for removal in check.removals:
        name = Markup("<strong>{}</strong>").format(removal) if removal == check.best else removal
        cells = Markup().join(_CELL.format(*cell) for cell in say.cells(check, removal))
        rows.append(_ROW.format(name, cells, say.confidence(check, removal), check.verdict(removal)))
    table = _TABLE.format(
        advice=say.advice(check),
        head=Markup().join(_SHARE.format(say.percent(share)) for share in check.shares),
        rows=Markup().join(rows),
        notes=Markup().join(map(_NOTE.format, (say.caption(check), *say.left_out(check)))),
    )
    return str(FRAGMENT + table)
