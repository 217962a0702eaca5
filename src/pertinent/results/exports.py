"""Explanations as a pandas frame, and as what shap plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent._optional import optional
from pertinent.errors import require
from pertinent.inputs.base import objects
from pertinent.inputs.modality import modality_named
from pertinent.outputs import Probabilities
from pertinent.printable import replace_surrogates
from pertinent.results.importance import for_one_class

if TYPE_CHECKING:
    from pertinent.results.explanation import Explanation


def dataframe(explanations: Sequence[Explanation]) -> Any:
    """A pandas frame with one row per explanation and feature."""
    named = any(e.id is not None for e in explanations)
    rows = []
    for e in explanations:
        values = e.input.feature_values()
        for i, name in enumerate(e.features):
            row: dict[str, Any] = {"input": e.index} | ({"id": e.id} if named else {})
            row |= {
                "method": e.method,
                "target": e.target_name,
                "prediction": float(e.prediction.values[e.target]),
                "feature": name,
                "value": values[i],
                "score": float(e.scores[i]),
                "standard_error": np.nan if e.standard_errors is None else float(e.standard_errors[i]),
            }
            row |= {f"chosen at {s:g}": bool(m[i]) for s, m in e.chosen.items()}
            rows.append(row)
    return optional("pandas").DataFrame([{k: replace_surrogates(v) for k, v in row.items()} for row in rows])


def shap_explanation(e: Explanation) -> Any:
    """One explanation for shap's plots."""
    values, data, names = e.input.for_shap(e.scores)
    return optional("shap").Explanation(
        values=values,
        base_values=_base_value(e),
        data=data,
        feature_names=None if names is None else list(names),
    )


def shap_explanations(explanations: Sequence[Explanation]) -> Any:
    """Many explanations for shap's plots: a matrix where all have the same features, else ragged."""
    require(len(explanations) > 0, "explanations", "at least one", 0)
    if modality_named(explanations[0].input.kind).aligned:
        explanations = for_one_class(explanations)
    values, data, names = zip(*(e.input.for_shap(e.scores) for e in explanations), strict=True)
    forms = {(e.input.kind, own.shape, n) for e, own, n in zip(explanations, values, names, strict=True)}
    aligned = len(forms) == 1 and modality_named(explanations[0].input.kind).aligned
    stacked = np.stack if aligned else objects
    each: Any = [list(e.features) for e in explanations]
    if aligned:
        each = None if names[0] is None else list(names[0])
    return optional("shap").Explanation(
        values=stacked(values),
        base_values=np.array([_base_value(e) for e in explanations]),
        data=stacked(data),
        feature_names=each,
    )


def _base_value(e: Explanation) -> float:
    """What the scores are added to: the method's base value, or what is left of the prediction."""
    if e.base_values is not None:
        return float(e.base_values[e.target])
    if e.request.scale == "raw":  # what the model answered to the whole input is kept as probabilities
        return float("nan")
    whole = e.prediction.values[None]
    if isinstance(e.output, Probabilities):
        whole = replace(e.output, from_logits=False).as_scale(whole, e.request.scale)
    return float(whole[0, e.target] - e.scores.sum())
