"""Measurements of one data set, each of which returns the content of a record."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import pertinent
from experiments.hase2021.data import read
from experiments.hase2021.training import fine_tune
from experiments.shared.stages import write_record
from experiments.yang2023.measure import (
    OPTIONS,
    References,
    accuracy,
    adapt,
    columns,
    explain,
    least_seconds,
    means_of_runs,
)
from experiments.yang2023.sets import SETS, SIZES, test_texts, training_texts
from experiments.yang2023.subject import Subject
from pertinent.diagnostics.stability import agreement
from pertinent.results.explanation import Explanations

TRAININGS = 5
"""Trainings of each amortized model."""
FASTSHAP = {"FastSHAP": 5, "FastSHAP-equal": 2, "FastSHAP-fresh": 2, "FastSHAP-surrogate": 2}
"""Trainings of FastSHAP: with 32 coalitions, with as many evaluations as the references took, or with one."""
ADAPTED = (5, 2, 3, 1, 10)
"""Numbers of permutations of local adaption."""
PROPORTIONS = (10, 30, 50, 70)
"""Shares of the training texts, in percent (Table 4); with all of them it is the amortized model itself."""
PADDED = ("KS-200", "KS-25", "SVS-25", "KS-2000", "KS-8000")
ON_PAIRS = ("amortized", "KS-2000", "KS-2000, padded", "SVS-25", "KS-200", "shapley-500", "adapted-5")
TRANSFERRED = ("KS-25", "KS-100", "KS-200", "shapley-200", "KS-100, padded", "amortized", "adapted-5")
FEWER = ("SVS-25-antithetic", "shapley-500", "KS-2000")
FEWEST = ("shapley-2000", "KS-8000")
"""Methods that are measured on fewer texts."""
ALONE = ("KS-200", "KS-2000", "amortized")
"""Methods that are timed on one text after the other, as in the paper."""
REPEATS = 3
"""Number of times that each text is timed."""

Result = dict[str, Any]


def train_classifier(subject: Subject) -> Result:
    """Fine-tune a classifier, as in the experiments of Hase et al. 2021."""
    name = f"{subject.name}/model"
    result = fine_tune(subject.run, SETS[subject.dataset], name, limit=subject.sizes.limit)
    return {key: value for key, value in result.items() if key != "right"}


def compute_references(subject: Subject) -> Result:
    """Compute reference values of the test texts."""
    start = time.perf_counter()
    references = References.from_model(subject.model, subject.test.inputs, subject.sizes.reference)
    write_record(subject.folder / "reference.json", references.to_dict())
    return {
        "texts": len(references.scores),
        "evaluations": subject.sizes.reference,
        "features": [len(row) for row in references.scores],
        "squared error": float(np.mean([(row**2).mean() for row in references.errors])),
        "variance": float(np.mean([row.var() for row in references.scores])),
        "seconds": time.perf_counter() - start,
    }


def explain_training_texts(subject: Subject) -> Result:
    """Explain the texts that amortized models learn from."""
    texts = training_texts(subject.run.data, subject.dataset, subject.sizes.fit)
    start = time.perf_counter()
    teacher = pertinent.explain(subject.model, texts, "shapley-sampling", samples=25, **OPTIONS)
    seconds = time.perf_counter() - start
    teacher.save(subject.folder / "learned.json")
    return {
        "texts": len(teacher),
        "reference seconds": seconds,
        "evaluations": float(np.mean([e.evaluations for e in teacher])),
    }


def train_amortized(subject: Subject, seed: int) -> Result:
    """Fit an amortized model to all explanations of training texts."""
    start = time.perf_counter()
    fitted = subject.fit_amortized(subject.teacher, seed)
    fitted.save(subject.folder / f"amortized-{seed}")
    return {
        "training seconds": time.perf_counter() - start,
        "dev spearman": fitted.network.card["dev_spearman"],
    }


def train_fastshap(subject: Subject, name: str, seed: int) -> Result:
    """Fit FastSHAP with 32 coalitions of each text, or with as many evaluations as the references took.

    With fresh coalitions these are divided among the teacher and the epochs. A surrogate is asked about 32
    fresh coalitions in every step; the model only about whole texts.
    """
    texts = training_texts(subject.run.data, subject.dataset, subject.sizes.fit)
    start = time.perf_counter()
    spent = round(np.mean([e.evaluations for e in subject.teacher]))
    settings = {
        "FastSHAP": {},
        "FastSHAP-equal": {"samples": spent - 2},
        "FastSHAP-fresh": {"samples": max(2, round(spent / (subject.sizes.epochs + 1))), "fresh": True},
        "FastSHAP-surrogate": {"surrogate": True, "fresh": True},
    }[name]
    fitted: Any = pertinent.fit(
        subject.model,
        texts,
        "fastshap",
        validation_fraction=0.1,
        epochs=subject.sizes.epochs,
        seed=seed,
        **settings,
        **OPTIONS,
    )
    fitted.save(subject.folder / f"{name}-{seed}")
    return {
        "training seconds": time.perf_counter() - start,
        "samples": settings.get("samples", 32),
        "epochs": fitted.network.card["history"][-1]["epoch"],
        "surrogate": fitted.network.card.get("surrogate"),
    }


def measure_method(subject: Subject, name: str) -> Result:
    """Measure one method with all seeds: Tables 1 to 3, Figures 3 and 5."""
    sizes, start = subject.sizes, time.perf_counter()
    n = sizes.fewest if name in FEWEST else sizes.fewer if name in FEWER else sizes.texts
    runs = subject.explain(name, subject.test.inputs[:n], sizes.seeds)
    return {
        "columns": columns(runs, subject.references),
        "runs": means_of_runs(runs, subject.references),
        "accuracy": accuracy(subject.model, runs[0], subject.test.labels),
        "seeds": len(runs),
        "stage seconds": time.perf_counter() - start,
    }


def measure_adaption(subject: Subject, m: int) -> Result:
    """Measure local adaption by Alg. 1 and by precision weights, and the same m permutations alone (Table 5).

    Each seed has different permutations and a different training of the amortized model. Alg. 1 has plain
    permutations; with precision weights each order is followed by its reverse.
    """
    texts = subject.test.inputs[: subject.sizes.adapted]
    fitted: list[Any] = subject.trained("amortized")
    predicted = [explain(subject.model, texts, each, seed=0) for each in fitted]
    runs: dict[str, list[Explanations]] = {"prediction": predicted}
    for alone, name, combine in (("SVS", "alg. 1", "paper"), ("SVS-antithetic", "ours", "precision")):
        settings = {"samples": m, "antithetic": combine == "precision"}
        runs[alone] = [
            explain(subject.model, texts, "shapley-sampling", seed=seed, **settings)
            for seed in range(len(fitted))
        ]
        triples = zip(fitted, predicted, runs[alone], strict=True)
        runs[name] = [adapt(model.refined(m, combine=combine), *pair) for model, *pair in triples]
    return _rows_and_runs(runs, subject.references)


def measure_curve(subject: Subject, percent: int) -> Result:
    """Measure amortized models of a share of the training texts, drawn for each seed (Table 4, Figure 4)."""
    runs, dev = [], []
    for seed in range(subject.sizes.seeds):
        rng = np.random.default_rng(seed)
        size = max(20, round(len(subject.teacher) * percent / 100))
        chosen = rng.permutation(len(subject.teacher))[:size].tolist()
        fitted = subject.fit_amortized(Explanations([subject.teacher[i] for i in chosen]), seed)
        dev.append(fitted.network.card["dev_spearman"])
        runs.append(explain(subject.model, subject.test.inputs, fitted, seed=0))
    return {"texts": size, "dev spearman": dev, "columns": columns(runs, subject.references)}


def measure_transfer(subject: Subject, target: str) -> Result:
    """Measure the model and its amortized explainers on texts of another data set (Sec. 6.4)."""
    data = test_texts(subject.run.data, target, subject.sizes.transferred)
    references = References.from_model(subject.model, data.inputs, SIZES[target].reference // 2)
    runs = {}
    for name in TRANSFERRED:
        n = subject.sizes.fewer if name.endswith("padded") else len(data.inputs)
        runs[name] = subject.explain(name, data.inputs[:n], subject.sizes.few_seeds)
    right = [int(e.prediction.values.argmax() == data.labels[e.index]) for e in runs["amortized"][0]]
    return {"target": target, "right": right, **_rows_and_runs(runs, references)}


def measure_padded(subject: Subject, name: str) -> Result:
    """Measure 512 players, of which padding is not attended to, on the texts of KS-8000."""
    inner, _ = subject.explainer(f"{name}, padded")
    # A regression of 512 unknowns is slow.
    n = subject.sizes.fewest // (3 if name in FEWEST else 1)
    texts = subject.test.inputs[:n]
    runs = [explain(subject.model, texts, inner, seed=seed) for seed in range(subject.sizes.few_seeds)]
    return {"columns": columns(runs, subject.references)}


def explain_pairs(subject: Subject, name: str) -> Result:
    """Explain pairs of MRPC, for calibration (Table 6); classes are as unbalanced as in the data set."""
    data = read(subject.run.data, SETS["mrpc"], "test", subject.sizes.pairs)
    method, settings = subject.explainer(name)
    explanations = explain(subject.model, data.inputs, method, seed=0, **settings)
    result: Result = {"scores": [np.round(e.scores, 4).tolist() for e in explanations]}
    if name == ON_PAIRS[0]:
        inputs: list[Any] = [e.input for e in explanations]
        result["labels"] = data.labels
        result["probabilities"] = [np.round(e.prediction.values, 5).tolist() for e in explanations]
        result["pairs"] = [list(each.text.segments) for each in inputs]
        result["spans"] = [each.spans.tolist() for each in inputs]
    return result


def explain_example(subject: Subject) -> Result:
    """Explain the first test text by KS-200 with two seeds (Figure 1)."""
    explanations = [run[0] for run in subject.explain("KS-200", subject.test.inputs[:1], 2)]
    return {
        "tokens": list(explanations[0].features),
        "scores": [np.round(e.scores, 5).tolist() for e in explanations],
        "spearman": agreement(explanations).spearman,
    }


def time_methods(subject: Subject, *, on_cpu: bool) -> Result:
    """Measure seconds of each text, one after the other, on the device or on one core of a CPU."""
    if on_cpu:
        subject = replace(subject, run=replace(subject.run, device="cpu"))
    names = (ALONE[0], ALONE[-1]) if on_cpu else ALONE
    n = subject.sizes.timed_on_cpu if on_cpu else subject.sizes.timed
    methods = {name: partial(_explain_text, subject, *subject.explainer(name)) for name in names}
    return {"alone": warm_seconds(methods, subject.test.inputs[:n])}


def warm_seconds(methods: dict[str, Any], texts: Sequence[dict[str, str]]) -> dict[str, list[float]]:
    """Return the least seconds of each method for each text, after two texts to warm up."""
    least_seconds(methods, texts[:2], 1)
    return least_seconds(methods, texts, REPEATS)


def _explain_text(subject: Subject, method: Any, settings: dict[str, Any], text: dict[str, str]) -> None:
    explain(subject.model, [text], method, seed=0, **settings)


def _rows_and_runs(runs: dict[str, list[Explanations]], references: References) -> Result:
    return {
        "columns": {name: columns(each, references) for name, each in runs.items()},
        "runs": {name: means_of_runs(each, references) for name, each in runs.items()},
    }
