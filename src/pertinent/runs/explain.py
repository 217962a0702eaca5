"""Explaining every input of a run with every request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Any

from pertinent.engine.job import Job, JobResult
from pertinent.errors import require
from pertinent.inputs.base import Input
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure, merge_failures
from pertinent.runs.executor import Item, RunTask
from pertinent.runs.explanation_steps import REPEATED, explanation_steps
from pertinent.runs.request import Request, features_of
from pertinent.runs.run import Run
from pertinent.runs.session import Session


@dataclass(frozen=True)
class Outcome:
    """An explanation, or the reasons why it or some of its metrics are missing.

    The key holds the index of the input and of the request.
    """

    key: tuple[int, int]
    explanation: Explanation | None
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True)
class ExplainTask(RunTask):
    """Task that explains each input with these requests.

    Attributes
    ----------
    one
        Whether the run has a single input, whose features are not in a list.
    independent
        As in `Run`.
    """

    requests: tuple[Request, ...]
    one: bool = False
    independent: bool = False

    @classmethod
    def from_run(cls, run: Run, requests: Sequence[Request]) -> ExplainTask:
        """Create the task of a run."""
        return cls(tuple(requests), run.one, run.independent)

    def keys(self, item: Item) -> list[tuple[int, int]]:
        """Return the input's index with the index of each request."""
        return [(item.index, number) for number in item.request_indexes]

    def job(self, session: Session, item: Item, key: tuple[int, int]) -> Job:
        """Return the job of a request."""
        request, repeat = self.requests[key[1]], item.index < REPEATED and key[1] == 0
        steps = explanation_steps(request, session, item.index, independent=self.independent, repeat=repeat)
        return session.job(key, self.prepare(session, item, request), steps, request.removal, request.seed)

    def prepare(self, session: Session, item: Item, request: Request) -> Input:
        """Return the input divided into the features of a request."""
        return session.prepare(item, features_of(request.features, item.index, one=self.one))

    def result(self, item: Item, ended: JobResult, warnings: Sequence[str] = ()) -> Outcome:
        """Return the outcome of a job."""
        method = self.requests[ended.key[1]].method.name if len(self.requests) > 1 else None
        explanation, errors = (None, [(None, ended.error)]) if ended.error is not None else ended.result
        failures = tuple(
            Failure(item.index, str(error), id=item.id, method=method, metric=metric, error=error)
            for metric, error in errors
        )
        if explanation is not None:
            cost = replace(explanation.cost, seconds=ended.seconds)
            explanation = _add_warnings(replace(explanation, cost=cost, id=item.id), warnings)
        return Outcome(ended.key, explanation, failures)

    def sharing_passes(self, model: Any) -> AbstractContextManager[Any]:
        """Return a context in which the model caches the forward passes that fitted explainers reuse."""
        stack = ExitStack()
        for request in self.requests:
            stack.enter_context(request.method.sharing_passes(model))
        return stack


def explain_each(run: Run, requests: Sequence[Request]) -> Iterator[Outcome]:
    """Explain every input with every request; yield each outcome when it is available."""
    task = ExplainTask.from_run(run, requests)
    return run.results(task, run.items(len(requests)), run.count_results(len(requests)))


def explain_all(run: Run, requests: Sequence[Request]) -> Explanations:
    """Explain every input with every request.

    The explanations are ordered by input and, for the same input, by request.
    """
    check_lengths(run, requests)
    outcomes: list[Outcome] = []
    try:
        for outcome in explain_each(run, requests):
            outcomes.append(outcome)  # noqa: PERF402  an interrupted run keeps its finished explanations
    except BaseException as error:
        error.finished = _in_order(outcomes, run, requests)  # type: ignore[attr-defined]
        raise
    return _in_order(outcomes, run, requests)


def _in_order(outcomes: Sequence[Outcome], run: Run, requests: Sequence[Request]) -> Explanations:
    """Return the explanations in the order of the inputs, each with all warnings of the run."""
    ordered = sorted(outcomes, key=lambda each: each.key)
    return Explanations(
        [_add_warnings(each.explanation, run.warnings) for each in ordered if each.explanation],
        merge_failures([failure for each in ordered for failure in each.failures], len(requests)),
    )


def _add_warnings(explanation: Explanation, warnings: Sequence[str]) -> Explanation:
    merged = merge_warnings(explanation.warnings, warnings)
    return replace(explanation, warnings=tuple(merged)) if warnings else explanation


def merge_warnings(warnings: Iterable[str], of_run: Iterable[str]) -> list[str]:
    """Merge the warnings of an explanation and its run, without duplicates."""
    return list(dict.fromkeys((*warnings, *of_run)))


def check_lengths(run: Run, requests: Sequence[Request]) -> None:
    """Raise an error unless there are as many targets, features and ids as inputs."""
    if run.n_inputs is None:
        return
    features = None if run.one else requests[0].features
    for name, values in {"target": requests[0].target, "features": features, "ids": run.ids}.items():
        if isinstance(values, list | tuple):
            require(len(values) == run.n_inputs, name, f"as many as the {run.n_inputs} inputs", len(values))
