"""Display of results in the terminal, as HTML and as figures."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pertinent.results.base import Form

_FUNCTIONS = {
    "Explanation": "explanation.show",
    "Explanations": "explanation.show_all",
    "ByClass": "explanation.show_by_class",
    "Importance": "importance.show",
    "Hops": "hops.show",
    "Evaluation": "tables.show_evaluation",
    "Attacks": "tables.show_attacks",
    "Diagnostic": "tables.show_diagnostic",
}
"""Name of the function that shows each class, in `terminal/`, `html/` and `plots/`."""

_TABLES = {
    "terminal": ("Evaluation", "Attacks", "Diagnostic", "Importance", "Catalogue"),
    "html": ("Evaluation", "Attacks", "Diagnostic"),
}
"""Classes that are shown as tables, by form."""


def show(result: Any, form: Form, *args: Any, **options: Any) -> Any:
    """Return a result in one of the forms, importing only the module that draws it."""
    if form in ("markdown", "latex"):
        return getattr(import_module("pertinent.rendering.text_tables"), form)(result)
    if form in ("interactions", "waterfall", "curves", "pareto"):
        return import_module(f"pertinent.rendering.plots.{form}").show(result, *args, **options)
    names = [cls.__name__ for cls in type(result).__mro__]
    if any(name in _TABLES.get(form, ()) for name in names):
        return import_module(f"pertinent.rendering.{form}.tables").show(result)
    module, function = next(_FUNCTIONS[name] for name in names if name in _FUNCTIONS).split(".")
    drawing = import_module(f"pertinent.rendering.{'plots' if form == 'figure' else form}.{module}")
    return getattr(drawing, function)(result, *args, **options)
