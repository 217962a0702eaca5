"""Removal check: which removal is most in distribution for a model (Hase et al. 2021, Sec. 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor
from typing import Any

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Algorithm, TokenPerplexity, Values
from pertinent.config.fingerprints import generator
from pertinent.config.settings import Count, ProperShare, Seed, checked
from pertinent.diagnostics.base import feature_kind, label
from pertinent.diagnostics.perplexity_check import PerplexityCheck, PerplexityRow
from pertinent.diagnostics.removal_check import AblatedInput, RemovalCheck
from pertinent.engine.job import Job
from pertinent.engine.progress import Callback
from pertinent.errors import InputError, SettingError, require
from pertinent.inputs.base import Input
from pertinent.inputs.modality import modality_named
from pertinent.masks import full_mask
from pertinent.models.base import Model
from pertinent.outputs import column_index
from pertinent.removals.base import Removal
from pertinent.removals.base import removals as registered
from pertinent.results.failures import Failure
from pertinent.runs.executor import Executor, Item, RunTask
from pertinent.runs.model_names import load_or_wrap
from pertinent.runs.run import Run, raise_first
from pertinent.runs.session import Session, prepare_input

DEFAULT_SHARES = (0.2, 0.5, 0.8)
ONLY_IF_NAMED = ("marginalize", "random-token")
"""Removals too expensive for the default: they need ten transformer passes for each mask."""


@checked
def check_removal(
    model: Any,
    inputs: Any,
    labels: Any = None,
    *,
    removals: str | Removal | Sequence[str | Removal] | None = None,
    shares: ProperShare | Sequence[ProperShare] = DEFAULT_SHARES,
    draws: Count = 10,
    features: str | None = None,
    seed: Seed = 0,
    batch_size: Count | None = None,
    cluster: Executor | None = None,
    progress: Callback | bool | None = None,
) -> RemovalCheck | PerplexityCheck:
    """Find out which removal is most in distribution for a model (Hase et al. 2021, Sec. 5, App. B.2).

    Every applicable removal removes the same random features, and the remaining accuracy is compared. A
    removal that costs more accuracy than another makes inputs that are out of distribution for the model, and
    explanations based on it can mislead. For a language model, the perplexity of the remaining prompts is
    compared.

    Parameters
    ----------
    model
        A wrapped model, or anything that `wrap` accepts.
    inputs
        Inputs similar to those to be explained; a few hundred are needed to distinguish removals.
    labels
        Class of each input, by name or index, to measure accuracy; without labels, the agreement with the
        prediction for the whole input is measured.
    removals
        Names from `list_removals()`; by default every applicable removal, except for the expensive
        ``"marginalize"`` and ``"random-token"``. From Python, instances are also accepted.
    shares
        Shares of features to remove. Of d features, round(s·d) are removed, at least one and never all.
    draws
        Number of random masks for each input and share, which all removals share. The prediction is the
        majority vote over them; ties are decided by the higher mean probability.
    features
        Kind of features, as in `explain`; by default tokens for transformers, as in the paper.
    seed
        Seed of the random masks.
    batch_size, cluster, progress
        As in `explain`; the model is also needed in this process.

    Examples
    --------
    >>> import pertinent
    >>> model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    >>> check = check_removal(model, ["not bad at all", "so good"], ["class 0", "class 1"])
    >>> check.best, check.verdict("mask-token")
    ('slice-out', 'too few inputs')
    """
    run = Run.from_arguments(
        load_or_wrap(model), inputs, "check", batch_size=batch_size, cluster=cluster, progress=progress
    )
    model = run.model
    shares = (shares,) if isinstance(shares, float) else tuple(dict.fromkeys(shares))
    require(len(shares) > 0, "shares", "at least one", shares)
    reads_prompts = model.output.name == "log-likelihood" and TokenPerplexity in model.handlers
    if reads_prompts:
        require(labels is None, "labels", "omitted for a language model", labels)
    elif model.output.kind != "class":
        raise SettingError(
            "`model` must be a classifier with mutually exclusive classes, because a removal check compares "
            f"predicted classes, but its outputs are {model.output.kind}s."
        )
    else:
        model.require_common_columns("A check")
    run = run.listed()
    truths = _check_labels(labels, run.n_inputs or 0, one=run.one)
    features = features or ("words" if reads_prompts else "tokens" if model.unit == "tokens" else None)
    prepared, failures = _prepare(run, truths, features, labelled=labels is not None)
    if not prepared:
        raise_first(failures, "checked")
    first = next(iter(prepared.values()))
    selected = _select_removals(removals, model, first.kind)

    items = [Item(number, (input, truths[number])) for number, input in prepared.items()]
    task = AblationTask(surprise if reads_prompts else ablate, selected, shares, draws, seed)
    outcomes = list(run.results(task, items, len(items) * len(selected)))
    results = {outcome.key: outcome.result for outcome in outcomes if outcome.error is None}
    errors = {outcome.key: outcome.error for outcome in outcomes if outcome.error is not None}
    worked = [name for name in selected if any((number, name) in results for number in prepared)]
    for number in prepared:  # inputs on which an otherwise working removal failed
        failed = [name for name in worked or selected if (number, name) in errors]
        if failed:  # the model's error is more informative than an inapplicable removal
            name = min(failed, key=lambda name: isinstance(errors[number, name], SettingError))
            error = errors[number, name]
            failures.append(Failure(number, f"{name}: {error}", error=error))
    failed_inputs = {failure.index for failure in failures}
    rows = [
        (number, name, share, *values)
        for number in prepared
        if number not in failed_inputs
        for name in worked
        for share, values in zip((0.0, *shares), results[number, name].rows, strict=True)
    ]
    if not rows:
        raise_first(failures, "checked")
    fields: dict[str, Any] = {
        "default": model.default_removal(first),
        "features": feature_kind(first),
        "draws": draws,
        "seed": seed,
        "skipped": {name: str(errors[next(iter(prepared)), name]) for name in selected if name not in worked},
        "failures": tuple(sorted(failures, key=lambda failure: failure.index)),
    }
    if reads_prompts:
        return PerplexityCheck(rows=tuple(PerplexityRow(*row) for row in rows), **fields)
    return RemovalCheck(
        rows=tuple(AblatedInput(*row) for row in rows),
        measure="agreement" if labels is None else "accuracy",
        classes=next(iter(results.values())).classes,
        trainable=modality_named(first.kind).is_trainable,
        **fields,
    )


def random_masks(input: Input, share: float, draws: int, seed: int) -> Masks:
    """Draw masks that remove a share of the features, (draws, features)."""
    d = input.n_features
    n_removed = min(d - 1, max(1, floor(share * d + 0.5 + 1e-9)))
    rng = generator(seed, "check", input.fingerprint, share)
    return np.asarray(rng.random((draws, d)).argsort(axis=1) >= n_removed)


@dataclass(frozen=True)
class RemovalRows:
    """Result fields of a check's rows for the whole input and each share, and the class names."""

    rows: list[tuple[Any, ...]]
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class AblationTask(RunTask):
    """Task that ablates inputs with several removals; items are pairs of a prepared input and its label."""

    algorithm: Callable[..., Algorithm]
    removals: Mapping[str, Removal]
    shares: Sequence[float]
    draws: int
    seed: int

    def keys(self, item: Item) -> list[tuple[int, str]]:
        """Return the input's index with the label of each removal."""
        return [(item.index, name) for name in self.removals]

    def job(self, session: Session, item: Item, key: tuple[int, str]) -> Job:
        """Return the ablation of an input with a removal."""
        input, truth = item.raw
        masks = [random_masks(input, share, self.draws, self.seed) for share in self.shares]
        steps = partial(self.algorithm, [full_mask(input.n_features), *masks], truth, session.model)
        return session.job(key, input, steps, self.removals[key[1]], self.seed)


