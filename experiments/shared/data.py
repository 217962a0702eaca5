"""Data sets: labelled examples from Parquet or packed files, and images in MNIST's format."""

from __future__ import annotations

import gzip
import json
import lzma
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pertinent.array_types import Array

Row = dict[str, Any]


@dataclass(frozen=True)
class Examples:
    """Inputs and their classes."""

    inputs: list[Any]
    labels: list[int]

    def part(self, first: int, last: int | None = None) -> Examples:
        """Return the examples from the first index up to the last."""
        return Examples(self.inputs[first:last], self.labels[first:last])

    def rows(self) -> list[Row]:
        """Return the examples as rows."""
        return [
            (text if isinstance(text, dict) else {"text": text}) | {"label": label}
            for text, label in zip(self.inputs, self.labels, strict=True)
        ]

    def balanced(self, n: int) -> Examples:
        """Return the first n examples when classes take turns."""
        indices: dict[int, list[int]] = {label: [] for label in sorted(set(self.labels))}
        for index, label in enumerate(self.labels):
            indices[label].append(index)
        chosen = [index for turn in zip(*indices.values(), strict=False) for index in turn][:n]
        return Examples([self.inputs[i] for i in chosen], [self.labels[i] for i in chosen])


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> list[Row]:
    """Return the rows of a Parquet file whose suffix is left off."""
    import pandas as pd

    frame = pd.read_parquet(path.with_name(f"{path.name}.parquet"), columns=columns)
    rows: list[Row] = frame.to_dict("records")
    return rows


def read_packed(folder: Path, name: str, read: Callable[[], list[Row]]) -> list[Row]:
    """Return the rows of ``NAME.jsonl.xz`` if there is such a file, else those of `read`."""
    path = folder / f"{name}.jsonl.xz"
    if not path.is_file():
        return read()
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_packed(folder: Path, rows_by_name: Iterable[tuple[str, Iterable[Row]]]) -> None:
    """Write rows to ``NAME.jsonl.xz``, for a machine that cannot read Parquet."""
    for name, rows in rows_by_name:
        path = folder / f"{name}.jsonl.xz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with lzma.open(path, "wt", preset=9, encoding="utf-8") as file:
            n = sum(1 for row in rows if file.write(json.dumps(row, ensure_ascii=False) + "\n"))
        print(f"{name}: {n:,} rows", flush=True)


def shuffled(rows: list[Row]) -> list[Row]:
    """Return the rows in a random order that depends only on their number."""
    order = list(rows)
    random.Random(0).shuffle(order)
    return order


def examples(rows: Sequence[Row], columns: str | Mapping[str, str] = "text") -> Examples:
    """Return rows as examples: texts of one column, or mappings of several."""
    if isinstance(columns, str):
        return Examples([row[columns] for row in rows], [int(row["label"]) for row in rows])
    inputs = [{name: row[column] for name, column in columns.items()} for row in rows]
    return Examples(inputs, [int(row["label"]) for row in rows])


def read_idx(path: Path) -> Array:
    """Return the array of a gzipped file in MNIST's format."""
    with gzip.open(path) as file:
        content = file.read()
    n_axes = content[3]
    shape = [int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(n_axes)]
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def read_images(folder: Path, split: str) -> tuple[Array, Array]:
    """Return images (n, 1, 28, 28) from 0 to 1 and their classes; the split is ``train`` or ``t10k``."""
    images = read_idx(folder / f"{split}-images-idx3-ubyte.gz")[:, None].astype(np.float32) / 255
    return images, read_idx(folder / f"{split}-labels-idx1-ubyte.gz").astype(np.int64)
