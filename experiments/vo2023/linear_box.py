"""A linear black box of words, whose true words are known, and how much of them an explainer finds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from sets import CLASSES, LONGEST

from pertinent.stats import spearman

K = 10
LEAST = 20
"""Number of words that a text must have for its true words to be looked for."""


def linear_classifier(which: str, training: Any, *, epochs: int, device: str, weights: Path) -> Any:
    """A sum of weights of words, trained by Adam or read from a file, wrapped."""
    import torch
    from black_boxes import _train_on_texts, word_tokenizer
    from safetensors.torch import load_file, save_file
    from torch import nn

    import pertinent

    class Linear(nn.Module):
        def __init__(self, n_words: int) -> None:
            super().__init__()
            names = CLASSES[which]
            labels = {"num_labels": len(names), "id2label": dict(enumerate(names)), "problem_type": None}
            self.config = SimpleNamespace(vocab_size=n_words, **labels)
            self.embeddings = nn.Embedding(n_words, len(names), padding_idx=0)
            self.intercept = nn.Parameter(torch.zeros(len(names)))
            nn.init.zeros_(self.embeddings.weight)

        def get_input_embeddings(self) -> nn.Embedding:
            return self.embeddings

        def forward(
            self, input_ids: Any = None, attention_mask: Any = None, inputs_embeds: Any = None
        ) -> Any:
            words = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds
            if attention_mask is not None:
                words = words * attention_mask[..., None]
            return SimpleNamespace(logits=words.sum(1) + self.intercept)

    torch.manual_seed(0)
    tokenizer = word_tokenizer(training.inputs, LONGEST[which])
    module = Linear(len(tokenizer)).to(device)
    if weights.is_file():
        module.load_state_dict(load_file(weights))
    else:
        _train_on_texts(module, tokenizer, training, 2 * epochs, device)
        save_file(module.state_dict(), weights)
    return pertinent.wrap((module.eval(), tokenizer), max_length=LONGEST[which], compaction=False)


def true_words(model: Any, texts: list[str], found: Any) -> dict[str, float]:
    """Means over texts of `agreement` with a linear black box, also ``relative`` to the mean over classes."""
    weights = model.model.embeddings.weight.detach().double().cpu().numpy()
    shares: list[tuple[float, ...]] = []
    for e in found:
        tokens = model.prepare(texts[e.index]).tokens
        own = weights - weights.mean(axis=1, keepdims=True)
        real = tokens.feature >= 0
        truth = np.bincount(tokens.feature[real], own[tokens.ids[real], e.target], minlength=len(e.scores))
        if len(truth) >= LEAST:
            scores = np.asarray(e.scores)
            relative = (
                scores if e.class_scores is None else (e.class_scores - e.class_scores.mean(0))[e.target]
            )
            shares.append((*agreement(scores, truth), *agreement(relative, truth)))
    names = ("true words", "true signs", "rank correlation")
    means = np.mean(shares, axis=0).tolist()
    return dict(zip((*names, *(f"{name}, relative" for name in names)), means, strict=True))


def agreement(scores: Any, truth: Any, k: int = K) -> tuple[float, float, float]:
    """The share of true words among the top k, the share of right signs, and Spearman's rank correlation.

    True words are those with the k largest true weights; a word with the same weight as the kth counts as
    one of them. Signs are compared for the k words whose true weights are largest in size.
    """
    top = np.argsort(-scores, kind="stable")[:k]
    share = float((truth[top] >= np.sort(truth)[-k]).mean())
    large = np.argsort(-np.abs(truth), kind="stable")[:k]
    signs = float((np.sign(scores[large]) == np.sign(truth[large])).mean())
    rho = float(np.nan_to_num(spearman(np.stack([scores, truth]))[0, 1]))
    return share, signs, rho
