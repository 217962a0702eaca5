"""Conformance checks for methods, removals, metrics and modalities, including third-party ones.

Each check raises an `AssertionError` that describes the problem, so no test framework is needed:

>>> from pertinent.testing import check_explainer
>>> check_explainer("leave-one-out")

`pertinent.testing.games` contains cooperative games with known Shapley and Banzhaf values.
"""

from pertinent.testing.explainers import EXPLAINER_CHECKS, check_explainer
from pertinent.testing.learners import check_fitted, check_learned_method
from pertinent.testing.metrics import check_metric
from pertinent.testing.modalities import check_modality
from pertinent.testing.removals import check_removal

__all__ = [
    "EXPLAINER_CHECKS",
    "check_explainer",
    "check_fitted",
    "check_learned_method",
    "check_metric",
    "check_modality",
    "check_removal",
]
