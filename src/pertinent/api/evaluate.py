"""Measuring explanations that are there, and explaining and measuring by several methods in one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from pertinent.asks import Algorithm
from pertinent.config.settings import Count, Seed, checked
from pertinent.engine.job import JobResult
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, SettingError, require
from pertinent.explainers.base import Explainer
from pertinent.inputs.base import Input
from pertinent.metrics.base import Metric, metric_labels
from pertinent.models.base import Model
from pertinent.removals.base import NOT_KEPT, Removal, removals
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure
from pertinent.runs.blocks import Cluster, Item
from pertinent.runs.explain_file import explain_to_file
from pertinent.runs.explain_run import explain_all, sendable
from pertinent.runs.explanation_steps import measured
from pertinent.runs.request import Method, Request, make_metrics, make_removal, with_same_features
from pertinent.runs.run import Run, Work, raise_first, wrapped

DEFAULT_METRICS = ("sufficiency", "comprehensiveness")


@checked
def evaluate(
    model: Any,
    explanations: Any,
    metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    removal: str | Removal | None = None,
    annotations: Any = None,
    seed: Seed | None = None,
    batch_size: Count | None = None,
    cluster: Cluster | None = None,
    progress: Callback | bool | None = None,
) -> Evaluation:
    """Measure explanations with the model they explain.

    Parameters
    ----------
    model
        The model, wrapped or anything that `wrap` accepts; on a cluster also its name, as in `explain`.
    explanations
        One or many, of one method or several.
    metrics
        As in `compare`.
    removal
        How features are removed, as in `explain`; by default as each explanation was made.
    annotations
        The features that people marked, for ``"precision-at-k"`` and ``"average-precision"``: a
        list with an entry for each input that was explained, or a mapping from `id` to entry. The
        entry of an explanation is found by its `index`; for one explanation, give its entry. An
        entry is a list of booleans, one for each feature; of numbers or names of features; or of
        (start, end) spans of characters of a text; for an image also an array (height, width) of
        booleans.
    seed
        The seed of random removals; by default that of each explanation.
    batch_size, cluster, progress
        As in `explain`.

    Returns
    -------
    Evaluation
        A table of means with bootstrap confidence intervals over inputs; its `explanations`
        carry their own measures, which they show.
    """
    options: dict[str, Any] = {"batch_size": batch_size, "cluster": cluster, "progress": progress}
    run = Run(wrapped(model, cluster), title="evaluate", **options)
    several = _several(explanations)
    if annotations is not None:
        one = isinstance(explanations, Explanation)
        several = with_annotations(several, [annotations] if one else annotations)
    chosen = make_metrics(metrics)
    task = MeasureBlock(chosen, make_removal(removal), seed)
    items = [Item(place, explanation) for place, explanation in enumerate(several)]
    if cluster is None:
        measures: Iterator[MeasuredExplanation] = task.measures(run, items)
    else:
        measures = cluster.carry_out(run, task, items, len(items))
    found = list(several)
    failures: list[Failure] = []
    for result in measures:
        e = found[result.place] = result.explanation
        failures += [
            Failure(e.index, str(error), metric=name, error=error, id=e.id)
            for name, error in result.unmeasured
        ]
    evaluation = evaluation_of(found, chosen, sorted(failures, key=lambda failure: failure.index))
    if failures and not evaluation.rows:
        raise_first(failures, "measured")
    return evaluation


def _several(explanations: Any) -> list[Explanation]:
    """One explanation or many as a list."""
    if isinstance(explanations, Explanation):
        return [explanations]
    several = list(explanations) if isinstance(explanations, Iterable) else []
    require(len(several) > 0, "explanations", "at least one explanation", explanations)
    for e in several:
        require(isinstance(e, Explanation), "explanations", "explanations only", type(e).__name__)
    return several


def evaluation_of(
    explanations: Sequence[Explanation], metrics: Sequence[Metric], failures: Sequence[Failure]
) -> Evaluation:
    """The table of explanations that carry their measures."""
    named = dict(zip(metric_labels(metrics), metrics, strict=True))
    better = {name: metric.better for name, metric in named.items()}
    within = {name: metric.within for name, metric in named.items() if metric.within}
    return Evaluation.from_explanations(explanations, better, failures, within)


def removal_of(explanation: Explanation) -> Removal:
    """The removal that an explanation was made with."""
    for name, value in explanation.request.removal_settings.items():
        if value == NOT_KEPT:
            raise SettingError(
                f"The explanation was made with a {name} of the removal {explanation.removal!r}'s own, "
                "which it does not keep: give the same `removal=` again."
            )
    for name in removals.get(explanation.removal).opens:
        value = explanation.request.removal_settings.get(name)
        if value is not None:
            raise SettingError(
                f"The explanation was made with the {name} {value!r}; an "
                "explanation, which may come from a file, opens no other: name it with "
                f"removal='{explanation.removal}:{name}=…'."
            )
    return removals.make(explanation.removal, explanation.request.removal_settings)


@dataclass(frozen=True)
class MeasuredExplanation:
    """An explanation with its measures, its place among all, and the errors of metrics that failed."""

    place: int
    explanation: Explanation
    unmeasured: Sequence[tuple[str, Exception]]


@dataclass(frozen=True)
class MeasureBlock:
    """Measures the explanations of a block; `removal` and `seed` are by default those of each explanation."""

    metrics: tuple[Metric, ...]
    removal: Removal | None
    seed: int | None

    def measures(self, run: Run, items: Sequence[Item]) -> Iterator[MeasuredExplanation]:
        """The explanations with their measures."""
        explanations: dict[int, Explanation] = {item.index: item.raw for item in items}
        for done in run.carry_out(self._works(run, explanations), len(items)):
            if done.error is not None:
                yield self._unmeasured(done.key, explanations[done.key], done.error)
            else:
                yield MeasuredExplanation(done.key, *done.result)

    def carry_out(self, run: Run, items: Sequence[Item]) -> Iterator[MeasuredExplanation]:
        """The explanations with their measures, with errors that can travel."""
        for one in self.measures(run, items):
            yield replace(one, unmeasured=[(name, sendable(error)) for name, error in one.unmeasured])

    def failed(self, run: Run, item: Item, error: Exception) -> list[MeasuredExplanation]:
        """The failure of every metric, for an explanation that no worker survived."""
        return [self._unmeasured(item.index, item.raw, error)]

    def pack(self, results: Sequence[MeasuredExplanation]) -> Sequence[MeasuredExplanation]:
        """The results as they are."""
        return results

    def _unmeasured(self, place: int, explanation: Explanation, error: Exception) -> MeasuredExplanation:
        return MeasuredExplanation(
            place, explanation, [(name, error) for name in metric_labels(self.metrics)]
        )

    def _works(self, run: Run, explanations: Mapping[int, Explanation]) -> Iterator[Work | JobResult]:
        for place, explanation in explanations.items():
            try:
                removal = self.removal or removal_of(explanation)
                input = run.prepare(explanation.input.raw, explanation.input.own_features)
            except Exception as error:  # noqa: BLE001  recorded, the other explanations go on
                yield JobResult(place, None, error)
                continue
            algorithm = _algorithm(explanation, self.metrics, run.model)
            yield Work(place, input, algorithm, removal, explanation.seed if self.seed is None else self.seed)


def _algorithm(explanation: Explanation, metrics: Sequence[Metric], model: Model) -> Any:
    def steps(input: Input, removal: Removal) -> Algorithm:
        del removal
        check_same_input(explanation, input, model)
        return measured(explanation, metrics)

    return steps


def check_same_input(explanation: Explanation, input: Input, model: Model) -> None:
    """Raise an `InputError` unless the model sees in the input what the explanation speaks of."""
    columns = model.columns_of(input)
    if columns and columns != explanation.classes:
        raise InputError(
            f"The explanation is of {', '.join(explanation.classes)}, but this model knows "
            f"{', '.join(columns)}; evaluate with the model that was explained."
        )
    if input.features != explanation.features:
        raise InputError(
            f"The explanation has {len(explanation.features)} features, but this model sees "
            f"{input.n_features} in the same input; evaluate with the model that was explained."
        )


def with_annotations(explanations: Sequence[Explanation], annotations: Any) -> list[Explanation]:
    """The explanations with what people marked of their inputs."""
    entries = zip(explanations, _entries(explanations, annotations), strict=True)
    return [replace(e, annotations=entry) for e, entry in entries]


def _entries(explanations: Sequence[Explanation], annotations: Any) -> list[Any]:
    """The entry of each explanation: by its `id` in a mapping, else by the `index` of its input."""
    if isinstance(annotations, Mapping):
        known = {str(name): entry for name, entry in annotations.items()}
        found = [known.get(str(e.id)) for e in explanations]
        has_any = any(entry is not None for entry in found)
        require(has_any, "annotations", "by the ids of explanations", list(annotations))
        return found
    is_list = isinstance(annotations, Sequence | np.ndarray) and not isinstance(annotations, str)
    require(is_list, "annotations", "a list with an entry for each input", annotations)
    if len(explanations) == len(annotations) == 1:
        return list(annotations)
    inputs: dict[int, bytes] = {}
    for e in explanations:
        if inputs.setdefault(e.index, e.input.fingerprint) != e.input.fingerprint:
            raise SettingError(
                f"Different inputs have the index {e.index}, so it does not say whose annotations are whose: "
                "explain them in one call, or give ids= there and a mapping from id to annotations here."
            )
    least = max(inputs) + 1
    wanted = f"one entry for each input, at least {least}"
    require(len(annotations) >= least, "annotations", wanted, len(annotations))
    return [annotations[e.index] for e in explanations]


@checked
def compare(
    model: Any,
    inputs: Any,
    methods: Method | Sequence[Method],
    metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    seeds: Count = 1,
    ids: Sequence[Any] | None = None,
    out: str | Path | None = None,
    shard: Annotated[str, "I/N"] | None = None,
    batch_size: Count | None = None,
    cluster: Cluster | None = None,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Evaluation:
    """Explain the same inputs by several methods and measure them all, in one run.

    An explanation is measured as soon as it is there, so what a method has asked is not computed
    again.

    Parameters
    ----------
    model, inputs
        As in `explain`.
    methods
        Names from `list_methods()`, perhaps with settings as in ``"lime:samples=50"``, or fitted
        explainers. In Python also instances and requests.
    metrics
        Names from `list_metrics()`, perhaps with settings as in ``"faithfulness:k=5"``. In Python also
        instances.
    seeds
        How many times each method explains each input, with the seed given and those that follow it; the
        intervals are then over inputs and seeds.
    ids, shard, batch_size, cluster, progress
        As in `explain`.
    out
        As in `explain`. The same call with more methods explains only what is new; with fewer, what the file
        holds by the others stays there, and is not returned.
    **words
        The words of `explain` for all methods, such as ``budget=200`` or ``seed=1``.
    """
    several = [methods] if isinstance(methods, str | Explainer | Request) else methods
    require(len(several) > 0, "methods", "at least one", methods)
    measures = make_metrics(metrics)
    made = [Request.from_keywords(method, words) for method in several]
    requests = [replace(request, metrics=measures) for request in with_same_features(made)]
    seen: set[bytes] = set()
    for request in requests:
        if request.fingerprint in seen:
            raise SettingError(f"{request.method.name} is named twice with the same settings: name it once.")
        seen.add(request.fingerprint)
    requests = [replace(each, seed=each.seed + more) for each in requests for more in range(seeds)]
    options: dict[str, Any] = {"ids": ids, "shard": shard, "batch_size": batch_size, "progress": progress}
    run = Run.from_arguments(model, inputs, "compare", cluster=cluster, **options)
    found = explain_all(run, requests) if out is None else explain_to_file(run, requests, Path(out))
    if not len(found):
        raise_first(found.failures, "explained")
    evaluation = evaluation_of(list(found), measures, found.failures)
    if found.failures and not evaluation.rows:
        raise_first(found.failures, "measured", found)
    return evaluation
