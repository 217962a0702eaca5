"""The stages of the measurement. Each returns what goes into one JSON file, of one set."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from job import Job
from measure import METHODS, OPTIONS, Truth, accuracy, columns, explained
from padding import Padded, spearman_of_all
from sets import TARGETS, read, test_texts, training_texts

import pertinent
from pertinent.explainers.base import explainers
from pertinent.results.explanation import Explanations

ADAPTED = (1, 2, 3, 5, 10, 25)
"""Permutations of local adaption."""
PROPORTIONS = (10, 30, 50, 70, 100)
"""Of the training texts, in percent (Table 4)."""
PADDED = ("KS-25", "KS-200", "SVS-25", "KS-2000", "KS-8000")
ON_PAIRS = ("amortized", "KS-200", "KS-2000", "SVS-25", "shapley-500", "adapted-5", "FastSHAP")
TRANSFERRED = ("KS-25", "KS-100", "KS-200", "shapley-200", "shapley-500", "amortized", "adapted-5")

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
    truth = Truth.of(job.model, job.test.examples, job.sizes.reference)
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
    """References of training texts, and the amortized model fitted to them."""
    texts = training_texts(job.data, job.which, job.sizes.fit)
    start = time.perf_counter()
    references = pertinent.explain(job.model, texts, "shapley-sampling", samples=25, **OPTIONS)
    seconds = time.perf_counter() - start
    references.save(job.folder / "learned.json")
    start = time.perf_counter()
    fitted = pertinent.fit(
        job.model,
        texts,
        teacher_explanations=references,
        validation_fraction=0.1,
        epochs=job.sizes.epochs,
        **OPTIONS,
    )
    fitted.save(job.folder / "amortized")
    return {
        "texts": len(references),
        "reference seconds": seconds,
        "training seconds": time.perf_counter() - start,
        "dev spearman": fitted.network.card["dev_spearman"],
    }


WARM_UP = 20
"""Number of texts that each method explains before it is timed: its first batches are the slowest."""


def timed(job: Job) -> Result:
    """Seconds for each text, with nothing else running: many texts at once, one seed, after a warm-up."""
    n = job.sizes.timed
    seconds = {}
    for name in (*METHODS, "amortized", "adapted-2", "adapted-3", "adapted-5"):
        method, settings = job.explainer(name)
        explained(job.model, job.test.examples[: min(n, WARM_UP)], method, seed=0, **settings)
        start = time.perf_counter()
        explained(job.model, job.test.examples[:n], method, seed=0, **settings)
        seconds[name] = (time.perf_counter() - start) / n
    return {"texts": n, "seconds": seconds}


def method(name: str, job: Job) -> Result:
    """One method with all seeds: Tables 1 to 3, Figures 3 and 5."""
    sizes, start = job.sizes, time.perf_counter()
    n = sizes.fewest if name in FEWEST else sizes.fewer if name in FEWER else sizes.texts
    found = job.runs(name, job.test.examples[:n], sizes.seeds)
    return {
        "columns": columns(found, job.truth),
        "accuracy": accuracy(job.model, found[0], job.test.labels),
        "seeds": len(found),
        "stage seconds": time.perf_counter() - start,
    }


def fastshap(job: Job) -> Result:
    """FastSHAP, fitted and measured as the other methods are."""
    texts, start = training_texts(job.data, job.which, job.sizes.fit), time.perf_counter()
    fitted: Any = pertinent.fit(job.model, texts, "fastshap", validation_fraction=0.1, **OPTIONS)
    fitted.save(job.folder / "fastshap")
    return method("FastSHAP", job) | {"texts": len(texts), "training seconds": time.perf_counter() - start}


def adapted(job: Job) -> Result:
    """Local adaption: Alg. 1, ours, and permutations alone, plain or each with its reverse (Table 5)."""
    amortized: Any = pertinent.load_explainer(job.folder / "amortized")
    found: Result = {}
    for m in ADAPTED:
        kinds: dict[str, tuple[Any, dict[str, Any]]] = {
            "alg. 1": (amortized.refined(m, combine="paper"), {}),
            "ours": (amortized.refined(m), {}),
            "SVS": ("shapley-sampling", {"samples": m, "antithetic": False}),
            "SVS-antithetic": ("shapley-sampling", {"samples": m}),
        }
        for kind, (explainer, settings) in kinds.items():
            texts = job.test.examples[: job.sizes.adapted]
            runs = [
                explained(job.model, texts, explainer, seed=s, **settings) for s in range(job.sizes.few_seeds)
            ]
            found[f"{kind} {m}"] = columns(runs, job.truth)
    return {"columns": found}


def curve(percent: int, job: Job) -> Result:
    """Amortized models of a share of the training texts, drawn anew for each seed (Table 4, Figure 4)."""
    found, fits = [], []
    for seed in range(job.sizes.seeds):
        rng = np.random.default_rng(seed)
        size = max(20, round(len(job.references) * percent / 100))
        chosen = rng.permutation(len(job.references))[:size].tolist()
        own = Explanations([job.references[i] for i in chosen])
        fitted = pertinent.fit(
            job.model,
            [e.input.raw for e in own],
            teacher_explanations=own,
            validation_fraction=0.1,
            epochs=job.sizes.epochs,
            seed=seed,
            **OPTIONS,
        )
        fits.append(fitted.network.card["dev_spearman"])
        found.append(explained(job.model, job.test.examples, fitted, seed=0))
    return {"texts": size, "dev spearman": fits, "columns": columns(found, job.truth)}


def transferred(target: str, job: Job) -> Result:
    """The model and its amortized explainer on texts of another set (Sec. 6.4)."""
    split = test_texts(job.data, target, job.sizes.transferred)
    truth = Truth.of(job.model, split.examples, job.sizes.reference)
    found = {name: job.runs(name, split.examples, job.sizes.few_seeds) for name in TRANSFERRED}
    right = [int(e.prediction.argmax() == split.labels[e.index]) for e in found["amortized"][0]]
    rows = {name: columns(several, truth) for name, several in found.items()}
    return {"target": target, "right": right, "columns": rows}


def padded(name: str, job: Job) -> Result:
    """The paper's game of 512 players, on the texts of KS-8000."""
    kind, settings = METHODS[name]
    inner = Padded(explainers.make(kind, settings))
    n = job.sizes.fewest // (3 if name in FEWEST else 1)  # a regression of 512 unknowns takes its time
    texts = job.test.examples[:n]
    found = [explained(job.model, texts, inner, seed=seed) for seed in range(job.sizes.few_seeds)]
    everything = [spearman_of_all(several) for several in zip(*found, strict=True)]
    return {"columns": columns(found, job.truth) | {"spearman of all": everything}}


