"""The data sets: what is read, and what stands in for what the paper used.

`--data` is a folder with one sub-folder for each set, of Parquet or packed ``.jsonl.gz`` files.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from methods import BUDGET, REDUCED

Example = dict[str, str]


@dataclass(frozen=True)
class Split:
    """Examples as `pertinent` reads them, and their labels."""

    examples: list[Example]
    labels: list[int]

    def part(self, first: int, last: int | None = None) -> Split:
        """Some of them."""
        return Split(self.examples[first:last], self.labels[first:last])


@dataclass(frozen=True)
class DataSet:
    """Where a set lies, its columns, and how a model is trained on it."""

    name: str
    classes: tuple[str, ...]
    columns: dict[str, str]
    files: dict[str, str]
    epochs: int
    batch_size: int
    max_length: int
    held_out: int = 0
    """Training examples that serve as dev set where the set has none."""
    budget: int = BUDGET
    """Of a search, for each sparsity."""


SETS = {
    "sst2": DataSet(
        "SST-2",
        ("negative", "positive"),
        {"text": "text"},
        {"train": "sst2/train_phrases_glue", "dev": "sst2/dev", "test": "sst2/test"},
        epochs=2,
        batch_size=128,
        max_length=64,
    ),
    "snli": DataSet(
        "SNLI",
        ("entailment", "neutral", "contradiction"),
        {"premise": "premise", "hypothesis": "hypothesis"},
        {"train": "snli/train", "dev": "snli/dev", "test": "snli/test"},
        epochs=4,
        batch_size=128,
        max_length=128,
    ),
    "multirc": DataSet(
        "MultiRC",
        ("false", "true"),
        {"query": "query", "document": "document"},
        {
            "train": "eraser_multirc/train_superglue_no_evidence",
            "dev": "eraser_multirc/val",
            "test": "eraser_multirc/test",
        },
        epochs=3,
        batch_size=64,
        max_length=256,
        budget=REDUCED,
    ),
    "fever": DataSet(
        "FEVER",
        ("refutes", "supports"),
        {"query": "query", "document": "document"},
        {"train": "eraser_fever/val", "test": "eraser_fever/test"},
        epochs=6,
        batch_size=64,
        max_length=256,
        held_out=1000,
        budget=REDUCED,
    ),
}
DEV = 1000
"""Dev examples that a checkpoint is chosen by."""


def read(folder: Path, which: str, split: str, limit: int | None = None) -> Split:
    """A split, in an order that depends on nothing but its content's place in the file."""
    spec = SETS[which]
    wanted, cut = split, slice(None)
    if spec.held_out and split in ("train", "dev"):
        wanted = "train"
        cut = slice(spec.held_out, None) if split == "train" else slice(spec.held_out)
    rows = _rows(folder / spec.files[wanted], [*spec.columns.values(), "label"])
    random.Random(0).shuffle(rows)
    rows = rows[cut][:limit]
    examples = [{key: row[column] for key, column in spec.columns.items()} for row in rows]
    return Split(examples, [int(row["label"]) for row in rows])


def _rows(stem: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    packed = stem.with_name(stem.name + ".jsonl.gz")
    if packed.is_file():
        with gzip.open(packed, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    import pandas as pd

    frame = pd.read_parquet(stem.with_name(stem.name + ".parquet"), columns=list(columns))
    return frame.to_dict("records")  # type: ignore[no-any-return]


def main() -> None:
    """Pack the columns in use, for a machine that reads no Parquet."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    arguments = parser.parse_args()
    for which in arguments.sets:
        spec = SETS[which]
        for file in spec.files.values():
            rows = _rows(arguments.data / file, [*spec.columns.values(), "label"])
            target = arguments.out / f"{file}.jsonl.gz"
            target.parent.mkdir(parents=True, exist_ok=True)
            with gzip.open(target, "wt", encoding="utf-8") as lines:
                for row in rows:
                    kept = {name: row[name] for name in (*spec.columns.values(), "label")}
                    lines.write(json.dumps(kept | {"label": int(row["label"])}) + "\n")


if __name__ == "__main__":
    main()
