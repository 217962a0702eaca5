"""Explaining every input of a run by every request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from pertinent.engine.job import JobResult
from pertinent.errors import ModelError, PertinentError, require
from pertinent.inputs.base import Input
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure
from pertinent.runs.blocks import Item, NamedInput
from pertinent.runs.explanation_steps import REPEATED, explanation_steps
from pertinent.runs.request import Request, features_of
from pertinent.runs.run import Run, Work


@dataclass(frozen=True)
class Outcome:
    """The result of one input and one request; an explanation may have failures in its measures."""

    input_index: int
    request_index: int
    explanation: Explanation | None
    failures: tuple[Failure, ...] = ()


def explain_all(run: Run, requests: Sequence[Request]) -> Explanations:
    """Explain every input by every request in one engine.

    Explanations of the same input stand together, in the order of the requests.
    """
    check_lengths(run, requests)
    outcomes: list[Outcome] = []
    try:
        for each in explain_each(run, requests):
            outcomes.append(each)  # noqa: PERF402  what is finished is kept if the run is broken off
    except BaseException as error:
        error.finished = _put_together(outcomes, run, requests)  # type: ignore[attr-defined]
        raise
    return _put_together(outcomes, run, requests)


def _put_together(outcomes: Sequence[Outcome], run: Run, requests: Sequence[Request]) -> Explanations:
    """The explanations in the order of the inputs, each with all warnings of the run, also the late ones."""
    ordered = sorted(outcomes, key=lambda each: (each.input_index, each.request_index))
    return Explanations(
        [_warned(each.explanation, run) for each in ordered if each.explanation],
        merged([failure for each in ordered for failure in each.failures], requests),
    )


def _warned(explanation: Explanation, run: Run) -> Explanation:
    """Return the explanation with the warnings of the run added."""
    return replace(explanation, warnings=tuple(merge_warnings(explanation.warnings, run.warnings)))


def merge_warnings(warnings: Iterable[str], of_run: Iterable[str]) -> list[str]:
    """Merge the warnings of an explanation and its run, without duplicates."""
    return list(dict.fromkeys((*warnings, *of_run)))


def explain_each(run: Run, requests: Sequence[Request]) -> Iterator[Outcome]:
    """Like `explain_all`, but yields each outcome when it is finished."""
    total = None if run.n_tasks is None else run.n_tasks * len(requests)
    if run.cluster is not None:
        return run.cluster.carry_out(run, ExplainBlock(tuple(requests)), items_of(run, len(requests)), total)
    return carry_out(run, works(run, requests), requests, total)


def check_lengths(run: Run, requests: Sequence[Request]) -> None:
    """Raise an error unless targets, features and ids are as many as the inputs."""
    if run.n_inputs is None:
        return
    features = None if run.one else requests[0].features
    for name, values in {"target": requests[0].target, "features": features, "ids": run.ids}.items():
        if isinstance(values, list | tuple):
            require(len(values) == run.n_inputs, name, f"as many as the {run.n_inputs} inputs", len(values))


def merged(failures: Sequence[Failure], requests: Sequence[Request]) -> list[Failure]:
    """The failures; those of one input are merged if every method failed for the same reason."""
    found: list[Failure] = []
    for _, of_one in groupby(failures, key=lambda failure: failure.index):
        alike: dict[Failure, list[Failure]] = {}
        for failure in of_one:
            alike.setdefault(replace(failure, method=None), []).append(failure)
        for of_all, own in alike.items():
            found += [of_all] if len(own) == len(requests) > 1 else own
    return found


def items_of(run: Run, n_requests: int) -> Iterator[Item]:
    """Every input that this run does, to be explained by every request."""
    for index, raw in enumerate(run.inputs):
        if run.shard is None or index in run.shard:
            raw, own_id = (raw.raw, raw.id) if isinstance(raw, NamedInput) else (raw, run.id_of(index))
            yield Item(index, raw, tuple(range(n_requests)), own_id)


def works(
    run: Run, requests: Sequence[Request], items: Iterable[Item] | None = None
) -> Iterator[Work | JobResult]:
    """The work for every input (by default all) and request, keyed by the positions of both.

    An input is prepared once for all requests that cut it into the same features.
    """
    for item in items_of(run, len(requests)) if items is None else items:
        prepared: dict[Any, Input] = {}
        for number in item.request_indexes:
            key, request = (item.index, number), requests[number]
            input = _prepared(run, item.raw, item.index, request, prepared)
            if isinstance(input, Exception):
                yield JobResult(key, None, input)
                continue
            repeat = item.index < REPEATED and number == 0
            algorithm = explanation_steps(request, run, item.index, repeat=repeat)
            yield Work(key, input, algorithm, request.removal, request.seed)


def _prepared(run: Run, raw: Any, index: int, request: Request, known: dict[Any, Input]) -> Input | Exception:
    """The input cut into the features of the request, looked up in `known` if it is there, or an error."""
    try:
        features = features_of(request.features, index, one=run.one)
        key = id(features) if isinstance(features, np.ndarray) else repr(features)
        if key not in known:
            known[key] = run.prepare(raw, features)
        return known[key]
    except Exception as error:  # noqa: BLE001  recorded, the other inputs go on
        return error


def carry_out(
    run: Run, todo: Iterable[Work | JobResult], requests: Sequence[Request], total: int | None
) -> Iterator[Outcome]:
    """Run work that `works` made."""
    if run.cluster is not None:
        items = (item_of(run, work) for work in todo)
        yield from run.cluster.carry_out(run, ExplainBlock(tuple(requests)), items, total)
        return
    with ExitStack() as stack:
        for request in requests:
            stack.enter_context(request.method.sharing_passes(run.model))
        for done in run.carry_out(todo, total):
            yield outcome_of(run, requests, done)
    run.repeat()


def outcome_of(run: Run, requests: Sequence[Request], done: JobResult) -> Outcome:
    """What came of work that `works` made."""
    index, number = done.key
    own_id = run.id_of(index)
    method = requests[number].method.name if len(requests) > 1 else None
    explanation, reasons = (None, [(None, done.error)]) if done.error is not None else done.result
    failures = tuple(
        Failure(index, str(error), id=own_id, method=method, metric=metric, error=error)
        for metric, error in reasons
    )
    if explanation is not None:
        cost = replace(explanation.cost, seconds=done.seconds)
        explanation = _warned(replace(explanation, cost=cost, id=own_id), run)
    return Outcome(index, number, explanation, failures)


def item_of(run: Run, work: Work | JobResult) -> Item:
    """Return the item for work that `works` made, to send to a worker."""
    index, number = work.key
    return Item(index, work.error if isinstance(work, JobResult) else work.input, (number,), run.id_of(index))


@dataclass(frozen=True)
class ExplainBlock:
    """Explains the inputs of a block by these requests."""

    requests: tuple[Request, ...]

    def carry_out(self, run: Run, items: Sequence[Item]) -> Iterator[Outcome]:
        """The outcomes, with errors that can travel."""
        total = sum(len(item.request_indexes) for item in items)
        for outcome in carry_out(run, works(run, self.requests, items), self.requests, total):
            failures = tuple(replace(each, error=sendable(each.error)) for each in outcome.failures)
            yield replace(outcome, failures=failures)

    def failed(self, run: Run, item: Item, error: Exception) -> list[Outcome]:
        """The failures of an input that no worker survived."""
        own = replace(run, ids={item.index: item.id})
        ended = (JobResult((item.index, number), None, error) for number in item.request_indexes)
        return [outcome_of(own, self.requests, done) for done in ended]

    def pack(self, results: Sequence[Outcome]) -> Sequence[Outcome]:
        """The outcomes as they are."""
        return results


def sendable(error: Exception | None) -> PertinentError:
    """The error as one of ours: others may refer to what cannot leave its process."""
    if isinstance(error, PertinentError) and len(error.args) == 1:
        return type(error)(str(error))
    return ModelError(f"{type(error).__name__}: {error}")
