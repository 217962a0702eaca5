"""Data sets of Hase et al. 2021, their substitutes, and how a model is trained on each."""

from __future__ import annotations

import random
import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.shared.data import Examples, Row, examples, read_packed, read_parquet, shuffled


@dataclass(frozen=True)
class DataSet:
    """Files and columns of a data set, and training settings.

    Attributes
    ----------
    files
        Parquet files of each split, without suffix.
    rows
        Rows of the files that belong to a split, where splits share files.
    held_out
        Training examples that serve as dev set where the data set has none.
    start
        Data set that the encoder is fine-tuned on first, because this one is small or hard.
    window
        Characters around the marked evidence that are kept of a document with annotations.
    words
        Words that are kept of a text.
    """

    key: str
    name: str
    classes: tuple[str, ...]
    columns: dict[str, str]
    files: dict[str, tuple[str, ...]]
    epochs: int
    batch_size: int
    max_length: int
    held_out: int = 0
    start: str | None = None
    window: int | None = None
    words: int | None = None
    rows: dict[str, slice] = field(default_factory=dict)

    @property
    def splits(self) -> list[str]:
        """Return the names of the splits."""
        return [*self.files, *(["dev"] if self.held_out else [])]


TEXT = {"text": "text"}
PAIR = {"premise": "premise", "hypothesis": "hypothesis"}
DOCUMENT = {"query": "query", "document": "document"}
SENTIMENT = ("negative", "positive")
ENTAILMENT = ("entailment", "neutral", "contradiction")

SETS = {
    spec.key: spec
    for spec in (
        DataSet(
            "sst2",
            "SST-2",
            SENTIMENT,
            TEXT,
            {"train": ("sst2/train_phrases_glue",), "dev": ("sst2/dev",), "test": ("sst2/test",)},
            epochs=2,
            batch_size=128,
            max_length=64,
        ),
        DataSet(
            "snli",
            "SNLI",
            ENTAILMENT,
            PAIR,
            {"train": ("snli/train",), "dev": ("snli/dev",), "test": ("snli/test",)},
            epochs=4,
            batch_size=128,
            max_length=128,
        ),
        DataSet(
            "multirc",
            "MultiRC",
            ("false", "true"),
            DOCUMENT,
            {
                "train": ("eraser_multirc/train_superglue_no_evidence",),
                "dev": ("eraser_multirc/val",),
                "test": ("eraser_multirc/test",),
            },
            epochs=2,
            batch_size=64,
            max_length=512,
            start="nli",
        ),
        DataSet(
            "fever",
            "FEVER",
            ("refutes", "supports"),
            DOCUMENT,
            {"train": ("eraser_fever/val",), "test": ("eraser_fever/test",)},
            epochs=8,
            batch_size=32,
            max_length=512,
            held_out=1000,
            start="nli",
        ),
        DataSet(
            "boolq",
            "BoolQ",
            ("no", "yes"),
            DOCUMENT,
            {"train": ("boolq/train_part", "eraser_boolq/val"), "test": ("boolq/dev",)},
            epochs=8,
            batch_size=64,
            max_length=512,
            held_out=300,
            start="fever",
            window=1000,
        ),
        DataSet(
            "evidence",
            "Evidence Inference",
            ("significantly decreased", "no significant difference", "significantly increased"),
            DOCUMENT,
            {
                "train": ("evidence_inference/train",),
                "dev": ("evidence_inference/val",),
                "test": ("evidence_inference/test",),
            },
            epochs=8,
            batch_size=64,
            max_length=512,
            start="fever",
        ),
    )
}
STARTS = {
    "nli": DataSet(
        "nli",
        "SNLI and MNLI",
        ENTAILMENT,
        PAIR,
        {"train": ("snli/train", "mnli/train"), "dev": ("mnli/dev_matched",), "test": ("mnli/dev_matched",)},
        epochs=3,
        batch_size=128,
        max_length=128,
    ),
}
"""Data sets that are not in the paper, on which an encoder is fine-tuned first."""
TRAINED_ON: Mapping[str, DataSet] = ChainMap(SETS, STARTS)
DEV = 1000
"""Dev examples by which a checkpoint is chosen."""


def read(folder: Path, spec: DataSet, split: str, limit: int | None = None) -> Examples:
    """Return the first examples of a split, in an order that depends only on the files."""
    rows = read_packed(folder, f"{spec.key}/{split}", lambda: read_source(folder, spec, split))
    return examples(rows[:limit], {name: name for name in spec.columns})


def read_source(folder: Path, spec: DataSet, split: str) -> list[Row]:
    """Return the rows of a split from the Parquet files."""
    source, cut = split, slice(None)
    if spec.held_out and split in ("train", "dev"):
        source = "train"
        cut = slice(spec.held_out, None) if split == "train" else slice(spec.held_out)
    rows = [row for file in spec.files[source] for row in read_file(folder / file, spec)]
    return shuffled(rows[spec.rows.get(source, slice(None))])[cut]


def read_file(path: Path, spec: DataSet) -> list[Row]:
    """Return the columns in use of a Parquet file."""
    rows = []
    for row in read_parquet(path):
        for column, unit in (("evidence_char_spans", "characters"), ("evidence_spans", "words")):
            if spec.window is not None and column in row:
                row["document"] = cut_near(row["document"], row[column], spec.window, unit)
        texts = {name: str(row[column]) for name, column in spec.columns.items()}
        if spec.words is not None:
            words = re.sub(r"<br\s*/?>", " ", texts["text"]).split()
            texts["text"] = " ".join(words[: spec.words])
        rows.append({**texts, "label": int(row["label"])})
    return rows


def cut_near(document: str, spans: Sequence[Sequence[int]], window: int, unit: str) -> str:
    """Return `window` characters of a document that contain its first evidence at a random position.

    Spans [first, last) count characters or words.
    """
    if len(spans) == 0:
        return document[:window]
    first, last = map(int, spans[0])
    if unit == "words":
        words = document.split(" ")
        first, last = len(" ".join([*words[:first], ""])), len(" ".join(words[:last]))
    rest = max(0, window - (last - first))
    start = first - int(random.Random(document).random() * rest)
    start = max(0, min(start, len(document) - window))
    return document[start : start + window]
