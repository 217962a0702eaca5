"""pertinent finds, learns and tests the features a model's decision rests on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pertinent.catalogue import methods, metrics, removals
    from pertinent.check.checking import check_removal
    from pertinent.check.removal_check import RemovalCheck
    from pertinent.errors import PertinentError
    from pertinent.evaluating import compare, evaluate
    from pertinent.evaluation import Evaluation
    from pertinent.explaining import explain
    from pertinent.explanation import Explanation, Explanations
    from pertinent.files import read
    from pertinent.inputs.text import Text
    from pertinent.models.embedded import load
    from pertinent.models.wrap import wrap
    from pertinent.report.page import save_report

__version__ = "0.1.0"

_HOME = {
    "Evaluation": "pertinent.evaluation",
    "Explanation": "pertinent.explanation",
    "Explanations": "pertinent.explanation",
    "PertinentError": "pertinent.errors",
    "RemovalCheck": "pertinent.check.removal_check",
    "Text": "pertinent.inputs.text",
    "check_removal": "pertinent.check.checking",
    "compare": "pertinent.evaluating",
    "evaluate": "pertinent.evaluating",
    "explain": "pertinent.explaining",
    "load": "pertinent.models.embedded",
    "methods": "pertinent.catalogue",
    "metrics": "pertinent.catalogue",
    "read": "pertinent.files",
    "removals": "pertinent.catalogue",
    "save_report": "pertinent.report.page",
    "wrap": "pertinent.models.wrap",
}

__all__ = [
    "Evaluation",
    "Explanation",
    "Explanations",
    "PertinentError",
    "RemovalCheck",
    "Text",
    "check_removal",
    "compare",
    "evaluate",
    "explain",
    "load",
    "methods",
    "metrics",
    "read",
    "removals",
    "save_report",
    "wrap",
]


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import pertinent` is cheap."""
    if name not in _HOME:
        raise AttributeError(f"module 'pertinent' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
