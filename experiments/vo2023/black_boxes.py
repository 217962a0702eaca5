"""The models that are explained: a GRU, an LSTM with attention, and two convolutional networks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sets import CLASSES, LONGEST, Examples
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import nn
from torch.nn.functional import relu
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import PreTrainedTokenizerFast

import pertinent

WIDTH = 128
KNOWN = 20_000
"""Words that are told apart."""


class TextClassifier(nn.Module):
    """Word embeddings, a body that depends on the set, its maximum over the text, and a linear layer.

    Its `forward` has the arguments of a transformers model. Removed words are the padding token, whose
    embedding is zero; a mask hides what is behind the text.
    """

    def __init__(self, which: str, n_words: int) -> None:
        super().__init__()
        names = CLASSES[which]
        self.which = which
        self.config = SimpleNamespace(
            vocab_size=n_words, num_labels=len(names), id2label=dict(enumerate(names)), problem_type=None
        )
        self.embeddings = nn.Embedding(n_words, WIDTH, padding_idx=0)
        self.dropout = nn.Dropout(0.3)
        if which == "imdb":
            self.recurrent: nn.Module = nn.GRU(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        elif which == "hatexplain":
            self.recurrent = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True)
            self.attention = nn.TransformerEncoderLayer(2 * WIDTH, 4, 2 * WIDTH, 0.3, batch_first=True)
        else:
            self.convolution = nn.Conv1d(WIDTH, 2 * WIDTH, 3, padding=1)
        self.head = nn.Linear(2 * WIDTH, len(names))

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
        real = attention_mask.bool()
        states = self.dropout(self._states(self.dropout(words), real))
        return SimpleNamespace(logits=self.head(states.masked_fill(~real[..., None], -1e9).amax(dim=1)))

    def _states(self, words: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        if self.which == "ag_news":
            return relu(self.convolution(words.transpose(1, 2))).transpose(1, 2)
        packed = pack_padded_sequence(words, real.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(
            self.recurrent(packed)[0], batch_first=True, total_length=words.shape[1]
        )
        if self.which == "hatexplain":
            states = self.attention(states, src_key_padding_mask=~real)
        return states


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
