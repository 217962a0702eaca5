"""Small networks trained from scratch: training by Adam, and tokenizers and classifiers of words."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import nn
from transformers import PreTrainedTokenizerFast

PAD, UNKNOWN = "[PAD]", "[UNK]"


def train_by_adam(
    module: nn.Module,
    loss_of: Callable[[torch.Tensor], torch.Tensor],
    n: int,
    *,
    epochs: int,
    batch_size: int,
    device: str = "cpu",
) -> None:
    """Train a module on batches of n examples, whose indices are drawn on a device."""
    optimizer = torch.optim.Adam((weights for weights in module.parameters() if weights.requires_grad), 1e-3)
    for _ in range(epochs):
        for batch in torch.randperm(n, device=device).split(batch_size):
            loss = loss_of(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def word_tokenizer(
    texts: Sequence[str], vocabulary: Callable[[list[list[str]]], list[str]], max_length: int
) -> Any:
    """Return a tokenizer of lower-case words; the vocabulary is chosen from the words of each text."""
    normalizer, splitter = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    words = [
        [word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))] for text in texts
    ]
    ids = {word: i for i, word in enumerate([PAD, UNKNOWN, *vocabulary(words)])}
    tokenizer = Tokenizer(models.WordLevel(ids, UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    special = {"pad_token": PAD, "unk_token": UNKNOWN}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_length, **special)


def words_of_two_texts(words: list[list[str]]) -> list[str]:
    """Return the words that occur in at least two texts, in alphabetical order."""
    counts = Counter(word for text in words for word in set(text))
    return sorted(word for word, count in counts.items() if count >= 2)


def most_frequent_words(words: list[list[str]], n: int = 20_000) -> list[str]:
    """Return the n most frequent words."""
    counts = Counter(word for text in words for word in text)
    return sorted(counts, key=lambda word: (-counts[word], word))[:n]


class WordClassifier(nn.Module):
    """A classifier of word embeddings whose `forward` has the arguments of a transformers model.

    The library finds its embeddings through `get_input_embeddings`, and its classes in `config`.
    """

    def __init__(self, embeddings: nn.Embedding, classes: Sequence[str]) -> None:
        super().__init__()
        self.config = SimpleNamespace(
            vocab_size=embeddings.num_embeddings,
            num_labels=len(classes),
            id2label=dict(enumerate(classes)),
            problem_type=None,
        )
        self.embeddings = embeddings

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the word embeddings."""
        return self.embeddings

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> SimpleNamespace:
        """Return the logits of padded texts; the mask hides only padding."""
        words = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        if attention_mask is None:
            attention_mask = torch.ones(words.shape[:2], dtype=torch.int64, device=words.device)
        if attention_mask.ndim != 2 or bool((attention_mask[:, 1:] > attention_mask[:, :-1]).any()):
            raise ValueError("`attention_mask` must hide only padding: replace the embeddings or the tokens.")
        return SimpleNamespace(logits=self.logits(words, attention_mask))

    @abstractmethod
    def logits(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, classes) of words (rows, length, width) and their mask (rows, length)."""
