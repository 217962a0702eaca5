"""Several methods on the same inputs, explained and measured in one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pertinent.api.evaluate import DEFAULT_METRICS, evaluation_of
from pertinent.api.explain_run import explain_all
from pertinent.api.request import Request, make_metrics, with_same_features
from pertinent.api.run import Run, raise_first
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, SettingError, require
from pertinent.explainers.base import Explainer
from pertinent.metric.base import Metric
from pertinent.results.evaluation import Evaluation
from pertinent.settings import Count, checked


@checked
def compare(
    model: Any,
    inputs: Any,
    methods: str | Explainer | Request | Sequence[str | Explainer | Request],
    metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    ids: Sequence[Any] | None = None,
    out: str | Path | None = None,
    batch_size: Count | None = None,
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
        Names from `methods()`, perhaps with settings as in ``"lime:samples=50"``, or fitted
        explainers. In Python also instances and requests.
    metrics
        Names from `metrics()`, perhaps with settings as in ``"faithfulness:k=5"``. In Python also
        instances.
    ids, out, batch_size, progress
        As in `explain`.
    **words
        The words of `explain` for all methods, such as ``budget=200`` or ``seed=1``.
    """
    several = [methods] if isinstance(methods, str | Explainer | Request) else methods
    require(len(several) > 0, "methods", "at least one", methods)
    measures = make_metrics(metrics)
    made = [Request.of_words(method, words) for method in several]
    requests = [replace(request, metrics=measures) for request in with_same_features(made)]
    seen: set[bytes] = set()
    for request in requests:
        if request.fingerprint in seen:
            raise SettingError(f"{request.method.name} is named twice with the same settings: name it once.")
        seen.add(request.fingerprint)
    run = Run.of(model, inputs, "compare", ids=ids, batch_size=batch_size, progress=progress)
    found = explain_all(run, requests, out)
    if not len(found) and not found.failures:
        raise InputError("There are no inputs to compare methods on.")
    if found.failures and not len(found):
        raise_first(found.failures, "explained")
    evaluation = evaluation_of(list(found), measures, found.failures)
    if found.failures and not evaluation.rows:
        raise_first(found.failures, "measured", found)
    return evaluation
