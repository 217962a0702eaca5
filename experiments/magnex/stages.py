"""The stages of the measurement. Each returns what goes into one JSON file, of one black box."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
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
Stage = Callable[["Job"], Result]
PIXELS = {"removal": "constant", "features": "pixels"}
"""A removed pixel is black."""
OPTIONS: dict[str, dict[str, Any]] = {
    "forest": PIXELS,
    "cnn": PIXELS,
    "imdb": {},
    "squad": {},
}
METRICS = ("sufficiency-of-selected", "share-removed")
GOALS = {"forest": (0.99, 0.81), "cnn": (0.99, 0.88), "imdb": (0.95, 0.94), "squad": (0.88, 0.76)}
"""Sufficiency and sparsity."""
AS_PAPER = "at the paper's sparsity"
BATCH = 8
"""Inputs in each step of a fit."""
DEV = 100
"""Inputs by which a fit chooses its best network, and others by which v is chosen."""
REPEATS = 3
"""Of which the fastest is told, where many inputs are timed together."""
EXAMPLES = 10
"""Explanations that are kept for pictures."""


@dataclass(frozen=True)
class Fit:
    """One explainer: v of Eqn. 6, the learning rate, the number of masks of each input, and the seed."""

    v: float = 0.95
    learning_rate: float = 1e-3
    samples: int = 16
    seed: int = 0

    @property
    def setting(self) -> str:
        """As files are called by which it is chosen."""
        return f"grid-v{self.v:g}-lr{self.learning_rate:g}"

    @property
    def name(self) -> str:
        """As files are called."""
        return f"fit-v{self.v:g}-lr{self.learning_rate:g}-seed{self.seed}"


GRID: dict[str, list[Fit]] = {
    "forest": [Fit(v=v) for v in (0.95, 0.9, 0.8)],
    "cnn": [Fit(v=v) for v in (0.95, 0.9)],
    "imdb": [Fit(v=v, learning_rate=rate, samples=32) for v in (0.95, 0.9) for rate in (1e-3, 3e-3)],
    "squad": [Fit(v=v, learning_rate=rate, samples=32) for v in (0.9, 0.7) for rate in (1e-3, 3e-3)],
}
"""The paper does not say what v is: it is chosen by how good selections of dev inputs are."""


def choose(which: str, found: Mapping[str, Result]) -> Fit | None:
    """Of the settings that are sufficient enough on dev inputs the sparsest; ``None`` until all were tried.

    If none is, then the most sufficient one. `found` are results of stages by their names.
    """
    if not all(own.setting in found for own in GRID[which]):
        return None
    measured = {own: [np.mean(found[own.setting][name]) for name in METRICS] for own in GRID[which]}
    enough = [own for own in GRID[which] if measured[own][0] >= GOALS[which][0]]
    if enough:
        return max(enough, key=lambda own: measured[own][1])
    return max(GRID[which], key=lambda own: measured[own][0])


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
    together: int
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
        load = models.load_classifier if self.which == "imdb" else models.load_reader
        return load(self.folder / "model", self.device)

    def inputs(self, split: str, n: int) -> list[Any]:
        """Inputs to learn from or to test on."""
        if self.which == "imdb":
            return reviews(self.data, split, n)[0]
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
    places = job.data, job.encoder, job.folder / "model", job.device, job.limit
    return {"accuracy": models.classifier(*places)} if job.which == "imdb" else models.reader(*places)


def sampled(method: str, job: Job) -> Result:
    """The scores of the test inputs by LIME or integrated gradients."""
    found = _explained(job, job.model(), job.inputs("test", job.test), method)
    return {"scores": [e.scores.tolist() for e in found]}


def tried(own: Fit, job: Job) -> Result:
    """How good an explainer's selections of dev inputs are, to choose its settings by."""
    model = job.model()
    fitted = _fitted(own, job, model, None)
    inputs = job.inputs("test", job.test + DEV)[job.test :]
    return _measured(list(_explained(job, model, inputs, fitted)), model)


def fit(own: Fit, job: Job) -> Result:
    """An explainer, and how good its selections of test inputs are."""
    model = job.model()
    start = time.perf_counter()
    fitted = _fitted(own, job, model, job.folder / own.name)
    seconds = time.perf_counter() - start
    card: Any = fitted.network.card
    found = list(_explained(job, model, job.inputs("test", job.test), fitted))
    Explanations(found[:EXAMPLES]).save(job.folder / f"{own.name}.json")
    history = [each["eval_quality"] for each in card["history"] if "eval_quality" in each]
    return {
        "fit seconds": seconds,
        "steps": card["steps"],
        "history": history,
        **_measured(found, model),
        AS_PAPER: _measured([_share(job, e, e.scores) for e in found], model),
    }


