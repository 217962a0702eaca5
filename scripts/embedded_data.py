"""Data of the embedded models: reading, packing and varying texts; batching and masking tokens."""

from __future__ import annotations

import gzip
import html
import json
import math
import random
import re
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tokenizers import Tokenizer

Example = tuple[str, int]

COLUMNS = {
    "sst2/train_phrases_glue": ("text", "label"),
    "sst2/train_sentences": ("text", "label"),
    "sst2/dev": ("text", "label"),
    "sst2/test": ("text", "label"),
    "imdb/train": ("text", "label"),
    "eraser_movies/train": ("document",),
    "ag_news/train": ("text", "title", "label"),
    "ag_news/test": ("text", "label"),
}
SHARES_KEPT = (0.05, 0.10, 0.20, 0.50)  # of the tokens in training, Hase et al. 2021
TEXTS_TOKENISED_AT_ONCE = 50_000
WINDOW = 180  # words; nearly always fits the students' 256 positions
HTML_LEFTOVERS = {" #39;": "'", " #36;": " $", " #38;": "&", "\\": " ", " quot;": ' "', "[Link]": ""}
TREEBANK_JOINS = re.compile(r" (n't|'[a-z]+\b|[.,!?;:])")


@dataclass(frozen=True)
class Corpus:
    """Texts that one model is trained and measured on; `measured` has no text in common with the others."""

    classes: tuple[str, ...]
    labelled: list[Example]
    unlabelled: list[str]
    measured: dict[str, list[Example]]
    sizes: dict[str, int]
    rights: str

    def shortened(self, size: int) -> Corpus:
        """Return a corpus with at most `size` texts of each kind, for a check."""
        measured = {name: examples[:size] for name, examples in self.measured.items()}
        return Corpus(
            self.classes, self.labelled[:size], self.unlabelled[:size], measured, self.sizes, self.rights
        )


def read_rows(data: Path, name: str) -> list[dict[str, Any]]:
    """Read the rows of ``data/name``, packed or Parquet; packed needs only the standard library."""
    packed = data / f"{name}.jsonl.gz"
    if packed.exists():
        with gzip.open(packed, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    frame = pd.read_parquet(data / f"{name}.parquet", columns=list(COLUMNS[name]))
    rows: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return rows


def pack_texts(data: Path, packed: Path) -> None:
    """Write the needed columns of the needed sets as compressed JSON lines."""
    for name in COLUMNS:
        target = packed / f"{name}.jsonl.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(target, "wt", compresslevel=9, encoding="utf-8") as lines:
            for row in read_rows(data, name):
                lines.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")


def sentiment_corpus(data: Path) -> Corpus:
    """Read SST-2, and IMDB and ERASER movie reviews."""
    rows = {name: read_rows(data, name) for name in COLUMNS if not name.startswith("ag_news")}
    measured = {split: _examples(rows[f"sst2/{split}"]) for split in ("dev", "test")}
    held_out = _normalised(text for examples in measured.values() for text, _ in examples)

    phrases = _examples(rows["sst2/train_phrases_glue"]) + _examples(rows["sst2/train_sentences"])
    reviews = [(row["text"].replace("<br />", " "), row["label"]) for row in rows["imdb/train"]]
    documents = [text for text, _ in reviews] + [row["document"] for row in rows["eraser_movies/train"]]
    review_ends = [(end, label) for text, label in reviews for end in _first_and_last_window(text)]
    unlabelled = [part for text in documents for part in (*_sentences(text), *_windows(text))]
    return Corpus(
        classes=("negative", "positive"),
        labelled=_without(held_out, dict.fromkeys(phrases + review_ends)),
        unlabelled=_texts_without(held_out, unlabelled),
        measured=measured,
        sizes={name: len(texts) for name, texts in rows.items()},
        rights="SST-2, IMDB and ERASER movies: no licence stated by the sources; research use.",
    )


def topics_corpus(data: Path) -> Corpus:
    """Read AG News, and its titles and descriptions as unlabelled texts."""
    rows = {name: read_rows(data, name) for name in COLUMNS if name.startswith("ag_news")}
    measured = {"test": _examples(rows["ag_news/test"])}
    held_out = _normalised(text for text, _ in measured["test"])
    titled = [row for row in rows["ag_news/train"] if row["title"]]
    halves = [(row["title"], row["text"][len(row["title"]) + 1 :]) for row in titled]
    return Corpus(
        classes=("World", "Sports", "Business", "Sci/Tech"),
        labelled=_without(held_out, _examples(rows["ag_news/train"])),
        unlabelled=_texts_without(held_out, (half for pair in halves for half in pair if half)),
        measured=measured,
        sizes={name: len(texts) for name, texts in rows.items()},
        rights="AG News: for research and any other non-commercial activity.",
    )


CORPORA: dict[str, Callable[[Path], Corpus]] = {"sentiment": sentiment_corpus, "topics": topics_corpus}


def variations(texts: list[str], size: int, seed: int) -> list[str]:
    """Draw `size` spans, thinned texts, detokenised texts and joined pairs of `texts`."""
    rng = random.Random(seed)
    ways: list[Callable[[str], str]] = [
        plainly_written,
        lambda text: _span(text, rng),
        lambda text: _thinned(text, rng),
        lambda text: plainly_written(_span(text, rng)),
        lambda text: f"{text} {rng.choice(texts)}",
    ]
    drawn = (rng.choices(ways, (2, 3, 3, 1, 1))[0](rng.choice(texts)) for _ in range(size))
    return [text for text in drawn if text.strip()]


def plainly_written(text: str) -> str:
    """Undo treebank tokenisation and remove leftovers of HTML."""
    for leftover, plain in HTML_LEFTOVERS.items():
        text = text.replace(leftover, plain)
    text = re.sub(r"</?[a-z]+>", " ", html.unescape(text))
    text = text.replace("-lrb-", "(").replace("-rrb-", ")").replace("``", '"').replace("''", '"')
    return TREEBANK_JOINS.sub(r"\1", text)


def _span(text: str, rng: random.Random) -> str:
    words = text.split()
    length = rng.randint(1, max(1, len(words)))
    start = rng.randint(0, max(0, len(words) - length))
    return " ".join(words[start : start + length])


def _thinned(text: str, rng: random.Random) -> str:
    share = rng.uniform(0.1, 0.6)
    return " ".join(word for word in text.split() if rng.random() > share)


def _examples(rows: list[dict[str, Any]]) -> list[Example]:
    return [(row["text"], int(row["label"])) for row in rows]


def _sentences(text: str) -> list[str]:
    parts = re.split(r"(?<=[.!?])\s+", text)
    return [part for part in parts if 3 <= len(part.split()) <= WINDOW]


def _windows(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[start : start + WINDOW]) for start in range(0, len(words), WINDOW)]


