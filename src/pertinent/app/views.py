"""What the page draws, as plain data: inputs, predictions and explanations."""

from __future__ import annotations

from math import exp, isfinite
from typing import Any

import numpy as np

from pertinent.array_types import Floats
from pertinent.inputs.base import Input
from pertinent.models.base import Model
from pertinent.outputs.log_likelihoods import CONTRAST, PER_TOKEN, LogLikelihoods
from pertinent.rendering import wording as say
from pertinent.rendering.colours import full_colour
from pertinent.rendering.drawings import drawing_of
from pertinent.rendering.panels import clipping
from pertinent.rendering.plot_data import has_steps, waterfall_steps
from pertinent.results.explanation import Explanation

_MOST_BARS = 64
"""The most features that are listed."""


def input_view(input: Input) -> dict[str, Any]:
    """An input and its features."""
    return {
        "kind": input.kind,
        "features": [say.on_one_line(name) for name in input.features],
        "values": input.shown(),
        "notes": [*([str(input.truncation)] if input.truncation else []), *input.notes],
        **drawing_of(input).plain(input),
    }


def prediction_view(model: Model, input: Input, prediction: Floats) -> dict[str, Any]:
    """The model's answer for each column: a number and how a person reads it."""
    names, values = model.columns_of(input), prediction.tolist()
    return {
        "classes": list(names),
        "values": values,
        "amounts": [_amount(model, name, value) for name, value in zip(names, values, strict=True)],
        "predicted": model.output.default_target(prediction),
        "details": model.details(input),
    }


def _amount(model: Model, name: str, value: float) -> str:
    """What the model answers for a column; the probability of an answer beside its log-likelihood."""
    told = model.output.describe(value)
    if not isinstance(model.output, LogLikelihoods) or model.output.unit == PER_TOKEN or name == CONTRAST:
        return told
    return f"{100 * exp(min(0.0, value)):.3g}% ({told})"


def explanation_view(e: Explanation, *, is_done: bool = True) -> dict[str, Any]:
    """An explanation; one that `is_done` has, beside its own, the scores for every other class or token."""
    return _scores_view(e) | {
        "columns": _columns(e) if is_done and e.class_scores is not None else {},
        "listed": say.listed_classes(e),
        "unlisted": say.unlisted(e),
        "facts": say.facts(e),
        "measures": [[m.name, m.arrow, f"{m.mean:.3f}"] for m in say.measures(e)],
        "curves": [
            [m.name, m.arrow, sorted(_by_sparsity(m))] for m in say.measures(e) if len(_by_sparsity(m)) > 1
        ],
        "sets": [[each.sparsities, np.flatnonzero(each.mask).tolist()] for each in say.chosen_sets(e)],
        "warnings": list(e.warnings),
    }


def _scores_view(e: Explanation, share: Floats | None = None) -> dict[str, Any]:
    """The scores for one class, and how strongly each feature is coloured."""
    if share is None:
        share = say.coloured_scores(e)
        share = np.clip(share / full_colour(share), -1, 1)
    n = len(e.features)
    return {
        "target": e.target,
        "target_name": e.target_name,
        "scores": np.nan_to_num(e.scores).tolist(),
        "errors": None if e.standard_errors is None else _finite_or_none(e.standard_errors),
        "shares": share.round(3).tolist(),
        "texts": say.told_scores(e),
        "order": say.strongest(e, None if n <= _MOST_BARS else _MOST_BARS).tolist(),
        "two_sides": say.has_two_sides(e),
        "directions": say.directions(e),
        "nothing": say.says_nothing(e),
        "clipping": clipping(e),
        "heat": drawing_of(e.input).heat_map(e.input, share),
        "waterfall": _waterfall(e),
    }


def _finite_or_none(values: Floats) -> list[float | None]:
    return [value if isfinite(value) else None for value in values.tolist()]


def _columns(e: Explanation) -> dict[int, dict[str, Any]]:
    """The scores for each class that is listed, or each token of an answer, by the number of its column."""
    tokens = drawing_of(e.input).column_shares(e)
    chosen = list(tokens) or say.listed_classes(e)
    return {column: _scores_view(e.for_class(column), tokens.get(column)) for column in chosen}


def _waterfall(e: Explanation) -> list[list[Any]]:
    """Name, start, end and text of each step from the base value to the prediction, if there are such."""
    if not has_steps(e):
        return []
    found = waterfall_steps(e)
    names = ["base value", *found.names, e.target_name]
    starts, ends = [found.ends[0], *found.ends], [*found.ends, found.ends[-1]]
    return [list(line) for line in zip(names, starts, ends, found.texts, strict=True)]


def _by_sparsity(measure: say.MetricValues) -> list[tuple[float, float]]:
    """The values of a measure at each sparsity."""
    return [(sparsity, value) for sparsity, value in measure.values.items() if sparsity is not None]
