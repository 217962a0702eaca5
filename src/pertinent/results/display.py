"""The one way from results up to the reports that show them."""

from __future__ import annotations

from typing import Any, Literal


def display(result: Any, form: Literal["terminal", "html", "figure"], *args: Any, **options: Any) -> Any:
    """A result as something rich prints, as a fragment of HTML, or as a matplotlib figure.

    The other arguments are those of the report on this kind of result. Reports are imported only here, when
    something is shown.
    """
    from pertinent.report.displays import show

    return show(result, form, *args, **options)
