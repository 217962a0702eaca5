"""Explaining and measuring inputs in one run of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pertinent.cli.records import Item
from pertinent.engine.engine import Engine
from pertinent.engine.progress import shown
from pertinent.evaluating import evaluate_with
from pertinent.evaluation import Evaluation
from pertinent.explainers.base import Explainer
from pertinent.explaining import explain_with
from pertinent.explanation import Explanation, Explanations, Failure
from pertinent.metric.base import Metric
from pertinent.models.base import Model


@dataclass(frozen=True)
class Plan:
    """How to explain: by which methods, measured how, and the options of `explain_with`."""

    methods: Sequence[Explainer]
    metrics: Sequence[Metric] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    batch_size: int | None = None
    progress: bool | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of it; `failures` say where and why."""

    explanations: Explanations
    evaluation: Evaluation | None
    failures: Sequence[tuple[str, str]]


def carry_out(model: Model, items: Sequence[Item], plan: Plan) -> Outcome:
    """Explain every item by every method and measure what was found.

    Explanations of the same item stand together, in the order of the methods.
    """
    readable = [i for i, item in enumerate(items) if item.error is None]
    failures = [Failure(i, str(item.error), item.error) for i, item in enumerate(items) if item.error]
    found: dict[tuple[int, int], Explanation] = {}
    with shown(plan.progress, "explain") as callback:
        engine = Engine(model, seed=plan.seed, batch_size=plan.batch_size, progress=callback)
        by_method = explain_with(engine, [items[i].raw for i in readable], plan.methods, **plan.options)
    for place, explanations in enumerate(by_method):
        name = f"{plan.methods[place].name}: " if len(plan.methods) > 1 else ""
        failed = {readable[f.index]: f for f in explanations.failures}
        failures += [replace(f, index=i, reason=name + f.reason) for i, f in failed.items()]
        explained = (i for i in readable if i not in failed)
        found |= {(i, place): e for i, e in zip(explained, explanations, strict=True)}
    ordered = sorted(found)
    failures.sort(key=lambda failure: failure.index)
    explanations = Explanations([found[key] for key in ordered], failures)
    reasons = [(items[f.index].where, f.reason) for f in failures]
    if not plan.metrics or not found:
        return Outcome(explanations, None, reasons)
    with shown(plan.progress, "measure") as callback:
        engine.progress = callback
        evaluation = evaluate_with(engine, list(explanations), plan.metrics)
    reasons += [(items[ordered[f.index][0]].where, f.reason) for f in evaluation.failures]
    return Outcome(Explanations(list(evaluation.explanations), failures), evaluation, reasons)