def pairs(name: str, job: Job) -> Result:
    """Scores of pairs of MRPC, for calibration (Table 6)."""
    split = read(job.data, "mrpc", "test", job.sizes.pairs)  # as unbalanced as it is
    explainer, settings = job.explainer(name)
    found = explained(job.model, split.examples, explainer, seed=0, **settings)
    result: Result = {"scores": [np.round(e.scores, 4).tolist() for e in found]}
    if name == ON_PAIRS[0]:
        inputs: list[Any] = [e.input for e in found]
        result["labels"] = split.labels
        result["probabilities"] = [np.round(e.prediction, 5).tolist() for e in found]
        result["pairs"] = [list(each.text.segments) for each in inputs]
        result["spans"] = [each.spans.tolist() for each in inputs]
    return result


def stages_of(which: str) -> list[Stages]:
    """The stages of a set by name; those of one phase need nothing of each other, the most telling first."""
    last: Stages = {}
    last |= {"method-amortized": partial(method, "amortized"), "adapted": adapted}
    last |= {f"method-{name}": partial(method, name) for name in METHODS}
    last |= {f"padded-{name}": partial(padded, name) for name in PADDED[:2]}
    last |= {"method-FastSHAP": fastshap}
    last |= {f"curve-{share}": partial(curve, share) for share in PROPORTIONS[::-1]}
    if which == "mnli":
        last |= {f"pairs-{name}": partial(pairs, name) for name in ON_PAIRS[:-1]}
    last |= {f"padded-{name}": partial(padded, name) for name in PADDED[2:]}
    last |= {f"transfer-{to}": partial(transferred, to) for to in TARGETS[which]}
    phases: list[Stages] = [
        {"model": fine_tuned},
        {"reference": reference, "learned": learned},
        {"seconds": timed},
        last,
    ]
    if which == "mnli":
        phases.append({"pairs-FastSHAP": partial(pairs, "FastSHAP")})
    return phases
