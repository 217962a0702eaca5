"""MNIST, IMDB and SQuAD: images, reviews and questions to learn from and to test on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.shared.data import Row, read_images, read_packed, read_parquet
from pertinent.array_types import Array

Pair = dict[str, str]
IMAGES = {"train": ("train", 10_000), "test": ("t10k", 1000)}
"""Files and numbers of images."""
REVIEWS = {"train": 6000, "test": 1000}
TESTED = 2000
"""Questions of SQuAD's dev set that are kept for testing; no paragraph of theirs is trained on."""


def images(data: Path, split: str, n: int | None = None) -> tuple[Array, Array]:
    """Return images (n, 1, 28, 28) from 0 to 1, and their classes."""
    file, most = IMAGES[split]
    pixels, labels = read_images(data / "mnist", file)
    return pixels[:most][:n], labels[:most][:n]


def reviews(data: Path, split: str, n: int | None = None) -> tuple[list[str], list[int]]:
    """Return reviews, and whether they are positive."""
    rows = read_packed(data, f"imdb/{split}", partial(read_reviews, data, split))[:n]
    return [row["text"] for row in rows], [row["label"] for row in rows]


def read_reviews(data: Path, split: str) -> list[Row]:
    """Return reviews without line breaks; test reviews that are also training reviews are skipped."""
    skipped = {row["text"] for row in read_reviews(data, "train")} if split == "test" else set()
    rows = [
        {"text": " ".join(re.sub(r"<br\s*/?>", " ", row["text"]).split()), "label": int(row["label"])}
        for row in read_parquet(data / "imdb" / split, ["text", "label"])
    ]
    return [row for row in rows if row["text"] not in skipped][: REVIEWS[split]]


def questions(data: Path, split: str, n: int | None = None) -> list[Row]:
    """Return questions and contexts, with answers and where they start, in a random order."""
    rows = read_packed(data, f"squad/{split}", partial(read_questions, data, split))
    return [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:n]]


def read_questions(data: Path, split: str) -> list[Row]:
    """Return the last paragraphs of the dev set for testing, and all other paragraphs for training."""
    files = {}
    for file in ("train", "dev"):
        files[file] = [
            {
                "question": row["question"],
                "context": row["context"],
                "answers": list(map(str, row["answers"])),
                "answer_start": [int(start) for start in row["answer_start"]],
            }
            for row in read_parquet(data / "squad_v1" / file)
        ]
    counts: dict[str, int] = {}
    for row in files["dev"]:
        counts[row["context"]] = counts.get(row["context"], 0) + 1
    paragraphs, held_out = list(counts), set()
    while sum(counts[context] for context in held_out) < TESTED:
        held_out.add(paragraphs.pop())
    if split == "test":
        return [row for row in files["dev"] if row["context"] in held_out]
    rows = [row for row in files["train"] + files["dev"] if row["context"] not in held_out]
    return sorted(rows, key=lambda row: str(row["context"]))


def as_pairs(rows: Iterable[dict[str, Any]]) -> list[Pair]:
    """Return questions as the inputs of a reader."""
    return [{"question": row["question"], "context": row["context"]} for row in rows]


def halves(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return questions in two parts with no paragraph in common, every other paragraph in each."""
    number = {context: i for i, context in enumerate(sorted({row["context"] for row in rows}))}
    first, second = ([row for row in rows if number[row["context"]] % 2 == part] for part in (0, 1))
    return first, second
