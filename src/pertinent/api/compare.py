"""Several methods on the same inputs, explained and measured in one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pertinent.api.evaluate import DEFAULT_METRICS, evaluation_of
from pertinent.api.explain_run import explain_all
from pertinent.api.request import Request, for_each, make_metrics, with_same_features
from pertinent.api.runner import Runner, raise_first
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, SettingError, require, unknown
from pertinent.explainers.base import Explainer
from pertinent.metric.base import Metric
from pertinent.models.wrap import wrap
from pertinent.results.evaluation import Evaluation
from pertinent.settings import Count, Seed, checked

OPTIONS = ("target", "sparsity", "budget", "removal", "features", "scale")


@checked
def compare(
    model: Any,
    inputs: Any,
    methods: str | Explainer | Sequence[str | Explainer],
    metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    seed: Seed = 0,
    ids: Sequence[Any] | None = None,
    out: str | Path | None = None,
    batch_size: Count | None = None,
    progress: Callback | bool | None = None,
    **options: Any,
) -> Evaluation:
    """Explain the same inputs by several methods and measure them all, in one run.

    An explanation is measured as soon as it is there, so what a method has asked is not computed
    again. `options` are those of `explain`: ``sparsity``, ``budget``, ``removal``, ``features``,
    ``scale``, ``target``; `ids` and `out` are as there.
    """
    for option in options:
        if option not in OPTIONS:
            raise unknown("option of compare", option, OPTIONS)
    model = wrap(model)
    measures = make_metrics(metrics)
    several = [methods] if isinstance(methods, str | Explainer) else methods
    require(len(several) > 0, "methods", "at least one", methods)
    many = model.split(inputs)
    if "features" in options:
        options["features"] = for_each(options["features"], one=many is None)
    requests = with_same_features(
        [Request.of(method, seed=seed, metrics=measures, **options) for method in several]
    )
    seen: set[bytes] = set()
    for request in requests:
        if request.fingerprint in seen:
            raise SettingError(f"{request.method.name} is named twice with the same settings: name it once.")
        seen.add(request.fingerprint)
    runner = Runner(model, "compare", batch_size, progress)
    found = explain_all(runner, [inputs] if many is None else many, requests, out, ids)
    if not len(found) and not found.failures:
        raise InputError("There are no inputs to compare methods on.")
    if found.failures and not len(found):
        raise_first(found.failures, "explained")
    evaluation = evaluation_of(list(found), measures, found.failures)
    if found.failures and not evaluation.rows:
        raise_first(found.failures, "measured")
    return evaluation
