"""The stages of the measurement. Each returns what goes into one JSON file, of one black box."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import models
import numpy as np
from paper import LIME_SAMPLES, PATH_STEPS
from sets import as_pairs, images, questions, reviews

import pertinent
from pertinent.results.explanation import Explanation, Explanations

Result = dict[str, Any]
PIXELS = {"removal": "constant", "features": "pixels"}
"""A removed pixel is black."""
OPTIONS: dict[str, dict[str, Any]] = {
    "forest": PIXELS,
    "cnn": PIXELS,
    "imdb": {},
    "sentiment": {},
    "squad": {},
}
METRICS = ("sufficiency-of-selected", "share-removed")
EVALUATIONS = 128
"""In each step of a fit."""
WORDS = 40
"""Of reviews for the smaller transformer."""


@dataclass(frozen=True)
class Fit:
    """One explainer: v of Eqn. 6, the learning rate, how the gradient is estimated, and the seed."""

    v: float = 0.95
    learning_rate: float = 1e-3
    baseline: str = "leave-one-out"
    samples: int = 16
    seed: int = 0

    @property
    def name(self) -> str:
        """As files are called."""
        return f"fit-v{self.v:g}-lr{self.learning_rate:g}-{self.baseline}-{self.samples}-seed{self.seed}"


SEEDS = (0, 1, 2, 3, 4)
FITS: dict[str, list[Fit]] = {
    "forest": [Fit(v=v, seed=seed) for seed in SEEDS for v in (0.95, 0.9)],
    "cnn": [Fit(v=v, seed=seed) for seed in SEEDS for v in (0.95, 0.9)],
    "imdb": [
        Fit(v=v, learning_rate=rate, seed=seed)
        for seed in SEEDS
        for v in (0.9, 0.95)
        for rate in (1e-3, 3e-4)
    ],
    "sentiment": [Fit(v=0.9, seed=seed) for seed in SEEDS],
    "squad": [
        Fit(v=v, learning_rate=rate, seed=seed) for seed in SEEDS for v in (0.7, 0.9) for rate in (1e-3, 3e-4)
    ],
}
"""The paper does not say what v is."""


@dataclass(frozen=True)
class Job:
    """A black box, where things lie, and how much is measured."""

    which: str
    data: Path
    work: Path
    encoder: Path
    weights: Path
    device: str
    steps: int
    train: int
    test: int
    timed: int
    limit: int | None

    @property
    def folder(self) -> Path:
        """The model, explainers and explanations."""
        return self.work / self.which

    def model(self) -> Any:
        """The black box."""
        if self.which == "forest":
            return models.forest(self.data, self.limit)
        if self.which == "cnn":
            return models.cnn(self.weights, self.device)
        if self.which == "sentiment":
            return pertinent.load("sentiment")
        load = models.load_classifier if self.which == "imdb" else models.load_reader
        return load(self.folder / "model", self.device)

    def inputs(self, split: str, n: int) -> list[Any]:
        """Inputs to learn from or to test on."""
        if self.which == "imdb":
            return reviews(self.data, split, n)[0]
        if self.which == "sentiment":
            return [" ".join(text.split()[:WORDS]) for text in reviews(self.data, split, n)[0]]
        if self.which == "squad":
            return list(as_pairs(questions(self.data, split, n)))
        return list(images(self.data, split, n)[0])

    @property
    def options(self) -> dict[str, Any]:
        """How features are removed."""
        return OPTIONS[self.which] | {"progress": False}


def black_box(job: Job) -> Result:
    """Train it, and see how good it is."""
    job.folder.mkdir(parents=True, exist_ok=True)
    if job.which in ("forest", "cnn"):
        return {"accuracy": models.accuracy(job.model(), *images(job.data, "test"))}
    if job.which == "sentiment":
        labels = reviews(job.data, "test", job.test)[1]
        return {"accuracy": models.accuracy(job.model(), job.inputs("test", job.test), labels)}
    places = job.data, job.encoder, job.folder / "model", job.device, job.limit
    return {"accuracy": models.classifier(*places)} if job.which == "imdb" else models.reader(*places)


def sampled(method: str, job: Job) -> Result:
    """The test inputs explained by LIME or integrated gradients."""
    model, inputs = job.model(), job.inputs("test", job.test)
    start = time.perf_counter()
    found = _explained(job, model, inputs, method)
    seconds = time.perf_counter() - start
    found.save(job.folder / f"{method}.json")
    return {"seconds": seconds / len(found), "inputs": len(found)}


def fit(own: Fit, job: Job) -> Result:
    """An explainer, and how good its selections of the test inputs are."""
    model = job.model()
    batch_size = EVALUATIONS // own.samples
    epochs = max(1, round(job.steps * batch_size / (0.9 * job.train)))
    start = time.perf_counter()
    fitted = pertinent.fit(
        model,
        job.inputs("train", job.train),
        "magnex",
        out=job.folder / own.name,
        least_sufficiency=own.v,
        learning_rate=own.learning_rate,
        baseline=own.baseline,
        samples=own.samples,
        seed=own.seed,
        epochs=epochs,
        batch_size=batch_size,
        patience=None,
        **job.options,
    )
    seconds = time.perf_counter() - start
    card: Any = fitted.network.card
    found = pertinent.explain(model, job.inputs("test", job.test), fitted, **job.options)
    found.save(job.folder / f"{own.name}.json")
    history = [each["eval_quality"] for each in card["history"] if "eval_quality" in each]
    return {
        "fit seconds": seconds,
        "steps": card["steps"],
        "batch size": batch_size,
        "dev quality": card["dev_quality"],
        "history": history,
        "features": [len(e.scores) for e in found],
        **_measured(found, model),
    }


def compared(job: Job, name: str, method: str) -> Result:
    """The top k features of another method, k the number that an explainer selected of the same input."""
    model = job.model()
    selected = [e.details["selected"] for e in read(job.folder / f"{name}.json")]
    others = read(job.folder / f"{method}.json")
    tops = [_top(e, k) for e, k in zip(others, selected, strict=True)]
    return _measured(Explanations(tops), model)


def timed(job: Job, name: str) -> Result:
    """Seconds for each input, one at a time and together, with nothing beside it."""
    model = job.model()
    fitted = pertinent.load_explainer(job.folder / name)
    inputs = job.inputs("test", job.timed)
    found: Result = {}
    methods = {"magnex": fitted, "lime": "lime", "integrated-gradients": "integrated-gradients"}
    for row, method in methods.items():
        if row == "integrated-gradients" and job.which == "forest":
            continue
        _explained(job, model, inputs[:2], method)
        seconds = []
        for input in inputs:
            start = time.perf_counter()
            _explained(job, model, [input], method)
            seconds.append(time.perf_counter() - start)
        found[row] = seconds
    many = job.inputs("test", 50 * job.timed)
    for row, method in (("prediction", "random"), ("magnex together", fitted)):
        _explained(job, model, many, method)
        start = time.perf_counter()
        _explained(job, model, many, method)
        found[row] = time.perf_counter() - start
    return {"seconds": found, "together": len(many)}


def _explained(job: Job, model: Any, inputs: Sequence[Any], method: Any) -> Explanations:
    """By a method with the paper's settings."""
    settings: dict[str, Any] = {}
    if method == "lime":
        settings = {"samples": LIME_SAMPLES[job.which]}
    if method == "integrated-gradients":
        settings = {"points": PATH_STEPS}
    found: Explanations = pertinent.explain(model, list(inputs), method, **settings, **job.options)
    if found.failures:
        raise RuntimeError(found.failures[0].reason)
    return found


