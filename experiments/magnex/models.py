"""The models that are explained: a forest, a convolutional network, a fine-tuned encoder and a reader."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sets import images, questions, reviews
from torch import nn
from torch.nn.functional import cross_entropy

import pertinent
from pertinent.models.base import Model

sys.path.append(str(Path(__file__).parents[1] / "hsieh2021"))

CLASSES = ("negative", "positive")
LONGEST = {"imdb": 512, "squad": 384}
"""Tokens."""
TREES = 50
LEARNING_RATE = 5e-5
READER_RATE = 1e-4
EPOCHS = 3
BATCH = 32


class PixelForest:
    """A forest on the pixels of images."""

    def __init__(self, forest: Any) -> None:
        self.forest = forest

    def __call__(self, pixels: Any) -> Any:
        """Class probabilities."""
        return self.forest.predict_proba(np.asarray(pixels).reshape(len(pixels), -1))


def forest(packed: Path, limit: int | None = None) -> Model:
    """A forest."""
    from sklearn.ensemble import RandomForestClassifier

    pixels, labels = images(packed, "train", limit)
    made = RandomForestClassifier(TREES, random_state=0, n_jobs=1)
    made.fit(pixels.reshape(len(pixels), -1), labels)
    return pertinent.wrap(
        PixelForest(made), kind="image", output="probability", classes=[str(i) for i in range(10)]
    )


def cnn(weights: Path, device: str) -> Model:
    """The network of `hsieh2021`."""
    from mnist import load

    model: Model = load(weights, device)
    return model


def classifier(packed: Path, encoder: Path, out: Path, device: str, limit: int | None = None) -> float:
    """Fine-tune an encoder on reviews; its accuracy on the test reviews."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(
        encoder, num_labels=2, id2label=dict(enumerate(CLASSES)), dtype=torch.float32
    ).to(device)
    texts, labels = reviews(packed, "train", limit)
    trained = pertinent.train(
        (model, AutoTokenizer.from_pretrained(encoder)),
        [{"text": text} for text in texts],
        labels,
        out=out,
        counterfactual=False,
        patience=None,
        epochs=EPOCHS,
        batch_size=BATCH,
        learning_rate=LEARNING_RATE,
        seed=0,
        max_length=LONGEST["imdb"],
        precision="bfloat16" if device == "cuda" else "float32",
        progress=False,
    )
    test, truth = reviews(packed, "test", limit)
    return accuracy(trained.model, test, truth)


def accuracy(model: Model, inputs: Any, labels: Any) -> float:
    """How often the model predicts the label."""
    found = pertinent.explain(model, list(inputs), "random", progress=False)
    return float(np.mean([e.target == labels[e.index] for e in found]))


def reader(
    packed: Path,
    encoder: Path,
    out: Path,
    device: str,
    limit: int | None = None,
    *,
    epochs: int = EPOCHS,
    batch_size: int = BATCH,
    rate: float = READER_RATE,
    seconds: float = math.inf,
    rows: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Fine-tune an encoder to answer questions, all or those of `rows`; how often its answers are right.

    The learning rate falls to 0 after all epochs, or after so many seconds of training if that is sooner.
    """
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    model = AutoModelForQuestionAnswering.from_pretrained(encoder, dtype=torch.float32).to(device)
    rows = questions(packed, "train", limit) if rows is None else rows
    data = [found for row in rows if (found := _span(tokenizer, row)) is not None]
    n_steps = epochs * math.ceil(len(data) / batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.01, fused=device == "cuda")
    model.train()
    start, step, done = time.perf_counter(), 0, 0.0
    for places in _epochs([len(each[0]["input_ids"]) for each in data], batch_size, epochs):
        done = max(step / n_steps, (time.perf_counter() - start) / seconds)
        if done >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = rate * warmed_up(done, step, n_steps)
        chosen = [data[i] for i in places]
        batch = tokenizer.pad([each[0] for each in chosen], return_tensors="pt").to(device)
        wanted = torch.tensor([each[1] for each in chosen], device=device)
        answer = model(**batch)
        loss = cross_entropy(answer.start_logits, wanted[:, 0])
        loss = loss + cross_entropy(answer.end_logits, wanted[:, 1])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
    model.eval().save_pretrained(out)
    tokenizer.save_pretrained(out)
    tested = questions(packed, "test", 500 if limit is None else limit)
    return answers(load_reader(out, device), tested) | {"epochs": epochs * step / n_steps}


def warmed_up(done: float, step: int, n_steps: int) -> float:
    """The share of the learning rate: it grows for a tenth of all steps, and falls with what is done."""
    return min((step + 1) / (0.1 * n_steps), (1 - done) / 0.9)


def _epochs(lengths: list[int], size: int, epochs: int) -> Iterator[list[int]]:
    """The batches of all epochs."""
    for _ in range(epochs):
        yield from _batches(lengths, size)


def _batches(lengths: list[int], size: int) -> list[list[int]]:
    """Batches of similar length, in a random order."""
    order = torch.randperm(len(lengths)).tolist()
    pools = [order[first : first + 50 * size] for first in range(0, len(order), 50 * size)]
    order = [i for pool in pools for i in sorted(pool, key=lambda i: lengths[i])]
    batches = [order[first : first + size] for first in range(0, len(order), size)]
    return [batches[i] for i in torch.randperm(len(batches)).tolist()]


def _span(tokenizer: Any, row: dict[str, Any]) -> Any:
    """A question as tokens, and the tokens at which its answer begins and ends; none if it was cut off."""
    read = tokenizer(
        row["question"],
        row["context"],
        truncation="only_second",
        max_length=LONGEST["squad"],
        return_offsets_mapping=True,
    )
    offsets, segments = read.pop("offset_mapping"), read.sequence_ids(0)
    begin = row["answer_start"][0]
    end = begin + len(row["answers"][0])
    inside = [
        i
        for i, (segment, (a, b)) in enumerate(zip(segments, offsets, strict=True))
        if segment == 1 and a < end and b > begin
    ]
    return (dict(read), (inside[0], inside[-1])) if inside else None


def answers(model: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Exact match and F1, by the words of the answers."""
    exact, overlap = [], []
    for row in rows:
        input = model.prepare({"question": row["question"], "context": row["context"]})
        own = _words(model.details(input)["answer"])
        known = [_words(answer) for answer in row["answers"]]
        exact.append(max(own == each for each in known))
        overlap.append(max(_f1(own, each) for each in known))
    return {"exact match": float(np.mean(exact)), "F1": float(np.mean(overlap)), "questions": len(rows)}


def _words(answer: str) -> list[str]:
    kept = "".join(c for c in answer.lower() if c.isalnum() or c.isspace())
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def _f1(own: list[str], known: list[str]) -> float:
    common = sum(min(own.count(word), known.count(word)) for word in set(own))
    return 2 * common / (len(own) + len(known)) if own or known else 1.0


def load_classifier(folder: Path, device: str) -> Any:
    """The fine-tuned encoder."""
    from pertinent.models.embedded.load import load_transformer

    return load_transformer(folder, device=device)


def load_reader(folder: Path, device: str, *, fix_question: bool = True) -> Any:
    """The fine-tuned reader; its question is never removed, unless it is not fixed."""
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    model = AutoModelForQuestionAnswering.from_pretrained(folder, dtype=torch.float32).to(device).eval()
    thing = model, AutoTokenizer.from_pretrained(folder)
    return pertinent.wrap(thing, max_length=LONGEST["squad"], fix_question=fix_question)