def _first_and_last_window(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[:WINDOW]), " ".join(words[-WINDOW:])]


def _normal(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def _normalised(texts: Iterable[str]) -> set[str]:
    return {_normal(text) for text in texts}


def _without(held_out: set[str], examples: Iterable[Example]) -> list[Example]:
    return [(text, label) for text, label in examples if _normal(text) not in held_out]


def _texts_without(held_out: set[str], texts: Iterable[str]) -> list[str]:
    return [text for text in texts if _normal(text) not in held_out]


@dataclass(frozen=True)
class Tokens:
    """Token sequences of many texts, end to end on one device; token 0 is padding."""

    flat: Tensor
    starts: Tensor
    lengths: Tensor

    @classmethod
    def from_texts(cls, texts: list[str], tokenizer: Tokenizer, device: torch.device) -> Tokens:
        """Tokenise `texts` in chunks that limit the memory."""
        flat, counts = array("i"), array("q")
        for first in range(0, len(texts), TEXTS_TOKENISED_AT_ONCE):
            for encoding in tokenizer.encode_batch_fast(texts[first : first + TEXTS_TOKENISED_AT_ONCE]):
                flat.extend(encoding.ids)
                counts.append(len(encoding.ids))
        lengths = torch.frombuffer(counts, dtype=torch.int64)
        starts = lengths.cumsum(0) - lengths
        return cls(torch.frombuffer(flat, dtype=torch.int32).to(device), starts.to(device), lengths)

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the padded token ids and the attention mask of `rows` (indices on the CPU)."""
        device = self.flat.device
        lengths = self.lengths[rows]
        positions = torch.arange(8 * math.ceil(int(lengths.max()) / 8), device=device)
        mask = positions < lengths.to(device)[:, None]
        index = (self.starts[rows.to(device)][:, None] + positions).clamp(max=len(self.flat) - 1)
        return self.flat[index].long() * mask, mask.long()


def not_special(mask: Tensor) -> Tensor:
    """Return a mask of the tokens between [CLS] and [SEP]."""
    positions = torch.arange(mask.shape[1], device=mask.device)
    return (positions > 0) & (positions < mask.sum(1, keepdim=True) - 1)


def keep_random_tokens(mask: Tensor, shares: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Mask all but ceil(share * d) of each row's d tokens; the special first and last tokens are kept."""
    ordinary = not_special(mask)
    scores = torch.rand(mask.shape, device=mask.device, generator=generator).masked_fill(~ordinary, 2.0)
    ranks = scores.argsort(1).argsort(1)
    kept = ordinary & (ranks < torch.ceil(shares[:, None] * ordinary.sum(1, keepdim=True)))
    return mask * (kept | ~ordinary)


def twice(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return all rows twice: whole, and with a random share of their tokens."""
    shares = torch.tensor(SHARES_KEPT, device=mask.device)
    drawn = shares[torch.randint(len(shares), (len(mask),), device=mask.device)]
    return ids.repeat(2, 1), torch.cat([mask, keep_random_tokens(mask, drawn)])


def batches(rows: Tensor, lengths: Tensor, size: int) -> Iterator[Tensor]:
    """Yield shuffled batches of `rows` with similar lengths, without end."""
    while True:
        for pool in torch.split(rows[torch.randperm(len(rows))], 64 * size):
            similar = torch.split(pool[lengths[pool].argsort()], size)
            yield from (similar[i] for i in torch.randperm(len(similar)).tolist())
