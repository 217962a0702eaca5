"""The sets of this paper, beside those of `hase2021`, and how they are packed.

    python experiments/yang2023/sets.py --data DATA --out PACKED

`DATA` has a folder for each set, of Parquet files. Everything else reads `PACKED`: the columns in use as
``.jsonl.xz``, reviews cut to their first words, so that a machine without Parquet can read them.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "hase2021"))

from data import SETS, DataSet, Split, _rows, read

__all__ = ["SETS", "SIZES", "TARGETS", "Sizes", "Split", "read", "test_texts", "training_texts"]

WORDS = 100
"""Of a review; about 130 tokens."""
REVIEWS = ("negative", "positive")
PAIRS = ("entailment", "neutral", "contradiction")
TEXT = {"text": "text"}
PAIR = {"premise": "premise", "hypothesis": "hypothesis"}

SETS |= {
    "imdb": DataSet(
        "IMDB",
        REVIEWS,
        TEXT,
        {"train": ("imdb/train",), "test": ("imdb/test",)},
        epochs=3,
        batch_size=64,
        max_length=256,
        held_out=1000,
    ),
    "mnli": DataSet(
        "MNLI",
        PAIRS,
        PAIR,
        {"train": ("mnli/train_with_snli",), "test": ("mnli/dev_matched",)},
        epochs=3,
        batch_size=128,
        max_length=128,
        held_out=1000,
    ),
    "yelp": DataSet(
        "Yelp-Polarity",
        REVIEWS,
        TEXT,
        {"train": ("yelp/train",), "test": ("yelp/test",)},
        epochs=10,
        batch_size=32,
        max_length=256,
        held_out=100,
    ),
    # Only explained, by the model of MNLI.
    "mrpc": DataSet(
        "MRPC",
        ("different", "paraphrase"),
        {"premise": "sentence1", "hypothesis": "sentence2"},
        {"test": ("mrpc/test",)},
        0,
        0,
        128,
    ),
}
YELP, TESTED = "yelp/yelp_polarity_test1k_tokenized", 200
"""The only 1,000 rows of Yelp-Polarity that there are, and how many of them are test texts."""
PACKED = {
    "sst2": ("sst2/train_phrases_glue", "sst2/dev", "sst2/test"),
    "imdb": ("imdb/train", "imdb/test"),
    "yelp": (YELP,),
    "mnli": ("mnli/train", "snli/train", "mnli/dev_matched"),
    "mrpc": ("mrpc/test",),
}


@dataclass(frozen=True)
class Sizes:
    """How much is measured of a set."""

    texts: int = 500
    """Test texts."""
    fewer: int = 200
    """Of them, for methods of 500 to 2000 evaluations."""
    fewest: int = 60
    """Of them, for methods that cost most, and for the game with padding."""
    adapted: int = 500
    """Of them, for local adaption."""
    timed: int = 40
    """Of them, whose time is taken."""
    timed_on_cpu: int = 20
    """Of them, whose time is taken on one core of a CPU."""
    transferred: int = 500
    """Texts of another set."""
    pairs: int = 1000
    """Of MRPC."""
    fit: int = 3000
    """Training texts of amortized models."""
    reference: int = 5000
    """Evaluations of the reference values."""
    seeds: int = 5
    few_seeds: int = 3
    """For local adaption, padding and other sets."""
    epochs: int = 10
    """At most, of amortized models."""
    limit: int | None = None
    """Training examples of the classifier."""


SIZES = {
    "sst2": Sizes(limit=40_000),
    "mnli": Sizes(fit=2500),
    "imdb": Sizes(
        texts=100,
        fewer=60,
        fewest=24,
        adapted=100,
        timed=20,
        timed_on_cpu=10,
        fit=1000,
        reference=10_000,
    ),
    "yelp": Sizes(fit=500),
}
"""Long texts cost most: fewer of them."""
TARGETS = {"imdb": "sst2", "yelp": "sst2"}
"""The set to whose texts a model and its explainer are transferred."""


def test_texts(data: Path, which: str, n: int) -> Split:
    """The first test texts of each class in turn, so that classes are balanced as in the paper."""
    split = read(data, which, "test")
    places: dict[int, list[int]] = {label: [] for label in sorted(set(split.labels))}
    for place, label in enumerate(split.labels):
        places[label].append(place)
    chosen = [place for each in zip(*places.values(), strict=False) for place in each][:n]
    return Split([split.examples[i] for i in chosen], [split.labels[i] for i in chosen])


def training_texts(data: Path, which: str, n: int) -> list[dict[str, str]]:
    """Texts to learn explanations from. SST-2 is made of phrases: those of more than eight words."""
    examples = read(data, which, "train").examples
    if which == "sst2":
        examples = [e for e in examples if len(e["text"].split()) > 8]
    return examples[:n]


def cut(text: str) -> str:
    """The first words of a review, without its line breaks."""
    return " ".join(re.sub(r"<br\s*/?>", " ", text).split()[:WORDS])


def packed_row(row: dict[str, Any], which: str) -> dict[str, Any]:
    """The columns in use."""
    spec = SETS[which]
    kept = {column: str(row[column]) for column in spec.columns.values()}
    if spec.classes == REVIEWS and which != "sst2":
        kept["text"] = cut(kept["text"])
    return kept | {"label": int(row["label"])}


def main() -> None:
    """Pack the sets. The training sets of MNLI and SNLI become one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="rows of each file, to try things out")
    arguments = parser.parse_args()
    for which, files in PACKED.items():
        for file in files:
            rows = _rows(arguments.data / file, SETS[which])[: arguments.limit]
            together = file in ("mnli/train", "snli/train")
            parts = {"mnli/train_with_snli" if together else file: rows}
            if file == YELP:
                parts = {"yelp/test": rows[:TESTED], "yelp/train": rows[TESTED:]}
            for name, own in parts.items():
                target = arguments.out / f"{name}.jsonl.xz"
                target.parent.mkdir(parents=True, exist_ok=True)
                with lzma.open(target, "at" if file == "snli/train" else "wt", encoding="utf-8") as lines:
                    lines.writelines(json.dumps(packed_row(row, which)) + "\n" for row in own)
                print(f"{name}: {len(own):,} rows", flush=True)


if __name__ == "__main__":
    main()
