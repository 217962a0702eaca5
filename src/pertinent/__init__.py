"""pertinent finds, learns and tests the features a model's decision rests on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pertinent.api.attack_radius import attack_radius
    from pertinent.api.catalogue import methods, metrics, removals
    from pertinent.api.evaluate import compare, evaluate
    from pertinent.api.explain import explain, explain_iter
    from pertinent.api.request import Request
    from pertinent.diagnostics import read
    from pertinent.diagnostics.check_removal import check_removal
    from pertinent.diagnostics.neighbour_stability import NeighbourStability, neighbour_stability
    from pertinent.diagnostics.removal_check import RemovalCheck
    from pertinent.diagnostics.sanity import Sanity, sanity
    from pertinent.diagnostics.sensitivity import Sensitivity, sensitivity
    from pertinent.diagnostics.stability import Stability, stability
    from pertinent.errors import PertinentError
    from pertinent.explainers.early_stopping import EarlyStopping
    from pertinent.inputs.text import Text
    from pertinent.learned.base import load_explainer
    from pertinent.learned.fit import fit
    from pertinent.models.embedded.load import load
    from pertinent.models.wrap import wrap
    from pertinent.report.html.page import save_report
    from pertinent.results.attack_results import Attacked, Attacks
    from pertinent.results.evaluation import Evaluation
    from pertinent.results.explanation import Explanation, Explanations
    from pertinent.results.failures import Failure
    from pertinent.training.fine_tuning import train

__version__ = "0.2.0"

_HOME = {
    "Attacked": "pertinent.results.attack_results",
    "Attacks": "pertinent.results.attack_results",
    "EarlyStopping": "pertinent.explainers.early_stopping",
    "Evaluation": "pertinent.results.evaluation",
    "Explanation": "pertinent.results.explanation",
    "Explanations": "pertinent.results.explanation",
    "Failure": "pertinent.results.failures",
    "NeighbourStability": "pertinent.diagnostics.neighbour_stability",
    "PertinentError": "pertinent.errors",
    "RemovalCheck": "pertinent.diagnostics.removal_check",
    "Request": "pertinent.api.request",
    "Sanity": "pertinent.diagnostics.sanity",
    "Sensitivity": "pertinent.diagnostics.sensitivity",
    "Stability": "pertinent.diagnostics.stability",
    "Text": "pertinent.inputs.text",
    "attack_radius": "pertinent.api.attack_radius",
    "check_removal": "pertinent.diagnostics.check_removal",
    "compare": "pertinent.api.evaluate",
    "evaluate": "pertinent.api.evaluate",
    "explain": "pertinent.api.explain",
    "explain_iter": "pertinent.api.explain",
    "fit": "pertinent.learned.fit",
    "load": "pertinent.models.embedded.load",
    "load_explainer": "pertinent.learned.base",
    "methods": "pertinent.api.catalogue",
    "metrics": "pertinent.api.catalogue",
    "neighbour_stability": "pertinent.diagnostics.neighbour_stability",
    "read": "pertinent.diagnostics",
    "removals": "pertinent.api.catalogue",
    "sanity": "pertinent.diagnostics.sanity",
    "save_report": "pertinent.report.html.page",
    "sensitivity": "pertinent.diagnostics.sensitivity",
    "stability": "pertinent.diagnostics.stability",
    "train": "pertinent.training.fine_tuning",
    "wrap": "pertinent.models.wrap",
}

__all__ = [
    "Attacked",
    "Attacks",
    "EarlyStopping",
    "Evaluation",
    "Explanation",
    "Explanations",
    "Failure",
    "NeighbourStability",
    "PertinentError",
    "RemovalCheck",
    "Request",
    "Sanity",
    "Sensitivity",
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
    "train",
    "wrap",
]


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import pertinent` is cheap."""
    if name not in _HOME:
        raise AttributeError(f"module 'pertinent' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
