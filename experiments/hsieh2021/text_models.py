"""AG News and its classifiers: bidirectional LSTMs, and a fine-tuned encoder.

python experiments/hsieh2021/text_models.py --data DATA --out PACKED

packs the texts in use, for a machine that reads no Parquet.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)

import pertinent
from pertinent.models.base import Model

CLASSES = ("World", "Sports", "Business", "Sci/Tech")
LONGEST = 64
"""Tokens."""
TRAINING = 16_000
"""Texts that the models learn from."""
WORDS = (20, 40)
"""The fewest and the most words, as spaces separate them, of the texts that are explained."""
WIDTH = 300
PAD, UNKNOWN = "[PAD]", "[UNK]"
RARE = 2
"""Words of fewer training texts are unknown to the LSTM."""


@dataclass(frozen=True)
class Texts:
    """Texts and their classes."""

    texts: list[str]
    labels: list[int]

    def part(self, first: int, last: int | None = None) -> Texts:
        """Some of them."""
        return Texts(self.texts[first:last], self.labels[first:last])


def read(folder: Path, split: str) -> Texts:
    """The training or test texts, shuffled; packed ones if there are any."""
    packed = folder / "ag_news" / f"{split}.jsonl.xz"
    if packed.is_file():
        with lzma.open(packed, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
    else:
        import pandas as pd

        frame = pd.read_parquet(folder / "ag_news" / f"{split}.parquet", columns=["text", "label"])
        rows = list(zip(frame["text"], map(int, frame["label"]), strict=True))
        random.Random(0).shuffle(rows)
    texts, labels = zip(*rows, strict=True)
    return Texts([text.replace("\\", " ") for text in texts], list(labels))


def explained_texts(test: Texts, n: int, words: Sequence[int] = WORDS) -> Texts:
    """The first texts of each class in turn, neither short nor long."""
    fits = [words[0] <= len(text.split()) <= words[1] for text in test.texts]
    places = [[i for i, own in enumerate(test.labels) if own == label and fits[i]] for label in range(4)]
    chosen = [i for each in zip(*places, strict=False) for i in each][:n]
    return Texts([test.texts[i] for i in chosen], [test.labels[i] for i in chosen])


class BiLSTM(nn.Module):
    """A bidirectional LSTM, the largest of its states over the text, and a linear layer.

    `forward` has the arguments of a transformers model, so that the library finds its word embeddings.
    """

    def __init__(self, embeddings: nn.Embedding, width: int, dropout: float = 0.3) -> None:
        super().__init__()
        self.config = SimpleNamespace(
            vocab_size=embeddings.num_embeddings,
            num_labels=4,
            id2label=dict(enumerate(CLASSES)),
            problem_type=None,
        )
        self.embeddings = embeddings
        self.lstm = nn.LSTM(embeddings.embedding_dim, width, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(2 * width, 4)

    def get_input_embeddings(self) -> nn.Embedding:
        """The word embeddings."""
        return self.embeddings

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> SimpleNamespace:
        """The logits of padded texts; a mask may hide padding alone."""
        words = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        if attention_mask is None:
            attention_mask = torch.ones(words.shape[:2], dtype=torch.int64)
        mask = attention_mask.cpu()
        if mask.ndim != 2 or bool((mask[:, 1:] > mask[:, :-1]).any()):
            raise ValueError("An LSTM reads whole texts: remove words by 'zero-vector' or 'random-token'.")
        packed = pack_padded_sequence(
            self.dropout(words), mask.sum(dim=1), batch_first=True, enforce_sorted=False
        )
        padded, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, padding_value=-torch.inf)
        return SimpleNamespace(logits=self.head(self.dropout(padded.amax(dim=1))))


def word_tokenizer(texts: list[str]) -> Any:
    """A tokenizer whose tokens are the words and signs of the texts, in small letters."""
    normalizer, cutter = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    counts: dict[str, int] = {}
    for text in texts:
        for word in {word for word, _ in cutter.pre_tokenize_str(normalizer.normalize_str(text))}:
            counts[word] = counts.get(word, 0) + 1
    known = [PAD, UNKNOWN, *(word for word, count in sorted(counts.items()) if count >= RARE)]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(known)}, UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, cutter
    special = {"pad_token": PAD, "unk_token": UNKNOWN}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LONGEST, **special)


def pretrained_vectors(encoder: Path) -> tuple[nn.Embedding, Any]:
    """The encoder's token embeddings, which are not trained any further, and its tokenizer."""
    weights = AutoModel.from_pretrained(encoder, dtype=torch.float32).get_input_embeddings().weight
    tokenizer = AutoTokenizer.from_pretrained(encoder, model_max_length=LONGEST)
    return nn.Embedding.from_pretrained(weights.detach().clone(), freeze=True), tokenizer


