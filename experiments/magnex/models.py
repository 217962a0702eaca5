"""Black boxes: a forest, a convolutional network, a fine-tuned encoder and readers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import pertinent
from experiments.magnex.sets import halves, images, questions, reviews
from experiments.shared.stages import Run
from pertinent.models.base import Model
from pertinent.models.embedded.load import load_transformer

CLASSES = ("negative", "positive")
MAX_LENGTH = {"imdb": 512, "squad": 384}
"""Tokens that a model reads at most."""
TREES = 50
CLASSIFIER = "classifier"
"""Folder of the classifier of reviews."""


class PixelForest:
    """A forest on the pixels of images."""

    def __init__(self, forest: Any) -> None:
        self.forest = forest

    def __call__(self, pixels: Any) -> Any:
        """Return class probabilities."""
        return self.forest.predict_proba(np.asarray(pixels).reshape(len(pixels), -1))


def train_forest(data: Path, limit: int | None = None) -> Model:
    """Return a forest that learned from training images."""
    from sklearn.ensemble import RandomForestClassifier

    pixels, labels = images(data, "train", limit)
    forest = RandomForestClassifier(TREES, random_state=0, n_jobs=1)
    forest.fit(pixels.reshape(len(pixels), -1), labels)
    classes = [str(i) for i in range(10)]
    return pertinent.wrap(PixelForest(forest), kind="image", output="probability", classes=classes)


def train_classifier(run: Run, limit: int | None = None) -> dict[str, Any]:
    """Fine-tune an encoder on reviews, and return its accuracy on the test reviews."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(
        run.encoder, num_labels=2, id2label=dict(enumerate(CLASSES)), dtype=torch.float32
    ).to(run.device)
    texts, labels = reviews(run.data, "train", limit)
    trained = pertinent.train(
        (model, AutoTokenizer.from_pretrained(run.encoder)),
        [{"text": text} for text in texts],
        labels,
        out=run.work / CLASSIFIER,
        counterfactual=False,
        patience=None,
        epochs=3,
        batch_size=32,
        learning_rate=5e-5,
        seed=0,
        max_length=MAX_LENGTH["imdb"],
        precision="bfloat16" if run.device.startswith("cuda") else "float32",
        progress=False,
    )
    return {"accuracy": accuracy(trained.model, *reviews(run.data, "test", limit))}


def load_classifier(run: Run) -> Model:
    """Return the fine-tuned encoder."""
    return load_transformer(run.work / CLASSIFIER, device=run.device)


def accuracy(model: Model, inputs: Any, labels: Any) -> float:
    """Return how often the model predicts the label."""
    explanations = pertinent.explain(model, list(inputs), "random", progress=False)
    return float(np.mean([e.target == labels[e.index] for e in explanations]))


