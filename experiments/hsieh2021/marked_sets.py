"""Texts with the words that people marked as the reason for a label: HateXplain, and two sets of ERASER."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from experiments.shared.data import Row, read_packed, read_parquet
from pertinent.array_types import Masks

Span = tuple[int, int]

HATE, FILMS, CLAIMS = "HateXplain", "film reviews", "FEVER"
CLASSES = {
    HATE: ("hatespeech", "normal", "offensive"),
    FILMS: ("negative", "positive"),
    CLAIMS: ("refuted", "supported"),
}
PARTS = ("training", "explained")
NORMAL = 1
"""Class of HateXplain that has no marks."""

HELD_OUT = 400
"""Training reviews that are explained instead of learned from, with those of the validation set."""

SHORTEST, LONGEST = 10, 50
"""Words of explained texts; reviews are cut into passages of whole sentences."""
LEAST_MARKED, MOST_MARKED = 0.04, 0.5
"""Share of marked words: where most words are marked, any order of words is right."""
SENTENCE_ENDS = frozenset(".!?")


@dataclass(frozen=True)
class Marked:
    """A text, its class, and the spans (start, end) of characters that people marked."""

    text: str
    label: int
    spans: list[Span]


def join_words(words: Sequence[str], label: int, marked: Sequence[bool]) -> Marked:
    """Return words, each marked or not, as a text."""
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    spans = [
        (int(start), int(start) + len(word))
        for start, word, is_marked in zip(starts[:-1], words, marked, strict=True)
        if is_marked
    ]
    return Marked(" ".join(words), label, spans)


def mask_of(spans: Sequence[Sequence[int]], n: int) -> Masks:
    """Return a mask of the words in spans [first, last)."""
    marked = np.zeros(n, dtype=np.bool_)
    for first, last in spans:
        marked[first:last] = True
    return marked


def passages(words: Sequence[str], before: int = 0) -> Iterator[slice]:
    """Yield runs of whole sentences, without sentences that are too long.

    A run has at most `LONGEST` words, including the number of words `before` it.
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


def is_explained(marked: Sequence[bool]) -> bool:
    """Return whether a text has the length, and the share of marked words, of explained texts."""
    return SHORTEST <= len(marked) <= LONGEST and LEAST_MARKED <= float(np.mean(marked)) <= MOST_MARKED


def majority(rationales: Sequence[Sequence[int]], n_words: int) -> list[bool]:
    """Return which words at least half of the people marked, of those who marked any."""
    rows = [list(rationale) for rationale in rationales if len(rationale) == n_words]
    return (np.mean(rows, axis=0) >= 0.5).tolist() if rows else [False] * n_words


def read_hatexplain(folder: Path) -> tuple[list[Marked], list[Marked]]:
    """Return all training posts, and the hateful or offensive test posts with enough marks."""
    rows = read_parquet(folder / "hatexplain" / "train")
    training = [Marked(str(row["text"]), int(row["label"]), []) for row in rows]
    explained = []
    for row in read_parquet(folder / "hatexplain" / "test"):
        marked = majority(row["rationales"], len(row["tokens"]))
        if row["label"] != NORMAL and is_explained(marked):
            explained.append(join_words(list(row["tokens"]), int(row["label"]), marked))
    return training, explained


def read_films(folder: Path) -> tuple[list[Marked], list[Marked]]:
    """Return marked passages of the training reviews, and one passage of each of the other reviews."""
    files = [read_parquet(folder / "eraser_movies" / split) for split in ("train", "val")]
    n_training = len(files[0]) - min(HELD_OUT, len(files[0]) // 4)
    training, explained = [], []
    for number, row in enumerate([row for file in files for row in file]):
        words = row["document"].split()
        marked = mask_of(row["evidence_spans"], len(words))
        parts = [(words[part], int(row["label"]), marked[part].tolist()) for part in passages(words)]
        if number < n_training:
            training += [join_words(*part) for part in parts if any(part[2])]
        else:
            explained += [join_words(*part) for part in parts if is_explained(part[2])][:1]
    return training, explained


def read_claims(folder: Path) -> tuple[list[Marked], list[Marked]]:
    """Return claims of FEVER, each before a passage with evidence: validation claims, and test claims.

    The words of the sentences that are evidence are marked, those of the claim are not.
    """
    return tuple(
        [
            text
            for row in read_parquet(folder / "eraser_fever" / split)
            for text in _claim_passages(row, is_suitable)
        ]
        for split, is_suitable in (("val", any), ("test", is_explained))
    )


def _claim_passages(row: Row, is_suitable: Callable[[Sequence[bool]], bool]) -> list[Marked]:
    """Return the claim with its first suitable passage, if there is one."""
    claim, words = row["query"].split(), row["document"].split()
    marked = mask_of(row["evidence_spans"], len(words))
    for part in passages(words, before=len(claim)):
        both = [False] * len(claim) + marked[part].tolist()
        if is_suitable(both):
            return [join_words([*claim, *words[part]], int(row["label"]), both)]
    return []


READERS = {HATE: read_hatexplain, FILMS: read_films, CLAIMS: read_claims}


def read(folder: Path, name: str) -> tuple[list[Marked], list[Marked]]:
    """Return the texts to learn from, and the texts to explain, shuffled."""
    parts = [
        read_packed(folder, f"{key_of(name)}/{part}", partial(read_rows, folder, name, i))
        for i, part in enumerate(PARTS)
    ]
    training, explained = (
        [Marked(row["text"], row["label"], row["spans"]) for row in rows] for rows in parts
    )
    return training, explained


def read_rows(folder: Path, name: str, part: int) -> list[Row]:
    """Return the shuffled rows of a part from the Parquet files."""
    texts = READERS[name](folder)[part]
    np.random.default_rng(0).shuffle(texts)
    return [{"text": own.text, "label": own.label, "spans": own.spans} for own in texts]


def key_of(name: str) -> str:
    """Return the name of a data set's folder."""
    return name.lower().replace(" ", "-")
