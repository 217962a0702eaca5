"""Hops of an agent in the terminal: a tree of what each step depends on."""

from __future__ import annotations

from math import isfinite

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree

from pertinent.number_format import measure_text
from pertinent.printable import visible
from pertinent.rendering.wording import clipped, hops_notes
from pertinent.results.hops import Hop, Hops

_CLIPPED = 60


def show(hops: Hops) -> RenderableType:
    """Return the tree, the sources with the largest shares, and notes."""
    tree = Tree(_label(hops, hops.target, None))
    _grow(hops, hops.target, tree, set())
    sources = [(name, share) for name, share in hops.top(5) if share > 0]
    lines = [Text(f"{share:4.0%}  ").append(visible(_name(hops, name))) for name, share in sources]
    notes = [Text(visible(note), style="dim") for note in hops_notes(hops)]
    heading = [Text(), Text("Sources", style="bold")] if lines else []
    return Padding(Group(tree, *heading, *lines, Text(), *notes), (0, 0, 0, 1))


def _grow(hops: Hops, step: str, tree: Tree, shown: set[str]) -> None:
    """Add what a step depends on; the dependences of a part are shown once."""
    shown.add(step)
    for hop in hops.hops_of(step):
        branch = tree.add(_label(hops, hop.part, hop))
        if hop.part not in shown:
            _grow(hops, hop.part, branch, shown)
        elif hops.hops_of(hop.part):
            branch.add(Text("see above", style="dim"))


def _label(hops: Hops, name: str, hop: Hop | None) -> Text:
    text = Text(visible(_name(hops, name)), style="bold" if hop is None else "")
    if hop is None:
        return text
    label = Text(f"{hop.share:4.0%}  ", style="bold").append(text)
    if isfinite(hop.score):
        error = f" ± {measure_text(hop.standard_error)}" if isfinite(hop.standard_error) else ""
        label.append(f"  {hop.score:+.3g}{error}", style="dim")
    return label


def _name(hops: Hops, name: str) -> str:
    return f"{name}: {clipped(hops.texts.get(name, ''), _CLIPPED)}"
