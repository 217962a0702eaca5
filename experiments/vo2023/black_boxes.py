"""The models that are explained: a GRU, attention with an LSTM, and two convolutional networks."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sets import CLASSES, LONGEST, Examples
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import nn
from torch.nn.functional import pad, relu
from torch.nn.utils.rnn import pack_padded_sequence
from transformers import PreTrainedTokenizerFast

import pertinent

KNOWN = 20_000
"""Words that are told apart."""


class TextClassifier(nn.Module):
    """Word embeddings, a body that depends on the set, and two linear layers.

    The bodies and their sizes are those of the authors' code. Its `forward` has the arguments of a
    transformers model. Removed words are the padding token, whose embedding is zero; a mask hides what is
    behind the text.
    """

    def __init__(self, which: str, n_words: int) -> None:
        super().__init__()
        names, width = CLASSES[which], 256 if which == "hatexplain" else 100
        self.config = SimpleNamespace(
            vocab_size=n_words, num_labels=len(names), id2label=dict(enumerate(names)), problem_type=None
        )
        self.embeddings = nn.Embedding(n_words, width, padding_idx=0)
        self.body: Body = BODIES[which](width)
        dropout = nn.Dropout(0.5 if which == "hatexplain" else 0.1)
        self.head = nn.Sequential(
            dropout, nn.Linear(self.body.width, 250), nn.ReLU(), dropout, nn.Linear(250, len(names))
        )

    def get_input_embeddings(self) -> nn.Embedding:
        """The word embeddings."""
        return self.embeddings

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> SimpleNamespace:
        """The logits."""
        words = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        if attention_mask is None:
            attention_mask = torch.ones(words.shape[:2], dtype=torch.int64, device=words.device)
        if attention_mask.ndim != 2:
            raise ValueError("This model reads whole texts.")
        return SimpleNamespace(logits=self.head(self.body(words, attention_mask.bool())))


class Body(nn.Module):
    """From words (rows, length, width), and which of them are real, to one vector for each text."""

    width: int


class Recurrent(Body):
    """The last states of a bidirectional GRU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = 500
        self.layer: nn.RNNBase = nn.GRU(width, 250, batch_first=True, bidirectional=True)

    def forward(self, words: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Both directions."""
        packed = pack_padded_sequence(words, real.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False)
        last = self.layer(packed)[1]
        return torch.cat(tuple(last[0] if isinstance(last, tuple) else last), dim=1)


class Attentive(Recurrent):
    """A transformer layer with four heads below the last states of a bidirectional LSTM."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.width = 1024
        self.attention = nn.TransformerEncoderLayer(width, 4, 1024, batch_first=True)
        self.layer = nn.LSTM(width, 512, batch_first=True, bidirectional=True)

    def forward(self, words: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """With the sines of positions added to the words."""
        scaled = words * math.sqrt(words.shape[2]) + _positions(words)
        return super().forward(self.attention(scaled, src_key_padding_mask=~real), real)


class Convolutional(Body):
    """The maxima over the text of convolutions of four sizes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = 1000
        self.layers = nn.ModuleList([nn.Conv1d(width, 250, size) for size in (10, 3, 3, 1)])

    def forward(self, words: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Each reads on behind the text, where there is nothing."""
        rows = (words * real[..., None]).transpose(1, 2)
        found = []
        for layer in self.layers:
            states = relu(layer(pad(rows, (0, layer.kernel_size[0] - 1))))
            found.append(states.masked_fill(~real[:, None], 0.0).amax(dim=2))
        return torch.cat(found, dim=1)


BODIES: dict[str, type[Body]] = {"imdb": Recurrent, "hatexplain": Attentive, "ag_news": Convolutional}


def _positions(words: torch.Tensor) -> torch.Tensor:
    """Sines and cosines (length, width), Vaswani et al. 2017."""
    length, width = words.shape[1:]
    place = torch.arange(length, device=words.device)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, device=words.device) * (-math.log(10_000) / width))
    return torch.stack([(place * rate).sin(), (place * rate).cos()], dim=2).flatten(1)


def word_tokenizer(texts: list[str], longest: int) -> Any:
    """A tokenizer whose tokens are the most frequent words and signs of the texts, in small letters."""
    normalizer, cutter = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    counts: dict[str, int] = {}
    for text in texts:
        for word, _ in cutter.pre_tokenize_str(normalizer.normalize_str(text)):
            counts[word] = counts.get(word, 0) + 1
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[:KNOWN]
    known = {word: i for i, word in enumerate(["[PAD]", "[UNK]", *frequent])}
    tokenizer = Tokenizer(models.WordLevel(known, "[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, cutter
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=longest, **special)


def text_classifier(which: str, training: Examples, *, epochs: int, device: str, weights: Path) -> Any:
    """A classifier trained by Adam, or read from a file if there is one, wrapped."""
    torch.manual_seed(0)
    tokenizer = word_tokenizer(training.inputs, LONGEST[which])
    module = TextClassifier(which, len(tokenizer)).to(device)
    if weights.is_file():
        module.load_state_dict(load_file(weights))
    else:
        _train_on_texts(module, tokenizer, training, epochs, device)
        save_file(module.state_dict(), weights)
    # The model drops no words, since their order and number matter to it.
    return pertinent.wrap((module.eval(), tokenizer), max_length=LONGEST[which], compaction=False)


def _train_on_texts(module: Any, tokenizer: Any, training: Examples, epochs: int, device: str) -> None:
    rows = [torch.tensor(ids) for ids in tokenizer(training.inputs, truncation=True)["input_ids"]]
    labels = torch.tensor(training.labels)
    optimizer = torch.optim.Adam(module.parameters(), 1e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(64):
            ids, mask = _padded([rows[i] for i in batch.tolist()], device)
            loss = nn.functional.cross_entropy(module(ids, mask).logits, labels[batch].to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def _padded(rows: list[torch.Tensor], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    rows = [row if len(row) else torch.ones(1, dtype=torch.int64) for row in rows]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return ids, (torch.arange(ids.shape[1], device=device)[None] < lengths[:, None]).long()


def image_classifier(which: str, training: Examples, *, epochs: int, device: str, weights: Path) -> Any:
    """Two convolutions of size 5 and two dense layers (App. E.1), trained or read, wrapped."""
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(1, 10, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(10, 20, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(320, 50),
        nn.ReLU(),
        nn.Linear(50, len(CLASSES[which])),
    ).to(device)
    if weights.is_file():
        module.load_state_dict(load_file(weights))
    else:
        _train_on_images(module, training, epochs, device)
        save_file(module.state_dict(), weights)
    return pertinent.wrap(module.eval(), kind="image", output="logit", classes=list(CLASSES[which]))


def _train_on_images(module: nn.Module, training: Examples, epochs: int, device: str) -> None:
    images = torch.stack([torch.from_numpy(image) for image in training.inputs]).to(device)
    labels = torch.tensor(training.labels, device=device)
    optimizer = torch.optim.Adam(module.parameters(), 1e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels), device=device).split(64):
            loss = nn.functional.cross_entropy(module(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
