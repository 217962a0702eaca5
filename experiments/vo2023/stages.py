"""What is measured: each stage returns plain JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from black_boxes import image_classifier, text_classifier
from sets import IMAGES, TEXTS, read

import pertinent
from pertinent.metrics.top_features import (
    ClassFaithfulness,
    ClassIoU,
    Faithfulness,
    NegativeDeltaLogOdds,
    PositiveDeltaLogOdds,
)

K = 10
SIZES = (5, 10, 20)
ALPHA_BETA = {"imdb": (1.8, 1e-3), "hatexplain": (0.1, 1e-3), "ag_news": (0.1, 1e-4)} | dict.fromkeys(
    IMAGES, (0.5, 1e-3)
)
"""Table 6."""

FORMS: dict[str, dict[str, Any]] = {"aim": {}, "aim, with a selector": {"trained": "both"}}
"""As it is by default here, and nearer to the paper: with every seed."""
ABLATIONS: dict[str, dict[str, Any]] = {
    "aim, inferred from the selector": {"trained": "both", "infer": "selector"},
    "aim, selector alone": {"trained": "selector"},
    "aim, no context": {"context": False},
    "aim, with a selector, no context": {"trained": "both", "context": False},
    "aim, with a selector, explore 0": {"trained": "both", "explore": 0.0},
}
LONGER: dict[str, dict[str, Any]] = {"aim, 20 epochs": {"epochs": 20}}
ALPHAS: dict[str, dict[str, Any]] = {
    f"aim, alpha {alpha}": {"trained": "both", "alpha": alpha} for alpha in (0.1, 0.5, 1.0, 1.5, 1.8, 2.0)
}
FITTED: dict[str, dict[str, Any]] = {"l2x": {}, "vibi": {}} | FORMS | ABLATIONS | LONGER | ALPHAS
SAMPLED = (
    "lime",
    "functional-information",
    "kernel-shap",
    "parallel-local-search",
    "thompson-search",
    "random",
)


@dataclass(frozen=True)
class Job:
    """How much is done, and where."""

    data: Path
    weights: Path
    device: str
    train: int
    test: int
    sampled: int
    epochs: int
    box_epochs: int
    batch_size: int

    @property
    def fits(self) -> Path:
        """The folder of fitted explainers."""
        return self.weights / "fits"

    def box(self, which: str) -> tuple[Any, Any, Any]:
        """The black box of a set, the inputs to learn from and those to explain."""
        training, test = (read(self.data, which, split) for split in ("train", "test"))
        make = text_classifier if which in TEXTS else image_classifier
        model = make(
            which,
            training.part(0, self.train),
            epochs=self.box_epochs,
            device=self.device,
            weights=self.weights / f"{which}.safetensors",
        )
        return model, training.part(0, self.train).inputs, test.part(0, self.test).inputs


def accuracy(job: Job, which: str) -> dict[str, Any]:
    """Train the black box, and tell how often it is right."""
    model, _, _ = job.box(which)
    test = read(job.data, which, "test")
    features = "sentences" if which in TEXTS else "patches:7"
    removal = "pad-token" if which in TEXTS else "constant"
    found = pertinent.explain(
        model, test.inputs, "random", features=features, removal=removal, progress=False
    )
    return {"accuracy": float(np.mean([e.target == test.labels[e.index] for e in found]))}


def fitted(job: Job, which: str, row: str, seed: int, k: int = K) -> dict[str, Any]:
    """Fit a method to texts, and measure it."""
    model, inputs, test = job.box(which)
    name = row.partition(",")[0]
    settings = {"k": k} if name == "l2x" else {}
    settings |= aim_settings(which, row) if name == "aim" else FITTED[row]
    explainer, seconds = fit(
        job, model, inputs, name, out=_name(which, f"{row} {k}", seed), seed=seed, **settings
    )
    found = measured(model, test, explainer, classes=explainer.network.card["classes"] == "all")
    return {
        "fit seconds": seconds,
        "steps": explainer.network.card["steps"],
        "dev faithfulness": explainer.network.card["dev_faithfulness"],
        **found,
    }


def aim_settings(which: str, row: str) -> dict[str, Any]:
    """Those of a row, and of the paper's Table 6: alpha with a selector, beta with an explainer.

    All rows learn from decisions, as the paper; `paper_form.py` compares that with probabilities.
    """
    alpha, beta = ALPHA_BETA[which]
    own = FITTED[row]
    train = own.get("trained", "explainer")
    table_6 = {"alpha": alpha} if train != "explainer" else {}
    table_6 |= {"beta": beta, "learns_from": "decisions"} if train != "selector" else {}
    return table_6 | own


def fit(
    job: Job, model: Any, inputs: Sequence[Any], method: str, *, out: str, seed: int, **settings: Any
) -> tuple[Any, float]:
    """An explainer, and the seconds that it took."""
    settings = {"removal": "pad-token", "epochs": job.epochs} | settings
    start = time.perf_counter()
    explainer = pertinent.fit(
        model,
        inputs,
        method,
        batch_size=job.batch_size,
        patience=None,
        seed=seed,
        out=job.fits / out,
        progress=False,
        **settings,
    )
    return explainer, time.perf_counter() - start


def sampled(job: Job, which: str, row: str) -> dict[str, Any]:
    """Explain texts one by one, and measure the explanations."""
    model, _, test = job.box(which)
    settings = {"lime": {"samples": 1000}}.get(row, {})
    budget = None if row in ("lime", "random", "functional-information") else 1000
    classes = row in ("lime", "kernel-shap")
    return measured(model, test[: job.sampled], row, classes=classes, budget=budget, **settings)


def measured(
    model: Any, test: Sequence[Any], method: Any, *, classes: bool, budget: int | None = None, **settings: Any
) -> dict[str, Any]:
    """Explain and measure; one number for each input, and the words that were chosen."""
    start = time.perf_counter()
    if method in ("parallel-local-search", "thompson-search"):
        settings["sparsity"] = [0.05, 0.1, 0.2]
    found = pertinent.explain(
        model, test, method, removal="pad-token", budget=budget, progress=False, **settings
    )
    seconds = time.perf_counter() - start
    metrics: list[Any] = [Faithfulness(), PositiveDeltaLogOdds(), NegativeDeltaLogOdds()]
    metrics += ["sufficiency", "comprehensiveness"]
    metrics += [ClassFaithfulness(), ClassIoU()] if classes else []
    judged = pertinent.evaluate(model, found, metrics, progress=False)
    values: dict[str, list[float]] = {}
    for row in judged.rows:
        values.setdefault(f"{row.metric} {row.sparsity}" if row.sparsity else row.metric, []).append(
            row.value
        )
    for column in range(len(found[0].classes)) if classes else ():
        rows = pertinent.evaluate(model, found, [ClassFaithfulness(target=column)], progress=False).rows
        values[f"class-faithfulness {column}"] = [row.value for row in rows]
    for size in SIZES:
        rows = pertinent.evaluate(model, found, [Faithfulness(k=size)], progress=False).rows
        values[f"faithfulness of {size}"] = [row.value for row in rows]
    return {
        "seconds an input": seconds / len(test),
        "evaluations": float(np.mean([e.evaluations for e in found])),
        "values": values,
        "failures": [failure.reason for failure in found.failures][:3],
        "words": [[word for word, _ in e.top(max(SIZES))] for e in found],
        "targets": [e.target_name for e in found],
        "examples": [_example(e) for e in found[:12]],
    }


def _example(e: Any) -> dict[str, Any]:
    """The top words, for each class if there are scores."""
    own = {e.target_name: [word for word, _ in e.top(K)]}
    if e.class_scores is not None:
        own = {name: [word for word, _ in e.for_class(name).top(K)] for name in e.classes}
    return {"text": " ".join(e.features), "predicted": e.target_name, "top": own}


def images(job: Job, which: str, features: str, row: str, seed: int) -> dict[str, Any]:
    """AIM on pixels or on patches, once beside two methods of the paper (Tables 8 and 9)."""
    model, inputs, test = job.box(which)
    sizes = (200, 300, 400) if features == "pixels" else (5, 8, 10)
    aim, seconds = fit(
        job,
        model,
        inputs,
        "aim",
        out=_name(which, _of_image(row, features), seed),
        seed=seed,
        removal="constant:value=0",
        features=features,
        k=sizes[0],
        **aim_settings(which, row),
    )
    others: dict[str, dict[str, Any]] = {"integrated-gradients": {}, "kernel-shap": {"budget": 2000}}
    card = aim.network.card
    result: dict[str, Any] = {"fit seconds": seconds, "dev faithfulness": card["dev_faithfulness"]}
    for name, method, n in [
        ("aim", aim, len(test)),
        *((name, name, job.sampled) for name in others if not seed and row == "aim"),
    ]:
        found = pertinent.explain(
            model,
            test[:n],
            method,
            removal="constant:value=0",
            features=features,
            progress=False,
            **others.get(name, {}),
        )
        result[name] = {
            str(k): [
                row.value
                for row in pertinent.evaluate(model, found, [Faithfulness(k=k)], progress=False).rows
            ]
            for k in sizes
        }
    return result


def timed(job: Job, which: str) -> dict[str, Any]:
    """Seconds for explaining inputs by AIM and by the black box's own passes, with nothing beside them.

    On reviews also those of a fit.
    """
    model, inputs, test = job.box(which)
    removal = "pad-token" if which in TEXTS else "constant:value=0"
    found: dict[str, Any] = {"inputs": len(test)}
    if which == "imdb":
        for row in FORMS:
            own = aim_settings(which, row)
            _, found[f"fit, {row}"] = fit(job, model, inputs, "aim", out=f"timed {row}", seed=0, **own)
    methods: dict[str, Any] = {"black box": "random"}
    for row in FORMS:
        name = _name(which, f"{row} {K}" if which in TEXTS else _of_image(row, "pixels"), 0)
        if (job.fits / name).is_dir():
            methods[row] = pertinent.load_explainer(job.fits / name)
    for row, method in list(methods.items()) * 3:
        start = time.perf_counter()
        features = None if which in TEXTS else "pixels"
        pertinent.explain(model, test, method, removal=removal, features=features, progress=False)
        found.setdefault(row, []).append(time.perf_counter() - start)
    return found


def timings() -> dict[str, Callable[[Job], dict[str, Any]]]:
    """The stages that come last, one at a time."""
    return {f"{which}_timed": partial(timed, which=which) for which in (*TEXTS, *IMAGES)}


def boxes() -> dict[str, Callable[[Job], dict[str, Any]]]:
    """The stages that come first: the black boxes."""
    return {f"{which}_box": partial(accuracy, which=which) for which in (*TEXTS, *IMAGES)}


def stages_of(seeds: int) -> dict[str, Callable[[Job], dict[str, Any]]]:
    """All stages by name, the most telling first."""
    found: dict[str, Callable[[Job], dict[str, Any]]] = {}
    for seed in range(seeds):
        found |= _of_seed(seed)
        if seed == 0:
            found |= _once()
    return found | _alphas()


def _of_seed(seed: int) -> dict[str, Callable[[Job], dict[str, Any]]]:
    """What is fitted with every seed."""
    texts = {
        _name(which, row, seed): partial(fitted, which=which, row=row, seed=seed)
        for which in TEXTS
        for row in (*FORMS, "l2x", "vibi", *(LONGER if which == "imdb" else ()))
    }
    pictures = {
        _name(which, _of_image(row, features), seed): partial(
            images, which=which, features=features, row=row, seed=seed
        )
        for which in IMAGES
        for features in ("patches:7", "pixels")
        for row in FORMS
    }
    return texts | pictures


def _once() -> dict[str, Callable[[Job], dict[str, Any]]]:
    """What is measured with one seed: methods that sample, ablations, L2X with other K, other settings."""
    one_by_one = {
        _name(which, row, 0): partial(sampled, which=which, row=row) for which in TEXTS for row in SAMPLED
    }
    sizes = {
        _name(which, f"l2x {k}", 0): partial(fitted, which=which, row="l2x", seed=0, k=k)
        for which in TEXTS
        for k in (5, 20)
    }
    changed = {
        _name(which, row, 0): partial(fitted, which=which, row=row, seed=0)
        for which in TEXTS
        for row in ABLATIONS
    }
    return one_by_one | sizes | changed


def _alphas() -> dict[str, Callable[[Job], dict[str, Any]]]:
    """Other weights of the approximator's loss (Table 12)."""
    return {
        _name(which, row, 0): partial(fitted, which=which, row=row, seed=0)
        for which in TEXTS
        for row in ALPHAS
        if FITTED[row]["alpha"] != ALPHA_BETA[which][0]
    }


def _of_image(row: str, features: str) -> str:
    """The row with its features."""
    return row.replace("aim", features.partition(":")[0])


def _name(which: str, row: str, seed: int) -> str:
    return f"{which} {row} {seed}".replace(",", "").replace(" ", "_")