def ablate(masks: Sequence[Masks], truth: Any, model: Model, _input: Input, _removal: Removal) -> Algorithm:
    """Predict classes with the whole input and each share's masks; return `RemovalRows`."""
    answers = yield Values(np.concatenate(masks))
    right = int(answers[0].argmax()) if truth is None else column_index(truth, model.classes, "label")
    rows = [_summarize(probabilities, right) for probabilities in _split_by_share(answers, masks)]
    return RemovalRows(rows, model.classes)


def surprise(
    masks: Sequence[Masks], _truth: None, _model: Model, _input: Input, _removal: Removal
) -> Algorithm:
    """Measure the surprise at the whole prompt and at each share's masks; return `RemovalRows`."""
    answers = yield TokenPerplexity(np.concatenate(masks))
    return RemovalRows([(float(values.mean()),) for values in _split_by_share(answers, masks)])


def _split_by_share(answers: Floats, masks: Sequence[Masks]) -> list[Floats]:
    return np.split(answers, np.cumsum([len(rows) for rows in masks])[:-1])


def majority(probabilities: Floats) -> int:
    """Return the class predicted by most rows; ties are decided by the higher mean probability.

    >>> majority(np.array([[0.9, 0.1, 0.0], [0.4, 0.6, 0.0], [0.3, 0.2, 0.5]]))
    0
    """
    votes = np.bincount(probabilities.argmax(axis=1), minlength=probabilities.shape[1])
    return int(np.where(votes == votes.max(), probabilities.mean(axis=0), -1.0).argmax())


