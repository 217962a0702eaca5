"""Data sets of Vo et al. 2023: three of texts and two of images."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from experiments.shared.data import (
    Examples,
    Row,
    examples,
    read_images,
    read_packed,
    read_parquet,
    shuffled,
)

TEXTS = ("imdb", "hatexplain", "ag_news")
IMAGES = ("mnist", "fashion_mnist")
MAX_LENGTH = {"imdb": 400, "hatexplain": 200, "ag_news": 400}
"""Words of a text that a model reads at most (Table 6)."""
CLASSES = {
    "imdb": ("negative", "positive"),
    "hatexplain": ("normal", "hate or offensive"),
    "ag_news": ("World", "Sports", "Business", "Sci/Tech"),
    "mnist": ("0", "1", "2"),
    "fashion_mnist": ("T-shirt", "Trouser", "Pullover"),
}
SPLITS = {"train": ("train", 20_000), "test": ("t10k", 2_000)}
"""Files of images, and numbers of texts."""


def read(data: Path, name: str, split: str) -> Examples:
    """Return a split of a data set; texts are shuffled."""
    if name in TEXTS:
        return examples(read_packed(data, f"{name}/{split}", partial(read_rows, data, name, split)))
    images, labels = read_images(data / name, SPLITS[split][0])
    chosen = labels < len(CLASSES[name])
    return Examples(list(images[chosen]), labels[chosen].tolist())


def read_rows(data: Path, name: str, split: str) -> list[Row]:
    """Return shuffled texts of a Parquet file.

    HateXplain's classes are 0 hate speech, 1 normal and 2 offensive; the paper joins the first and the last.
    """
    rows = shuffled(read_parquet(data / name / split, ["text", "label"]))[: SPLITS[split][1]]
    for row in rows:
        row["text"] = row["text"].replace("<br />", " ").replace("\\", " ")
        row["label"] = int(row["label"] != 1) if name == "hatexplain" else int(row["label"])
    return rows
