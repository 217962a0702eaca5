"""Table 2: how large the sets are, and how long their texts.

python sizes.py --data DIR --encoder DIR [--out table2.md]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from collect import table
from data import SETS, Example, read
from paper import TABLE_2, Size

SPLITS = ("train", "dev", "test")


def size(examples: Sequence[Example], length: Callable[[str], int]) -> Size:
    """Examples, and the mean lengths of document and query; a pair without a query is one document."""
    queries = [length(e["query"]) for e in examples if "query" in e]
    documents = [sum(length(text) for name, text in e.items() if name != "query") for e in examples]
    return len(examples), float(np.mean(documents)), float(np.mean(queries)) if queries else None


def shown(found: Size | None) -> list[str]:
    """The table cells of a set's size: examples, and mean tokens of documents and queries."""
    if found is None:
        return ["–"] * 3
    n, document, query = found
    return [f"{n:,}", f"{document:.1f}", "–" if query is None else f"{query:.1f}"]


def main() -> None:
    """Count, and write the page."""
    from transformers import AutoTokenizer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("table2.md"))
    arguments = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(arguments.encoder)
    rows = []
    for which in arguments.sets:

        @cache  # a document has several questions
        def length(text: str, most: int = SETS[which].max_length) -> int:
            return min(len(tokenizer.tokenize(text)), most)

        for split in SPLITS:
            ours = size(read(arguments.data, which, split).examples, length)
            theirs = TABLE_2[which].get(split)
            rows.append(
                [SETS[which].name, str(len(SETS[which].classes)), split, *shown(theirs), *shown(ours)]
            )
    columns = ["examples", "tokens of a document", "tokens of a query"]
    head = ["set", "classes", "split", *(f"{who}: {name}" for who in ("paper", "ours") for name in columns)]
    page = "# Table 2: sizes of the data sets\n\n"
    page += (
        "Lengths are means, in tokens of the encoder's vocabulary, at most as many as a model reads (512; "
        "SNLI 128, SST-2 64); both sentences of SNLI are the document. Dev examples of FEVER and BoolQ are "
        "held out of ours for training. The half of BoolQ's training examples that come from ERASER are "
        "1,000 characters around the evidence. The 5,000 of SNLI are as printed: the paper's text says 50k. "
        "Its test length of SST-2 is of the 500 shortest sentences. Its dev set of BoolQ is our test set.\n\n"
    )
    arguments.out.write_text(page + table(head, rows), encoding="utf-8")


if __name__ == "__main__":
    main()
