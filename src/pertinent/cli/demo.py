"""``pertinent demo``: explain examples with each of the embedded models."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from functools import cache
from typing import Any

from rich.rule import Rule

from pertinent.api.evaluate import DEFAULT_METRICS
from pertinent.api.request import Request
from pertinent.cli.items import Item
from pertinent.cli.models import load_model
from pertinent.cli.output import Output, conclude
from pertinent.cli.settings import make_metrics
from pertinent.cli.work import carry_out
from pertinent.results.explanation import Explanation, Explanations

TEXTS = (
    (
        "sentiment",
        "kernel-shap",
        "The first half drags, but the acting is superb and the ending is a quiet triumph.",
    ),
    (
        "sentiment",
        "parallel-local-search",
        "A clumsy script and flat jokes waste a talented cast and a lovely score.",
    ),
    (
        "topics",
        "kernel-shap",
        "The chip maker's shares rose 4 percent after it raised its sales forecast for the year.",
    ),
    (
        "topics",
        "kernel-shap",
        "The goalkeeper saved two penalties and the home side won the cup final in extra time.",
    ),
)
"""Model, method and text."""


def demo(args: Namespace) -> int:
    """Explain a few examples of each kind, print them and write the report."""
    output = Output(args)
    explanations: list[Explanation] = []
    failures: list[tuple[str, str]] = []
    metrics = make_metrics(DEFAULT_METRICS, None)
    load = cache(load_model)
    for name, method, raw in _examples():
        request = Request.of(method, metrics=metrics)
        outcome = carry_out(load(name), [Item(f"example for {name}", raw)], [request])
        output.show(Rule(name))
        output.show_all(outcome.explanations)
        explanations += outcome.explanations
        failures += outcome.failures
    failures += output.write(Explanations(explanations), None, "pertinent: what decisions rest on")
    return conclude(len(explanations), failures)


def _examples() -> Iterator[tuple[str, str, Any]]:
    yield from TEXTS
    from pertinent.models.embedded.diabetes import example_patient
    from pertinent.models.embedded.digits import example_digit
    from pertinent.models.embedded.wines import example_row

    yield "digits", "kernel-shap", example_digit()
    yield "table", "kernel-shap", example_row()
    yield "diabetes", "kernel-shap", example_patient()
