"""Explanations as a pandas frame, and as what shap plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array
from pertinent.errors import require
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.inputs.text import TextInput
from pertinent.outputs import Probabilities

if TYPE_CHECKING:
    from pertinent.results.explanation import Explanation


def dataframe(explanations: Sequence[Explanation]) -> Any:
    """A pandas frame with one row per explanation and feature."""
    named = any(e.id is not None for e in explanations)
    rows = []
    for e in explanations:
        values = feature_values(e.input)
        for i, name in enumerate(e.features):
            row: dict[str, Any] = {"input": e.index} | ({"id": e.id} if named else {})
            row |= {
                "method": e.method,
                "target": e.target_name,
                "prediction": float(e.prediction[e.target]),
                "feature": name,
                "value": values[i],
                "score": float(e.scores[i]),
                "standard_error": np.nan if e.standard_errors is None else float(e.standard_errors[i]),
            }
            row |= {f"chosen at {s:g}": bool(m[i]) for s, m in e.chosen.items()}
            rows.append(row)
    return optional("pandas").DataFrame([{k: _encodable(v) for k, v in row.items()} for row in rows])


def _encodable(value: Any) -> Any:
    """A text without lone surrogates, which pandas cannot hold."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def feature_values(input: Input) -> Array:
    """The value of each feature: of a column, the word itself, ``None`` for a part of an image."""
    if isinstance(input, TableInput):
        if all(len(group) == 1 for group in input.columns):
            return input.values[[group[0] for group in input.columns]]
        pairs = zip(input.columns, input.shown(), strict=True)
        return _objects([input.values[g[0]] if len(g) == 1 else shown for g, shown in pairs])
    return _objects(input.features if isinstance(input, TextInput) else [None] * input.n_features)


def shap_explanation(e: Explanation) -> Any:
    """One explanation for shap's plots."""
    values, data = _shap_values(e)
    return optional("shap").Explanation(
        values=values,
        base_values=_base_value(e),
        data=data,
        feature_names=None if isinstance(e.input, ImageInput) else list(e.features),
    )


def shap_explanations(explanations: Sequence[Explanation]) -> Any:
    """Many explanations for shap's plots: a matrix where all have the same features, else ragged."""
    require(len(explanations) > 0, "explanations", "at least one", 0)
    values, data = zip(*map(_shap_values, explanations), strict=True)
    names: Any = [list(e.features) for e in explanations]
    kinds = {e.input.kind for e in explanations}
    if kinds == {"image"} and len({v.shape for v in values}) == 1:
        together, names = (np.stack(values), np.stack(data)), None
    elif kinds == {"table"} and len({e.features for e in explanations}) == 1:
        together, names = (np.stack(values), np.stack(data)), names[0]
    else:
        together = _objects(values), _objects(data)
    return optional("shap").Explanation(
        values=together[0],
        base_values=np.array([_base_value(e) for e in explanations]),
        data=together[1],
        feature_names=names,
    )


def _shap_values(e: Explanation) -> tuple[Array, Array]:
    """The scores and what they belong to; of an image the share of each pixel and channel."""
    if isinstance(e.input, ImageInput):
        pixels = np.moveaxis(e.input.pixels, 0, -1)
        sizes = np.bincount(e.input.labels.ravel(), minlength=len(e.scores))
        shares = (e.scores / np.maximum(sizes, 1))[e.input.labels] / pixels.shape[-1]
        return np.repeat(shares[..., None], pixels.shape[-1], axis=-1), pixels
    if isinstance(e.input, TextInput):
        return e.scores, _objects(_pieces(e.input))
    return e.scores, feature_values(e.input)


def _pieces(input: TextInput) -> list[str]:
    """Each feature with the characters up to the next, which shap's plot puts side by side."""
    segments, spans = input.text.segments, input.spans.tolist()
    pieces = []
    for (segment, start, _), after in zip(spans, [*spans[1:], None], strict=True):
        end = after[1] if after is not None and after[0] == segment else len(segments[segment])
        pieces.append(segments[segment][start:end])
    return pieces


def _base_value(e: Explanation) -> float:
    """What the scores are added to: the method's base value, or what is left of the prediction."""
    if e.base_values is not None:
        return float(e.base_values[e.target])
    whole = e.prediction
    if e.scale == "logit":
        assert isinstance(e.output, Probabilities)
        whole = e.output.to_logits(whole)
    return float(whole[e.target] - e.scores.sum())


def _objects(items: Sequence[Any]) -> Array:
    """A one-dimensional array of anything."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array
