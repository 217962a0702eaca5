"""Explanations made by hand, and copies of explanations with other fields."""

from dataclasses import fields, replace

import numpy as np

from pertinent.inputs.table import table_input
from pertinent.outputs import Classes
from pertinent.results.explanation import Explanation
from pertinent.results.records import Prediction, RequestRecord


def explanation_by_hand(
    scores, prediction=(0.5, 0.5), target=1, *, input=None, classes=None, output=None, **changes
):
    """Return the explanation of a table row, by default of ones."""
    classes = classes or tuple(f"class {i}" for i in range(len(prediction)))
    return Explanation(
        request=RequestRecord("by-hand", {}, "constant"),
        input=table_input(np.ones(len(scores))) if input is None else input,
        prediction=Prediction(np.asarray(prediction, dtype=float), classes, output or Classes()),
        target=target,
        scores=np.asarray(scores, dtype=float),
        **changes,
    )


def changed(e, **changes):
    """Return a copy of an explanation with these fields, which may be those of its groups."""
    if "prediction" in changes:
        changes["values"] = np.asarray(changes.pop("prediction"), dtype=float)
    for name in ("request", "prediction", "cost"):
        group = getattr(e, name)
        inner = {f.name: changes.pop(f.name) for f in fields(group) if f.name in changes}
        changes[name] = replace(group, **inner)
    return replace(e, **changes)
