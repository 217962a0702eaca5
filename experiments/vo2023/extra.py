"""FI for every class (Table 5), L2X by K (App. G), and LIME and FI by setting (Tables 14, 18, Figure 5)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import pertinent
from experiments.shared.stages import Run
from experiments.vo2023.fitting import SIZES, Sizes, fit_aim, load, values_of
from experiments.vo2023.forms import TAUS, K, selected
from pertinent.metrics.top_features import ClassFaithfulness, ClassIoU, Faithfulness
from pertinent.results.explanation import Explanations

FI = "functional-information"
SETTINGS: dict[str, tuple[str, str, tuple[int, ...], dict[str, int]]] = {
    "samples": ("lime", "samples", (50, 100, 200, 500, 1000, 2000, 5000), {}),
    "widths": ("lime", "kernel_width", (15, 20, 25, 30, 35), {"samples": 1000}),
    "draws": (FI, "samples", (50, 100, 200), {}),
}
"""Parts by setting: method, setting, values, and fixed settings (Figure 5, Tables 14 and 18)."""
PARTS = ("classes", "sizes", *SETTINGS)
WORDS = 40
"""Texts whose words are kept."""


def measure_part(run: Run, dataset: str, part: str, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Yield the record of a part, after each setting."""
    if part == "classes":
        return explain_classes(run, dataset, sizes)
    return (
        explain_sizes(run, dataset, sizes) if part == "sizes" else explain_settings(run, dataset, part, sizes)
    )


def explain_classes(run: Run, dataset: str, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Explain each class by FI, which explains one at a time, and measure how often it is then predicted."""
    subject = load(run, dataset, sizes)
    by_class: list[Any] = []
    while not by_class or len(by_class) < len(by_class[0][0].classes):
        options: dict[str, Any] = {"target": len(by_class), "removal": "pad-token", "progress": False}
        by_class.append(list(pertinent.explain(subject.model, subject.test[: sizes.sampled], FI, **options)))
    explanations = Explanations(join_classes(by_class))
    metrics = {"class-faithfulness": ClassFaithfulness(k=K), "class-iou": ClassIoU(k=K)}
    metrics |= {f"class-faithfulness {c}": ClassFaithfulness(k=K, target=c) for c in range(len(by_class))}
    values = {name: values_of(subject.model, explanations, metric) for name, metric in metrics.items()}
    yield {"values": values, "words": [[word for word, _ in e.top(2 * K)] for e in explanations]}


def join_classes(by_class: Sequence[Sequence[Any]]) -> list[Any]:
    """Return explanations of single classes as explanations with the scores of all classes."""
    return [
        replace(several[0], class_scores=np.stack([e.scores for e in several]))
        for several in zip(*by_class, strict=True)
    ]


def explain_settings(run: Run, dataset: str, part: str, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Measure the top 10 words of a method by its settings: faithfulness, and the seconds of a text."""
    subject = load(run, dataset, sizes)
    method, setting, values, fixed = SETTINGS[part]
    test, result = subject.test[: sizes.sampled], dict[str, Any]()
    for value in values:
        start, settings = time.perf_counter(), fixed | {setting: value}
        explanations = pertinent.explain(
            subject.model, test, method, removal="pad-token", progress=False, **settings
        )
        result[str(value)] = {
            "seconds": (time.perf_counter() - start) / len(test),
            "faithfulness": values_of(subject.model, explanations, Faithfulness(k=K)),
            "words": [[word for word, _ in e.top(K)] for e in explanations],
        }
        yield result


def explain_sizes(run: Run, dataset: str, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Record the top K words of L2X fitted with each K, in its paper's form; then also those of one AIM."""
    subject = load(run, dataset, sizes)
    options: dict[str, Any] = {"removal": "pad-token", "seed": 0, "progress": False}
    result: dict[str, Any] = {"texts": subject.test[:WORDS], "words": {}, "faithfulness": {}}
    for k in SIZES:
        fitted = fit_aim(subject, sizes, "l2x", **options | selected(TAUS["l2x"][1]) | {"k": k})
        explanations = pertinent.explain(subject.model, subject.test, fitted, **options)
        result["words"][f"l2x {k}"] = [[word for word, _ in e.top(k)] for e in explanations]
        result["faithfulness"][f"l2x {k}"] = values_of(subject.model, explanations, Faithfulness(k=k))
    yield result
    explanations = pertinent.explain(
        subject.model, subject.test, fit_aim(subject, sizes, **options), **options
    )
    for k in SIZES:
        result["words"][f"aim {k}"] = [[word for word, _ in e.top(k)] for e in explanations]
    yield result


def nested_share(words: Sequence[Sequence[str]], more: Sequence[Sequence[str]]) -> float:
    """Return the share of texts' words that are also among those for a larger K."""
    pairs = zip(words, more, strict=True)
    return float(np.mean([np.mean([word in wide for word in own]) for own, wide in pairs]))


def stays(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the share of each method's words for one K that stay for the next."""
    if "stay" in record:
        return dict(record["stay"])
    words, pairs = record["words"], pairwise(SIZES)
    return {
        f"{row} {k}": nested_share(words[f"{row} {k}"], words[f"{row} {more}"])
        for k, more in pairs
        for row in ("l2x", "aim")
        if f"{row} {k}" in words
    }
