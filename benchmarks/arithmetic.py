"""Processor time of everything except for the model, by method and number of tokens.

    OMP_NUM_THREADS=1 python benchmarks/arithmetic.py [--tokens 40 150 400] [--texts 8] [--json out.json]

`algorithm` is only the method: its masks, its fits, its choice of the next questions. `explain` is all of
`pertinent.explain`, including the engine, the cache, the meter, and the batches of token ids for a GPU. The
model is a stub that adds a weight of each kept token, and its time is not counted. Times are processor
seconds per text, summed over all threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from common import METHODS, WORDS, new_parser, random_texts, save, word_tokenizer

import pertinent
from pertinent.array_types import Array, Floats
from pertinent.explainers.base import DEFAULT_BUDGET, DEFAULT_SPARSITIES, Task, explainers
from pertinent.masks import full_mask
from pertinent.models.base import Answer
from pertinent.models.tokens.batches import TokenBatch, collate
from pertinent.testing.games import RecordedGame, answer

SPECIAL = 2
"""Number of tokens of a text that are never removed."""


class Clock:
    """Processor seconds, except for those of excluded calls."""

    def __init__(self) -> None:
        self._excluded = 0.0

    def now(self) -> float:
        return time.process_time() - self._excluded

    def exclude(self, function: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = function()
        self._excluded += time.process_time() - start
        return result


def probabilities(log_odds: Floats) -> Floats:
    """Return the probabilities of two classes, (rows, 2), from the log-odds of the second."""
    second = 1 / (1 + np.exp(-log_odds))
    return np.stack([1 - second, second], axis=1)


def classifier(d: int, seed: int) -> Callable[[Array], Floats]:
    """Return a classifier of masks whose log-odds have main effects and pairwise interactions."""
    rng = np.random.default_rng(seed)
    effects, interactions, partner = rng.normal(size=d), rng.normal(size=d), rng.permutation(d)

    def classify(masks: Array) -> Floats:
        pairs = masks & masks[:, partner]
        return probabilities((masks @ effects + pairs @ interactions) / np.sqrt(d))

    return classify


def time_algorithm(method: str, d: int, budget: int, n: int) -> float:
    """Return the processor seconds of a method on a game of d features, the mean over n games."""
    clock, explainer, seconds = Clock(), explainers.make(method), []
    for seed in range(n + 1):
        classify = classifier(d, seed)
        prediction = classify(full_mask(d))[0]
        rng = np.random.default_rng(0)  # the same for all inputs of one size, as in `explain`
        task = Task(d, int(prediction.argmax()), prediction, budget, DEFAULT_SPARSITIES, rng)
        game = RecordedGame(d, lambda masks: clock.exclude(lambda: classify(masks)))  # noqa: B023
        start = clock.now()
        answer(explainer.explain(task), game)
        seconds.append(clock.now() - start)
    return float(np.mean(seconds[1:]))  # the first is a warm-up


class Stub:
    """Stub for the device of a wrapped transformer: it lays out batches and answers them immediately.

    For the engine it behaves like a GPU: batches are as large, several are in flight, and arithmetic runs
    in other threads.
    """

    def __init__(self, wrapped: Any) -> None:
        self.wrapped, self.clock = wrapped, Clock()
        self.weight = np.random.default_rng(0).normal(size=len(WORDS) + 6)
        wrapped.first_batch = wrapped.largest_batch = 65536
        wrapped.launch_overhead, wrapped.mixed_length_penalty, wrapped.in_flight = 8192, 0.25, 8
        wrapped.submit = self.submit

    def submit(self, rows: Sequence[Any]) -> Answer:
        batch = collate(rows, [True] * len(rows), self.wrapped.pad_id)
        outputs = self.clock.exclude(lambda: self.answers(batch))
        return Answer(lambda: outputs, lambda: 0.0)

    def answers(self, batch: TokenBatch) -> Floats:
        effect = self.weight[batch.ids]
        if batch.attend is not None:
            effect = effect * batch.attend
        return probabilities(effect.sum(axis=1) / 4)


def small_bert() -> Any:
    """Return a small classifier with random weights; only `wrap` runs it."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    small: dict[str, Any] = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    classifier: Any = BertForSequenceClassification
    return classifier(BertConfig(vocab_size=len(WORDS) + 6, **small)).eval()


def time_explain(stub: Stub, method: str, d: int, budget: int, n: int) -> float:
    """Return the processor seconds per text of `pertinent.explain` on texts of d removable tokens."""
    options: dict[str, Any] = {"method": method, "features": "tokens", "budget": budget, "progress": False}
    texts = random_texts(n + 1, d + SPECIAL)
    pertinent.explain(stub.wrapped, texts[:1], **options)
    start = stub.clock.now()
    explanations = pertinent.explain(stub.wrapped, texts[1:], **options)
    assert len(explanations) == n, explanations.failures[:1]
    return (stub.clock.now() - start) / n


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--tokens", type=int, nargs="+", default=[40, 150, 400])
    parser.add_argument("--texts", type=int, default=8)
    parser.add_argument("--budget", type=int, default=DEFAULT_BUDGET)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    arguments = parser.parse_args()
    stub = Stub(pertinent.wrap((small_bert(), word_tokenizer())))
    rows = []
    for method in arguments.methods:
        row: dict[str, Any] = {"method": method}
        for d in arguments.tokens:
            row[f"algorithm, {d}"] = round(time_algorithm(method, d, arguments.budget, arguments.texts), 4)
        for d in arguments.tokens:
            seconds = time_explain(stub, method, d, arguments.budget, arguments.texts)
            row[f"explain, {d}"] = round(seconds, 4)
        print(row, flush=True)
        rows.append(row)
    save(rows, arguments.json)


if __name__ == "__main__":
    main()
