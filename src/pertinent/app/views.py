"""What the page draws, as plain data: inputs, predictions and explanations."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np

from pertinent.array_types import Floats
from pertinent.inputs.base import Input
from pertinent.inputs.image import ImageInput
from pertinent.inputs.rendered_prompt import PromptInput
from pertinent.inputs.text import TextInput
from pertinent.models.base import Model
from pertinent.outputs.log_likelihoods import CONTRAST, PER_TOKEN, LogLikelihoods
from pertinent.report import wording as say
from pertinent.report.colours import full_colour, rgb
from pertinent.report.drawings.image import data_uri, original, resized
from pertinent.report.drawings.prompt import answer_tokens
from pertinent.report.drawings.text import Piece, pieces
from pertinent.report.panels import clipping
from pertinent.report.pictures import has_steps, waterfall_steps
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
        found["pieces"] = [_piece(input, each) for each in pieces(input)]
    if isinstance(input, PromptInput):
        prompt = input.text
        tokens = enumerate([*prompt.columns[: prompt.first_token], *prompt.answer_tokens])
        found["answer"] = {
            "tokens": [[column, text, column >= prompt.first_token] for column, text in tokens],
            "text": prompt.answer,
            "rather_than": prompt.rather_than,
            "generation": prompt.generation,
        }
    if isinstance(input, ImageInput):
        step = -(-max(input.labels.shape) // _FINEST)
        found["image"] = data_uri(resized(original(input), _LARGEST))
        found["grid"] = input.labels[::step, ::step].tolist()
    return found


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
        "errors": None if e.standard_errors is None else np.nan_to_num(e.standard_errors).tolist(),
        "shares": share.round(3).tolist(),
        "texts": say.told_scores(e),
        "order": say.strongest(e, None if n <= _FINEST else _FINEST).tolist(),
        "two_sides": say.has_two_sides(e),
        "directions": say.directions(e),
        "nothing": say.says_nothing(e),
        "clipping": clipping(e),
        "heat": _heat(e.input, share),
        "waterfall": _waterfall(e),
    }


def _columns(e: Explanation) -> dict[int, dict[str, Any]]:
    """The scores for each class that is listed, or each token of an answer, by the number of its column."""
    tokens = {token.column: token.share for token in answer_tokens(e)} if e.input.kind == "prompt" else {}
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


def _by_sparsity(measure: say.Measure) -> list[tuple[float, float]]:
    """The values of a measure at each sparsity."""
    return [(sparsity, value) for sparsity, value in measure.values.items() if sparsity is not None]


def _piece(input: TextInput, piece: Piece) -> list[Any]:
    """Characters, their features, whether they were not read, whether they can go, and their paragraph."""
    removable = input.text.removable(piece.segment)
    paragraph = 0 if isinstance(input, PromptInput) else piece.segment
    return [piece.text, list(piece.features), piece.unread, removable, paragraph]


def _heat(input: Input, share: Floats) -> str | None:
    """The heat map of an image, in the colours of the legend."""
    return data_uri(rgb(resized(share[input.labels], _LARGEST))) if isinstance(input, ImageInput) else None
