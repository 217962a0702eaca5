"""What is measured of explanations: agreement between seeds and with references, accuracy without the top."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
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
"""Of the features that are masked, the most important first (Figure 5)."""
REMOVALS = ("attention-mask", "pad-token")
"""How they are masked: as in the explanations, and as in the paper."""
AGREEMENT = ("spearman", "top_5", "top_10", "mse")

Examples = Sequence[dict[str, str]]
Columns = dict[str, list[float | None]]


@dataclass(frozen=True)
class Truth:
    """Reference values of each text: of many evaluations, and the paper's, one run of SVS-25."""

    scores: list[Floats]
    errors: list[Floats]
    svs: list[Floats]

    @classmethod
    def from_model(cls, model: Model, texts: Examples, evaluations: int) -> Truth:
        """Compute both, with seeds that no method has."""
        found = explained(model, texts, "kernel-shap", seed=99, samples=evaluations)
        svs = explained(model, texts, *METHODS["SVS-25"][:1], seed=98, **METHODS["SVS-25"][1])
        errors = [np.zeros(len(e.scores)) if e.standard_errors is None else e.standard_errors for e in found]
        return cls([e.scores for e in found], errors, [e.scores for e in svs])

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Truth:
        """The inverse of `to_dict`."""
        return cls(*([np.array(row) for row in plain[name]] for name in ("scores", "errors", "svs")))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists."""
        return {name: [row.tolist() for row in getattr(self, name)] for name in ("scores", "errors", "svs")}


@dataclass(frozen=True)
class Predicted(Metric):
    """The class predicted without the most important features, at each share."""

    name = "predicted"
    paper = "Yang et al. 2023, Sec. 6.5"
    summary = "the class predicted without the most important features"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Mask the top features of each share, at least one."""
        answer = yield Values(~np.array([explanation.mask(share) for share in SHARES]))
        return dict(zip(SHARES, answer.argmax(axis=1).astype(float).tolist(), strict=True))


def explained(
    model: Model, texts: Examples, method: str | Explainer, *, seed: int, **settings: Any
) -> Explanations:
    """Explain all of them, or raise the first failure."""
    found: Explanations = pertinent.explain(model, list(texts), method, seed=seed, **settings, **OPTIONS)
    if found.failures:
        raise RuntimeError(f"Text {found.failures[0].index}: {found.failures[0].reason}")
    return found


def columns(found: Sequence[Explanations], truth: Truth) -> Columns:
    """One number for each text: agreement between seeds, with the references, and what it cost.

    Agreement with references is the mean over seeds; of one seed alone there is none between seeds.
    """
    rows: list[dict[str, float]] = []
    for i, several in enumerate(zip(*found, strict=True)):
        row = {"features": float(len(several[0].features))}
        if len(several) > 1:
            own = agreement(several)
            row |= {name: getattr(own, name) for name in AGREEMENT}
        row["evaluations"] = float(np.mean([e.evaluations for e in several]))
        for name, values in (("reference", truth.scores[i]), ("svs", truth.svs[i])):
            first = np.argsort(-values, kind="stable").tolist()
            row |= {
                f"{name} spearman": _mean(spearman(np.stack([e.scores, values]))[0, 1] for e in several),
                f"{name} top_5": _mean(top_in_common([e.ranking.tolist(), first], 5) for e in several),
                f"{name} mse": _mean(((e.scores - values) ** 2).mean() for e in several),
            }
        row["coverage"] = _mean(_coverage(e, truth.scores[i], truth.errors[i]) for e in several)
        rows.append(row)
    return {name: [_short(row[name]) for row in rows] for name in rows[0]}


def of_each_run(found: Sequence[Explanations], truth: Truth) -> dict[str, list[float | None]]:
    """The mean agreement with the references over texts, for each seed or training alone."""
    runs = [columns([run], truth) for run in found]
    names = [f"{of} {what}" for of in ("svs", "reference") for what in ("spearman", "mse")]
    return {name: [_short(np.nanmean(_numbers(run[name]))) for run in runs] for name in names}


def adapted(fitted: AmortizedShapley, predicted: Explanations, sampled: Explanations) -> Explanations:
    """Local adaption of each prediction by permutations that were drawn already."""
    both = []
    for prediction, own in zip(predicted, sampled, strict=True):
        unknown = np.full(len(own.scores), np.nan)
        errors = unknown if own.standard_errors is None else own.standard_errors
        scores, errors_found = fitted.adapt(prediction.scores[None], own.scores[None], errors[None])
        both.append(
            replace(
                own,
                scores=scores[0],
                standard_errors=None if errors_found is None else errors_found[0],
                cost=replace(own.cost, evaluations=own.evaluations + 1),
            )
        )
    return Explanations(both)


def seconds_of_each(
    explain: Mapping[str, Callable[[Any], object]], texts: Sequence[Any], repeats: int
) -> dict[str, list[float]]:
    """The least of several times, in seconds, that each method takes for each text alone.

    The methods take turns, so that whatever else the machine does slows all of them down.
    """
    least = {name: [np.inf] * len(texts) for name in explain}
    for _ in range(repeats):
        for place, text in enumerate(texts):
            for name, own in explain.items():
                start = time.perf_counter()
                own(text)
                least[name][place] = min(least[name][place], time.perf_counter() - start)
    return least


def accuracy(model: Model, found: Explanations, labels: Sequence[int]) -> dict[str, dict[str, list[int]]]:
    """Whether each text is classified rightly, 1 or 0, with the top features masked and with none."""
    whole = [int(e.prediction.values.argmax() == labels[e.index]) for e in found]
    right = {}
    for removal in REMOVALS:
        measured = pertinent.evaluate(model, found, Predicted(), removal=removal, progress=False)
        right[removal] = {"0": whole} | {
            str(share): [
                int(e.measures["predicted"][share] == labels[e.index]) for e in measured.explanations
            ]
            for share in SHARES
        }
    return right


def _coverage(explanation: Explanation, values: Floats, errors: Floats) -> float:
    """The share of scores within 1.96 standard errors of the reference, whose own error counts too."""
    if explanation.standard_errors is None:
        return np.nan
    width = 1.96 * np.hypot(explanation.standard_errors, errors)
    return float((abs(explanation.scores - values) <= width).mean()) if np.isfinite(width).all() else np.nan


def _numbers(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values])


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))


def _short(value: float) -> float | None:
    """Five digits, and ``None`` for NaN, which JSON does not have."""
    return float(f"{value:.5g}") if np.isfinite(value) else None
