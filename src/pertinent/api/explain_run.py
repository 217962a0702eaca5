"""Explaining every input of a run by every request; the life of one explanation."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pertinent.api.request import Request, check_scale, features_of
from pertinent.api.run import Run, Work
from pertinent.api.scale import on_scale
from pertinent.array_types import Floats
from pertinent.asks import Algorithm, Ask, RepeatedValues, Values
from pertinent.digests import generator
from pertinent.engine.job import Done
from pertinent.engine.meter import Meter
from pertinent.errors import require
from pertinent.explainers.base import Finding, ScoreMeaning, Task, n_kept, plan_budget
from pertinent.explainers.removal_jackknife import RemovalJackknife
from pertinent.inputs.base import Input
from pertinent.masks import full_mask
from pertinent.metric.base import Metric, metric_labels
from pertinent.models.trees import may_be_walked
from pertinent.outputs import column_index
from pertinent.registry import settings_of
from pertinent.removal.base import Removal
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure

REPEATED = 3
"""Number of inputs whose whole is asked about twice, to notice a model that is random."""

Unmeasured: TypeAlias = list[tuple[str, Exception]]
"""The labels of metrics that failed, and why."""


@dataclass(frozen=True)
class Outcome:
    """The result of one input and one request; an explanation may have failures in its measures."""

    input_index: int
    request_index: int
    explanation: Explanation | None
    failures: tuple[Failure, ...] = ()


def explain_all(run: Run, requests: Sequence[Request], out: str | Path | None = None) -> Explanations:
    """Explain every input by every request in one engine.

    Explanations of the same input stand together, in the order of the requests. With `out` each is
    written when it is finished.
    """
    _check_lengths(run, requests)
    if out is not None:
        from pertinent.api.journalled import explain_journalled

        return explain_journalled(run, requests, Path(out))
    outcomes: list[Outcome] = []
    try:
        for each in explain_each(run, requests):
            outcomes.append(each)  # noqa: PERF402  what is finished is kept if the run is broken off
    except BaseException as error:
        error.finished = _put_together(outcomes, run, requests)  # type: ignore[attr-defined]
        raise
    return _put_together(outcomes, run, requests)


def _put_together(outcomes: Sequence[Outcome], run: Run, requests: Sequence[Request]) -> Explanations:
    """The explanations in the order of the inputs; all of them warn of what the run noticed late."""
    ordered = sorted(outcomes, key=lambda each: (each.input_index, each.request_index))
    return Explanations(
        [replace(each.explanation, warnings=run.warnings) for each in ordered if each.explanation],
        merged([failure for each in ordered for failure in each.failures], requests),
    )


def explain_each(run: Run, requests: Sequence[Request]) -> Iterator[Outcome]:
    """Like `explain_all`, but yields each outcome when it is finished."""
    total = None if run.n_inputs is None else run.n_inputs * len(requests)
    return carry_out(run, works(run, requests), requests, total)


def _check_lengths(run: Run, requests: Sequence[Request]) -> None:
    """Whatever is given for each input must be as many as there are inputs."""
    if run.n_inputs is None:
        return
    features = None if run.one else requests[0].features
    for name, values in {"target": requests[0].target, "features": features, "ids": run.ids}.items():
        if isinstance(values, list | tuple):
            require(len(values) == run.n_inputs, name, f"as many as the {run.n_inputs} inputs", len(values))


def merged(failures: Sequence[Failure], requests: Sequence[Request]) -> list[Failure]:
    """The failures; a reason for which every method failed on an input counts once for it."""
    found: list[Failure] = []
    for _, of_one in groupby(failures, key=lambda failure: failure.index):
        alike: dict[Failure, list[Failure]] = {}
        for failure in of_one:
            alike.setdefault(replace(failure, method=None), []).append(failure)
        for of_all, own in alike.items():
            found += [of_all] if len(own) == len(requests) > 1 else own
    return found


def works(run: Run, requests: Sequence[Request]) -> Iterator[Work | Done]:
    """The work for every input and request, keyed by the positions of both.

    An input is prepared once for all requests that cut it into the same features.
    """
    for index, raw in enumerate(run.inputs):
        prepared: dict[Any, Input | Exception] = {}
        for number, request in enumerate(requests):
            key = index, number
            try:
                input = _prepared(run, raw, features_of(request.features, index, one=run.one), prepared)
            except Exception as error:  # noqa: BLE001  recorded, the other inputs go on
                yield Done(key, None, error)
                continue
            repeat = index < REPEATED and number == 0
            algorithm = _life(request, run, index, repeat=repeat)
            yield Work(key, input, algorithm, request.removal, request.seed)


def _prepared(run: Run, raw: Any, features: Any, known: dict[Any, Input | Exception]) -> Input:
    """The input cut into these features, or the error it raises, looked up in `known` if it is there."""
    key = id(features) if isinstance(features, np.ndarray) else repr(features)
    if key not in known:
        try:
            known[key] = run.prepare(raw, features)
        except Exception as error:  # noqa: BLE001  raised below, for this request and the next
            known[key] = error
    found = known[key]
    if isinstance(found, Exception):
        raise found
    return found


def carry_out(
    run: Run, todo: Iterable[Work | Done], requests: Sequence[Request], total: int | None
) -> Iterator[Outcome]:
    """Run work that `works` made."""
    several = len(requests) > 1
    for done in run.carry_out(todo, total):
        index, number = done.key
        method = requests[number].method.name if several else None
        own_id = run.id_of(index)
        if done.error is not None:
            failure = Failure(index, str(done.error), id=own_id, method=method, error=done.error)
            yield Outcome(index, number, None, (failure,))
            continue
        explanation, unmeasured = done.result
        failures = tuple(
            Failure(index, str(error), id=own_id, method=method, metric=metric, error=error)
            for metric, error in unmeasured
        )
        finished = replace(explanation, seconds=done.seconds, id=own_id, warnings=run.warnings)
        yield Outcome(index, number, finished, failures)


def _life(request: Request, run: Run, index: int, *, repeat: bool) -> Any:
    """The whole life of one explanation: predict, explain under the meter, put together, measure.

    With `repeat` the model is asked about the whole input twice.
    """

    def steps(input: Input, removal: Removal) -> Algorithm:
        model, explainer, d = run.model, request.method, input.n_features
        check_scale(request.scale, explainer, model.output)
        budget = plan_budget(explainer, request.budget, d)
        prediction = (yield Values(full_mask(d)))[0]
        output, classes = model.output, model.classes
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
