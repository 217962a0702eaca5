"""Which function shows which kind of result, in the terminal, as HTML and as a figure."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

_DISPLAYS = {
    "Explanation": ("terminal.rendered", "html.fragment", "plots.plot"),
    "Explanations": ("terminal.rendered_all", "html.fragments", "plots.plot_all"),
    "ByClass": ("terminal_by_class.rendered", "html_by_class.fragment", "plot_by_class.plot_by_class"),
    "Evaluation": ("terminal.evaluation_table", "html.evaluation_table", "plots.plot_evaluation"),
    "Attacks": ("attack_table.rendered", "attack_table.html", "attack_table.plot_attacks"),
    "Diagnostic": ("diagnostic_table.rendered", "diagnostic_table.html", "diagnostic_plot.plot"),
    "Catalogue": ("terminal.catalogue_table", None, None),
}
_FORMS = ("terminal", "html", "figure")


def show(result: Any, form: Literal["terminal", "html", "figure"], *args: Any, **options: Any) -> Any:
    """A result in one of the three forms; only the module that draws it is imported."""
    name = next(cls.__name__ for cls in type(result).__mro__ if cls.__name__ in _DISPLAYS)
    module, function = str(_DISPLAYS[name][_FORMS.index(form)]).rsplit(".", 1)
    return getattr(import_module(f"pertinent.report.{module}"), function)(result, *args, **options)
