"""Hops of an agent as HTML: a graph of what each step depends on."""

from __future__ import annotations

from dataclasses import dataclass

from pertinent.rendering.html import Markup, fragment, from_template
from pertinent.rendering.wording import hops_notes
from pertinent.results.hops import Hops

_LINE, _LEFT, _WIDTH = 26, 190, 900
"""Height of a line, and widths of the arcs and of the graph, in pixels."""

_MOST = 40
"""Largest number of lines."""


@dataclass(frozen=True)
class HopArc:
    """A curve from a part to the step that depends on it, with its share and description."""

    path: str
    share: float
    title: str


def show(hops: Hops) -> str:
    """Return the graph, for notebooks and other pages."""
    return fragment(hops_card(hops))


def hops_card(hops: Hops) -> Markup:
    """Return the graph without style: a line for each part and step, joined by arcs."""
    ranked = sorted(hops.texts, key=lambda name: (name not in hops.steps, -hops.share(name)))
    lines = [name for name in hops.texts if name in ranked[:_MOST] or name == hops.target]
    middle = {name: _LINE * (i + 0.5) for i, name in enumerate(lines)}
    arcs = [
        HopArc(
            _path(middle[hop.part], middle[hop.step]), hop.share, f"{hop.part} → {hop.step}: {hop.share:.0%}"
        )
        for hop in hops.hops
        if hop.share > 0 and hop.part in middle and hop.step in middle
    ]
    return from_template(
        "hops.html",
        hops=hops,
        lines=[(name, middle[name], hops.share(name)) for name in lines],
        arcs=sorted(arcs, key=lambda arc: arc.share),
        notes=hops_notes(hops),
        n_hidden=len(hops.texts) - len(lines),
        size={"width": _WIDTH, "height": _LINE * len(lines) + 8, "left": _LEFT},
    )


def _path(start: float, end: float) -> str:
    """Return the SVG path of an arc to the left of the lines."""
    out = _LEFT - min(_LEFT - 10, 20 + 0.6 * abs(end - start))
    return f"M{_LEFT} {start:.1f}C{out:.1f} {start:.1f} {out:.1f} {end:.1f} {_LEFT} {end:.1f}"
