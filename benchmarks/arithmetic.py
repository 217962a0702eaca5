"""Processor time of everything but the model, for each method and number of tokens.

    OMP_NUM_THREADS=1 python benchmarks/arithmetic.py [--tokens 40 150 400] [--texts 8] [--json out.json]

`algorithm` is the method alone: its masks, its fits, its choice of what to ask next. `explain` is all of
`pertinent.explain`: the engine, the cache and the meter, too, and the batches of token ids that a GPU would
be sent. Nothing is computed with them: the sum of a weight of each kept token is the answer, and its time is
not counted. Times are processor seconds per text, of all threads together.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from common import WORDS, random_texts, save, word_tokenizer

import pertinent
from pertinent.array_types import Array, Floats
from pertinent.asks import Algorithm, Compute, Fork, Values
from pertinent.explainers.base import DEFAULT_BUDGET, DEFAULT_SPARSITIES, Task, explainers
from pertinent.models.base import Answer
from pertinent.models.tokens.batches import TokenBatch, collate

METHODS = ("shapley", "kernel-shap", "lime", "parallel-local-search", "thompson-search")
SPECIAL = 2
"""Number of tokens of a text that are never removed."""


class Clock:
    """Processor seconds, without those spent in functions that it was told to leave out."""

    def __init__(self) -> None:
        self._left_out = 0.0

    def now(self) -> float:
        return time.process_time() - self._left_out

    def leave_out(self, function: Callable[[], Any]) -> Any:
        start = time.process_time()
        found = function()
        self._left_out += time.process_time() - start
        return found


def probabilities(log_odds: Floats) -> Floats:
    """The probabilities of two classes (rows, 2) from the log-odds of the second."""
    second = 1 / (1 + np.exp(-log_odds))
    return np.stack([1 - second, second], axis=1)


class Game:
    """A classifier of masks: log-odds with main effects, and with pairs of features that act together."""

    def __init__(self, d: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.effects, self.together = rng.normal(size=d), rng.normal(size=d)
        self.partner = rng.permutation(d)

    def __call__(self, masks: Array) -> Floats:
        """Probabilities (masks, 2)."""
        pairs = masks & masks[:, self.partner]
        return probabilities((masks @ self.effects + pairs @ self.together) / np.sqrt(masks.shape[1]))


def drive(algorithm: Algorithm, game: Game, clock: Clock) -> Any:
    """Run an algorithm on a game, without the engine."""
    answer: Any = None
    while True:
        try:
            ask = algorithm.send(answer)
        except StopIteration as stop:
            return stop.value
        if isinstance(ask, Values):
            masks = ask.masks
            answer = clock.leave_out(lambda: game(masks))  # noqa: B023
        elif isinstance(ask, Compute):
            answer = ask.compute()
        elif isinstance(ask, Fork):
            answer = [drive(branch, game, clock) for branch in ask.branches]
        else:
            raise TypeError(f"{type(ask).__name__} cannot be answered without a model.")


def of_algorithm(method: str, d: int, budget: int, n: int) -> float:
    """Processor seconds of a method on a game of d features, the mean over n games."""
    clock, explainer, spent = Clock(), explainers.make(method), []
    for seed in range(n + 1):
        game = Game(d, seed)
        prediction = game(np.ones((1, d), dtype=np.bool_))[0]
        rng = np.random.default_rng(0)  # the same for all inputs of one size, as in `explain`
        target = int(prediction.argmax())
        task = Task(d, target, prediction, budget, DEFAULT_SPARSITIES, rng)
        start = clock.now()
        drive(explainer.explain(task), game, clock)
        spent.append(clock.now() - start)
    return float(np.mean(spent[1:]))  # the first warms up


class Stub:
    """Takes a wrapped transformer's place on a device: batches are laid out, and answered at once.

    Towards the engine it behaves like a GPU: batches are as large, several are in flight, and arithmetic runs
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
        outputs = self.clock.leave_out(lambda: self.answers(batch))
        return Answer(lambda: outputs, lambda: 0.0)

    def answers(self, batch: TokenBatch) -> Floats:
        effect = self.weight[batch.ids]
        if batch.attend is not None:
            effect = effect * batch.attend
        return probabilities(effect.sum(axis=1) / 4)


def small_bert() -> Any:
    """A network whose answers are never asked for, after it was checked when it was wrapped."""
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


def of_explain(stub: Stub, method: str, d: int, budget: int, n: int) -> float:
    """Processor seconds per text of `pertinent.explain` on texts of d removable tokens."""
    options: dict[str, Any] = {"method": method, "features": "tokens", "budget": budget, "progress": False}
    texts = random_texts(n + 1, d + SPECIAL)
    pertinent.explain(stub.wrapped, texts[:1], **options)
    start = stub.clock.now()
    found = pertinent.explain(stub.wrapped, texts[1:], **options)
    assert len(found) == n, found.failures[:1]
    return (stub.clock.now() - start) / n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[40, 150, 400])
    parser.add_argument("--texts", type=int, default=8)
    parser.add_argument("--budget", type=int, default=DEFAULT_BUDGET)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--json", help="also keep the rows here")
    arguments = parser.parse_args()
    stub = Stub(pertinent.wrap((small_bert(), word_tokenizer())))
    rows = []
    for method in arguments.methods:
        row: dict[str, Any] = {"method": method}
        for d in arguments.tokens:
            row[f"algorithm, {d}"] = round(of_algorithm(method, d, arguments.budget, arguments.texts), 4)
        for d in arguments.tokens:
            seconds = of_explain(stub, method, d, arguments.budget, arguments.texts)
            row[f"explain, {d}"] = round(seconds, 4)
        print(row, flush=True)
        rows.append(row)
    save(rows, arguments.json)


if __name__ == "__main__":
    main()
