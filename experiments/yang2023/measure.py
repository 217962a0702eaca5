"""Measures of explanations: agreement with references and between seeds, accuracy without top features."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import pertinent
from pertinent.array_types import Floats
from pertinent.asks import Values
from pertinent.diagnostics.stability import agreement, top_in_common
from pertinent.explainers.base import Explainer
from pertinent.learners.methods.amortized_shapley import AmortizedShapley
from pertinent.metrics.base import Measures, Metric
from pertinent.models.base import Model
from pertinent.results.explanation import Explanation, Explanations
from pertinent.stats import spearman

OPTIONS: dict[str, Any] = {"features": "tokens", "scale": "logit", "progress": False}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "KS-25": ("kernel-shap", {"samples": 25}),
    "KS-200": ("kernel-shap", {"samples": 200}),
    "SVS-25": ("shapley-sampling", {"samples": 25, "antithetic": False}),
    "SVS-25-antithetic": ("shapley-sampling", {"samples": 25}),
    "shapley-200": ("shapley", {"budget": 202}),
    "shapley-500": ("shapley", {"budget": 502}),
    "KS-2000": ("kernel-shap", {"samples": 2000}),
    "shapley-2000": ("shapley", {"budget": 2002}),
    "KS-8000": ("kernel-shap", {"samples": 8000}),
}
LEARNED = ("amortized", "FastSHAP", "FastSHAP-equal", "FastSHAP-fresh", "FastSHAP-surrogate")
"""Methods that are trained, and draw nothing when they explain."""
SHARES = (0.01, 0.05, 0.1, 0.2)
"""Shares of the features that are masked, the most important first (Figure 5)."""
REMOVALS = ("attention-mask", "pad-token")
"""How they are masked: as in the explanations, and as in the paper."""
AGREEMENT = ("spearman", "top_5", "top_10", "mse")

Texts = Sequence[dict[str, str]]
Columns = dict[str, list[float | None]]


@dataclass(frozen=True)
class References:
    """Reference values of each text, and the paper's: one run of SVS-25."""

    scores: list[Floats]
    errors: list[Floats]
    svs: list[Floats]

    @classmethod
    def from_model(cls, model: Model, texts: Texts, evaluations: int) -> References:
        """Compute both, with seeds that no method has."""
        reference = explain(model, texts, "kernel-shap", seed=99, samples=evaluations)
        method, settings = METHODS["SVS-25"]
        svs = explain(model, texts, method, seed=98, **settings)
        zeros = [np.zeros(len(e.scores)) for e in reference]
        errors = [
            z if e.standard_errors is None else e.standard_errors
            for e, z in zip(reference, zeros, strict=True)
        ]
        return cls([e.scores for e in reference], errors, [e.scores for e in svs])

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> References:
        """Read the plain lists of `to_dict`."""
        return cls(*([np.array(row) for row in plain[name]] for name in ("scores", "errors", "svs")))

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists."""
        return {name: [row.tolist() for row in getattr(self, name)] for name in ("scores", "errors", "svs")}


@dataclass(frozen=True)
class Predicted(Metric):
    """Class predicted without the most important features, at each share."""

    name = "predicted"
    paper = "Yang et al. 2023, Sec. 6.5"
    summary = "the class predicted without the most important features"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Mask the top features of each share, at least one."""
        answer = yield Values(~np.array([explanation.mask(share) for share in SHARES]))
        return dict(zip(SHARES, answer.argmax(axis=1).astype(float).tolist(), strict=True))


def explain(
    model: Model, texts: Texts, method: str | Explainer, *, seed: int, **settings: Any
) -> Explanations:
    """Explain all texts, or raise the first failure."""
    options = OPTIONS | settings
    explanations: Explanations = pertinent.explain(model, list(texts), method, seed=seed, **options)
    if explanations.failures:
        failure = explanations.failures[0]
        raise RuntimeError(f"Text {failure.index}: {failure.reason}")
    return explanations


