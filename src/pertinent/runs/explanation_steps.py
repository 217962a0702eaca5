"""The life of one explanation: predict, explain under the meter, put together, measure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import Algorithm, Ask, Publish, RepeatedValues, TreeValues, Values, on_scale, relay
from pertinent.config.fingerprints import generator
from pertinent.config.settings import changed_settings
from pertinent.engine.job import Job
from pertinent.engine.meter import Meter
from pertinent.errors import ModelError
from pertinent.explainers.base import (
    DEFAULT_BUDGET,
    Explainer,
    Finding,
    Interactions,
    ModelFacts,
    Sampling,
    ScoreMeaning,
    Task,
    n_kept,
    plan_budget,
)
from pertinent.explainers.coarse_to_fine import coarse_to_fine
from pertinent.explainers.removal_jackknife import RemovalJackknife
from pertinent.inputs.base import Input
from pertinent.inputs.modality import modality_named
from pertinent.masks import full_mask
from pertinent.metrics.base import Metric, metric_labels
from pertinent.models.trees.tree_shapley import may_be_walked
from pertinent.outputs import column_index
from pertinent.removals.base import Removal
from pertinent.results.explanation import Explanation
from pertinent.results.records import Cost, Prediction, RequestRecord
from pertinent.runs.request import Request, check_scale
from pertinent.runs.session import Session

REPEATED = 3
"""The number of inputs that are predicted twice, and of their masks that are asked about again when a run
ends, to notice a model that is random or drifts. A resumed run asks about as many finished inputs again."""

_TOO_LARGE = (
    "The scores are not finite, because the model's answers are too large to compute with: let it answer in "
    "another unit."
)

Unmeasured: TypeAlias = list[tuple[str, Exception]]
"""The labels of metrics that failed, and why."""


def explanation_steps(
    request: Request, session: Session, index: int, *, independent: bool, repeat: bool
) -> Callable[[Input, Removal], Algorithm]:
    """The whole life of one explanation: predict, explain under the meter, put together, measure.

    With `repeat` the model is asked about the whole input twice.
    """

    def steps(input: Input, removal: Removal) -> Algorithm:
        model, explainer, d = session.model, request.method, input.n_features
        scale = request.scale
        if scale == "natural" and explainer.traits.default_scale in model.output.scales:
            scale = explainer.traits.default_scale
        check_scale(scale, explainer, model.output)
        levels = input.levels
        budget = plan_budget(explainer, request.budget, d) if not levels else request.budget or DEFAULT_BUDGET
        prediction = (yield Values(full_mask(d)))[0]
        output, classes = model.output, model.columns_of(input)
        wanted = request.target_of(index)
        if wanted is None:
            target = output.default_target(prediction)
        else:
            target = column_index(wanted, classes, "target")
        # Inputs of the same size are asked equal questions: nearly equal inputs have nearly equal scores.
        drawn_for = input.fingerprint if independent or explainer.traits.draws_per_input else d
        rng = generator(request.seed, explainer.name, drawn_for)
        meter = Meter(budget)
        groups = tuple(map(len, removal.groups)) if explainer.traits.columnwise else ()
        jackknife = RemovalJackknife(groups, removal.undrawn)
        task = Task(
            d,
            target,
            prediction,
            budget,
            request.sparsities,
            rng,
            output,
            Sampling(jackknife, request.early_stopping, session.has_listener),
            ModelFacts(
                columns=classes,
                has_trees=may_be_walked(model, input, removal),
                answer_span=output.span(scale),
                drawn_baseline=modality_named(input.kind).baseline_for(input, model.background, drawn=True),
            ),
            input,
            input.numbers(model.background, removal.constant) if explainer.traits.reads_numbers else None,
        )
        algorithm = coarse_to_fine(explainer, task, levels) if levels else explainer.explain(task)
        asked = on_scale(algorithm, scale, len(jackknife.sizes))
        answered: list[tuple[Values, Floats]] = []
        if repeat:
            asked = _with_answers_kept(asked, answered)

        def explain(finding: Finding, evaluations: int) -> Explanation:
            return Explanation(
                request=RequestRecord(
                    explainer.name,
                    changed_settings(explainer),
                    removal.name,
                    removal.settings(model),
                    request.sparsities,
                    scale,
                    request.seed,
                ),
                input=input,
                index=index,
                prediction=Prediction(prediction, classes, output),
                target=target,
                cost=Cost(evaluations, budget, explainer.budget_per_sparsity),
                details={**model.details(input), **finding.details},
                warnings=finding.warnings,
                **_scores(finding, explainer.traits.meaning, target, d),
            )

        metered = meter.watch(asked)
        if session.has_listener:
            metered = relay(metered, partial(_publish, explain), into_branches=True)
        finding = task.combine_draws((yield from metered))
        removed = any(issubclass(kind, Values | TreeValues) for kind in meter.kinds)
        unchosen = removed and request.removal is None and removal.constant is not None
        doubt = modality_named(input.kind).removal_doubt(model.background) if unchosen else ""
        explanation = explain(finding, meter.evaluations)
        warnings = (*_too_few(explainer, budget, input), *finding.warnings, *filter(None, [doubt]))
        explanation = replace(explanation, warnings=warnings)
        if repeat:
            session.compare(prediction, (yield RepeatedValues(full_mask(d)))[0])
            session.repeats.append(Job(None, input, removal, _repeated(answered, session), request.seed))
        return (yield from measured(explanation, request.metrics))

    return steps


def _publish(explain: Callable[[Finding, int], Explanation], ask: Ask) -> Ask:
    """Publish a partial explanation in place of a partial finding."""
    if not isinstance(ask, Publish):
        return ask
    return replace(ask, finding=lambda: explain(ask.make(), ask.evaluations))


def _too_few(explainer: Explainer, budget: int, input: Input) -> tuple[str, ...]:
    """A warning if the budget is too small to tell the features apart."""
    d, per_feature = input.n_features, explainer.traits.evaluations_per_feature
    if budget >= per_feature * d or input.levels:
        return ()
    coarser = modality_named(input.kind).coarser
    said = f"{budget:,} evaluations hardly tell {d:,} features apart: use {coarser}, or a budget of at least "
    return (f"{said}{per_feature * d:,}, better {4 * per_feature * d:,}.",)


def _with_answers_kept(algorithm: Algorithm, answered: list[tuple[Values, Floats]]) -> Algorithm:
    """Run an algorithm, and keep a few of the answers that it gets about masks."""

    def keep(ask: Ask, answer: Any) -> None:
        n = REPEATED - sum(len(values) for _, values in answered)
        if isinstance(ask, Values) and n > 0:
            rows = np.flatnonzero(~ask.masks.all(axis=1))[:n]  # the whole input is asked about twice anyway
            if len(rows):
                answered.append((replace(ask, masks=ask.masks[rows]), answer[rows]))

    return relay(algorithm, on_answer=keep, into_branches=True)


def _repeated(answered: Sequence[tuple[Values, Floats]], session: Session) -> Algorithm:
    """Ask again what was answered, and notice a model that now answers otherwise."""
    for ask, answer in answered:
        session.compare(answer, (yield RepeatedValues(ask.masks, ask.scale, ask.groups)))


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
    """Return the fields of an explanation that hold the scores of its `d` features."""
    scores, standard_errors = finding.scores, finding.standard_errors
    found: dict[str, Any] = {}
    if scores is None:
        sets = {n_kept(s, d): mask for s, mask in finding.chosen.items()}  # equal sizes count once
        scores, meaning = np.asarray(np.mean(list(sets.values()), axis=0)), "membership"
    elif scores.ndim == 2:
        found["class_scores"], scores = scores, scores[target]
    if not np.isfinite(scores).all():
        raise ModelError(_TOO_LARGE)
    if standard_errors is not None and standard_errors.ndim == 2:
        found["class_standard_errors"], standard_errors = standard_errors, standard_errors[target]
    return {
        **found,
        "scores": scores,
        "meaning": finding.meaning or meaning,
        "standard_errors": standard_errors,
        "base_values": finding.base_values,
        **_pairs(finding.interactions),
        "chosen": finding.chosen,
    }


def _pairs(found: Interactions | None) -> dict[str, Any]:
    """The fields of an explanation that hold its pairs of features."""
    if found is None:
        return {}
    if not np.isfinite(found.values).all():
        raise ModelError(_TOO_LARGE)
    return {"interactions": found.values, "interaction_standard_errors": found.standard_errors}
