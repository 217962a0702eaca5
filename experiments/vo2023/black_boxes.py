"""Black boxes: a GRU, attention with an LSTM, two convolutional networks, and a linear model of words."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.functional import cross_entropy, pad, relu
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

import pertinent
from experiments.shared.data import Examples
from experiments.shared.networks import WordClassifier, most_frequent_words, train_by_adam, word_tokenizer
from experiments.vo2023.sets import CLASSES, MAX_LENGTH
from pertinent.models.base import Model

BATCH = 64


class TextClassifier(WordClassifier):
    """Word embeddings, a body that depends on the data set, and two linear layers.

    The bodies and their sizes are those of the authors' code. Removed words are the padding token, whose
    embedding is zero.
    """

    def __init__(self, dataset: str, n_words: int) -> None:
        names, width = CLASSES[dataset], 256 if dataset == "hatexplain" else 100
        super().__init__(nn.Embedding(n_words, width, padding_idx=0), names)
        self.body: Body = BODIES[dataset](width)
        dropout = nn.Dropout(0.5 if dataset == "hatexplain" else 0.1)
        self.head = nn.Sequential(
            dropout, nn.Linear(self.body.width, 250), nn.ReLU(), dropout, nn.Linear(250, len(names))
        )

    def logits(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        logits: torch.Tensor = self.head(self.body(words, mask.bool()))
        return logits


class LinearClassifier(WordClassifier):
    """Sum of the weights of words, so that the true words of a decision are known."""

    def __init__(self, dataset: str, n_words: int) -> None:
        names = CLASSES[dataset]
        super().__init__(nn.Embedding(n_words, len(names), padding_idx=0), names)
        self.intercept = nn.Parameter(torch.zeros(len(names)))
        nn.init.zeros_(self.embeddings.weight)

    def logits(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        return (words * mask[..., None]).sum(1) + self.intercept


class Body(nn.Module):
    """Module from words (rows, length, width), and a mask of real words, to one vector for each text."""

    width: int


class Recurrent(Body):
    """Last states of a bidirectional GRU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = 500
        self.layer: nn.RNNBase = nn.GRU(width, 250, batch_first=True, bidirectional=True)

    def forward(self, words: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Return the last states of both directions."""
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
        """Add the sines of positions to the words."""
        scaled = words * math.sqrt(words.shape[2]) + _positions(words)
        return super().forward(self.attention(scaled, src_key_padding_mask=~real), real)


class Convolutional(Body):
    """Maxima over the text of convolutions of four sizes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = 1000
        self.layers = nn.ModuleList([nn.Conv1d(width, 250, size) for size in (10, 3, 3, 1)])

    def forward(self, words: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Return the maxima; convolutions continue behind the text, where words are zero."""
        rows = (words * real[..., None]).transpose(1, 2)
        maxima = []
        for layer in self.layers:
            states = relu(layer(pad(rows, (0, layer.kernel_size[0] - 1))))
            maxima.append(states.masked_fill(~real[:, None], 0.0).amax(dim=2))
        return torch.cat(maxima, dim=1)


BODIES: dict[str, type[Body]] = {"imdb": Recurrent, "hatexplain": Attentive, "ag_news": Convolutional}


def _positions(words: torch.Tensor) -> torch.Tensor:
    """Return sines and cosines (length, width), Vaswani et al. 2017."""
    length, width = words.shape[1:]
    position = torch.arange(length, device=words.device)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, device=words.device) * (-math.log(10_000) / width))
    return torch.stack([(position * rate).sin(), (position * rate).cos()], dim=2).flatten(1)


def text_model(
    dataset: str, box: str, training: Examples, *, epochs: int, device: str, weights: Path
) -> Model:
    """Return a classifier of texts, trained or read from a file, wrapped."""
    torch.manual_seed(0)
    tokenizer = word_tokenizer(training.inputs, most_frequent_words, MAX_LENGTH[dataset])
    build = TextClassifier if box == "network" else LinearClassifier
    module = build(dataset, len(tokenizer)).to(device)
    ids = [torch.tensor(row) for row in tokenizer(training.inputs, truncation=True)["input_ids"]]
    labels = torch.tensor(training.labels)

    def loss_of(batch: torch.Tensor) -> torch.Tensor:
        return cross_entropy(
            module(*_pad([ids[i] for i in batch.tolist()], device)).logits, labels[batch].to(device)
        )

    epochs *= 1 if box == "network" else 2
    _train_or_read(module, loss_of, len(labels), epochs, weights=weights, device="cpu")
    # Removed words stay in the text as padding, because their order and number matter to the model.
    return pertinent.wrap((module.eval(), tokenizer), max_length=MAX_LENGTH[dataset], compaction=False)


def _pad(rows: list[torch.Tensor], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    rows = [row if len(row) else torch.ones(1, dtype=torch.int64) for row in rows]
    lengths = torch.tensor([len(row) for row in rows], device=device)
    ids = pad_sequence(rows, batch_first=True).to(device)
    return ids, (torch.arange(ids.shape[1], device=device)[None] < lengths[:, None]).long()


def image_model(dataset: str, training: Examples, *, epochs: int, device: str, weights: Path) -> Model:
    """Return two convolutions of size 5 and two dense layers (App. E.1), trained or read, wrapped."""
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
        nn.Linear(50, len(CLASSES[dataset])),
    ).to(device)
    images = torch.stack([torch.from_numpy(image) for image in training.inputs]).to(device)
    labels = torch.tensor(training.labels, device=device)

    def loss_of(batch: torch.Tensor) -> torch.Tensor:
        return cross_entropy(module(images[batch]), labels[batch])

    _train_or_read(module, loss_of, len(labels), epochs, weights=weights, device=device)
    return pertinent.wrap(module.eval(), kind="image", output="logit", classes=list(CLASSES[dataset]))


def _train_or_read(
    module: nn.Module,
    loss_of: Callable[[torch.Tensor], torch.Tensor],
    n: int,
    epochs: int,
    *,
    weights: Path,
    device: str,
) -> None:
    if weights.is_file():
        module.load_state_dict(load_file(weights))
        return
    train_by_adam(module, loss_of, n, epochs=epochs, batch_size=BATCH, device=device)
    weights.parent.mkdir(parents=True, exist_ok=True)
    save_file(module.state_dict(), weights)
