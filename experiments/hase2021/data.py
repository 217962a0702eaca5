"""The data sets: what is read, and what stands in for what the paper used.

`--data` is a folder with one sub-folder for each set, of Parquet or packed ``.jsonl.xz`` files.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Example = dict[str, str]


@dataclass(frozen=True)
class Split:
    """Examples as `pertinent` reads them, and their labels."""

    examples: list[Example]
    labels: list[int]


@dataclass(frozen=True)
class DataSet:
    """Where a set lies, its columns, and how a model is trained on it."""

    name: str
    classes: tuple[str, ...]
    columns: dict[str, str]
    files: dict[str, tuple[str, ...]]
    epochs: int
    batch_size: int
    max_length: int
    held_out: int = 0
    """Training examples that serve as dev set where the set has none."""
    start: str | None = None
    """A set that the encoder is fine-tuned on first, because this one has few examples or hard ones."""
    window: int | None = None
    """Characters of a document that are kept, around the evidence, where a file says what people marked."""


SETS = {
    "sst2": DataSet(
        "SST-2",
        ("negative", "positive"),
        {"text": "text"},
        {"train": ("sst2/train_phrases_glue",), "dev": ("sst2/dev",), "test": ("sst2/test",)},
        epochs=2,
        batch_size=128,
        max_length=64,
    ),
    "snli": DataSet(
        "SNLI",
        ("entailment", "neutral", "contradiction"),
        {"premise": "premise", "hypothesis": "hypothesis"},
        {"train": ("snli/train",), "dev": ("snli/dev",), "test": ("snli/test",)},
        epochs=4,
        batch_size=128,
        max_length=128,
    ),
    "multirc": DataSet(
        "MultiRC",
        ("false", "true"),
        {"query": "query", "document": "document"},
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
    "fever": DataSet(
        "FEVER",
        ("refutes", "supports"),
        {"query": "query", "document": "document"},
        {"train": ("eraser_fever/val",), "test": ("eraser_fever/test",)},
        epochs=8,
        batch_size=32,
        max_length=512,
        held_out=1000,
        start="nli",
    ),
    "boolq": DataSet(
        "BoolQ",
        ("no", "yes"),
        {"query": "query", "document": "document"},
        {"train": ("boolq/train_part", "eraser_boolq/val"), "test": ("boolq/dev",)},
        epochs=8,
        batch_size=64,
        max_length=512,
        held_out=300,
        start="fever",
        window=1000,
    ),
    "evidence": DataSet(
        "Evidence Inference",
        ("significantly decreased", "no significant difference", "significantly increased"),
        {"query": "query", "document": "document"},
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
}
STARTS = {
    "nli": DataSet(
        "SNLI and MNLI",
        ("entailment", "neutral", "contradiction"),
        {"premise": "premise", "hypothesis": "hypothesis"},
        {"train": ("snli/train", "mnli/train"), "dev": ("mnli/dev_matched",), "test": ("mnli/dev_matched",)},
        epochs=3,
        batch_size=128,
        max_length=128,
    ),
}
"""Sets that are no set of the paper: an encoder is fine-tuned on them before it is on one that is."""
TRAINED_ON = ChainMap(SETS, STARTS)
DEV = 1000
"""Dev examples that a checkpoint is chosen by."""


def read(folder: Path, which: str, split: str, limit: int | None = None) -> Split:
    """A split, in an order that depends on nothing but its content's place in the files."""
    spec = TRAINED_ON[which]
    wanted, cut = split, slice(None)
    if spec.held_out and split in ("train", "dev"):
        wanted = "train"
        cut = slice(spec.held_out, None) if split == "train" else slice(spec.held_out)
    rows = [row for file in spec.files[wanted] for row in _rows(folder / file, spec)]
    random.Random(0).shuffle(rows)
    rows = rows[cut][:limit]
    examples = [{key: row[column] for key, column in spec.columns.items()} for row in rows]
    return Split(examples, [int(row["label"]) for row in rows])


def _rows(stem: Path, spec: DataSet) -> list[dict[str, Any]]:
    packed = stem.with_name(stem.name + ".jsonl.xz")
    if packed.is_file():
        with lzma.open(packed, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    import pandas as pd

    frame = pd.read_parquet(stem.with_name(stem.name + ".parquet"))
    if spec.window is not None:
        for column, unit in (("evidence_char_spans", "characters"), ("evidence_spans", "words")):
            if column in frame:
                rows = zip(frame.document, frame[column], strict=True)
                frame["document"] = [near(text, spans, spec.window, unit) for text, spans in rows]
    return frame[[*spec.columns.values(), "label"]].to_dict("records")  # type: ignore[no-any-return]


def near(document: str, spans: Sequence[Sequence[int]], window: int, unit: str) -> str:
    """So many characters of a document that hold its first evidence, which may be anywhere among them.

    Spans [first, last) count characters, or words.
    """
    if len(spans) == 0:
        return document[:window]
    first, last = map(int, spans[0])
    if unit == "words":
        words = document.split(" ")
        first, last = len(" ".join([*words[:first], ""])), len(" ".join(words[:last]))
    room = max(0, window - (last - first))
    start = first - int(random.Random(document).random() * room)
    start = max(0, min(start, len(document) - window))
    return document[start : start + window]


def main() -> None:
    """Pack the columns in use, for a machine that reads no Parquet."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=TRAINED_ON, default=list(TRAINED_ON))
    parser.add_argument("--splits", nargs="+", choices=("train", "dev", "test"), help="by default all")
    parser.add_argument("--limit", type=int, help="rows of each file, drawn at random")
    arguments = parser.parse_args()
    for which in arguments.sets:
        spec = TRAINED_ON[which]
        for split in arguments.splits or spec.files:
            for file in spec.files.get(split, ()):
                pack(arguments.data / file, arguments.out / f"{file}.jsonl.xz", spec, arguments.limit)


def pack(stem: Path, target: Path, spec: DataSet, limit: int | None = None) -> None:
    """Write rows as JSON lines, compressed; those of one document follow each other."""
    rows = _rows(stem, spec)
    if limit is not None and limit < len(rows):
        rows = random.Random(0).sample(rows, limit)
    shared = "document" if "document" in spec.columns else next(iter(spec.columns.values()))
    rows.sort(key=lambda row: str(row[shared]))
    target.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(target, "wt", preset=9 | lzma.PRESET_EXTREME, encoding="utf-8") as lines:
        for row in rows:
            kept = {name: row[name] for name in spec.columns.values()} | {"label": int(row["label"])}
            lines.write(json.dumps(kept, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
