"""pertinent finds, learns and tests the features a model's decision rests on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pertinent.api.attack import attack_radius
    from pertinent.api.catalogue import methods, metrics, removals
    from pertinent.api.check import check_removal
    from pertinent.api.compare import compare
    from pertinent.api.evaluate import evaluate
    from pertinent.api.explain import explain, explain_iter
    from pertinent.api.fit import fit
    from pertinent.api.fitting import load_explainer
    from pertinent.api.neighbours import neighbour_stability
    from pertinent.api.request import Request
    from pertinent.api.sanity import sanity
    from pertinent.api.sensitivity import sensitivity
    from pertinent.api.stability import stability
    from pertinent.errors import PertinentError
    from pertinent.inputs.text import Text
    from pertinent.models.embedded.load import load
    from pertinent.models.wrap import wrap
    from pertinent.report.page import save_report
    from pertinent.results.attacks import Attacked, Attacks
    from pertinent.results.evaluation import Evaluation
    from pertinent.results.explanation import Explanation, Explanations, Failure
    from pertinent.results.files import read
    from pertinent.results.removal_check import RemovalCheck
    from pertinent.results.sanity import Sanity
    from pertinent.results.stability import Stability

__version__ = "0.1.0"

_HOME = {
    "Attacked": "pertinent.results.attacks",
    "Attacks": "pertinent.results.attacks",
    "Evaluation": "pertinent.results.evaluation",
    "Explanation": "pertinent.results.explanation",
    "Explanations": "pertinent.results.explanation",
    "Failure": "pertinent.results.explanation",
    "PertinentError": "pertinent.errors",
    "RemovalCheck": "pertinent.results.removal_check",
    "Request": "pertinent.api.request",
    "Sanity": "pertinent.results.sanity",
    "Stability": "pertinent.results.stability",
    "Text": "pertinent.inputs.text",
    "attack_radius": "pertinent.api.attack",
    "check_removal": "pertinent.api.check",
    "compare": "pertinent.api.compare",
    "evaluate": "pertinent.api.evaluate",
    "explain": "pertinent.api.explain",
    "explain_iter": "pertinent.api.explain",
    "fit": "pertinent.api.fit",
    "load": "pertinent.models.embedded.load",
    "load_explainer": "pertinent.api.fitting",
    "methods": "pertinent.api.catalogue",
    "metrics": "pertinent.api.catalogue",
    "neighbour_stability": "pertinent.api.neighbours",
    "read": "pertinent.results.files",
    "removals": "pertinent.api.catalogue",
    "sanity": "pertinent.api.sanity",
    "save_report": "pertinent.report.page",
    "sensitivity": "pertinent.api.sensitivity",
    "stability": "pertinent.api.stability",
    "wrap": "pertinent.models.wrap",
}

__all__ = [
    "Attacked",
    "Attacks",
    "Evaluation",
    "Explanation",
    "Explanations",
    "Failure",
    "PertinentError",
    "RemovalCheck",
    "Request",
    "Sanity",
    "Stability",
    "Text",
    "attack_radius",
    "check_removal",
    "compare",
    "evaluate",
    "explain",
    "explain_iter",
    "fit",
    "load",
    "load_explainer",
    "methods",
    "metrics",
    "neighbour_stability",
    "read",
    "removals",
    "sanity",
    "save_report",
    "sensitivity",
    "stability",
    "wrap",
]


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import pertinent` is cheap."""
    if name not in _HOME:
        raise AttributeError(f"module 'pertinent' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
