"""Explaining every input by every request in one run; the life of one explanation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from pertinent.api.measure import measured
from pertinent.api.request import Request, of_input
from pertinent.api.runner import Runner, Task
from pertinent.api.scale import check_scale, on_scale
from pertinent.array_types import Floats
from pertinent.asks import Algorithm, RepeatedValues, Values
from pertinent.digests import generator
from pertinent.engine.meter import Meter
from pertinent.errors import require
from pertinent.explainers import base
from pertinent.explainers.base import Finding, ScoreMeaning, n_kept, plan_budget
from pertinent.explainers.removal_jackknife import RemovalJackknife
from pertinent.inputs.base import Input
from pertinent.masks import full_mask
from pertinent.models.trees import may_be_walked
from pertinent.outputs import column_index
from pertinent.registry import settings_of
from pertinent.removal.base import Removal
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure

REPEATED = 3
"""Of so many inputs the model is asked about the whole input twice, to notice a model that is random."""


@dataclass(frozen=True)
class Found:
    """What came of one input by one request; an explanation may have failures in its measures."""

    input_index: int
    request_index: int
    explanation: Explanation | None
    failures: tuple[Failure, ...] = ()


def explain_all(
    runner: Runner,
    inputs: Iterable[Any],
    requests: Sequence[Request],
    out: str | Path | None = None,
    ids: Sequence[str] | None = None,
) -> Explanations:
    """Explain every input by every request in one run.

    Explanations of the same input stand together, in the order of the requests. With `out` finished
    ones are written as they come. `ids` are the user's own names for the inputs.
    """
    _check_lengths(inputs, requests, ids)
    if out is not None:
        from pertinent.api.journalled import explain_journalled

        return explain_journalled(runner, inputs, requests, Path(out), ids)
    found: list[Found] = []
    try:
        for each in explain_each(runner, inputs, requests, ids):
            found.append(each)  # noqa: PERF402  what is finished is kept if the run is broken off
    except BaseException as error:
        error.finished = _put_together(found, runner, requests)  # type: ignore[attr-defined]
        raise
    return _put_together(found, runner, requests)


def _put_together(found: Sequence[Found], runner: Runner, requests: Sequence[Request]) -> Explanations:
    """What was found, in the order of the inputs; all of them warn of what was noticed late."""
    ordered = sorted(found, key=lambda f: (f.input_index, f.request_index))
    return Explanations(
        [replace(f.explanation, warnings=runner.warnings) for f in ordered if f.explanation is not None],
        merged([failure for f in ordered for failure in f.failures], requests),
    )


def explain_each(
    runner: Runner, inputs: Iterable[Any], requests: Sequence[Request], ids: Sequence[str] | None = None
) -> Iterator[Found]:
    """The same, each as it is done."""
    total = len(inputs) * len(requests) if isinstance(inputs, Sized) else None
    return run_tasks(runner, tasks(runner, inputs, requests), requests, total, ids)


def _check_lengths(inputs: Iterable[Any], requests: Sequence[Request], ids: Sequence[str] | None) -> None:
    """What is given for each input must be as many as there are inputs."""
    if not isinstance(inputs, Sized):
        return
    each = {"target": requests[0].target, "features": requests[0].features, "ids": ids}
    for name, values in each.items():
        if isinstance(values, list | tuple):
            require(len(values) == len(inputs), name, f"as many as the {len(inputs)} inputs", len(values))


def id_of(ids: Sequence[Any] | None, index: int) -> str | None:
    """The user's own name for an input, if there is one."""
    return None if ids is None or index >= len(ids) else str(ids[index])


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


def tasks(runner: Runner, inputs: Iterable[Any], requests: Sequence[Request]) -> Iterator[Task]:
    """A task for every input and request; its key is the place of both."""
    for input_index, raw in enumerate(inputs):
        prepared: dict[int, Input | Exception] = {}
        for request_index, request in enumerate(requests):
            place = id(request.features)
            if place not in prepared:
                prepared[place] = runner.prepare(raw, of_input(request.features, input_index))
            yield Task(
                (input_index, request_index),
                prepared[place],
                _algorithm(request, runner, input_index, repeat=input_index < REPEATED and not request_index),
                removal=request.removal,
                seed=request.seed,
            )


def run_tasks(
    runner: Runner,
    todo: Iterable[Task],
    requests: Sequence[Request],
    total: int | None,
    ids: Sequence[str] | None = None,
) -> Iterator[Found]:
    """Run tasks that `tasks` made."""
    several = len(requests) > 1
    for done in runner.run(todo, total):
        input_index, request_index = done.key
        method = requests[request_index].method.name if several else None
        own_id = id_of(ids, input_index)
        if done.error is not None:
            failure = Failure(input_index, str(done.error), id=own_id, method=method, error=done.error)
            yield Found(input_index, request_index, None, (failure,))
        else:
            explanation, unmeasured = done.result
            failures = tuple(
                Failure(input_index, str(error), id=own_id, method=method, metric=metric, error=error)
                for metric, error in unmeasured
            )
            finished = replace(explanation, seconds=done.seconds, id=own_id, warnings=runner.warnings)
            yield Found(input_index, request_index, finished, failures)


def _algorithm(request: Request, runner: Runner, index: int, *, repeat: bool) -> Any:
    """The whole life of one explanation: predict, explain under the meter, put together, measure.

    With `repeat` the model is asked about the whole input twice.
    """

    def steps(input: Input, removal: Removal) -> Algorithm:
        model, explainer, d = runner.model, request.method, input.n_features
        check_scale(request.scale, explainer, model.output)
        budget = plan_budget(explainer, request.budget, d)
        prediction = (yield Values(full_mask(d)))[0]
        output, classes = model.output, model.classes
        wanted = of_input(request.target, index)
        if wanted is None:
            target = output.default_target(prediction)
        else:
            target = column_index(wanted, classes, "target")
        rng = generator(request.seed, explainer.name, input.fingerprint)
        meter = Meter(budget)
        groups = tuple(map(len, removal.groups)) if explainer.columnwise else ()
        jackknife = RemovalJackknife(groups, removal.undrawn)
        task = base.Task(
            d,
            target,
            prediction,
            budget,
            request.sparsities,
            rng,
            output,
            jackknife,
            request.until,
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
            runner.notice(prediction, (yield RepeatedValues(full_mask(d)))[0])
        return (yield from measured(explanation, request.metrics))

    return steps


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
