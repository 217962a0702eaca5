"""Precision of explanations against the words that people marked (Table 10)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import pertinent
from experiments.hsieh2021.marked_sets import CLASSES, Marked, key_of, read
from experiments.hsieh2021.records import Rows
from experiments.hsieh2021.text_models import TextClassifier, accuracy
from experiments.hsieh2021.texts import explain
from experiments.shared.data import Examples
from experiments.shared.stages import Run
from pertinent.metrics.plausibility import AveragePrecision, PrecisionAtK
from pertinent.models.base import Model

SIZES = (1, 2, 3, 4, 5)
MAX_LENGTH = 96
"""Tokens that the classifiers read at most."""


def classifier(name: str, epochs: int) -> TextClassifier:
    """Return the classifier of a data set."""
    return TextClassifier(f"marks-{key_of(name)}", "minilm", CLASSES[name], MAX_LENGTH, epochs)


def correctly_classified(model: Model, texts: list[Marked], n: int) -> list[Marked]:
    """Return the first texts whose class is predicted, of which the marks are a reason for the decision."""
    inputs = [text.text for text in texts]
    options = {"removal": "zero-vector", "features": "words", "progress": False}
    explanations = pertinent.explain(model, inputs, "random", **options)
    right = sorted(e.index for e in explanations if e.target == texts[e.index].label)
    return [texts[i] for i in right[:n]]


def train_model(run: Run, name: str, experiment: str, n: int, epochs: int) -> list[dict[str, Any]]:
    """Train a classifier, and record its accuracy and the numbers of words."""
    training, marked = read(run.data, name)
    learned, tested = (
        Examples([text.text for text in part], [text.label for text in part]) for part in (training, marked)
    )
    model, rows = classifier(name, epochs).train(run, learned), Rows(experiment)
    rows.add("–", "accuracy", [accuracy(model, tested)])
    texts = correctly_classified(model, marked, n)
    rows.add("–", "words", [len(text.text.split()) for text in texts])
    rows.add("–", "marked words", [len(text.spans) for text in texts])
    rows.add("–", "training texts", [len(training)])
    return rows.rows


def measure_row(
    run: Run, name: str, experiment: str, row: str, *, n: int, epochs: int
) -> list[dict[str, Any]]:
    """Explain all texts by a method, and measure how many of the first words people marked."""
    model, rows = classifier(name, epochs).load(run), Rows(experiment)
    texts = correctly_classified(model, read(run.data, name)[1], n)
    start = time.perf_counter()
    explanations = explain(model, [text.text for text in texts], row)
    rows.add(row, "seconds", [(time.perf_counter() - start) / len(texts)])
    metrics = [*(PrecisionAtK(k) for k in SIZES), AveragePrecision()]
    annotations = [text.spans for text in texts]
    evaluation = pertinent.evaluate(model, explanations, metrics, annotations=annotations, progress=False)
    names = list(evaluation.better)
    values = np.full((len(texts), len(metrics)), np.nan)
    for value in evaluation.rows:
        values[explanations[value.explanation].index, names.index(value.metric)] = value.value
    rows.add(row, "precision", values[:, : len(SIZES)])
    rows.add(row, "average precision", values[:, -1])
    for failure in (*explanations.failures, *evaluation.failures):
        print(f"text {failure.index}: {failure.reason}")
    return rows.rows
