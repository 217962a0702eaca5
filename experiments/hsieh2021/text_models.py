"""Classifiers of texts: bidirectional LSTMs, and a fine-tuned encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import pertinent
from experiments.shared.data import Examples
from experiments.shared.networks import WordClassifier, train_by_adam, word_tokenizer, words_of_two_texts
from experiments.shared.stages import Run
from pertinent.models.base import Model

WIDTH = 300
"""Units of an LSTM in each direction, and width of word embeddings that are learned."""


class BiLSTM(WordClassifier):
    """A bidirectional LSTM, the maxima of its states over the text, and a linear layer."""

    def __init__(self, embeddings: nn.Embedding, classes: Sequence[str], width: int) -> None:
        super().__init__(embeddings, classes)
        self.lstm = nn.LSTM(embeddings.embedding_dim, width, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(2 * width, len(classes))

    def logits(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        lengths = mask.sum(dim=1).cpu()
        packed = pack_padded_sequence(self.dropout(words), lengths, batch_first=True, enforce_sorted=False)
        padded, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, padding_value=-torch.inf)
        logits: torch.Tensor = self.head(self.dropout(padded.amax(dim=1)))
        return logits


@dataclass(frozen=True)
class TextClassifier:
    """Settings of a classifier that is trained once, saved in the work folder, and explained.

    Attributes
    ----------
    kind
        ``lstm``, ``vectors`` (an LSTM on an encoder's token embeddings, which are not trained) or ``minilm``.
    max_length
        Tokens that the classifier reads at most.
    width
        Units of an LSTM in each direction.
    """

    name: str
    kind: str
    classes: Sequence[str]
    max_length: int
    epochs: int
    width: int = WIDTH

    def train(self, run: Run, training: Examples) -> Model:
        """Train and save the classifier, and return it wrapped."""
        torch.manual_seed(0)
        folder = run.work / self.name
        if self.kind == "minilm":
            return self._fine_tune(run, training, folder)
        module, tokenizer = self._build(run, training.inputs)
        encoded = tokenizer(training.inputs, truncation=True, padding=True, return_tensors="pt")
        labels = torch.tensor(training.labels)

        def loss_of(batch: torch.Tensor) -> torch.Tensor:
            mask = encoded["attention_mask"][batch]
            ids = encoded["input_ids"][batch][:, : int(mask.sum(dim=1).max())]
            logits = module(ids.to(run.device), mask[:, : ids.shape[1]]).logits
            return nn.functional.cross_entropy(logits, labels[batch].to(run.device))

        train_by_adam(module, loss_of, len(labels), epochs=self.epochs, batch_size=128)
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer.save_pretrained(folder)
        save_file(module.state_dict(), folder / "model.safetensors")
        return self._wrap(module.eval(), tokenizer)

    def load(self, run: Run) -> Model:
        """Return the classifier that was saved, wrapped."""
        from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedTokenizerFast

        folder = run.work / self.name
        if self.kind == "minilm":
            module = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
            return self._wrap(module.to(run.device).eval(), AutoTokenizer.from_pretrained(folder))
        weights = load_file(folder / "model.safetensors")
        embeddings = nn.Embedding(*weights["embeddings.weight"].shape)
        lstm = BiLSTM(embeddings, self.classes, self.width)
        lstm.load_state_dict(weights)
        return self._wrap(lstm.to(run.device).eval(), PreTrainedTokenizerFast.from_pretrained(folder))

    def _build(self, run: Run, texts: list[str]) -> tuple[BiLSTM, Any]:
        """Return an LSTM with new or pretrained word embeddings, and its tokenizer."""
        from transformers import AutoModel, AutoTokenizer

        if self.kind == "vectors":
            encoder = AutoModel.from_pretrained(run.encoder, dtype=torch.float32)
            weights = encoder.get_input_embeddings().weight.detach().clone()
            embeddings = nn.Embedding.from_pretrained(weights, freeze=True)
            tokenizer = AutoTokenizer.from_pretrained(run.encoder, model_max_length=self.max_length)
        else:
            tokenizer = word_tokenizer(texts, words_of_two_texts, self.max_length)
            embeddings = nn.Embedding(len(tokenizer), self.width)
        return BiLSTM(embeddings, self.classes, self.width).to(run.device), tokenizer

    def _fine_tune(self, run: Run, training: Examples, folder: Path) -> Model:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        module = AutoModelForSequenceClassification.from_pretrained(
            run.encoder,
            num_labels=len(self.classes),
            id2label=dict(enumerate(self.classes)),
            dtype=torch.float32,
        ).to(run.device)
        tokenizer = AutoTokenizer.from_pretrained(run.encoder)
        trained = pertinent.train(
            (module, tokenizer),
            training.inputs,
            training.labels,
            out=folder,
            counterfactual=False,
            epochs=self.epochs,
            batch_size=64,
            learning_rate=5e-5,
            seed=0,
            max_length=self.max_length,
            precision="bfloat16" if run.device.startswith("cuda") else "float32",
            progress=False,
        )
        return self._wrap(trained.model.model, tokenizer)

    def _wrap(self, module: Any, tokenizer: Any) -> Model:
        options = {} if self.kind == "minilm" else {"compaction": False}
        return pertinent.wrap((module, tokenizer), max_length=self.max_length, **options)


def accuracy(model: Model, test: Examples) -> float:
    """Return the share of texts that are classified correctly."""
    explanations = pertinent.explain(
        model, test.inputs, "random", removal="zero-vector", features="sentences", progress=False
    )
    return float(np.mean([e.target == test.labels[e.index] for e in explanations]))
