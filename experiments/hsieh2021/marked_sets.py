"""Texts with the words that people marked as the reason for a label: HateXplain, and two sets of ERASER.

    python experiments/hsieh2021/marked_sets.py --data DATA --out PACKED

packs the texts in use, for a machine that reads no Parquet.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Span = tuple[int, int]

HATE, FILMS, CLAIMS = "HateXplain", "film reviews", "FEVER"
CLASSES = {
    HATE: ("hatespeech", "normal", "offensive"),
    FILMS: ("negative", "positive"),
    CLAIMS: ("refuted", "supported"),
}
NORMAL = 1
"""The class of HateXplain that has no marks."""

HELD_OUT = 400
"""Film reviews of the training set that are explained, not learnt from, with those of the validation set."""

SHORTEST, LONGEST = 10, 50
"""Words of the texts that are explained; reviews are cut into passages of whole sentences."""
LEAST_MARKED, MOST_MARKED = 0.04, 0.5
"""The share of their words that is marked: where most are, any order of words is right."""
SENTENCE_ENDS = frozenset(".!?")


@dataclass(frozen=True)
class Marked:
    """A text, its class, and the spans (start, end) of characters that people marked."""

    text: str
    label: int
    spans: list[Span]


def of_words(words: Sequence[str], label: int, marked: Sequence[bool]) -> Marked:
    """Words with spaces between them, each marked or not."""
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    spans = [
        (int(start), int(start) + len(word))
        for start, word, own in zip(starts[:-1], words, marked, strict=True)
        if own
    ]
    return Marked(" ".join(words), label, spans)


def passages(words: Sequence[str], before: int = 0) -> Iterator[slice]:
    """Cut a text into runs of whole sentences; a sentence that is longer than a run may be is left out.

    A run has at most `LONGEST` words, together with as many as stand `before` it.
    """
    longest = LONGEST - before
    ends = [i + 1 for i, word in enumerate(words) if word in SENTENCE_ENDS]
    if not ends or ends[-1] < len(words):
        ends.append(len(words))
    first = last = 0
    for end in ends:
        if end - first > longest:
            if last > first:
                yield slice(first, last)
            first = last
            if end - first > longest:
                first = end
        last = end
    if last > first:
        yield slice(first, last)


def is_telling(marked: Sequence[bool]) -> bool:
    """Whether a text has the length, and the share of marked words, of those that are explained."""
    return SHORTEST <= len(marked) <= LONGEST and LEAST_MARKED <= float(np.mean(marked)) <= MOST_MARKED


def majority(rationales: Sequence[Sequence[int]], n_words: int) -> list[bool]:
    """The words that at least half of the people marked, of those who marked any."""
    rows = [list(own) for own in rationales if len(own) == n_words]
    return (np.mean(rows, axis=0) >= 0.5).tolist() if rows else [False] * n_words


def hatexplain(folder: Path) -> tuple[list[Marked], list[Marked]]:
    """All training posts, and the test posts that are hateful or offensive and have telling marks."""
    import pandas as pd

    rows = pd.read_parquet(folder / "hatexplain" / "train.parquet").itertuples()
    training = [Marked(str(row.text), int(row.label), []) for row in rows]
    explained = []
    for row in pd.read_parquet(folder / "hatexplain" / "test.parquet").itertuples():
        marked = majority(row.rationales, len(row.tokens))
        if row.label != NORMAL and is_telling(marked):
            explained.append(of_words(list(row.tokens), int(row.label), marked))
    return training, explained


def film_reviews(folder: Path) -> tuple[list[Marked], list[Marked]]:
    """Passages with marks of the training reviews, and one telling passage of each of the others."""
    import pandas as pd

    files = [pd.read_parquet(folder / "eraser_movies" / f"{split}.parquet") for split in ("train", "val")]
    rows = [row for file in files for row in file.itertuples()]
    learnt = len(files[0]) - min(HELD_OUT, len(files[0]) // 4)
    training, explained = [], []
    for number, row in enumerate(rows):
        words = row.document.split()
        marked = np.zeros(len(words), dtype=np.bool_)
        for start, end in row.evidence_spans:
            marked[start:end] = True
        own = [(words[part], int(row.label), marked[part].tolist()) for part in passages(words)]
        if number < learnt:
            training += [of_words(*one) for one in own if any(one[2])]
        else:
            explained += [of_words(*one) for one in own if is_telling(one[2])][:1]
    return training, explained


def claims(folder: Path) -> tuple[list[Marked], list[Marked]]:
    """Claims of FEVER, each before a passage with evidence: of the validation set, and telling test ones.

    The words of the sentences that are evidence are marked; those of the claim are not.
    """
    import pandas as pd

    found: list[list[Marked]] = []
    for split, fits in (("val", any), ("test", is_telling)):
        found.append([])
        for row in pd.read_parquet(folder / "eraser_fever" / f"{split}.parquet").itertuples():
            claim, words = row.query.split(), row.document.split()
            marked = np.zeros(len(words), dtype=np.bool_)
            for start, end in row.evidence_spans:
                marked[start:end] = True
            for part in passages(words, before=len(claim)):
                own = [False] * len(claim) + marked[part].tolist()
                if fits(own):
                    found[-1].append(of_words([*claim, *words[part]], int(row.label), own))
                    break
    return found[0], found[1]


READERS = {HATE: hatexplain, FILMS: film_reviews, CLAIMS: claims}


def read(folder: Path, name: str) -> tuple[list[Marked], list[Marked]]:
    """The texts to learn from, and those to explain, shuffled; packed ones if there are any."""
    packed = packed_file(folder, name)
    if packed.is_file():
        with lzma.open(packed, "rt", encoding="utf-8") as lines:
            training, explained = ([_marked(row) for row in json.loads(line)] for line in lines)
        return training, explained
    found = READERS[name](folder)
    for texts in found:
        np.random.default_rng(0).shuffle(texts)
    return found


def _marked(row: list[Any]) -> Marked:
    text, label, spans = row
    return Marked(text, label, [(start, end) for start, end in spans])


def packed_file(folder: Path, name: str) -> Path:
    """Where a set is packed."""
    return folder / f"{name.replace(' ', '_')}.jsonl.xz"


def main() -> None:
    """Pack the sets: a line with all training texts, and one with those to explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--training", type=int, help="at most so many texts to learn from")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.sets:
        training, explained = read(arguments.data, name)
        training = [Marked(one.text, one.label, []) for one in training[: arguments.training]]
        with lzma.open(packed_file(arguments.out, name), "wt", preset=9, encoding="utf-8") as lines:
            for texts in (training, explained):
                rows = [[one.text, one.label, one.spans] for one in texts]
                lines.write(json.dumps(rows, separators=(",", ":")) + "\n")
        print(f"{name}: {len(training):,} texts to learn from, {len(explained):,} with marks")


if __name__ == "__main__":
    main()
