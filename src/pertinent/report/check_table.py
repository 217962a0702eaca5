"""A removal check in the terminal and as HTML."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pertinent.report import advice as say
from pertinent.report.html_bars import escaped
from pertinent.report.style import FRAGMENT
from pertinent.report.terminal import safe
from pertinent.results.removal_check import RemovalCheck

_STYLES = {"in distribution": "", "somewhat out": "yellow", "badly out": "bold red"}


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
        name = Text(safe(removal), style="bold" if removal == check.best else "")
        table.add_row(name, *cells, say.confidence(check, removal), Text(verdict, style=_STYLES[verdict]))
    parts: list[RenderableType] = [table, Text(), Text(say.caption(check), style="dim")]
    parts += [Text(safe(line), style="dim") for line in say.left_out(check)]
    return Padding(Group(*parts, Text(), Text(safe(say.advice(check)), style="bold")), (0, 0, 0, 1))


def html(check: RemovalCheck) -> str:
    """The same with its own style."""
    head = "".join(f'<th scope="col" class="number">{say.percent(share)}</th>' for share in check.shares)
    rows = ""
    for removal in check.removals:
        name = escaped(removal)
        name = f"<strong>{name}</strong>" if removal == check.best else name
        cells = "".join(
            f'<td class="number">{text}<span class="quiet">{bounds}</span></td>'
            for text, bounds in say.cells(check, removal)
        )
        rows += (
            f'<tr><th scope="row" class="name">{name}</th>{cells}'
            f'<td class="number">{say.confidence(check, removal)}</td><td>{check.verdict(removal)}</td></tr>'
        )
    left_out = "".join(f'<p class="legend">{escaped(line)}</p>' for line in say.left_out(check))
    return (
        f'{FRAGMENT}<article class="pertinent"><header><h3>Is removal in distribution?</h3></header>'
        f'<p>{escaped(say.advice(check))}</p><div class="scroll"><table class="rows"><thead><tr>'
        f'<th scope="col">removal</th>{head}<th scope="col" class="number">confidence</th>'
        f'<th scope="col">verdict</th></tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="legend">{escaped(say.caption(check))}</p>{left_out}</article>'
    )
