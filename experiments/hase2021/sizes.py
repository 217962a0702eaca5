"""Table 2: number of examples of the data sets, and lengths of their texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from experiments.hase2021.data import SETS, read
from experiments.hase2021.paper import PUBLISHED
from experiments.shared.pages import MISSING, table
from experiments.shared.stages import Run

SPLITS = ("train", "dev", "test")


def count(run: Run, sets: Sequence[str]) -> dict[str, dict[str, list[float]]]:
    """Return the size of each split of the data sets."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(run.encoder)
    sizes: dict[str, dict[str, list[float]]] = {}
    for name in sets:

        @cache  # a document has several questions
        def length(text: str, longest: int = SETS[name].max_length) -> int:
            return min(len(tokenizer.tokenize(text)), longest)

        splits = {split: read(run.data, SETS[name], split).inputs for split in SPLITS}
        sizes[name] = {split: size(inputs, length) for split, inputs in splits.items()}
    return sizes


def size(inputs: Sequence[dict[str, str]], length: Callable[[str], int]) -> list[float]:
    """Return the number of examples, and mean lengths of documents and queries; a pair is one document."""
    queries = [length(text["query"]) for text in inputs if "query" in text]
    documents = [sum(length(part) for name, part in text.items() if name != "query") for text in inputs]
    return [len(inputs), *(float(np.mean(lengths)) for lengths in (documents, queries) if lengths)]


def page(sizes: dict[str, Any]) -> str:
    """Return the page of Table 2."""
    rows = []
    for name, splits in sizes.items():
        for split in SPLITS:
            cells = [*show(PUBLISHED["table2"][name].get(split)), *show(splits[split])]
            rows.append([SETS[name].name, str(len(SETS[name].classes)), split, *cells])
    columns = ["examples", "tokens of a document", "tokens of a query"]
    head = ["set", "classes", "split", *(f"{who}: {name}" for who in ("paper", "ours") for name in columns)]
    text = "# Table 2: sizes of the data sets\n\n"
    text += (
        "Lengths are means, in tokens of the encoder's vocabulary, at most as many as a model reads (512; "
        "SNLI 128, SST-2 64); both sentences of SNLI are the document. Dev examples of FEVER and BoolQ are "
        "held out of ours for training. The half of BoolQ's training examples that come from ERASER are "
        "1,000 characters around the evidence. The 5,000 of SNLI are as printed: the paper's text says 50k. "
        "Its test length of SST-2 is of the 500 shortest sentences. Its dev set of BoolQ is our test set.\n\n"
    )
    return text + table(head, rows)


def show(size: Sequence[float] | None) -> list[str]:
    """Return the cells of a split: examples, and mean tokens of documents and queries."""
    n, *lengths = size or [None]
    cells = [MISSING if n is None else f"{n:,}", *(f"{length:.1f}" for length in lengths)]
    return [*cells, *[MISSING] * (3 - len(cells))]
