"""Measuring existing explanations, and explaining and measuring with several methods in one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from pertinent.config.settings import Count, Seed, checked
from pertinent.engine.progress import Callback
from pertinent.errors import SettingError, require
from pertinent.explainers.base import Explainer
from pertinent.metrics.base import Metric, metric_labels
from pertinent.removals.base import Removal
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanation
from pertinent.results.failures import Failure
from pertinent.runs.executor import Executor, Item
from pertinent.runs.explain import explain_all
from pertinent.runs.file_store import explain_to_file
from pertinent.runs.measure import MeasureTask
from pertinent.runs.request import Method, Request, make_metrics, make_removal, with_same_features
from pertinent.runs.run import Run, raise_first

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
    cluster: Executor | None = None,
    progress: Callback | bool | None = None,
) -> Evaluation:
    """Measure explanations with the model that they explain.

    Parameters
    ----------
    model
        The model, as in `explain`.
    explanations
        One or many explanations, by one or several methods.
    metrics
        As in `compare`.
    removal
        How features are removed, as in `explain`; by default as in each explanation.
    annotations
        The features marked by human annotators, for ``"precision-at-k"`` and ``"average-precision"``: a list
        with an entry for each explained input, or a mapping from `id` to entry. An explanation's `index`
        determines its entry; for a single explanation, pass its entry. An entry is a list of booleans, one
        per feature; of indices or names of features; or of character spans (start, end) of a text; for an
        image also a boolean array (height, width).
    seed
        Seed of random removals; by default that of each explanation.
    batch_size, cluster, progress
        As in `explain`.

    Returns
    -------
    Evaluation
        A table of means with bootstrap confidence intervals over inputs. Its `explanations` contain the
        individual measures.
    """
    options: dict[str, Any] = {"batch_size": batch_size, "cluster": cluster, "progress": progress}
    run = Run.from_model(model, "evaluate", **options)
    several = _several(explanations)
    if annotations is not None:
        one = isinstance(explanations, Explanation)
        several = with_annotations(several, [annotations] if one else annotations)
    chosen = make_metrics(metrics)
    task = MeasureTask(chosen, make_removal(removal), seed)
    items = [Item(number, explanation) for number, explanation in enumerate(several)]
    outcomes = sorted(run.results(task, items, len(items)), key=lambda outcome: outcome.key)
    failures = [failure for outcome in outcomes for failure in outcome.failures]
    failures.sort(key=lambda failure: failure.index)
    evaluation = evaluation_of([outcome.explanation for outcome in outcomes], chosen, failures)
    if failures and not evaluation.rows:
        raise_first(failures, "measured")
    return evaluation


def _several(explanations: Any) -> list[Explanation]:
    """Return one explanation or many as a list."""
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
    """Return the table of the measures that the explanations contain."""
    named = dict(zip(metric_labels(metrics), metrics, strict=True))
    better = {name: metric.better for name, metric in named.items()}
    within = {name: metric.within for name, metric in named.items() if metric.within}
    return Evaluation.from_explanations(explanations, better, failures, within)


def with_annotations(explanations: Sequence[Explanation], annotations: Any) -> list[Explanation]:
    """Return the explanations with human annotations attached."""
    entries = zip(explanations, _entries(explanations, annotations), strict=True)
    return [replace(e, annotations=entry) for e, entry in entries]


def _entries(explanations: Sequence[Explanation], annotations: Any) -> list[Any]:
    """Return the entry of each explanation: by its `id` in a mapping, else by the `index` of its input."""
    if isinstance(annotations, Mapping):
        by_id = {str(name): entry for name, entry in annotations.items()}
        entries = [by_id.get(str(e.id)) for e in explanations]
        has_any = any(entry is not None for entry in entries)
        require(has_any, "annotations", "keyed by the ids of explanations", list(annotations))
        return entries
    is_list = isinstance(annotations, Sequence | np.ndarray) and not isinstance(annotations, str)
    require(is_list, "annotations", "a list with an entry for each input", annotations)
    if len(explanations) == len(annotations) == 1:
        return list(annotations)
    inputs: dict[int, bytes] = {}
    for e in explanations:
        if inputs.setdefault(e.index, e.input.fingerprint) != e.input.fingerprint:
            raise SettingError(
                f"Several inputs have index {e.index}: explain them in one call, or pass `ids` to `explain` "
                "and a mapping from id to annotations here."
            )
    least = max(inputs) + 1
    must = f"one entry for each input, at least {least}"
    require(len(annotations) >= least, "annotations", must, len(annotations))
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
    cluster: Executor | None = None,
    progress: Callback | bool | None = None,
    **words: Any,
) -> Evaluation:
    """Explain the same inputs with several methods and measure the results, in one run.

    An explanation is measured as soon as it is available, so the model's answers are not recomputed.

    Parameters
    ----------
    model, inputs
        As in `explain`.
    methods
        Names from `list_methods()`, optionally with settings as in ``"lime:samples=50"``, or fitted
        explainers. From Python, instances and requests are also accepted.
    metrics
        Names from `list_metrics()`, optionally with settings as in ``"faithfulness:k=5"``. From Python,
        instances are also accepted.
    seeds
        Number of seeds with which each method explains each input, counting up from `seed`. Intervals are
        then over inputs and seeds.
    ids, shard, batch_size, cluster, progress
        As in `explain`.
    out
        The ``.parquet`` file to write. It stores finished explanations, so repeating the call resumes an
        interrupted run, and adding methods computes only the new explanations. Explanations by methods that
        are no longer listed stay in the file but are not returned.
    **words
        Other arguments of `explain` for all methods, such as ``budget=200`` or ``seed=1``.
    """
    several = [methods] if isinstance(methods, str | Explainer | Request) else methods
    require(len(several) > 0, "methods", "at least one", methods)
    measures = make_metrics(metrics)
    made = [Request.from_keywords(method, words) for method in several]
    requests = [replace(request, metrics=measures) for request in with_same_features(made)]
    seen: set[bytes] = set()
    for request in requests:
        if request.fingerprint in seen:
            raise SettingError(f"{request.method.name} is listed twice with the same settings: list it once.")
        seen.add(request.fingerprint)
    requests = [replace(each, seed=each.seed + more) for each in requests for more in range(seeds)]
    options: dict[str, Any] = {"ids": ids, "shard": shard, "batch_size": batch_size, "progress": progress}
    run = Run.from_arguments(model, inputs, "compare", cluster=cluster, **options)
    explanations = explain_all(run, requests) if out is None else explain_to_file(run, requests, Path(out))
    if not len(explanations):
        raise_first(explanations.failures, "explained")
    evaluation = evaluation_of(explanations, measures, explanations.failures)
    if explanations.failures and not evaluation.rows:
        raise_first(explanations.failures, "measured", explanations)
    return evaluation
