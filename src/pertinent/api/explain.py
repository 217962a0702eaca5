"""From a model and inputs to explanations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pertinent.api.measure import measured
from pertinent.api.request import DEFAULT_METHOD, Request
from pertinent.api.runner import Runner, Task, raise_first
from pertinent.asks import Algorithm, Values
from pertinent.digests import generator
from pertinent.engine.meter import Meter
from pertinent.engine.progress import Callback
from pertinent.errors import SettingError
from pertinent.explainers import base
from pertinent.explainers.base import DEFAULT_SPARSITIES, Explainer, Finding, n_kept, plan_budget
from pertinent.inputs.base import Input
from pertinent.masks import full_mask
from pertinent.models.base import Model
from pertinent.models.wrap import wrap
from pertinent.outputs import column_index
from pertinent.registry import settings_of
from pertinent.removal.base import Removal
from pertinent.results.explanation import Explanation, Explanations, Failure
from pertinent.results.removal_check import RemovalCheck
from pertinent.types import Floats


def explain(
    model: Any,
    inputs: Any,
    method: str | Explainer = DEFAULT_METHOD,
    *,
    target: int | str | None = None,
    sparsity: float | Sequence[float] = DEFAULT_SPARSITIES,
    budget: int | None = None,
    removal: str | Removal | None = None,
    features: str | None = None,
    check: RemovalCheck | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    batch_size: int | None = None,
    progress: Callback | bool | None = None,
    **settings: Any,
) -> Any:
    """Explain one input, or many.

    Parameters
    ----------
    model
        A wrapped model, or anything that `wrap` accepts.
    inputs
        One input gives an `Explanation`; a list (array, frame, generator) gives `Explanations`,
        in order, with the inputs that failed in their `failures`.
    method
        A name from `methods()`, or an explainer instance.
    target
        The class, label or value to explain, by number or name; by default the class predicted, the
        most probable label, the first value.
    sparsity
        The shares of features that a search chooses, and that the explanation is measured at.
    budget
        How many evaluations are allowed, in a search for each sparsity: a distinct mask counts 1, a
        gradient 2; by default what the settings call for, else 1000.
    removal
        How features are removed: a name from `removals()`, perhaps with settings as in
        ``"background:rows=100"``, or an instance; by default what suits the model (attention-mask
        for transformers).
    features
        What a feature is: ``"words"``, ``"tokens"``, ``"sentences"``; ``"patches:4"``,
        ``"pixels"``, ``"superpixels:50"``; ``"columns"``.
    check
        What `check_removal` found: explanations by a removal that is badly out of distribution warn.
    seed
        The same seed gives the same explanation, whatever the batch size, the order of the inputs
        and what else is explained in the same call.
    out
        A Parquet file to write, for long runs: finished explanations are kept in a journal beside
        it, and a run that was killed is continued when the same call is made again.
    batch_size
        The cost of a batch (tokens for transformers, else rows); found while working by default.
    progress
        A callback, or ``True``/``False`` for a bar; by default a bar on terminals and in notebooks.
    **settings
        Settings of the method, such as ``samples=25``.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> pertinent.explain(model, "not bad at all", method="leave-one-out").top(1)
    [('bad', 0.7)]
    """
    if check is not None and not isinstance(check, RemovalCheck):
        raise SettingError(f"`check` must be what `check_removal` returned, but got {type(check).__name__}.")
    model = wrap(model)
    request = Request.of(
        method,
        settings,
        removal=removal,
        target=target,
        sparsity=sparsity,
        budget=budget,
        features=features,
        seed=seed,
    )
    many = model.split(inputs)
    runner = Runner(model, request.method.name, batch_size, progress)
    found = explain_all(runner, [inputs] if many is None else many, [request], out)
    if found.failures and not len(found):
        raise_first(found.failures, "explained")
    found = found if check is None else check.attach(found)
    return found[0] if many is None else found


def explain_iter(
    model: Any,
    inputs: Iterable[Any],
    method: str | Explainer = DEFAULT_METHOD,
    *,
    target: int | str | None = None,
    sparsity: float | Sequence[float] = DEFAULT_SPARSITIES,
    budget: int | None = None,
    removal: str | Removal | None = None,
    features: str | None = None,
    seed: int = 0,
    batch_size: int | None = None,
    progress: Callback | bool | None = None,
    **settings: Any,
) -> Iterator[Explanation | Failure]:
    """Explain many inputs, and yield each explanation as it is done, in flat memory.

    Parameters
    ----------
    model, inputs, method, target, sparsity, budget, removal, features, seed, batch_size, progress
        As in `explain`; inputs may come from a generator that never ends.

    Yields
    ------
    Explanation | Failure
        In the order in which they are done; `index` is the place of the input. One that could not be
        explained is a `Failure` with its reason.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> stream = (f"not {word} at all" for word in ("bad", "good"))
    >>> sorted((e.index, e.top(1)) for e in pertinent.explain_iter(model, stream, method="leave-one-out"))
    [(0, [('bad', 0.7)]), (1, [('not', 0.0)])]
    """
    model = wrap(model)
    request = Request.of(
        method,
        settings,
        removal=removal,
        target=target,
        sparsity=sparsity,
        budget=budget,
        features=features,
        seed=seed,
    )
    many = model.split(inputs)
    runner = Runner(model, request.method.name, batch_size, progress)
    for found in explain_each(runner, [inputs] if many is None else many, [request]):
        yield found.failures[0] if found.explanation is None else found.explanation


@dataclass(frozen=True)
class Found:
    """What came of one input by one request; an explanation may have failures in its measures."""

    input_index: int
    request_index: int
    explanation: Explanation | None
    failures: tuple[Failure, ...] = ()


def explain_all(
    runner: Runner, inputs: Iterable[Any], requests: Sequence[Request], out: str | Path | None = None
) -> Explanations:
    """Explain every input by every request in one run.

    Explanations of the same input stand together, in the order of the requests. With `out` finished
    ones are written as they come.
    """
    if out is not None:
        from pertinent.api.journalled import explain_journalled

        return explain_journalled(runner, inputs, requests, Path(out))
    found = sorted(explain_each(runner, inputs, requests), key=lambda f: (f.input_index, f.request_index))
    return Explanations(
        [f.explanation for f in found if f.explanation is not None],
        [failure for f in found for failure in f.failures],
    )


def explain_each(runner: Runner, inputs: Iterable[Any], requests: Sequence[Request]) -> Iterator[Found]:
    """The same, each as it is done."""
    total = len(inputs) * len(requests) if isinstance(inputs, Sized) else None
    return run_tasks(runner, tasks(runner, inputs, requests), requests, total)


def tasks(runner: Runner, inputs: Iterable[Any], requests: Sequence[Request]) -> Iterator[Task]:
    """A task for every input and request; its key is the place of both."""
    for input_index, raw in enumerate(inputs):
        prepared: dict[str | None, Input | Exception] = {}
        for request_index, request in enumerate(requests):
            features = request.features
            if features not in prepared:
                prepared[features] = runner.prepare(raw, features)
            yield Task(
                (input_index, request_index),
                prepared[features],
                _algorithm(request, runner.model, input_index),
                features,
                request.removal,
                request.seed,
            )


def run_tasks(
    runner: Runner, todo: Iterable[Task], requests: Sequence[Request], total: int | None
) -> Iterator[Found]:
    """Run tasks that `tasks` made."""
    several = len(requests) > 1
    for done in runner.run(todo, total):
        input_index, request_index = done.key
        name = f"{requests[request_index].method.name}: " if several else ""
        if done.error is not None:
            failure = Failure(input_index, f"{name}{done.error}", done.error)
            yield Found(input_index, request_index, None, (failure,))
        else:
            explanation, unmeasured = done.result
            failures = tuple(
                Failure(input_index, f"{name}{metric}: {error}", error) for metric, error in unmeasured
            )
            seconds = replace(explanation, seconds=done.seconds)
            yield Found(input_index, request_index, seconds, failures)


def _algorithm(request: Request, model: Model, index: int) -> Any:
    """The whole life of one explanation: predict, explain under the meter, put together, measure."""

    def steps(input: Input, removal: Removal) -> Algorithm:
        explainer, d = request.method, input.n_features
        budget = plan_budget(explainer, request.budget, d)
        prediction = (yield Values(full_mask(d)))[0]
        output = model.output
        if request.target is None:
            target = output.default_target(prediction)
        else:
            target = column_index(request.target, model.classes, "target")
        rng = generator(request.seed, explainer.name, input.fingerprint)
        meter = Meter(budget)
        task = base.Task(d, target, prediction, budget, request.sparsities, rng, output)
        finding = yield from meter.watch(explainer.explain(task))
        explanation = Explanation(
            method=explainer.name,
            settings=settings_of(explainer),
            removal=removal.name,
            removal_settings=removal.settings(model),
            input=input,
            index=index,
            classes=model.classes,
            target=target,
            prediction=prediction,
            output=output,
            budget=budget,
            evaluations=meter.evaluations,
            seed=request.seed,
            sparsities=request.sparsities,
            **_scores(finding, target, d),
        )
        return (yield from measured(explanation, request.metrics))

    return steps


def _scores(finding: Finding, target: int, d: int) -> dict[str, Any]:
    """The finding's scores for the target, and for all columns where there are any."""
    scores, standard_errors = finding.scores, finding.standard_errors
    found: dict[str, Any] = {}
    if scores is None:
        scores = _membership(finding, d)
    elif scores.ndim == 2:
        found["class_scores"], scores = scores, scores[target]
    if standard_errors is not None and standard_errors.ndim == 2:
        found["class_standard_errors"], standard_errors = standard_errors, standard_errors[target]
    return {
        **found,
        "scores": scores,
        "standard_errors": standard_errors,
        "base_values": finding.base_values,
        "chosen": finding.chosen,
        "details": finding.details,
    }


def _membership(finding: Finding, d: int) -> Floats:
    """The share of sparsities at which each feature was chosen; equal sizes count once."""
    sets = {n_kept(s, d): mask for s, mask in finding.chosen.items()}
    return np.asarray(np.mean(list(sets.values()), axis=0))
