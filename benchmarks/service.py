"""Waiting times of users of a service: one user, and sixteen simultaneous users.

    python benchmarks/service.py [--texts 8] [--users 1 16] [--budget 200] [--json out.json]

Every user requests explanations of texts of 20 words, one after the other: on a GPU from a model of BERT-base
size with random weights in bfloat16, else from the embedded sentiment model. `shared` is a
`pertinent.Service`, which shares batches; `by turns` is `pertinent.explain` with a lock. Prints the median
and the 95th percentile of the waiting times in seconds, and the number of explanations per second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np
import torch
from common import bert_base, new_parser, random_texts, save, seconds_of, word_tokenizer

import pertinent


def waits(ask: Callable[[str], Any], users: int, n: int) -> tuple[list[float], float]:
    """Return the seconds of each answer, and the seconds until all users have all answers."""

    def use(user: int) -> list[float]:
        return [seconds_of(ask, text) for text in random_texts(n, 22, user)]

    start = time.perf_counter()
    with ThreadPoolExecutor(users) as pool:
        seconds = [each for of_user in pool.map(use, range(users)) for each in of_user]
    return seconds, time.perf_counter() - start


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--texts", type=int, default=8, help="per user")
    parser.add_argument("--users", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--budget", type=int, default=200)
    arguments = parser.parse_args()
    lock, budget, model = Lock(), arguments.budget, pertinent.load("sentiment")
    if torch.cuda.is_available():
        model = pertinent.wrap((bert_base(torch.bfloat16, "cuda"), word_tokenizer()))

    def by_turns(text: str) -> Any:
        with lock:
            return pertinent.explain(model, text, budget=budget, progress=False)

    rows = []
    with pertinent.Service(model) as service:
        calls = {"shared": lambda text: service.submit(text, budget=budget).result(), "by turns": by_turns}
        for call in calls.values():
            waits(call, 1, 2)  # warm-up
        for users in arguments.users:
            for name, call in calls.items():
                seconds, total = waits(call, users, arguments.texts)
                rows.append(
                    {
                        "users": users,
                        "batches": name,
                        "median s": f"{np.median(seconds):.3f}",
                        "95% s": f"{np.quantile(seconds, 0.95):.3f}",
                        "explanations per s": f"{len(seconds) / total:.1f}",
                    }
                )
    save(rows, arguments.json)


if __name__ == "__main__":
    main()
