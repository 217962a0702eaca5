"""The data of Vo et al. 2023: three sets of texts and two of images.

python experiments/vo2023/sets.py --data DATA --out PACKED

packs what is used, for a machine that reads no Parquet.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TEXTS = ("imdb", "hatexplain", "ag_news")
IMAGES = ("mnist", "fashion_mnist")
LONGEST = {"imdb": 400, "hatexplain": 200, "ag_news": 400}
"""Words that a text may have, Table 6."""
CLASSES = {
    "imdb": ("negative", "positive"),
    "hatexplain": ("normal", "hate or offensive"),
    "ag_news": ("World", "Sports", "Business", "Sci/Tech"),
    "mnist": ("0", "1", "2"),
    "fashion_mnist": ("T-shirt", "Trouser", "Pullover"),
}
MOST = {"train": 20_000, "test": 2_000}


@dataclass(frozen=True)
class Examples:
    """Inputs and their classes."""

    inputs: Any
    labels: list[int]

    def part(self, first: int, last: int | None = None) -> Examples:
        """Some of them."""
        return Examples(self.inputs[first:last], self.labels[first:last])


def read(folder: Path, name: str, split: str) -> Examples:
    """A split of a set, shuffled; packed if there is such a file."""
    if name in IMAGES:
        return _images(folder / name, split)
    packed = folder / name / f"{split}.jsonl.gz"
    if packed.is_file():
        with gzip.open(packed, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
    else:
        import pandas as pd

        frame = pd.read_parquet(folder / name / f"{split}.parquet", columns=["text", "label"])
        rows = list(zip(frame["text"], map(int, frame["label"]), strict=True))
        random.Random(0).shuffle(rows)
        rows = [(_cleaned(text), _label(name, label)) for text, label in rows[: MOST[split]]]
    texts, labels = zip(*rows, strict=True)
    return Examples(list(texts), list(labels))


def _cleaned(text: str) -> str:
    return text.replace("<br />", " ").replace("\\", " ")


def _label(name: str, label: int) -> int:
    """HateXplain has 0 hate speech, 1 normal and 2 offensive; the paper tells normal from the others."""
    return int(label != 1) if name == "hatexplain" else label


def _images(folder: Path, split: str) -> Examples:
    """The images (n, 1, 28, 28) of the first three classes, from 0 to 1."""
    packed = folder / f"{split}.npz"
    if packed.is_file():
        found = np.load(packed)
        images, labels = found["images"], found["labels"]
    else:
        prefix = {"train": "train", "test": "t10k"}[split]
        images, labels = (
            read_idx(folder / f"{prefix}-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1")
        )
        images, labels = images[labels < 3], labels[labels < 3]
    return Examples(list(images[:, None].astype(np.float32) / 255), labels.astype(int).tolist())


def read_idx(path: Path) -> Any:
    """An array in the format of the original files, gzipped."""
    with gzip.open(path) as file:
        content = file.read()
    n_axes = content[3]
    shape = [int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(n_axes)]
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def main() -> None:
    """Pack the sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    for name in (*TEXTS, *IMAGES):
        (arguments.out / name).mkdir(parents=True, exist_ok=True)
        for split in ("train", "test"):
            own = read(arguments.data, name, split)
            if name in IMAGES:
                pixels = (np.stack(own.inputs)[:, 0] * 255).round().astype(np.uint8)
                np.savez_compressed(arguments.out / name / split, images=pixels, labels=np.array(own.labels))
            else:
                with gzip.open(arguments.out / name / f"{split}.jsonl.gz", "wt", encoding="utf-8") as lines:
                    lines.writelines(
                        json.dumps(row) + "\n" for row in zip(own.inputs, own.labels, strict=True)
                    )
            print(f"{name}, {split}: {len(own.labels):,}")


if __name__ == "__main__":
    main()
