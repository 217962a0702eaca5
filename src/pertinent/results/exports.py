"""Export of explanations to pandas and shap."""

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
    """Return a pandas frame with one row per explanation and feature."""
    has_ids = any(e.id is not None for e in explanations)
    rows = []
    for e in explanations:
        values = e.input.feature_values()
        for i, name in enumerate(e.features):
            row: dict[str, Any] = {"input": e.index} | ({"id": e.id} if has_ids else {})
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
    """Return one explanation for shap's plots."""
    values, data, names = e.input.for_shap(e.scores)
    return optional("shap").Explanation(
        values=values,
        base_values=_base_value(e),
        data=data,
        feature_names=None if names is None else list(names),
    )


def shap_explanations(explanations: Sequence[Explanation]) -> Any:
    """Return explanations for shap's plots: a matrix if all have the same features, else ragged arrays."""
    require(len(explanations) > 0, "explanations", "at least one", 0)
    is_aligned = modality_named(explanations[0].input.kind).aligned
    if is_aligned:
        explanations = for_one_class(explanations)
    values, data, names = zip(*(e.input.for_shap(e.scores) for e in explanations), strict=True)
    forms = {(e.input.kind, v.shape, n) for e, v, n in zip(explanations, values, names, strict=True)}
    is_matrix = is_aligned and len(forms) == 1
    stack = np.stack if is_matrix else objects
    feature_names: Any = [list(e.features) for e in explanations]
    if is_matrix:
        feature_names = None if names[0] is None else list(names[0])
    return optional("shap").Explanation(
        values=stack(values),
        base_values=np.array([_base_value(e) for e in explanations]),
        data=stack(data),
        feature_names=feature_names,
    )


def _base_value(e: Explanation) -> float:
    """Return the method's base value, or the prediction minus the sum of the scores."""
    if e.base_values is not None:
        return float(e.base_values[e.target])
    if e.request.scale == "raw":  # the stored prediction consists of probabilities
        return float("nan")
    whole = e.prediction.values[None]
    if isinstance(e.output, Probabilities):
        whole = replace(e.output, from_logits=False).as_scale(whole, e.request.scale)
    return float(whole[0, e.target] - e.scores.sum())
