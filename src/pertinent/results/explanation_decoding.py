"""An explanation's fields from plain data, which may come from a damaged file or an older version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.decoding import PlainData, expect, number, pairs, share, wholes
from pertinent.inputs.serialisation import input_from_dict
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
    sparsities = tuple(share(value, "sparsities") for value in data.items("sparsities"))
    expect(len(sparsities) > 0, "sparsities", "at least one", sparsities)
    return {
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
        "scores": _not_infinite(data.floats("scores", d)),
        "output": _output(data.mapping("output")),
        "chosen": _chosen(data, d),
        "sparsities": sparsities,
        "measures": _measures(data.mapping("measures")),
        "warnings": data.texts("warnings"),
        "scale": data.text("scale", SCALES),
    }


def _not_infinite(scores: Floats) -> Floats:
    expect(not np.isinf(scores).any(), "scores", "finite", "infinity")
    return scores


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
