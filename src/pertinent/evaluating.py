"""From explanations to numbers that say how good they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pertinent.engine.conversation import Done, Job
from pertinent.engine.engine import Engine
from pertinent.engine.progress import Callback, shown
from pertinent.errors import InputError, PertinentError, SettingError, require, unknown
from pertinent.evaluation import Evaluation, Measured
from pertinent.explainers.base import Explainer
from pertinent.explaining import explain_with, make_explainer, raise_first
from pertinent.explanation import Explanation, Explanations, Failure
from pertinent.metric.base import Metric
from pertinent.metric.base import metrics as registered
from pertinent.models.base import Model
from pertinent.models.wrap import wrap
from pertinent.removal.base import NOT_KEPT, Removal, removals

DEFAULT_METRICS = ("sufficiency", "comprehensiveness")
EXPLAIN_OPTIONS = ("target", "sparsity", "budget", "removal", "features")


def evaluate(
    explanations: Explanation | Iterable[Explanation],
    model: Any,
    metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    removal: str | Removal | None = None,
    seed: int = 0,
    batch_size: int | None = None,
    progress: Callback | bool | None = None,
) -> Evaluation:
    """Measure explanations with the model they explain.

    Parameters
    ----------
    explanations
        One or many, of one method or several.
    model
        The model, wrapped or anything that `wrap` accepts.
    metrics
        Names from `metrics()` or instances.
    removal
        By default the removal that each explanation was made with.

    Returns
    -------
    Evaluation
        A table of means with bootstrap confidence intervals over inputs; its `explanations`
        carry their own measures, which they show.
    """
    model = wrap(model)
    given = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    require(len(given) > 0, "explanations", "at least one", given)
    with shown(progress, "evaluate") as callback:
        engine = Engine(model, seed=seed, batch_size=batch_size, progress=callback)
        evaluation = evaluate_with(engine, given, make_metrics(metrics), removal=removal)
    if evaluation.failures and not evaluation.rows:
        raise_first(evaluation.failures, "measured")
    return evaluation


def evaluate_with(
    engine: Engine,
    explanations: Sequence[Explanation],
    metrics: Sequence[Metric],
    *,
    removal: str | Removal | None = None,
) -> Evaluation:
    """Measure in one run of an engine."""

    def jobs() -> Iterator[Job | Done]:
        for number, explanation in enumerate(explanations):
            for metric in metrics:
                key = (number, metric.name)
                try:
                    given = again(engine.model, explanation)
                    how = make_removal(removal, explanation).bind(engine.model)
                    how.check(given)
                except PertinentError as error:
                    yield Done(key, None, error, 0.0)
                else:
                    yield Job(key, given, how, metric.measure(explanation))

    measures: list[dict[str, Any]] = [dict(e.measures) for e in explanations]
    failures: list[Failure] = []
    for done in engine.run(jobs(), len(explanations) * len(metrics)):
        number, name = done.key
        if done.error is None:
            measures[number][name] = done.result
        else:
            failures.append(Failure(number, f"{name}: {done.error}", done.error))
    order = [metric.name for metric in metrics]
    measured = [
        replace(
            e, measures=dict(sorted(m.items(), key=lambda item: item[0] in order and order.index(item[0])))
        )
        for e, m in zip(explanations, measures, strict=True)
    ]
    labels = _labels(measured)
    rows = [
        Measured(number, labels[number], metric.name, sparsity, value)
        for number, e in enumerate(measured)
        for metric in metrics
        for sparsity, value in e.measures.get(metric.name, {}).items()
    ]
    return Evaluation(rows, Explanations(measured), {m.name: m.better for m in metrics}, failures)


def compare(
    model: Any,
    inputs: Any,
    methods: Sequence[str | Explainer],
    metrics: str | Metric | Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    seed: int = 0,
    batch_size: int | None = None,
    progress: Callback | bool | None = None,
    **options: Any,
) -> Evaluation:
    """Explain the same inputs by several methods and measure them all, in one run.

    `options` are those of `explain`: ``sparsity``, ``budget``, ``removal``, ``features``, ``target``.
    """
    for option in options:
        if option not in EXPLAIN_OPTIONS:
            raise unknown("option of compare", option, EXPLAIN_OPTIONS)
    model = wrap(model)
    explainers = [make_explainer(method) for method in methods]
    require(len(explainers) > 0, "methods", "at least one", methods)
    many = model.split(inputs)
    with shown(progress, "compare") as callback:
        engine = Engine(model, seed=seed, batch_size=batch_size, progress=callback)
        found = explain_with(engine, [inputs] if many is None else list(many), explainers, **options)
        every = [e for explanations in found for e in explanations]
        if not every:
            raise_first(found[0].failures, "explained")
        evaluation = evaluate_with(engine, every, make_metrics(metrics), removal=options.get("removal"))
    missing = [
        Failure(f.index, f"{explainer.name}: {f.reason}", f.error)
        for explainer, explanations in zip(explainers, found, strict=True)
        for f in explanations.failures
    ]
    numbers = [number for explanations in found for number in explanations.numbers]
    unmeasured = [replace(f, index=numbers[f.index]) for f in evaluation.failures]
    evaluation.failures = [*missing, *unmeasured]
    return evaluation


def _labels(explanations: Sequence[Explanation]) -> list[str]:
    """The method of each, with its settings where one method was used with several."""
    used: dict[str, set[str]] = {}
    for e in explanations:
        used.setdefault(e.method, set()).add(repr(e.settings))
    return [
        " ".join([e.method, *(f"{k}={v}" for k, v in e.settings.items())])
        if len(used[e.method]) > 1
        else e.method
        for e in explanations
    ]


def make_removal(removal: str | Removal | None, explanation: Explanation) -> Removal:
    """The removal given, or the one that the explanation was made with."""
    if removal is not None:
        return removals.make(removal) if isinstance(removal, str) else removal
    for name, value in explanation.removal_settings.items():
        if value == NOT_KEPT:
            raise SettingError(
                f"The explanation was made with a {name} of the removal {explanation.removal!r}'s own, "
                "which it does not keep: give the same `removal=` again."
            )
    return removals.make(explanation.removal, explanation.removal_settings)


def make_metrics(metrics: str | Metric | Sequence[str | Metric]) -> list[Metric]:
    """Metrics by name, or the instances themselves."""
    several = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    return [registered.make(m) if isinstance(m, str) else m for m in several]


def again(model: Model, explanation: Explanation) -> Any:
    """The explanation's input, prepared for this model, and seen to have the same features."""
    given = model.prepare(explanation.given.raw, explanation.given.granularity)
    if model.classes and model.classes != explanation.classes:
        raise InputError(
            f"The explanation is of the classes {', '.join(explanation.classes)}, but this model knows "
            f"{', '.join(model.classes)}; evaluate with the model that was explained."
        )
    if given.features != explanation.features:
        raise InputError(
            f"The explanation has {len(explanation.features)} features, but this model sees "
            f"{given.n_features} in the same input; evaluate with the model that was explained."
        )
    return given