def bilstm(
    training: Texts,
    *,
    epochs: int,
    device: str,
    encoder: Path | None = None,
    width: int = WIDTH,
    seed: int = 0,
) -> Model:
    """An LSTM trained by Adam, wrapped; its word embeddings are its own, or those of an encoder."""
    torch.manual_seed(seed)
    if encoder is None:
        tokenizer = word_tokenizer(training.texts)
        embeddings = nn.Embedding(len(tokenizer), width)
    else:
        embeddings, tokenizer = pretrained_vectors(encoder)
    module = BiLSTM(embeddings, width).to(device)
    encoded = tokenizer(training.texts, truncation=True, padding=True, return_tensors="pt")
    labels = torch.tensor(training.labels)
    optimizer = torch.optim.Adam((own for own in module.parameters() if own.requires_grad), 1e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(128):
            mask = encoded["attention_mask"][batch]
            ids = encoded["input_ids"][batch][:, : int(mask.sum(dim=1).max())]
            logits = module(ids.to(device), mask[:, : ids.shape[1]]).logits
            loss = nn.functional.cross_entropy(logits, labels[batch].to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return pertinent.wrap((module.eval(), tokenizer), max_length=LONGEST, compaction=False)


def minilm(
    encoder: Path,
    training: Texts,
    *,
    epochs: int,
    device: str,
    classes: Sequence[str] = CLASSES,
    longest: int = LONGEST,
    seed: int = 0,
) -> Model:
    """The encoder with a new head, fine-tuned, wrapped."""
    torch.manual_seed(seed)
    module = AutoModelForSequenceClassification.from_pretrained(
        encoder, num_labels=len(classes), id2label=dict(enumerate(classes)), dtype=torch.float32
    ).to(device)
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    with TemporaryDirectory() as folder:
        trained = pertinent.train(
            (module, tokenizer),
            training.texts,
            training.labels,
            out=Path(folder) / "model",
            counterfactual=False,
            epochs=epochs,
            batch_size=64,
            learning_rate=5e-5,
            seed=seed,
            max_length=longest,
            precision="bfloat16" if device == "cuda" else "float32",
            progress=False,
        )
    return pertinent.wrap((trained.model.model, tokenizer), max_length=longest)


def accuracy(model: Model, test: Texts) -> float:
    """The share of texts that are classified rightly."""
    found = pertinent.explain(
        model, test.texts, "random", removal="zero-vector", features="sentences", progress=False
    )
    return float(np.mean([e.target == test.labels[e.index] for e in found]))


def main() -> None:
    """Pack the texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--training", type=int, default=TRAINING)
    arguments = parser.parse_args()
    (arguments.out / "ag_news").mkdir(parents=True, exist_ok=True)
    for split, n in (("train", arguments.training), ("test", 3_000)):
        own = read(arguments.data, split).part(0, n)
        target = arguments.out / "ag_news" / f"{split}.jsonl.xz"
        with lzma.open(target, "wt", preset=9, encoding="utf-8") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in zip(own.texts, own.labels, strict=True))
        print(f"{len(own.texts):,} texts: {target}")


if __name__ == "__main__":
    main()