def columns(runs: Sequence[Explanations], references: References) -> Columns:
    """Return numbers of each text: agreement between seeds, agreement with the references, and cost.

    Agreement with references is a mean over seeds; a single seed has no agreement between seeds.
    """
    rows: list[dict[str, float]] = []
    for i, by_seed in enumerate(zip(*runs, strict=True)):
        row = {"features": float(len(by_seed[0].features))}
        if len(by_seed) > 1:
            between = agreement(by_seed)
            row |= {name: getattr(between, name) for name in AGREEMENT}
        row["evaluations"] = float(np.mean([e.evaluations for e in by_seed]))
        for name, values in (("reference", references.scores[i]), ("svs", references.svs[i])):
            order = np.argsort(-values, kind="stable").tolist()
            row |= {
                f"{name} spearman": _mean(spearman(np.stack([e.scores, values]))[0, 1] for e in by_seed),
                f"{name} top_5": _mean(top_in_common([e.ranking.tolist(), order], 5) for e in by_seed),
                f"{name} mse": _mean(((e.scores - values) ** 2).mean() for e in by_seed),
            }
        row["coverage"] = _mean(_coverage(e, references.scores[i], references.errors[i]) for e in by_seed)
        rows.append(row)
    return {name: [_rounded(row[name]) for row in rows] for name in rows[0]}


def means_of_runs(runs: Sequence[Explanations], references: References) -> Columns:
    """Return the mean agreement with the references over texts, for each seed or training."""
    each = [columns([run], references) for run in runs]
    names = [
        f"{reference} {measure}" for reference in ("svs", "reference") for measure in ("spearman", "mse")
    ]
    return {name: [_rounded(np.nanmean(np.array(run[name], dtype=float))) for run in each] for name in names}


def adapt(fitted: AmortizedShapley, predicted: Explanations, sampled: Explanations) -> Explanations:
    """Return local adaptions of predictions by permutations that were drawn already."""
    adapted = []
    for prediction, sample in zip(predicted, sampled, strict=True):
        unknown = np.full(len(sample.scores), np.nan)
        errors = unknown if sample.standard_errors is None else sample.standard_errors
        scores, new_errors = fitted.adapt(prediction.scores[None], sample.scores[None], errors[None])
        adapted.append(
            replace(
                sample,
                scores=scores[0],
                standard_errors=None if new_errors is None else new_errors[0],
                cost=replace(sample.cost, evaluations=sample.evaluations + 1),
            )
        )
    return Explanations(adapted)


def least_seconds(
    explain: Mapping[str, Callable[[Any], object]], texts: Sequence[Any], repeats: int
) -> dict[str, list[float]]:
    """Return the least of several times, in seconds, that each method takes for each text alone.

    The methods take turns, so that other work of the machine slows all of them down.
    """
    least = {name: [np.inf] * len(texts) for name in explain}
    for _ in range(repeats):
        for index, text in enumerate(texts):
            for name, method in explain.items():
                start = time.perf_counter()
                method(text)
                least[name][index] = min(least[name][index], time.perf_counter() - start)
    return least


def accuracy(
    model: Model, explanations: Explanations, labels: Sequence[int]
) -> dict[str, dict[str, list[int]]]:
    """Return 1 for each text that is classified correctly, else 0, with and without the top features."""
    whole = [int(e.prediction.values.argmax() == labels[e.index]) for e in explanations]
    right = {}
    for removal in REMOVALS:
        evaluation = pertinent.evaluate(model, explanations, Predicted(), removal=removal, progress=False)
        right[removal] = {"0": whole} | {
            str(share): [
                int(e.measures["predicted"][share] == labels[e.index]) for e in evaluation.explanations
            ]
            for share in SHARES
        }
    return right


def _coverage(explanation: Explanation, values: Floats, errors: Floats) -> float:
    """Return the share of scores within 1.96 standard errors of the reference, whose error is included."""
    if explanation.standard_errors is None:
        return np.nan
    width = 1.96 * np.hypot(explanation.standard_errors, errors)
    return float((abs(explanation.scores - values) <= width).mean()) if np.isfinite(width).all() else np.nan


def _mean(values: Iterable[Any]) -> float:
    return float(np.mean(list(values)))


def _rounded(value: float) -> float | None:
    """Return five digits, and ``None`` for NaN, which JSON does not have."""
    return float(f"{value:.5g}") if np.isfinite(value) else None
