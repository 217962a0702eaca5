"""Measuring one explanation: an algorithm that asks what its metrics ask."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pertinent.asks import Ask
from pertinent.metric.base import Metric, metric_labels
from pertinent.results.explanation import Explanation

Unmeasured: TypeAlias = list[tuple[str, Exception]]
"""Metrics that failed, and why."""


def measured(
    explanation: Explanation, metrics: Sequence[Metric]
) -> Generator[Ask, Any, tuple[Explanation, Unmeasured]]:
    """The explanation with its measures; a metric that fails leaves the others alone."""
    named = metric_labels(metrics)
    measures = {name: values for name, values in explanation.measures.items() if name not in named}
    better = {name: way for name, way in explanation.better.items() if name in measures}
    unmeasured: Unmeasured = []
    for name, metric in zip(named, metrics, strict=True):
        try:
            measures[name] = yield from metric.measure(explanation)
            better[name] = metric.better
        except Exception as error:  # noqa: BLE001  recorded, the other metrics go on
            unmeasured.append((name, error))
    return (replace(explanation, measures=measures, better=better) if metrics else explanation), unmeasured
