"""Fits of methods to black boxes of texts, and their measures on test texts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import pertinent
from experiments.shared.stages import Run
from experiments.vo2023.black_boxes import image_model, text_model
from experiments.vo2023.forms import SAMPLED, Fit, K
from experiments.vo2023.sets import TEXTS, read
from pertinent.array_types import Floats
from pertinent.metrics.top_features import (
    ClassFaithfulness,
    ClassIoU,
    Faithfulness,
    NegativeDeltaLogOdds,
    PositiveDeltaLogOdds,
)
from pertinent.stats import spearman

SIZES = (5, 10, 20)
"""Numbers of top words."""
LONG = 20
"""Number of words that a text must have for its true words to be looked for."""
ALL_CLASSES = ("lime", "kernel-shap")
"""Sampled methods that have scores of every class."""
EXAMPLES = 12
DEV = "dev faithfulness"
Result = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How much is learned from and measured.

    Attributes
    ----------
    train, test
        Inputs of a data set that are learned from, and that are explained.
    sampled
        Test inputs for methods that evaluate the black box for each of them.
    epochs, box_epochs
        Epochs of explainers and of black boxes.
    fit_on
        Number of training texts that explainers learn from, if not all.
    """

    train: int = 20_000
    test: int = 1000
    sampled: int = 100
    epochs: int = 10
    box_epochs: int = 4
    batch_size: int = 100
    fit_on: int | None = None


@dataclass(frozen=True)
class Subject:
    """A black box with the inputs to learn from, and the inputs to explain."""

    model: Any
    training: list[Any]
    test: list[Any]
    accuracy: float


def box_name(dataset: str, box: str, sizes: Sizes) -> str:
    """Return the name of a black box's files."""
    return f"{dataset} {box}, {sizes.train} inputs, {sizes.box_epochs} epochs"


def load(run: Run, dataset: str, sizes: Sizes, box: str = "network") -> Subject:
    """Return a black box, trained or read from the work folder, and its inputs."""
    training, test = read(run.data, dataset, "train").part(0, sizes.train), read(run.data, dataset, "test")
    weights = run.work / f"{box_name(dataset, box, sizes)}.safetensors"
    options: Any = {"epochs": sizes.box_epochs, "device": run.device, "weights": weights}
    if dataset in TEXTS:
        model = text_model(dataset, box, training, **options)
        features = {"features": "sentences", "removal": "pad-token"}
    else:
        model = image_model(dataset, training, **options)
        features = {"features": "patches:7", "removal": "constant"}
    tested = test.part(0, sizes.test)
    answers = pertinent.explain(model, tested.inputs, "random", progress=False, **features)
    accuracy = float(np.mean([e.target == tested.labels[e.index] for e in answers]))
    return Subject(model, training.inputs[: sizes.fit_on], tested.inputs, accuracy)


def train_box(run: Run, dataset: str, sizes: Sizes, box: str = "network") -> Result:
    """Train a black box, and return its accuracy."""
    return {"accuracy": load(run, dataset, sizes, box).accuracy}


def fit_aim(subject: Subject, sizes: Sizes, method: str = "aim", **settings: Any) -> Any:
    """Return an explainer that was fitted to a black box."""
    training = {"epochs": sizes.epochs, "batch_size": sizes.batch_size, "patience": None, "progress": False}
    return pertinent.fit(subject.model, subject.training, method, **training | settings)


def measure_fit(run: Run, fit: Fit, sizes: Sizes, *, keep: bool = False) -> Result:
    """Fit a form to the black box, explain the test texts, and measure; sampled methods are not fitted."""
    subject = load(run, fit.dataset, sizes, fit.box)
    start, card, pi = time.perf_counter(), dict[str, Any](), list[Any]()
    name, settings = fit.method
    explainer: Any = name
    options: dict[str, Any] = {"removal": "pad-token", "seed": fit.seed, "progress": False}
    if fit.form not in SAMPLED:
        with record_selector(random_segments=fit.form.endswith("before")) as pi:
            out = fits_folder(run) / fit.file if keep else None
            explainer = fit_aim(subject, sizes, name, out=out, **options | settings)
        card, settings = explainer.network.card, {}
    seconds = time.perf_counter() - start
    test = subject.test[: sizes.sampled] if fit.form in SAMPLED and fit.box == "network" else subject.test
    start = time.perf_counter()
    explanations = pertinent.explain(subject.model, test, explainer, **settings, **options)
    of_classes = card.get("classes") == "all" or fit.form in ALL_CLASSES
    history = card.get("history", [])
    return {
        "name": fit.name,
        "accuracy of the black box": subject.accuracy,
        "steps": card.get("steps", 0),
        "fit seconds": seconds,
        "seconds an input": (time.perf_counter() - start) / len(test),
        DEV: card.get("dev_faithfulness"),
        "kept": card.get("dev_kept"),
        "kept by check": [each["eval_kept"] for each in history if "eval_kept" in each],
        "doubt": card.get("doubt"),
        "pi": pi,
        **measure(subject.model, explanations, of_classes=of_classes),
        **(true_words(subject.model, test, explanations) if fit.box == "linear" else {}),
    }


def fits_folder(run: Run) -> Any:
    """Return the folder of fitted explainers."""
    return run.work / "fits"