def _fitted(own: Fit, job: Job, model: Any, out: Path | None) -> Any:
    return pertinent.fit(
        model,
        job.inputs("train", job.train),
        "magnex",
        out=out,
        least_sufficiency=own.v,
        learning_rate=own.learning_rate,
        samples=own.samples,
        seed=own.seed,
        validation_fraction=min(0.5, DEV / job.train),
        epochs=max(1, round(job.steps * BATCH / max(job.train / 2, job.train - DEV))),
        batch_size=BATCH,
        patience=None,
        **job.options,
    )


def compared(job: Job, names: Sequence[str], scores: Sequence[Sequence[float]]) -> Result:
    """The top k features of another method, k the number that an explainer selected of the same input."""
    model, inputs = job.model(), job.inputs("test", job.test)
    found: Result = {}
    for name in names:
        ours = _explained(job, model, inputs, pertinent.load_explainer(job.folder / name))
        tops = [_top(e, np.array(own)) for e, own in zip(ours, scores, strict=True)]
        found[name] = _measured(tops, model)
    found[AS_PAPER] = _measured(
        [_share(job, e, np.array(own)) for e, own in zip(ours, scores, strict=True)], model
    )
    return found


def one_by_one(job: Job, name: str) -> Result:
    """Seconds for each input, one at a time, with nothing beside it."""
    model, inputs = job.model(), job.inputs("test", job.timed)
    fitted = pertinent.load_explainer(job.folder / name)
    found: Result = {}
    for row, method in {"magnex": fitted, **{own: own for own in methods_beside(job.which)}}.items():
        _explained(job, model, inputs[:2], method)
        found[row] = [_seconds(job, model, [input], method) for input in inputs]
    return found


def together(job: Job, name: str) -> Result:
    """Seconds for many inputs, with nothing beside it: the model's own predictions, and explanations."""
    model, inputs = job.model(), job.inputs("test", job.together)
    found: Result = {"inputs": len(inputs), "device": job.device}
    fitted = pertinent.load_explainer(job.folder / name)
    for row, method in {"prediction": "random", "magnex": fitted}.items():
        _explained(job, model, inputs, method)
        found[row] = min(_seconds(job, model, inputs, method) for _ in range(REPEATS))
    return found


def _seconds(job: Job, model: Any, inputs: Sequence[Any], method: Any) -> float:
    start = time.perf_counter()
    _explained(job, model, inputs, method)
    return time.perf_counter() - start


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


def _top(e: Explanation, scores: Any) -> Explanation:
    """As many of the highest scores as were selected, as scores 1, the others 0."""
    return replace(e, scores=top(scores, e.details["selected"]).astype(float))


def _share(job: Job, e: Explanation, scores: Any) -> Explanation:
    """The share of features with the highest scores that the paper's explainer keeps."""
    k = round((1 - GOALS[job.which][1]) * len(scores))
    return replace(e, scores=top(scores, k).astype(float))


def top(scores: Any, k: int) -> Any:
    """The k features with the highest scores, as a mask."""
    mask = np.zeros(len(scores), dtype=bool)
    mask[np.argsort(-scores, kind="stable")[:k]] = True
    return mask


def _measured(found: Sequence[Explanation], model: Any) -> Result:
    measured = pertinent.evaluate(model, Explanations(found), list(METRICS), progress=False)
    return {name: [row.value for row in measured.rows if row.metric == name] for name in METRICS}


def methods_beside(which: str) -> list[str]:
    """What magnex is compared with; a forest has no gradients."""
    return ["lime"] if which == "forest" else ["lime", "integrated-gradients"]


def stages_of(which: str, seeds: int, found: Mapping[str, Result]) -> list[Mapping[str, Stage]]:
    """The phases of a black box, each of which needs what those before it `found`; the last is timed."""
    phases: list[Mapping[str, Stage]] = [
        {"model": black_box},
        {own.setting: partial(tried, own) for own in GRID[which]},
    ]
    best, others = choose(which, found), methods_beside(which)
    if best is None:
        return phases
    fits = [replace(best, seed=seed) for seed in range(seeds)]
    phases.append(
        {own.name: partial(fit, own) for own in fits}
        | {method: partial(sampled, method) for method in others}
    )
    if not all(method in found for method in others):
        return phases
    names = [own.name for own in fits]
    return [
        *phases,
        {
            f"{method}-compared": partial(compared, names=names, scores=found[method]["scores"])
            for method in others
        },
        {"seconds": partial(one_by_one, name=best.name), "speed": partial(together, name=best.name)},
    ]
