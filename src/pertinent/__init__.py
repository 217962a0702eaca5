"""Explain the predictions of machine-learning models by the importance of features."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pertinent.api.attack_radius import attack_radius
    from pertinent.api.benchmark import Benchmark, benchmark
    from pertinent.api.catalogue import list_methods, list_metrics, list_removals
    from pertinent.api.estimate import RequestEstimate, estimate_requests
    from pertinent.api.evaluate import compare, evaluate
    from pertinent.api.explain import explain, explain_iter
    from pertinent.api.explain_hops import explain_hops
    from pertinent.app.serve import serve
    from pertinent.app.serve_study import serve_study
    from pertinent.cluster.cluster import Cluster
    from pertinent.diagnostics import read
    from pertinent.diagnostics.check_removal import check_removal
    from pertinent.diagnostics.neighbour_stability import neighbour_stability
    from pertinent.diagnostics.perplexity_check import PerplexityCheck
    from pertinent.diagnostics.removal_check import RemovalCheck
    from pertinent.diagnostics.sanity import Sanity, sanity
    from pertinent.diagnostics.sensitivity import sensitivity
    from pertinent.diagnostics.stability import Stability, stability
    from pertinent.errors import PertinentError
    from pertinent.explainers.adapted import adapt
    from pertinent.explainers.early_stopping import EarlyStopping
    from pertinent.finetuning.fine_tuning import train
    from pertinent.inputs.prompt import Prompt
    from pertinent.inputs.text import Text
    from pertinent.learners.base import load_explainer
    from pertinent.learners.fit import fit
    from pertinent.models.embedded.load import load
    from pertinent.models.endpoint import wrap_endpoint
    from pertinent.models.wrap import wrap
    from pertinent.rendering.html.page import save_report
    from pertinent.results.attack_results import Attacked, Attacks
    from pertinent.results.evaluation import Evaluation
    from pertinent.results.explanation import Explanation, Explanations
    from pertinent.results.explanation_folder import ExplanationFolder
    from pertinent.results.failures import Failure
    from pertinent.results.hops import Hops
    from pertinent.results.importance import Importance
    from pertinent.runs.file_store import merge
    from pertinent.runs.request import Request
    from pertinent.runs.service import Service
    from pertinent.study.create import create_study
    from pertinent.study.report import StudyReport, report_study

__version__ = "0.2.0"

_NAMES = {
    "api.attack_radius": "attack_radius",
    "api.catalogue": "list_methods list_metrics list_removals",
    "api.estimate": "RequestEstimate estimate_requests",
    "api.evaluate": "compare evaluate",
    "api.explain": "explain explain_iter",
    "api.explain_hops": "explain_hops",
    "runs.request": "Request",
    "runs.service": "Service",
    "runs.file_store": "merge",
    "app.serve": "serve",
    "app.serve_study": "serve_study",
    "api.benchmark": "Benchmark benchmark",
    "cluster.cluster": "Cluster",
    "diagnostics": "read",
    "diagnostics.check_removal": "check_removal",
    "diagnostics.neighbour_stability": "neighbour_stability",
    "diagnostics.perplexity_check": "PerplexityCheck",
    "diagnostics.removal_check": "RemovalCheck",
    "diagnostics.sanity": "Sanity sanity",
    "diagnostics.sensitivity": "sensitivity",
    "diagnostics.stability": "Stability stability",
    "errors": "PertinentError",
    "explainers.adapted": "adapt",
    "explainers.early_stopping": "EarlyStopping",
    "inputs.prompt": "Prompt",
    "inputs.text": "Text",
    "learners.base": "load_explainer",
    "learners.fit": "fit",
    "models.embedded.load": "load",
    "models.endpoint": "wrap_endpoint",
    "models.wrap": "wrap",
    "rendering.html.page": "save_report",
    "results.attack_results": "Attacked Attacks",
    "results.evaluation": "Evaluation",
    "results.explanation": "Explanation Explanations",
    "results.explanation_folder": "ExplanationFolder",
    "results.failures": "Failure",
    "results.hops": "Hops",
    "results.importance": "Importance",
    "study.create": "create_study",
    "study.report": "StudyReport report_study",
    "finetuning.fine_tuning": "train",
}
"""The public names in each module."""

_HOME = {name: f"pertinent.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = ["adapt", "attack_radius", "benchmark", "check_removal", "compare", "create_study"]
__all__ += ["estimate_requests", "evaluate"]
__all__ += ["Hops", "explain_hops"]
__all__ += ["explain", "explain_iter", "fit", "list_methods", "list_metrics", "list_removals", "load"]
__all__ += ["load_explainer", "merge", "neighbour_stability", "read", "report_study", "sanity", "save_report"]
__all__ += ["sensitivity", "serve", "serve_study", "stability", "train", "wrap", "wrap_endpoint"]
__all__ += ["Attacked", "Attacks", "Benchmark", "Cluster", "EarlyStopping", "Evaluation", "Explanation"]
__all__ += ["ExplanationFolder", "Explanations", "Failure", "Importance", "PerplexityCheck", "PertinentError"]
__all__ += [
    "Prompt",
    "RemovalCheck",
    "Request",
    "RequestEstimate",
    "Sanity",
    "Service",
    "Stability",
    "StudyReport",
]
__all__ += ["Text"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import pertinent` is fast."""
    if name not in _HOME:
        raise AttributeError(f"module 'pertinent' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
