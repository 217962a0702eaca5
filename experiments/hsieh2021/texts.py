"""Texts of AG News explained by every method, and measured by the paper's criteria (Tables 1, 2, 3 and 9)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pertinent
from experiments.hsieh2021.records import Rows
from experiments.hsieh2021.text_criteria import (
    WORDS,
    RadiiOfIrrelevant,
    RadiiOfRelevant,
    TopDeletion,
    TopInsertion,
    top_words,
)
from experiments.hsieh2021.text_models import TextClassifier, accuracy
from experiments.shared.data import Examples, Row, examples, read_packed, read_parquet, shuffled
from experiments.shared.stages import Run
from pertinent.explainers.base import explainers
from pertinent.models.base import Model
from pertinent.results.explanation import Explanations

CLASSES = ("World", "Sports", "Business", "Sci/Tech")
MAX_LENGTH = 64
"""Tokens that the models read at most."""
TRAINING = 16_000
"""Texts that the models learn from."""
LENGTHS = (20, 40)
"""Fewest and most words, separated by spaces, of the texts that are explained."""
ZERO, RANDOM = "zero-vector", "random-token"
CHOSEN = {"chosen": 0.2}
"""At least five words of texts of at least 20 words."""
SETS: dict[str, Any] = {"sparsity": (0.025, 0.05, 0.075, 0.1, 0.125), "budget": 250}
"""About one to five words."""

MODELS = {
    "lstm": "BiLSTM",
    "vectors": "BiLSTM, pretrained vectors",
    "minilm": "MiniLM",
}
"""Names of the models by kind."""
EPOCHS = {"lstm": 4, "vectors": 4, "minilm": 2}

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "random": ("random", {}),
    "gradient": ("gradient", {"reduce": "length"}),
    "integrated-gradients": ("integrated-gradients", {"points": 50, "baseline": ZERO}),
    "leave-one-out": ("leave-one-out", {}),
    "shapley-sampling": ("shapley-sampling", {"samples": 25}),
    "greedy-as": ("greedy-as", CHOSEN),
    "greedy-as, relevant": ("greedy-as", CHOSEN | {"criterion": "relevant"}),
    "counterfactual": ("counterfactual", {"most": 5}),
    "expected-gradients": ("expected-gradients", {"samples": 200}),
    "lime": ("lime", {"samples": 1000}),
    "shapley": ("shapley", {"budget": 1000}),
    "anchors": ("anchors", SETS | {"budget": 1000}),
    "thompson-search": ("thompson-search", SETS),
    "parallel-local-search": ("parallel-local-search", SETS),
    "one-step-banzhaf": ("one-step-banzhaf", {}),
    "one-step-banzhaf, relevant": ("one-step-banzhaf", {"criterion": "relevant"}),
    "greedy": ("greedy", CHOSEN),
    "greedy, relevant": ("greedy", CHOSEN | {"criterion": "relevant"}),
    "greedy-as, 1,000 subsets": ("greedy-as", CHOSEN | {"subsets": 1000}),
}
"""Rows, the most telling first."""
DEFAULT = tuple(row for row in METHODS if row != "greedy-as, 1,000 subsets")
"""Rows that are run by default."""


def experiment(kind: str) -> str:
    """Return the name of a model's experiment in the records."""
    return f"AG News, {MODELS[kind]}"


def read(folder: Path, split: str) -> Examples:
    """Return the training or test texts, shuffled."""
    return examples(read_packed(folder, f"ag_news/{split}", lambda: read_rows(folder, split)))


def read_rows(folder: Path, split: str, limit: int | None = None) -> list[Row]:
    """Return the shuffled rows of a Parquet file."""
    rows = shuffled(read_parquet(folder / "ag_news" / split, ["text", "label"]))[:limit]
    return [{"text": row["text"].replace("\\", " "), "label": int(row["label"])} for row in rows]


def explained_texts(test: Examples, n: int, lengths: Sequence[int]) -> Examples:
    """Return the first texts of a length when classes take turns."""
    pairs = zip(test.inputs, test.labels, strict=True)
    fitting = [(text, label) for text, label in pairs if lengths[0] <= len(text.split()) <= lengths[1]]
    return Examples(*map(list, zip(*fitting, strict=True))).balanced(n)


def train_model(
    run: Run, classifier: TextClassifier, *, training: int, tested: int, texts: int, lengths: Sequence[int]
) -> list[dict[str, Any]]:
    """Train a model, and record its accuracy, the texts, predictions, and the norms of their embeddings."""
    model = classifier.train(run, read(run.data, "train").part(0, training))
    test = read(run.data, "test")
    rows = Rows(experiment(classifier.kind))
    rows.add("–", "accuracy", [accuracy(model, test.part(0, tested))])
    inputs = explained_texts(test, texts, lengths).inputs
    explanations = pertinent.explain(model, inputs, "random", removal=ZERO, features="words", progress=False)
    descriptions = [
        {
            "words": list(e.features),
            "predicted": e.target_name,
            "probability": float(e.prediction.values[e.target]),
        }
        for e in explanations
    ]
    rows.add("–", "text", descriptions)
    inner: Any = model
    embeddings = inner.model.get_input_embeddings().weight.detach().float()
    ids: list[Any] = [e.input for e in explanations]
    rows.add("–", "norm", [embeddings[torch.tensor(input.tokens.ids)].norm().item() for input in ids])
    return rows.rows


def explain(model: Model, texts: list[str], row: str) -> Explanations:
    """Return the explanations of a row; baselines explain logits, as the authors' do."""
    method, settings = METHODS[row]
    if "raw" in explainers.get(method).traits.scales:
        settings = settings | {"scale": "raw"}
    return pertinent.explain(
        model, texts, method, removal=ZERO, features="words", seed=0, progress=False, **settings
    )


def measure_row(
    run: Run, classifier: TextClassifier, row: str, texts: int, lengths: Sequence[int]
) -> list[dict[str, Any]]:
    """Explain all texts by a method, and measure the explanations."""
    model, rows = classifier.load(run), Rows(experiment(classifier.kind))
    inputs = explained_texts(read(run.data, "test"), texts, lengths).inputs
    start = time.perf_counter()
    explanations = explain(model, inputs, row)
    rows.add(row, "seconds", [(time.perf_counter() - start) / len(inputs)])
    rows.add(row, "passes", [np.mean([e.evaluations for e in explanations])])
    for removal, metrics in (
        (ZERO, [RadiiOfIrrelevant(), RadiiOfRelevant(), TopInsertion(), TopDeletion()]),
        (RANDOM, [TopInsertion(), TopDeletion()]),
    ):
        evaluation = pertinent.evaluate(model, explanations, metrics, removal=removal, progress=False)
        settings = {} if removal == ZERO else {"removal": removal}
        for metric in metrics:
            curves = np.full((len(inputs), WORDS), np.nan)
            for value in evaluation.rows:
                if value.metric == metric.name and value.sparsity is not None:
                    curves[explanations[value.explanation].index, int(value.sparsity) - 1] = value.value
            rows.add(row, metric.name, curves, **settings)
        for failure in (*explanations.failures, *evaluation.failures):
            print(f"text {failure.index}: {failure.reason}")
    top = {e.index: np.flatnonzero(top_words(e)[-1]) for e in explanations}
    rows.add(row, "top words", [top.get(i, []) for i in range(len(inputs))])
    return rows.rows
