"""An explanation's fields from plain data, which may come from a damaged file or an older version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from pertinent.array_types import Masks
from pertinent.decoding import PlainData, expect, number, pairs, share, wholes
from pertinent.explainers.base import ScoreMeaning, n_kept
from pertinent.inputs.modality import input_from_dict
from pertinent.outputs import NAMES, SCALES, Output, output_named

_OLD_NAMES = {"errors": "standard_errors"}
"""What was called otherwise in files of version 0.1."""

_ADDED: dict[str, Any] = {
    "index": 0,
    "id": None,
    "output": {"name": "probability"},
    "standard_errors": None,
    "class_standard_errors": None,
    "base_values": None,
    "warnings": [],
    "scale": "natural",
}
"""What files of earlier versions do not have."""

_ATTACKS_IN_0_1 = ("counterfactual", "greedy", "greedy-as", "one-step-banzhaf")
_MAGNITUDES_IN_0_1 = ("cxplain", "functional-information", "invase", "l2x", "magnex", "vibi")
_LOWER_IN_0_1 = (
    "brevity",
    "class-iou",
    "deletion",
    "negative-delta-log-odds",
    "purity",
    "robustness-of-relevant",
    "sufficiency",
)
_HIGHER_IN_0_1 = (
    "average-precision",
    "class-faithfulness",
    "comprehensiveness",
    "faithfulness",
    "insertion",
    "iou-stability",
    "monotonicity",
    "positive-delta-log-odds",
    "precision-at-k",
    "robustness-of-irrelevant",
    "share-removed",
    "sufficiency-of-selected",
)
"""What version 0.1 knew of its methods and metrics, but did not write into files."""


def explanation_fields(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an `Explanation`; an `InputError` says what it cannot be made of.

    They fit each other: an explanation made of them can be shown, converted and measured.
    """
    PlainData(plain, "explanation")
    renamed = {_OLD_NAMES.get(name, name): value for name, value in plain.items()}
    data = PlainData({**_ADDED, **renamed}, "explanation")
    features, classes = data.texts("features"), data.texts("classes")
    d, n_classes = len(features), len(classes)
    prediction = data.floats("prediction", n_classes)
    expect(bool(np.isfinite(prediction).all()), "prediction", "finite", prediction.tolist())
    optional_shapes = {
        "standard_errors": (d,),
        "class_scores": (n_classes, d),
        "class_standard_errors": (n_classes, d),
        "base_values": (n_classes,),
    }
    arrays = {
        name: data.floats(name, *shape) if name in data else None for name, shape in optional_shapes.items()
    }
    for name in ("standard_errors", "class_standard_errors"):
        found = arrays[name]
        expect(found is None or not (found < 0).any(), name, "at least 0", found)
    scores = data.floats("scores", d)
    expect(not np.isinf(scores).any(), "scores", "finite", "infinity")
    sparsities = tuple(share(value, "sparsities") for value in data.items("sparsities"))
    expect(len(sparsities) > 0, "sparsities", "at least one", sparsities)
    fields = {
        **arrays,
        **{name: data.text(name) for name in ("method", "removal")},
        **{name: data.mapping(name) for name in ("settings", "removal_settings", "details")},
        **{name: data.whole(name) for name in ("index", "budget", "evaluations", "seed")},
        "id": data.text("id") if "id" in data else None,
        "seconds": data.number("seconds"),
        "input": input_from_dict(data.mapping("input"), features),
        "classes": classes,
        "target": data.whole("target", below=n_classes),
        "prediction": prediction,
        "scores": scores,
        "output": _output(data.mapping("output")),
        "chosen": _chosen(data, d),
        "sparsities": sparsities,
        "measures": _measures(data.mapping("measures")),
        "warnings": data.texts("warnings"),
        "scale": data.text("scale", SCALES),
    }
    if "meaning" not in data:
        return fields | _unsaid_in_0_1(fields)
    ways = PlainData(data.mapping("better"), "better")
    return fields | {
        "meaning": data.text("meaning", get_args(ScoreMeaning)),
        "budget_per_sparsity": data.flag("budget_per_sparsity"),
        "better": {name: ways.text(name, ("lower", "higher")) for name in data.mapping("better")},
    }


def _unsaid_in_0_1(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What the scores mean, what the budget is for, and which measures are better, of version 0.1."""
    method, details = fields["method"], fields["details"]
    sets = {n_kept(s, len(fields["scores"])): mask for s, mask in fields["chosen"].items()}
    meaning: ScoreMeaning = "effect"
    if method in _ATTACKS_IN_0_1 or "pertinence" in details:
        meaning = "attack"
    elif method in _MAGNITUDES_IN_0_1 or "selected" in details:
        meaning = "magnitude"
    elif sets and np.allclose(fields["scores"], np.mean(list(sets.values()), axis=0)):
        meaning = "membership"
    divided = fields["settings"].get("spread") or "anchors" in details
    ways = {**dict.fromkeys(_LOWER_IN_0_1, "lower"), **dict.fromkeys(_HIGHER_IN_0_1, "higher")}
    return {
        "meaning": meaning,
        "budget_per_sparsity": meaning == "membership" and not divided,
        "better": {name: ways[name] for name in fields["measures"] if name in ways},
    }


def _output(plain: Mapping[str, Any]) -> Output:
    data = PlainData(plain, "output")
    name = data.text("name", NAMES)
    return output_named(name, data.text("unit") if name == "value" and "unit" in data else None)


def _chosen(data: PlainData, d: int) -> dict[float, Masks]:
    chosen = {}
    for sparsity, members in data.pairs("chosen"):
        found = wholes(members, "chosen", None)
        expect(bool(((found >= 0) & (found < d)).all()), "chosen", f"from 0 to {d - 1}", members)
        chosen[share(sparsity, "chosen")] = np.isin(np.arange(d), found)
    return chosen


def _measures(plain: Mapping[str, Any]) -> dict[str, dict[float | None, float]]:
    return {
        metric: {
            None if sparsity is None else share(sparsity, metric): number(value, metric)
            for sparsity, value in pairs(values, metric)
        }
        for metric, values in plain.items()
    }
