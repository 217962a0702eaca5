"""The life of one explanation: predict, explain under the meter, put together, measure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from pertinent.api.request import Request, check_scale
from pertinent.api.run import Run
from pertinent.array_types import Floats
from pertinent.asks import Algorithm, Ask, RepeatedValues, Values, on_scale
from pertinent.digests import generator
from pertinent.engine.meter import Meter
from pertinent.explainers.base import Finding, ScoreMeaning, Task, n_kept, plan_budget
from pertinent.explainers.removal_jackknife import RemovalJackknife
from pertinent.inputs.base import Input
from pertinent.masks import full_mask
from pertinent.metric.base import Metric, metric_labels
from pertinent.models.trees import may_be_walked
from pertinent.outputs import column_index
from pertinent.registry import settings_of
from pertinent.removal.base import Removal
from pertinent.results.explanation import Explanation

Unmeasured: TypeAlias = list[tuple[str, Exception]]
"""The labels of metrics that failed, and why."""


def explanation_steps(
    request: Request, run: Run, index: int, *, repeat: bool
) -> Callable[[Input, Removal], Algorithm]:
    """The whole life of one explanation: predict, explain under the meter, put together, measure.

    With `repeat` the model is asked about the whole input twice.
    """

    def steps(input: Input, removal: Removal) -> Algorithm:
        model, explainer, d = run.model, request.method, input.n_features
        check_scale(request.scale, explainer, model.output)
        budget = plan_budget(explainer, request.budget, d)
        prediction = (yield Values(full_mask(d)))[0]
        output, classes = model.output, model.columns_of(input)
        wanted = request.target_of(index)
        if wanted is None:
            target = output.default_target(prediction)
        else:
            target = column_index(wanted, classes, "target")
        rng = generator(request.seed, explainer.name, input.fingerprint)
        meter = Meter(budget)
        groups = tuple(map(len, removal.groups)) if explainer.columnwise else ()
        jackknife = RemovalJackknife(groups, removal.undrawn)
        task = Task(
            d,
            target,
            prediction,
            budget,
            request.sparsities,
            rng,
            output,
            jackknife,
            request.early_stopping,
            trees=may_be_walked(model, input, removal),
            columns=classes,
            numbers=input.numbers(model.background, removal.constant) if explainer.numeric else None,
            has_listener=run.on_partial is not None,
        )
        asked = on_scale(explainer.explain(task), request.scale, len(jackknife.sizes))
        finding = task.counted((yield from meter.watch(asked)))
        explanation = Explanation(
            method=explainer.name,
            settings=settings_of(explainer),
            removal=removal.name,
            removal_settings=removal.settings(model),
            input=input,
            index=index,
            classes=classes,
            target=target,
            prediction=prediction,
            output=output,
            budget=budget,
            evaluations=meter.evaluations,
            seed=request.seed,
            sparsities=request.sparsities,
            scale=request.scale,
            details={**model.details(input), **finding.details},
            budget_per_sparsity=explainer.budget_per_sparsity,
            **_scores(finding, explainer.meaning, target, d),
        )
        if repeat:
            run.notice(prediction, (yield RepeatedValues(full_mask(d)))[0])
        return (yield from measured(explanation, request.metrics))

    return steps


def measured(
    explanation: Explanation, metrics: Sequence[Metric]
) -> Generator[Ask, Any, tuple[Explanation, Unmeasured]]:
    """The explanation with its measures; a metric that fails leaves the others alone."""
    labels = metric_labels(metrics)
    measures = {name: values for name, values in explanation.measures.items() if name not in labels}
    better = {name: way for name, way in explanation.better.items() if name in measures}
    unmeasured: Unmeasured = []
    for label, metric in zip(labels, metrics, strict=True):
        try:
            measures[label] = yield from metric.measure(explanation)
            better[label] = metric.better
        except Exception as error:  # noqa: BLE001  recorded, the other metrics go on
            unmeasured.append((label, error))
    return (replace(explanation, measures=measures, better=better) if metrics else explanation), unmeasured


def _scores(finding: Finding, meaning: ScoreMeaning, target: int, d: int) -> dict[str, Any]:
    """The finding's scores for the target and what they mean, and those for all columns if there are any."""
    scores, standard_errors = finding.scores, finding.standard_errors
    found: dict[str, Any] = {}
    if scores is None:
        scores, meaning = _membership(finding, d), "membership"
    elif scores.ndim == 2:
        found["class_scores"], scores = scores, scores[target]
    if standard_errors is not None and standard_errors.ndim == 2:
        found["class_standard_errors"], standard_errors = standard_errors, standard_errors[target]
    return {
        **found,
        "scores": scores,
        "meaning": finding.meaning or meaning,
        "standard_errors": standard_errors,
        "base_values": finding.base_values,
        "chosen": finding.chosen,
    }


def _membership(finding: Finding, d: int) -> Floats:
    """The share of sparsities at which each feature was chosen; equal sizes count once."""
    sets = {n_kept(s, d): mask for s, mask in finding.chosen.items()}
    return np.asarray(np.mean(list(sets.values()), axis=0))
