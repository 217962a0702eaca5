"""From a model and inputs to explanations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from pertinent.check.removal_check import RemovalCheck
from pertinent.engine.asks import Algorithm, Values
from pertinent.engine.conversation import Done, Job
from pertinent.engine.engine import Engine
from pertinent.engine.meter import Meter
from pertinent.engine.progress import Callback, shown
from pertinent.errors import InputError, PertinentError, SettingError, require
from pertinent.explainers.base import (
    DEFAULT_SPARSITIES,
    Explainer,
    Finding,
    Task,
    explainers,
    n_kept,
    plan_budget,
)
from pertinent.explanation import Explanation, Explanations, Failure, class_number
from pertinent.inputs.base import Input, generator, whole
from pertinent.models.base import Model
from pertinent.models.wrap import wrap
from pertinent.registry import settings_of
from pertinent.removal.base import Removal, removals
from pertinent.types import Floats


def explain(
    model: Any,
    inputs: Any,
    method: str | Explainer = "kernel-shap",
    *,
    target: int | str | None = None,
    sparsity: float | Sequence[float] = DEFAULT_SPARSITIES,
    budget: int | None = None,
    removal: str | Removal | None = None,
    features: str | None = None,
    check: RemovalCheck | None = None,
    seed: int = 0,
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
        The class to explain, by number or name; by default the one predicted.
    sparsity
        The shares of features that a search chooses, and that `mask` speaks of.
    budget
        How many evaluations are allowed, in a search for each sparsity: a distinct mask counts 1, a
        gradient 2; by default what the settings call for, else 1000.
    removal
        What "without" means: a name from `removals()` or an instance; by default what suits the
        model (attention-mask for transformers).
    features
        What a feature is: ``"words"``, ``"tokens"``, ``"sentences"``; ``"patches:4"``,
        ``"pixels"``, ``"superpixels:50"``; ``"columns"``.
    check
        What `check_removal` found: explanations by a removal that is badly out of distribution warn.
    seed
        Same seed, same explanation, whatever the batch size, order or company.
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
    explainer = make_explainer(method, settings)
    many = model.split(inputs)
    with shown(progress, explainer.name) as callback:
        engine = Engine(model, seed=seed, batch_size=batch_size, progress=callback)
        found = explain_with(
            engine,
            [inputs] if many is None else many,
            [explainer],
            target=target,
            sparsity=sparsity,
            budget=budget,
            removal=removal,
            features=features,
        )[0]
    if found.failures and not len(found):
        raise_first(found.failures, "explained")
    found = found if check is None else check.attach(found)
    return found[0] if many is None else found


def raise_first(failures: Sequence[Failure], done: str) -> NoReturn:
    """Everything failed: raise the only error, or the first with the number of all."""
    first = failures[0]
    if len(failures) == 1 and first.error is not None:
        raise first.error
    kind = type(first.error) if isinstance(first.error, PertinentError) else InputError
    raise kind(f"None of the {len(failures)} inputs could be {done}; the first: {first.reason}")


def explain_with(
    engine: Engine,
    inputs: Iterable[Any],
    methods: Sequence[Explainer],
    *,
    target: int | str | None = None,
    sparsity: float | Sequence[float] = DEFAULT_SPARSITIES,
    budget: int | None = None,
    removal: str | Removal | None = None,
    features: str | None = None,
) -> list[Explanations]:
    """Explain every input by every method in one run of an engine."""
    sparsities = check_sparsities(sparsity)
    if budget is not None:
        require(budget >= 1, "budget", "at least 1", budget)
    chosen = removals.make(removal) if isinstance(removal, str) else removal
    model = engine.model

    def jobs() -> Iterator[Job | Done]:
        for number, raw in enumerate(inputs):
            try:
                given = model.prepare(raw, features)
                how = (chosen or removals.make(model.default_removal(given))).bind(model)
                how.check(given)
            except Exception as error:  # noqa: BLE001  recorded, the other inputs go on
                for place in range(len(methods)):
                    yield Done((place, number), None, error, 0.0)
                continue
            for place, explainer in enumerate(methods):
                steps = _steps(
                    explainer,
                    given,
                    how,
                    model,
                    target=target,
                    sparsities=sparsities,
                    budget=budget,
                    seed=engine.seed,
                )
                yield Job((place, number), given, how, steps)

    total = len(inputs) * len(methods) if isinstance(inputs, Sized) else None
    explained: list[dict[int, Explanation]] = [{} for _ in methods]
    failed: list[dict[int, Failure]] = [{} for _ in methods]
    for done in engine.run(jobs(), total):
        place, number = done.key
        if done.error is None:
            explained[place][number] = replace(done.result, seconds=done.seconds)
        else:
            failed[place][number] = Failure(number, str(done.error), done.error)
    return [
        Explanations([e[i] for i in sorted(e)], [f[i] for i in sorted(f)])
        for e, f in zip(explained, failed, strict=True)
    ]


def make_explainer(method: str | Explainer, settings: dict[str, Any] | None = None) -> Explainer:
    """An explainer by name and settings, or the instance itself."""
    if isinstance(method, Explainer):
        require(not settings, "settings", "set on the instance when a method instance is given", settings)
        return method
    return explainers.make(method, settings)


def check_sparsities(sparsity: float | Sequence[float]) -> tuple[float, ...]:
    """One sparsity or several, checked."""
    sparsities = (sparsity,) if isinstance(sparsity, int | float) else tuple(sparsity)
    require(len(sparsities) > 0, "sparsity", "at least one share", sparsity)
    for share in sparsities:
        require(0 < share <= 1, "sparsity", "above 0 and at most 1", share)
    return sparsities


def _steps(
    explainer: Explainer,
    given: Input,
    removal: Removal,
    model: Model,
    *,
    target: int | str | None,
    sparsities: tuple[float, ...],
    budget: int | None,
    seed: int,
) -> Algorithm:
    """The whole life of one explanation: predict, explain under the meter, put together."""
    d = given.n_features
    allowed = plan_budget(explainer, budget, d)
    prediction = (yield Values(whole(d)))[0]
    number = int(prediction.argmax()) if target is None else class_number(target, model.classes)
    rng = generator(seed, explainer.name, given.fingerprint)
    meter = Meter(allowed)
    task = Task(d, number, prediction, allowed, sparsities, rng)
    finding = yield from meter.watch(explainer.explain(task))
    return Explanation(
        method=explainer.name,
        settings=settings_of(explainer),
        removal=removal.name,
        removal_settings=_removal_settings(removal, model),
        given=given,
        classes=model.classes,
        target=number,
        prediction=prediction,
        budget=allowed,
        evaluations=meter.evaluations,
        seed=seed,
        sparsities=sparsities,
        **_scores(finding, number, d),
    )


def _removal_settings(removal: Removal, model: Model) -> dict[str, Any]:
    """What is needed to make the removal again."""
    return removal.settings(model)


def _scores(finding: Finding, target: int, d: int) -> dict[str, Any]:
    """The finding's scores and errors for the target, and for all classes where there are any."""
    scores, errors, class_scores = finding.scores, finding.errors, None
    if scores is None:
        scores = _membership(finding, d)
    elif scores.ndim == 2:
        class_scores, scores = scores, scores[target]
    if errors is not None and errors.ndim == 2:
        errors = errors[target]
    return {
        "scores": scores,
        "class_scores": class_scores,
        "errors": errors,
        "chosen": finding.chosen,
        "details": finding.details,
    }


def _membership(finding: Finding, d: int) -> Floats:
    """The share of sparsities at which each feature was chosen; equal sizes count once."""
    sets = {n_kept(s, d): mask for s, mask in finding.chosen.items()}
    return np.asarray(np.mean(list(sets.values()), axis=0))
