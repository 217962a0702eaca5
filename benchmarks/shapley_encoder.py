"""What the arithmetic of `shapley` takes, beside the encoder that answers its masks."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import random_texts, word_tokenizer

import pertinent
from pertinent.explainers.shapley.gaussian_process import estimate
from pertinent.explainers.shapley.mask_design import spread_pairs

TOKENS = 40
REPEATS = 5


def beside_an_encoder(budget: int) -> dict[str, Any]:
    """Seconds of the arithmetic and of a whole explanation, 6 layers 384 wide with random weights."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30_522,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
    )
    classifier: Any = BertForSequenceClassification
    model = pertinent.wrap((classifier(config).eval(), word_tokenizer()))
    text = random_texts(1, TOKENS + 2)[0]
    whole, arithmetic = [], []
    for seed in range(REPEATS):
        arithmetic.append(_arithmetic(TOKENS, (budget - 2) // 2, seed))
        start = time.perf_counter()
        pertinent.explain(model, text, method="shapley", budget=budget, seed=seed)
        whole.append(time.perf_counter() - start)
    sums, all_of_it = float(np.median(arithmetic)), float(np.median(whole))
    return {
        "evaluations": budget,
        "arithmetic, s": f"{sums:.3f}",
        "whole explanation, s": f"{all_of_it:.3f}",
        "arithmetic / rest": f"{sums / (all_of_it - sums):.1%}",
    }


def _arithmetic(d: int, pairs: int, seed: int) -> float:
    """Seconds to choose masks and to fit the process to answers with interactions."""
    rng = np.random.default_rng(seed)
    weight, mixed = rng.normal(size=(d, 2)), rng.normal(size=(d, d)) / d
    start = time.perf_counter()
    masks = spread_pairs(np.zeros((0, d), dtype=np.bool_), pairs, rng)
    seconds = time.perf_counter() - start
    masks = np.concatenate([np.ones((1, d), dtype=np.bool_), masks])
    answers = [
        np.tanh((m @ weight + (m @ mixed * m).sum(axis=1, keepdims=True)) / 4) for m in (masks, ~masks)
    ]
    odd, even = (answers[0] - answers[1]) / 2, (answers[0] + answers[1]) / 2
    start = time.perf_counter()
    estimate(masks, odd, even, slice(None))
    return seconds + time.perf_counter() - start
