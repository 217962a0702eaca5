"""MNIST, IMDB and SQuAD, and how they are packed.

    python experiments/magnex/sets.py --data DATA --out PACKED

`DATA` has a folder for each set. Everything else reads `PACKED`, which needs neither Parquet nor much room.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "hsieh2021"))

Pair = dict[str, str]
TESTED = 2000
"""Questions of SQuAD's dev set that are kept for testing; no paragraph of theirs is trained on."""


def images(packed: Path, split: str, n: int | None = None) -> tuple[Any, Any]:
    """Images (n, 1, 28, 28) from 0 to 1, and their classes."""
    found = np.load(packed / "mnist" / f"{split}.npz")
    return found["images"][:n, None].astype(np.float32) / 255, found["labels"][:n].astype(np.int64)


def reviews(packed: Path, split: str, n: int | None = None) -> tuple[list[str], list[int]]:
    """Reviews, and whether they are positive."""
    rows = read_lines(packed / "imdb" / f"{split}.jsonl.gz")[:n]
    return [row["text"] for row in rows], [row["label"] for row in rows]


def questions(packed: Path, split: str, n: int | None = None) -> list[dict[str, Any]]:
    """Questions and contexts, with answers and where they start; in a random order, packed by paragraph."""
    rows = read_lines(packed / "squad" / f"{split}.jsonl.gz")
    return [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:n]]


def as_pairs(rows: Iterable[dict[str, Any]]) -> list[Pair]:
    """Questions as a reader is given them."""
    return [{"question": row["question"], "context": row["context"]} for row in rows]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a packed file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Pack rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def pack_images(data: Path, out: Path, n_train: int, n_test: int) -> None:
    """The first images of each split."""
    from mnist import read_idx

    (out / "mnist").mkdir(parents=True, exist_ok=True)
    for name, source, n in (("train", "train", n_train), ("test", "t10k", n_test)):
        found = read_idx(data / "mnist" / f"{source}-images-idx3-ubyte.gz")[:n]
        labels = read_idx(data / "mnist" / f"{source}-labels-idx1-ubyte.gz")[:n]
        np.savez_compressed(out / "mnist" / f"{name}.npz", images=found, labels=labels)


def pack_reviews(data: Path, out: Path, n_train: int, n_test: int) -> None:
    """Reviews without line breaks; test reviews that are in the training set as well are left out."""
    import pandas as pd

    seen: set[str] = set()
    for split, n in (("train", n_train), ("test", n_test)):
        frame = pd.read_parquet(data / "imdb" / f"{split}.parquet")
        rows = [
            {"text": " ".join(re.sub(r"<br\s*/?>", " ", text).split()), "label": int(label)}
            for text, label in zip(frame["text"], frame["label"], strict=True)
        ]
        rows = [row for row in rows if row["text"] not in seen][:n]
        seen |= {str(row["text"]) for row in rows}
        write_lines(out / "imdb" / f"{split}.jsonl.gz", rows)


def pack_questions(data: Path, out: Path, n_train: int | None) -> None:
    """The training set with most paragraphs of the dev set, and the last paragraphs of that for testing."""
    import pandas as pd

    rows = {}
    for split in ("train", "dev"):
        frame = pd.read_parquet(data / "squad_v1" / f"{split}.parquet")
        rows[split] = [
            {
                "question": row.question,
                "context": row.context,
                "answers": list(map(str, row.answers)),
                "answer_start": [int(start) for start in row.answer_start],
            }
            for row in frame.itertuples()
        ]
    paragraphs = list(dict.fromkeys(row["context"] for row in rows["dev"]))
    counts = dict.fromkeys(paragraphs, 0)
    for row in rows["dev"]:
        counts[row["context"]] += 1
    held_out: set[str] = set()
    while sum(counts[context] for context in held_out) < TESTED:
        held_out.add(paragraphs.pop())
    test = [row for row in rows["dev"] if row["context"] in held_out]
    train = sorted(
        (row for row in rows["train"] + rows["dev"] if row["context"] not in held_out),
        key=lambda row: str(row["context"]),
    )
    chosen = np.sort(np.random.default_rng(0).permutation(len(train))[:n_train])
    write_lines(out / "squad" / "train.jsonl.gz", [train[i] for i in chosen])
    write_lines(out / "squad" / "test.jsonl.gz", test)


def main() -> None:
    """Pack the sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int, default=10_000, help="training images")
    parser.add_argument("--reviews", type=int, default=6000, help="training reviews")
    parser.add_argument("--questions", type=int, help="training questions (all)")
    arguments = parser.parse_args()
    pack_images(arguments.data, arguments.out, arguments.images, 1000)
    pack_reviews(arguments.data, arguments.out, arguments.reviews, 1000)
    pack_questions(arguments.data, arguments.out, arguments.questions)


if __name__ == "__main__":
    main()
