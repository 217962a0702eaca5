"""Checks of metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import pertinent
from pertinent.config.settings import changed_settings
from pertinent.errors import InputError, SettingError
from pertinent.metrics.base import Metric, metrics
from pertinent.testing.assertions import verify
from pertinent.testing.examples import KINDS, SPARSITIES, Example, differentiable_example, function_example

ANNOTATED = [[0, 2], [1], [0, 1, 3]]
"""Features that count as annotated, for each of three inputs."""


def check_metric(metric: str | type[Metric] | Metric) -> None:
    """Raise an `AssertionError` if a metric violates a requirement on any input that it can measure.

    >>> check_metric("sufficiency")
    """
    if isinstance(metric, str):
        metric = metrics.parse(metric)
    made = metric() if isinstance(metric, type) else metric
    for name in ("name", "paper", "summary"):
        verify(getattr(made, name, ""), f"{type(made).__name__} needs the attribute `{name}`.")
    verify(made.better in ("lower", "higher"), f"{made.name}: `better` is {made.better!r}.")
    reasons = [
        _check(made, make(kind)) for kind in KINDS for make in (function_example, differentiable_example)
    ]
    verify("" in reasons, f"{made.name} measures none of the examples: {' '.join(dict.fromkeys(reasons))}")


def _check(metric: Metric, example: Example) -> str:
    """Check a metric on one example; return the reason if the metric cannot measure it."""
    inputs = [example.input(d, seed) for seed, d in enumerate((7, 5, 7))]
    options: dict[str, Any] = {"sparsity": SPARSITIES, "progress": False}
    if example.kind == "image":
        options["features"] = "patches:2"
    explanations = pertinent.explain(example.model, inputs, "leave-one-out", **options)

    def measure(some: Any, **arguments: Any) -> list[Mapping[float | None, float]]:
        arguments = {"annotations": ANNOTATED, "progress": False, **arguments}
        evaluation = pertinent.evaluate(example.model, some, metric, **arguments)
        verify(not evaluation.failures, f"{metric.name}: {list(map(str, evaluation.failures))}")
        return [next(iter(e.measures.values())) for e in evaluation.explanations]

    try:
        values = measure(explanations)
    except (InputError, SettingError) as error:
        return str(error)
    sparsities = {None, *SPARSITIES, *(getattr(metric, "sparsities", None) or ())}
    low, high = metric.within or (-np.inf, np.inf)
    for measured in values:
        verify(measured, f"{metric.name}: there is no value.")
        for sparsity, value in measured.items():
            verify(sparsity in sparsities, f"{metric.name}: a value at the sparsity {sparsity}.")
            verify(isinstance(value, float), f"{metric.name}: the value {value!r} is not a float.")
            verify(low <= value <= high and np.isfinite(value), f"{metric.name}: {value} is out of range.")
    for arguments in ({"batch_size": 1}, {"batch_size": 1000}):
        _compare(metric, values, measure(explanations, **arguments), example.tolerance)
    singles = [measure(e, annotations=marked)[0] for e, marked in zip(explanations, ANNOTATED, strict=True)]
    _compare(metric, values, singles, example.tolerance)
    again = type(metric)(**changed_settings(metric))
    verify(again == metric, f"{metric.name}: recreating the metric from its settings changes it.")
    return ""


def _compare(metric: Metric, values: list[Any], others: list[Any], tolerance: float) -> None:
    for first, second in zip(values, others, strict=True):
        np.testing.assert_allclose(
            list(first.values()),
            list(second.values()),
            rtol=100 * tolerance,  # attacks amplify the rounding of gradients
            atol=tolerance,
            err_msg=f"{metric.name}: values depend on the batch",
        )