def _top(e: Explanation, k: int) -> Explanation:
    """The same with scores 1 for the k highest and 0 for the others."""
    scores = np.zeros(len(e.scores))
    scores[np.argsort(-e.scores, kind="stable")[:k]] = 1.0
    return replace(e, scores=scores)


def _measured(found: Explanations, model: Any) -> Result:
    measured = pertinent.evaluate(found, model, list(METRICS), progress=False)
    return {name: [row.value for row in measured.rows if row.metric == name] for name in METRICS}


def read(path: Path) -> list[Explanation]:
    """Explanations that a stage saved."""
    import json

    plain = json.loads(path.read_text(encoding="utf-8"))["explanations"]
    return [Explanation.from_dict(each) for each in plain]


def stages_of(which: str, seeds: int) -> list[dict[str, Callable[[Job], Result]]]:
    """The phases of a black box, each of which needs those before."""
    fits = [own for own in FITS[which] if own.seed < seeds]
    others = [
        method
        for method in ("lime", "integrated-gradients")
        if (which, method) != ("forest", "integrated-gradients")
    ]
    return [
        {"model": black_box},
        {own.name: partial(fit, own) for own in fits}
        | {method: partial(sampled, method) for method in others},
        {
            f"{method}-at-{own.name}": partial(compared, name=own.name, method=method)
            for own in fits
            for method in others
        },
        {"seconds": partial(timed, name=fits[0].name)},
    ]