def _summarize(probabilities: Floats, right: int) -> tuple[int, bool, float, float, float]:
    """Return the vote, whether it is right, the share of right draws, mean confidence and mean entropy."""
    vote = majority(probabilities)
    hits = float((probabilities.argmax(axis=1) == right).mean())
    logarithms = np.log(np.where(probabilities > 0, probabilities, 1.0))
    entropy = -(probabilities * logarithms).sum(axis=1)
    return vote, vote == right, hits, float(probabilities.max(axis=1).mean()), float(entropy.mean())


def _check_labels(labels: Any, n: int, *, one: bool) -> list[Any]:
    """Return a label for each of the n inputs, or ``None`` for each."""
    if labels is None:
        return [None] * n
    is_one = isinstance(labels, str) or not isinstance(labels, Iterable) or getattr(labels, "ndim", 1) == 0
    require(one or not is_one, "labels", f"as many as the {n} inputs", labels)
    truths = [labels] if is_one else list(labels)
    require(len(truths) == n, "labels", f"as many as the {n} inputs", len(truths))
    return truths


def _prepare(
    run: Run, truths: Sequence[Any], features: str | None, *, labelled: bool
) -> tuple[dict[int, Input], list[Failure]]:
    """Return the prepared inputs that can be checked, by index, and the failures of the others."""
    model = run.model
    prepared: dict[int, Input] = {}
    failures = []
    for index, (raw, truth) in enumerate(zip(run.inputs, truths, strict=True)):
        try:
            input = prepare_input(model, raw, features)
            _check_several_features(input)
            if labelled and (truth is None or model.classes):
                column_index(truth, model.classes, "label")
            prepared[index] = input
        except Exception as error:  # noqa: BLE001  recorded, the other inputs go on
            failures.append(Failure(index, str(error), error=error))
    return prepared, failures


def _check_several_features(input: Input) -> None:
    if input.n_features < 2:
        raise InputError("A removal check needs inputs with at least 2 features, but this one has 1.")


def _select_removals(
    removals: str | Removal | Sequence[str | Removal] | None, model: Model, kind: str
) -> dict[str, Removal]:
    """Return the removals to check by label."""
    if removals is None:
        removals = [name for name in registered.for_kind(kind) if name not in ONLY_IF_NAMED]
    removals = [removals] if isinstance(removals, str | Removal) else list(removals)
    require(len(removals) > 0, "removals", "at least one", removals)
    selected: dict[str, Removal] = {}
    for each in removals:
        removal = registered.parse(each) if isinstance(each, str) else each
        name = label(removal.name, removal.bind(model).settings(model))
        require(name not in selected, "removals", "different from each other", name)
        selected[name] = removal
    return selected
