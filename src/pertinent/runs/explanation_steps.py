"""The steps of one explanation: predict, explain within the budget, check for randomness, measure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from pertinent.array_types import Floats
from pertinent.asks import (
    Algorithm,
    Ask,
    Fork,
    PathGradients,
    Publish,
    RepeatedValues,
    TreeValues,
    Values,
    on_scale,
    relay,
)
from pertinent.config.fingerprints import generator
from pertinent.config.settings import changed_settings
from pertinent.engine.job import Job
from pertinent.engine.meter import Meter
from pertinent.errors import ModelError
from pertinent.explainers.base import (
    DEFAULT_BUDGET,
    Explainer,
    Finding,
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
"""Number of inputs that are predicted twice, and of their masks that are re-evaluated when a run ends, to
detect random or drifting models. A resumed run re-predicts the same number of finished inputs."""

_TOO_LARGE = "The scores are not finite because the model's outputs are too large: use another unit."

Unmeasured: TypeAlias = list[tuple[str, Exception]]
"""Labels and errors of failed metrics."""


def explanation_steps(
    request: Request, session: Session, index: int, *, independent: bool, repeat: bool
) -> Callable[[Input, Removal], Algorithm]:
    """Return the algorithm of one explanation: predict, explain within the budget, measure.

    With `repeat`, some questions are repeated to detect random models. `independent` is as in `Run`.
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
        requested = request.target_of(index)
        if requested is None:
            target = output.default_target(prediction)
        else:
            target = column_index(requested, classes, "target")
        # Inputs of the same size get the same random masks, so similar inputs have similar scores.
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
                has_gradients=not model.refusal(PathGradients),
                answer_span=output.span(scale),
                drawn_baseline=modality_named(input.kind).baseline_removal(
                    input, model.background, drawn=True
                ),
            ),
            input,
            input.numbers(model.background, removal.constant) if explainer.traits.reads_numbers else None,
        )
        algorithm = coarse_to_fine(explainer, task, levels) if levels else explainer.explain(task)
        scaled = on_scale(algorithm, scale, len(jackknife.sizes))
        answered: list[tuple[Values, Floats]] = []
        repeats = repeat and not model.is_random
        if repeats:
            scaled = _record_answers(scaled, answered)

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

        metered = meter.watch(scaled)
        if session.has_listener:
            metered = relay(metered, partial(_publish, explain), into_branches=True)
        finding = task.combine_draws((yield from metered))
        removed = any(issubclass(kind, Values | TreeValues) for kind in meter.kinds)
        unchosen = removed and request.removal is None and removal.constant is not None
        doubt = modality_named(input.kind).removal_warning(model.background) if unchosen else ""
        explanation = explain(finding, meter.evaluations)
        warnings = [_budget_warning(explainer, budget, input), *finding.warnings, doubt]
        explanation = replace(explanation, warnings=tuple(filter(None, warnings)))
        if repeats:
            session.compare(prediction, (yield RepeatedValues(full_mask(d)))[0])
            session.repeats.append(Job(None, input, removal, _repeat(answered, session), request.seed))
        return (yield from measure_explanation(explanation, request.metrics))

    return steps


def _publish(explain: Callable[[Finding, int], Explanation], ask: Ask) -> Ask:
    """Replace a published partial finding by a partial explanation."""
    if not isinstance(ask, Publish):
        return ask
    return replace(ask, finding=lambda: explain(ask.make(), ask.evaluations))


def _budget_warning(explainer: Explainer, budget: int, input: Input) -> str:
    """Return a warning if the budget is too small to distinguish the features; else an empty string."""
    least = explainer.traits.evaluations_per_feature * input.n_features
    if budget >= least or input.levels:
        return ""
    return (
        f"{budget:,} evaluations can hardly distinguish {input.n_features:,} features: use "
        f"{modality_named(input.kind).coarser}, or a budget of at least {least:,}, better {4 * least:,}."
    )


def _record_answers(algorithm: Algorithm, answered: list[tuple[Values, Floats]]) -> Algorithm:
    """Run an algorithm and record its answers to a few masks, to repeat the questions later."""

    def record(ask: Ask, answer: Any) -> None:
        n = REPEATED - sum(len(values) for _, values in answered)
        if isinstance(ask, Values) and n > 0:
            rows = np.flatnonzero(~ask.masks.all(axis=1))[:n]  # the whole input is predicted twice anyway
            if len(rows):
                answered.append((replace(ask, masks=ask.masks[rows]), answer[rows]))

    return relay(algorithm, on_answer=record, into_branches=True)


def _repeat(answered: Sequence[tuple[Values, Floats]], session: Session) -> Algorithm:
    """Repeat all questions at once and compare the answers with the recorded ones."""
    yield Fork([_repeat_one(ask, answer, session) for ask, answer in answered])


def _repeat_one(ask: Values, answer: Floats, session: Session) -> Algorithm:
    session.compare(answer, (yield RepeatedValues(ask.masks, ask.scale, ask.groups)))


def measure_explanation(
    explanation: Explanation, metrics: Sequence[Metric]
) -> Generator[Ask, Any, tuple[Explanation, Unmeasured]]:
    """Measure an explanation; return it with its measures, and the errors of failed metrics."""
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
    """Return the explanation fields for the scores of its `d` features."""
    scores, standard_errors, interactions = finding.scores, finding.standard_errors, finding.interactions
    fields: dict[str, Any] = {}
    if scores is None:
        sets = {n_kept(s, d): mask for s, mask in finding.chosen.items()}  # equal sizes count once
        scores, meaning = np.asarray(np.mean(list(sets.values()), axis=0)), "membership"
    elif scores.ndim == 2:
        fields["class_scores"], scores = scores, scores[target]
    if standard_errors is not None and standard_errors.ndim == 2:
        fields["class_standard_errors"], standard_errors = standard_errors, standard_errors[target]
    if interactions is not None:
        fields["interactions"] = interactions.values
        fields["interaction_standard_errors"] = interactions.standard_errors
    if not np.isfinite(scores).all() or not np.isfinite(fields.get("interactions", 0.0)).all():
        raise ModelError(_TOO_LARGE)
    return {
        **fields,
        "scores": scores,
        "meaning": finding.meaning or meaning,
        "standard_errors": standard_errors,
        "base_values": finding.base_values,
        "chosen": finding.chosen,
    }
