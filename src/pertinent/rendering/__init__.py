"""Showing results in the terminal, as HTML and as figures: which function shows which kind of result."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pertinent.results.base import Form

_DISPLAYS = {
    "Explanation": "explanation.show",
    "Explanations": "explanation.show_all",
    "ByClass": "explanation.show_by_class",
    "Evaluation": "tables.show_evaluation",
    "Importance": "importance.show",
    "Attacks": "tables.show_attacks",
    "Diagnostic": "tables.show_diagnostic",
    "Catalogue": "tables.show_catalogue",
}
"""For each class the function that shows it, which has the same name in `terminal/`, `html/` and `plots/`."""


def show(result: Any, form: Form, *args: Any, **options: Any) -> Any:
    """A result in one of the forms; only the module that draws it is imported."""
    if form in ("markdown", "latex"):
        return getattr(import_module("pertinent.rendering.text_tables"), form)(result)
    if form in ("interactions", "waterfall", "curves", "pareto"):
        return import_module(f"pertinent.rendering.plots.{form}").show(result, *args, **options)
    module, function = next(
        _DISPLAYS[cls.__name__] for cls in type(result).__mro__ if cls.__name__ in _DISPLAYS
    ).split(".")
    drawing = import_module(f"pertinent.rendering.{'plots' if form == 'figure' else form}.{module}")
    return getattr(drawing, function)(result, *args, **options)