@contextmanager
def record_selector(*, random_segments: bool) -> Iterator[list[tuple[int, float, float]]]:
    """Record (step, mean, deviation) of the selector's keep-probability, in some of the steps."""
    import torch

    from pertinent.learners.methods.aim import AIMLearner
    from pertinent.learners.networks.word_scorer import WordScorer

    original, init, count = AIMLearner.compute_loss, WordScorer.__init__, itertools.count()
    pi: list[tuple[int, float, float]] = []

    def compute_loss(learner: Any, batch: Any) -> Any:
        step = next(count)
        if learner.trained != "explainer" and (step % 25 == 0 or (step < 50 and step % 2 == 0)):
            with torch.no_grad():
                kept = batch.scores("selector")[:, 0].sigmoid()[batch.real]
            pi.append((step, round(float(kept.mean()), 4), round(float(kept.std()), 4)))
        return original(learner, batch)

    def with_random_segments(scorer: Any, *args: Any, **options: Any) -> None:
        init(scorer, *args, **options)
        torch.nn.init.normal_(scorer.segment.weight)

    with ExitStack() as stack:
        stack.enter_context(patch.object(AIMLearner, "compute_loss", compute_loss))
        if random_segments:
            stack.enter_context(patch.object(WordScorer, "__init__", with_random_segments))
        yield pi


def values_of(model: Any, explanations: Any, metric: Any) -> list[float]:
    """Return the value of a metric for each explanation."""
    rows = pertinent.evaluate(model, explanations, [metric], progress=False).rows
    return [row.value for row in rows]


def measure(model: Any, explanations: Any, *, of_classes: bool) -> Result:
    """Return means over texts, the values of each text, and the chosen words.

    Values at a sparsity of 10% have the name of the metric, values at others also the sparsity.
    """
    metrics: list[Any] = [Faithfulness(k=K), PositiveDeltaLogOdds(), NegativeDeltaLogOdds()]
    metrics += [
        "sufficiency",
        "comprehensiveness",
        *([ClassFaithfulness(), ClassIoU()] if of_classes else []),
    ]
    values: dict[str, list[float]] = {}
    for row in pertinent.evaluate(model, explanations, metrics, progress=False).rows:
        suffix = "" if row.sparsity in (None, 0.1) else f" {row.sparsity}"
        values.setdefault(f"{row.metric}{suffix}", []).append(round(row.value, 4))
    for column in range(len(explanations[0].classes)) if of_classes else ():
        metric = ClassFaithfulness(target=column)
        values[f"class-faithfulness {column}"] = values_of(model, explanations, metric)
    for size in SIZES:
        values[f"faithfulness of {size}"] = values_of(model, explanations, Faithfulness(k=size))
    means = {name: float(np.mean(own)) for name, own in values.items()}
    return means | {
        "values": values,
        "evaluations": float(np.mean([e.evaluations for e in explanations])),
        "failures": [failure.reason for failure in explanations.failures][:3],
        "words": [[word for word, _ in e.top(max(SIZES))] for e in explanations],
        "targets": [e.target_name for e in explanations],
        "examples": [_example(e) for e in explanations[:EXAMPLES]],
    }


def _example(e: Any) -> Result:
    """Return the top words, for each class if there are scores."""
    top = {e.target_name: [word for word, _ in e.top(K)]}
    if e.class_scores is not None:
        top = {name: [word for word, _ in e.for_class(name).top(K)] for name in e.classes}
    return {"text": " ".join(e.features), "predicted": e.target_name, "top": top}


def true_words(model: Any, texts: list[str], explanations: Any) -> dict[str, float]:
    """Return means over texts of `agreement` with a linear black box.

    The means "…, relative" are of scores minus their mean over classes.
    """
    weights = model.model.embeddings.weight.detach().double().cpu().numpy()
    weights -= weights.mean(axis=1, keepdims=True)
    rows: list[tuple[float, ...]] = []
    for e in explanations:
        tokens = model.prepare(texts[e.index]).tokens
        real = tokens.feature >= 0
        own = weights[tokens.ids[real], e.target]
        truth = np.bincount(tokens.feature[real], own, minlength=len(e.scores))
        if len(truth) >= LONG:
            scores = np.asarray(e.scores)
            has_classes = e.class_scores is not None
            relative = (e.class_scores - e.class_scores.mean(0))[e.target] if has_classes else scores
            rows.append((*agreement(scores, truth), *agreement(relative, truth)))
    names = ("true words", "true signs", "rank correlation")
    means = np.mean(rows, axis=0).tolist()
    return dict(zip((*names, *(f"{name}, relative" for name in names)), means, strict=True))


def agreement(scores: Floats, truth: Floats, k: int = K) -> tuple[float, float, float]:
    """Return the share of true words among the top k, the share of right signs, and Spearman's correlation.

    True words are those with the k largest true weights, and those with the same weight as the kth. Signs are
    compared for the k words whose true weights are largest in magnitude.
    """
    top = np.argsort(-scores, kind="stable")[:k]
    share = float((truth[top] >= np.sort(truth)[-k]).mean())
    large = np.argsort(-np.abs(truth), kind="stable")[:k]
    signs = float((np.sign(scores[large]) == np.sign(truth[large])).mean())
    rho = float(np.nan_to_num(spearman(np.stack([scores, truth]))[0, 1]))
    return share, signs, rho
