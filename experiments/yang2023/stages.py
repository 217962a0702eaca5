"""The stages of the measurement. Each returns what goes into one JSON file, of one set."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from job import Job
from measure import (
    METHODS,
    OPTIONS,
    Truth,
    accuracy,
    adapted,
    columns,
    explained,
    of_each_run,
    seconds_of_each,
)
from sets import SIZES, TARGETS, read, test_texts, training_texts

import pertinent
from pertinent.diagnostics.stability import agreement
from pertinent.results.explanation import Explanations

TRAININGS = 5
"""Trainings of each amortized model."""
FASTSHAP = {"FastSHAP": 5, "FastSHAP-equal": 2, "FastSHAP-fresh": 2, "FastSHAP-surrogate": 2}
"""Trainings of FastSHAP: with 32 coalitions, with as many evaluations as the references took, or with one."""
ADAPTED = (5, 2, 3, 1, 10)
"""Permutations of local adaption."""
PROPORTIONS = (10, 30, 50, 70)
"""Of the training texts, in percent (Table 4); with all of them it is the amortized model itself."""
PADDED = ("KS-200", "KS-25", "SVS-25", "KS-2000", "KS-8000")
ON_PAIRS = ("amortized", "KS-2000", "KS-2000, padded", "SVS-25", "KS-200", "shapley-500", "adapted-5")
TRANSFERRED = ("KS-25", "KS-100", "KS-200", "shapley-200", "KS-100, padded", "amortized", "adapted-5")

FEWER = ("SVS-25-antithetic", "shapley-500", "KS-2000")
FEWEST = ("shapley-2000", "KS-8000")
"""Methods that are measured on fewer texts."""

Result = dict[str, Any]
Stages = dict[str, Callable[[Job], Result]]


def fine_tuned(job: Job) -> Result:
    """A classifier, by the command of `hase2021`."""
    import fine_tune

    made = job.folder / "accuracy.json"
    options: dict[str, Any] = {
        "data": job.data,
        "encoder": job.encoder,
        "out": job.folder / "model",
        "result": made,
    }
    options |= {"set": job.which} | ({"limit": job.sizes.limit} if job.sizes.limit else {})
    sys.argv = [
        "fine_tune.py",
        *(str(part) for name, value in options.items() for part in (f"--{name}", value)),
    ]
    fine_tune.main()
    return {k: v for k, v in json.loads(made.read_text()).items() if k != "right"}


def reference(job: Job) -> Result:
    """Reference values of the test texts."""
    start = time.perf_counter()
    truth = Truth.from_model(job.model, job.test.examples, job.sizes.reference)
    job.folder.mkdir(parents=True, exist_ok=True)
    (job.folder / "reference.json").write_text(json.dumps(truth.to_dict()))
    return {
        "texts": len(truth.scores),
        "evaluations": job.sizes.reference,
        "features": [len(row) for row in truth.scores],
        "squared error": float(np.mean([(row**2).mean() for row in truth.errors])),
        "variance": float(np.mean([row.var() for row in truth.scores])),
        "seconds": time.perf_counter() - start,
    }


def learned(job: Job) -> Result:
    """References of training texts."""
    texts = training_texts(job.data, job.which, job.sizes.fit)
    start = time.perf_counter()
    references = pertinent.explain(job.model, texts, "shapley-sampling", samples=25, **OPTIONS)
    seconds = time.perf_counter() - start
    references.save(job.folder / "learned.json")
    return {
        "texts": len(references),
        "reference seconds": seconds,
        "evaluations": float(np.mean([e.evaluations for e in references])),
    }


def amortized(seed: int, job: Job) -> Result:
    """An amortized model, fitted to all references."""
    start = time.perf_counter()
    fitted = _fitted(job, job.references, seed)
    fitted.save(job.folder / f"amortized-{seed}")
    return {
        "training seconds": time.perf_counter() - start,
        "dev spearman": fitted.network.card["dev_spearman"],
    }


def fastshap(name: str, seed: int, job: Job) -> Result:
    """FastSHAP with 32 coalitions of each text, or with as many evaluations as the references took.

    With fresh coalitions these are shared out among the teacher and the epochs. A surrogate is asked about
    32 fresh coalitions in every step; the model only about whole texts.
    """
    texts, start = training_texts(job.data, job.which, job.sizes.fit), time.perf_counter()
    spent = round(np.mean([e.evaluations for e in job.references]))
    settings = {
        "FastSHAP": {},
        "FastSHAP-equal": {"samples": spent - 2},
        "FastSHAP-fresh": {"samples": max(2, round(spent / (job.sizes.epochs + 1))), "fresh": True},
        "FastSHAP-surrogate": {"surrogate": True, "fresh": True},
    }[name]
    fitted: Any = pertinent.fit(
        job.model,
        texts,
        "fastshap",
        validation_fraction=0.1,
        epochs=job.sizes.epochs,
        seed=seed,
        **settings,
        **OPTIONS,
    )
    fitted.save(job.folder / f"{name}-{seed}")
    return {
        "training seconds": time.perf_counter() - start,
        "samples": settings.get("samples", 32),
        "epochs": fitted.network.card["history"][-1]["epoch"],
        "surrogate": fitted.network.card.get("surrogate"),
    }


REPEATS = 3
"""Number of times that each text is timed alone."""
ALONE = ("KS-200", "KS-2000", "amortized")
"""Methods that are timed on one text after the other, as in the paper."""


def timed_alone(job: Job) -> Result:
    """Seconds for each text, one text after the other."""
    return {"alone": _timed_alone(job, ALONE, job.test.examples[: job.sizes.timed])}


def timed_on_cpu(job: Job) -> Result:
    """Seconds for each text on one core of a CPU, one text after the other."""
    own = replace(job, device="cpu")
    texts = own.test.examples[: own.sizes.timed_on_cpu]
    return {"alone": _timed_alone(own, (ALONE[0], ALONE[-1]), texts)}


def _timed_alone(job: Job, names: Sequence[str], texts: Sequence[dict[str, str]]) -> dict[str, list[float]]:
    """Seconds for each text alone by these methods, which explain two texts before."""

    def explain(method: Any, settings: dict[str, Any], text: dict[str, str]) -> None:
        explained(job.model, [text], method, seed=0, **settings)

    methods = {name: partial(explain, *job.explainer(name)) for name in names}
    seconds_of_each(methods, texts[:2], 1)
    return seconds_of_each(methods, texts, REPEATS)


def method(name: str, job: Job) -> Result:
    """One method with all seeds: Tables 1 to 3, Figures 3 and 5."""
    sizes, start = job.sizes, time.perf_counter()
    n = sizes.fewest if name in FEWEST else sizes.fewer if name in FEWER else sizes.texts
    found = job.runs(name, job.test.examples[:n], sizes.seeds)
    return {
        "columns": columns(found, job.truth),
        "runs": of_each_run(found, job.truth),
        "accuracy": accuracy(job.model, found[0], job.test.labels),
        "seeds": len(found),
        "stage seconds": time.perf_counter() - start,
    }


def local(m: int, job: Job) -> Result:
    """Local adaption by Alg. 1 and by ours, beside the same m permutations alone (Table 5).

    Each seed has its own permutations and its own training of the amortized model. Alg. 1 has plain
    permutations; ours has each order followed by its reverse.
    """
    texts = job.test.examples[: job.sizes.adapted]
    fitted: list[Any] = job.trained("amortized")
    predicted = [explained(job.model, texts, each, seed=0) for each in fitted]
    found: dict[str, list[Explanations]] = {"prediction": predicted}
    for alone, own, combine in (("SVS", "alg. 1", "paper"), ("SVS-antithetic", "ours", "precision")):
        settings = {"samples": m, "antithetic": combine == "precision"}
        drawn = [
            explained(job.model, texts, "shapley-sampling", seed=seed, **settings)
            for seed in range(len(fitted))
        ]
        each = zip(fitted, predicted, drawn, strict=True)
        found[alone] = drawn
        found[own] = [adapted(one.refined(m, combine=combine), *both) for one, *both in each]
    rows = {name: columns(runs, job.truth) for name, runs in found.items()}
    return {"columns": rows, "runs": {name: of_each_run(runs, job.truth) for name, runs in found.items()}}


def curve(percent: int, job: Job) -> Result:
    """Amortized models of a share of the training texts, drawn anew for each seed (Table 4, Figure 4)."""
    found, fits = [], []
    for seed in range(job.sizes.seeds):
        rng = np.random.default_rng(seed)
        size = max(20, round(len(job.references) * percent / 100))
        chosen = rng.permutation(len(job.references))[:size].tolist()
        fitted = _fitted(job, Explanations([job.references[i] for i in chosen]), seed)
        fits.append(fitted.network.card["dev_spearman"])
        found.append(explained(job.model, job.test.examples, fitted, seed=0))
    return {"texts": size, "dev spearman": fits, "columns": columns(found, job.truth)}


def _fitted(job: Job, references: Explanations, seed: int) -> Any:
    """An amortized model that learned from these references."""
    return pertinent.fit(
        job.model,
        [e.input.raw for e in references],
        teacher_explanations=references,
        validation_fraction=0.1,
        epochs=job.sizes.epochs,
        seed=seed,
        **OPTIONS,
    )


def transferred(target: str, job: Job) -> Result:
    """The model and its amortized explainers on texts of another set (Sec. 6.4)."""
    split = test_texts(job.data, target, job.sizes.transferred)
    truth = Truth.from_model(job.model, split.examples, SIZES[target].reference // 2)
    n = {name: job.sizes.fewer if name.endswith("padded") else len(split.examples) for name in TRANSFERRED}
    found = {name: job.runs(name, split.examples[: n[name]], job.sizes.few_seeds) for name in TRANSFERRED}
    right = [int(e.prediction.values.argmax() == split.labels[e.index]) for e in found["amortized"][0]]
    rows = {name: columns(several, truth) for name, several in found.items()}
    runs = {name: of_each_run(several, truth) for name, several in found.items()}
    return {"target": target, "right": right, "columns": rows, "runs": runs}


def padded(name: str, job: Job) -> Result:
    """512 players, of which padding is not attended to, on the texts of KS-8000."""
    inner, _ = job.explainer(f"{name}, padded")
    n = job.sizes.fewest // (3 if name in FEWEST else 1)  # a regression of 512 unknowns takes its time
    texts = job.test.examples[:n]
    found = [explained(job.model, texts, inner, seed=seed) for seed in range(job.sizes.few_seeds)]
    return {"columns": columns(found, job.truth)}


def pairs(name: str, job: Job) -> Result:
    """Scores of pairs of MRPC, for calibration (Table 6)."""
    split = read(job.data, "mrpc", "test", job.sizes.pairs)  # as unbalanced as it is
    explainer, settings = job.explainer(name)
    found = explained(job.model, split.examples, explainer, seed=0, **settings)
    result: Result = {"scores": [np.round(e.scores, 4).tolist() for e in found]}
    if name == ON_PAIRS[0]:
        inputs: list[Any] = [e.input for e in found]
        result["labels"] = split.labels
        result["probabilities"] = [np.round(e.prediction.values, 5).tolist() for e in found]
        result["pairs"] = [list(each.text.segments) for each in inputs]
        result["spans"] = [each.spans.tolist() for each in inputs]
    return result


def example(job: Job) -> Result:
    """The scores of the first test text by KS-200 with two seeds (Figure 1)."""
    (text,) = job.test.examples[:1]
    found = [each[0] for each in job.runs("KS-200", [text], 2)]
    return {
        "tokens": list(found[0].features),
        "scores": [np.round(e.scores, 5).tolist() for e in found],
        "spearman": agreement(found).spearman,
    }


def stages_of(which: str) -> list[Stages]:
    """The stages of a set by name; those of one phase need nothing of each other, the most telling first."""
    target = TARGETS.get(which)
    trained: Stages = {f"amortized-{seed}": partial(amortized, seed) for seed in range(TRAININGS)}
    found: Stages = {} if target is None else {f"transfer-{target}": partial(transferred, target)}
    references: Stages = {"learned": learned}
    phases: list[Stages] = [{"model": fine_tuned}, references, trained, found]
    if which == "yelp":
        return phases
    references |= {"reference": reference}
    for name, trainings in FASTSHAP.items():
        trained |= {f"{name}-{seed}": partial(fastshap, name, seed) for seed in range(trainings)}
    found |= {"method-amortized": partial(method, "amortized")}
    found |= {f"adapted-{m}": partial(local, m) for m in ADAPTED}
    if which == "mnli":
        found |= {f"pairs-{name}": partial(pairs, name) for name in ON_PAIRS}
    if which == "imdb":
        found |= {"example": example}
    found |= {f"method-{name}": partial(method, name) for name in (*FASTSHAP, *METHODS)}
    found |= {f"padded-{name}": partial(padded, name) for name in PADDED}
    found |= {f"curve-{share}": partial(curve, share) for share in PROPORTIONS[::-1]}
    return [*phases, {"seconds-alone": timed_alone, "seconds-cpu": timed_on_cpu}]