@dataclass(frozen=True)
class Reader:
    """An encoder that is fine-tuned to answer questions.

    Attributes
    ----------
    half
        Whether it is trained on the questions of half of the paragraphs.
    """

    name: str
    epochs: int = 3
    half: bool = False
    batch_size: int = 32
    learning_rate: float = 1e-4

    def folder(self, run: Run) -> Path:
        """Return the folder of the reader."""
        return run.work / f"reader {self.name}".replace(" ", "_")

    def train(self, run: Run, limit: int | None = None) -> dict[str, Any]:
        """Train and save the reader, and return how often its answers are right."""
        from transformers import AutoModelForQuestionAnswering, AutoTokenizer

        torch.manual_seed(0)
        tokenizer = AutoTokenizer.from_pretrained(run.encoder)
        model = AutoModelForQuestionAnswering.from_pretrained(run.encoder, dtype=torch.float32)
        model.to(run.device).train()
        rows = questions(run.data, "train", limit)
        rows = halves(rows)[0] if self.half else rows
        data = [span for row in rows if (span := _span(tokenizer, row)) is not None]
        n_steps, on_gpu = self.epochs * math.ceil(len(data) / self.batch_size), run.device.startswith("cuda")
        optimizer = torch.optim.AdamW(model.parameters(), self.learning_rate, weight_decay=0.01, fused=on_gpu)
        lengths = [len(encoded["input_ids"]) for encoded, _ in data]
        for step, batch in enumerate(_batches(lengths, self.batch_size, self.epochs)):
            for group in optimizer.param_groups:
                group["lr"] = self.learning_rate * warmed_up(step, n_steps)
            padded = tokenizer.pad([data[i][0] for i in batch], return_tensors="pt").to(run.device)
            spans = torch.tensor([data[i][1] for i in batch], device=run.device)
            answer = model(**padded)
            loss = cross_entropy(answer.start_logits, spans[:, 0])
            loss = loss + cross_entropy(answer.end_logits, spans[:, 1])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval().save_pretrained(self.folder(run))
        tokenizer.save_pretrained(self.folder(run))
        tested = questions(run.data, "test", 500 if limit is None else limit)
        return answers(self.load(run), tested) | {"epochs": self.epochs}

    def load(self, run: Run, *, fix_question: bool = True) -> Any:
        """Return the reader, wrapped; its question is never removed, unless it is not fixed."""
        from transformers import AutoModelForQuestionAnswering, AutoTokenizer

        model = AutoModelForQuestionAnswering.from_pretrained(self.folder(run), dtype=torch.float32)
        both = model.to(run.device).eval(), AutoTokenizer.from_pretrained(self.folder(run))
        return pertinent.wrap(both, max_length=MAX_LENGTH["squad"], fix_question=fix_question)


READERS = {
    reader.name: reader
    for reader in (
        Reader("of the tables"),
        Reader("as before", batch_size=64, learning_rate=1.4e-4),
        Reader("half", half=True),
        Reader("longer", epochs=8, batch_size=64, learning_rate=1.5e-4),
    )
}


def warmed_up(step: int, n_steps: int) -> float:
    """Return the share of the learning rate: it rises for a tenth of all steps, and then falls to 0."""
    return min((step + 1) / (0.1 * n_steps), (1 - step / n_steps) / 0.9)


def _batches(lengths: list[int], size: int, epochs: int) -> Iterator[list[int]]:
    """Yield batches of similar length, in a random order, for each epoch."""
    for _ in range(epochs):
        order = torch.randperm(len(lengths)).tolist()
        pools = [order[first : first + 50 * size] for first in range(0, len(order), 50 * size)]
        order = [i for pool in pools for i in sorted(pool, key=lambda i: lengths[i])]
        batches = [order[first : first + size] for first in range(0, len(order), size)]
        for i in torch.randperm(len(batches)).tolist():
            yield batches[i]


def _span(tokenizer: Any, row: dict[str, Any]) -> Any:
    """Return a question as tokens with the first and last token of its answer; ``None`` if it was cut off."""
    encoded = tokenizer(
        row["question"],
        row["context"],
        truncation="only_second",
        max_length=MAX_LENGTH["squad"],
        return_offsets_mapping=True,
    )
    offsets, segments = encoded.pop("offset_mapping"), encoded.sequence_ids(0)
    begin = row["answer_start"][0]
    end = begin + len(row["answers"][0])
    inside = [
        i
        for i, (segment, (a, b)) in enumerate(zip(segments, offsets, strict=True))
        if segment == 1 and a < end and b > begin
    ]
    return (dict(encoded), (inside[0], inside[-1])) if inside else None


def answers(model: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return exact match and F1, by the words of the answers."""
    exact, overlap = [], []
    for row in rows:
        input = model.prepare({"question": row["question"], "context": row["context"]})
        words = _words(model.details(input)["answer"])
        truths = [_words(answer) for answer in row["answers"]]
        exact.append(max(words == truth for truth in truths))
        overlap.append(max(_f1(words, truth) for truth in truths))
    return {"exact match": float(np.mean(exact)), "F1": float(np.mean(overlap)), "questions": len(rows)}


def _words(answer: str) -> list[str]:
    kept = "".join(c for c in answer.lower() if c.isalnum() or c.isspace())
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def _f1(words: list[str], truth: list[str]) -> float:
    common = sum(min(words.count(word), truth.count(word)) for word in set(words))
    return 2 * common / (len(words) + len(truth)) if words or truth else 1.0
