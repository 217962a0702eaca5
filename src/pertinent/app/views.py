"""What the page draws, as plain data: inputs, predictions and explanations."""

from __future__ import annotations

from typing import Any

import numpy as np

from pertinent.array_types import Floats
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.text import TextInput
from pertinent.models.base import Model
from pertinent.report import wording as say
from pertinent.report.colours import full_colour, rgb
from pertinent.report.drawings.image import data_uri, original, resized
from pertinent.report.drawings.text import pieces
from pertinent.report.panels import clipping
from pertinent.results.explanation import Explanation

_LARGEST, _FINEST = 512, 64
"""The longest side of a picture, and of the grid that says which feature a click on it means."""


def input_view(input: Input) -> dict[str, Any]:
    """An input and its features."""
    found: dict[str, Any] = {
        "kind": input.kind,
        "features": [say.on_one_line(name) for name in input.features],
        "values": input.shown(),
        "notes": [*([str(input.truncation)] if input.truncation else []), *input.notes],
    }
    if isinstance(input, TextInput):
        found["pieces"] = [[each.text, list(each.features), each.unread] for each in pieces(input)]
    if isinstance(input, ImageInput):
        step = -(-max(input.labels.shape) // _FINEST)
        found["image"] = data_uri(resized(original(input), _LARGEST))
        found["grid"] = input.labels[::step, ::step].tolist()
    return found


def prediction_view(model: Model, input: Input, prediction: Floats) -> dict[str, Any]:
    """The model's answer for each column: a number and how a person reads it."""
    return {
        "classes": list(model.columns_of(input)),
        "values": prediction.tolist(),
        "amounts": [model.output.describe(value) for value in prediction.tolist()],
        "predicted": model.output.default_target(prediction),
    }


def explanation_view(e: Explanation) -> dict[str, Any]:
    """An explanation, finished or not."""
    share = say.coloured_scores(e)
    full, n = full_colour(share), len(e.features)
    return {
        "target": e.target,
        "target_name": e.target_name,
        "listed": say.listed_classes(e),
        "unlisted": say.unlisted(e),
        "scores": np.nan_to_num(e.scores).tolist(),
        "errors": None if e.standard_errors is None else np.nan_to_num(e.standard_errors).tolist(),
        "shares": np.clip(share / full, -1, 1).tolist(),
        "texts": [f"{say.score_text(e, i)} {say.error_text(e, i)}".strip() for i in range(n)],
        "order": say.strongest(e, None if n <= _FINEST else _FINEST).tolist(),
        "two_sides": say.has_two_sides(e),
        "directions": say.directions(e),
        "nothing": say.says_nothing(e),
        "clipping": clipping(e),
        "facts": say.facts(e),
        "measures": [[m.name, m.arrow, f"{m.mean:.3f}"] for m in say.measures(e)],
        "sets": [[each.sparsities, np.flatnonzero(each.mask).tolist()] for each in say.chosen_sets(e)],
        "warnings": list(e.warnings),
        "heat": _heat(e.input, np.clip(share / full, -1, 1)),
    }


def _heat(input: Input, share: Floats) -> str | None:
    """The heat map of an image, in the colours of the legend."""
    return data_uri(rgb(resized(share[input.labels], _LARGEST))) if isinstance(input, ImageInput) else None
