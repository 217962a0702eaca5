"""Feature importance over many inputs as HTML."""

from __future__ import annotations

from collections.abc import Callable

from pertinent.rendering.html import Axis, Markup, fragment, from_template
from pertinent.rendering.tables import importance_caption
from pertinent.results.importance import Importance


def show(importance: Importance) -> str:
    """Return bars with intervals, for notebooks and other pages."""
    return fragment(importance_card(importance))


def importance_card(importance: Importance, link: Callable[[str], str] | None = None) -> Markup:
    """Return bars with intervals, without style; `link` maps the name of a feature to a URL."""
    ends = [(row.low, row.high) for row in importance.rows]
    return from_template(
        "importance.html",
        importance=importance,
        axis=Axis.from_ranges([*ends, *((0.0, row.mean) for row in importance.rows)]),
        link=link,
        caption=importance_caption(importance),
    )
