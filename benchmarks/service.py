"""How long users of a service wait: one user, and sixteen at the same time, in shared batches or by turns.

    python benchmarks/service.py [--texts 8] [--users 1 16] [--budget 200]

Every user asks for one explanation after another, of texts of 20 words: on a GPU from a model of BERT-base
size with random weights in bfloat16, else from the embedded sentiment model. `shared` is a
`pertinent.Service`; `by turns` is `pertinent.explain` behind a lock. Prints the median and the 95th
percentile of the seconds of an answer, and explanations per second.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np
import torch
from common import bert_base, random_texts, table, word_tokenizer

import pertinent


def texts_of(user: int, n: int) -> list[str]:
    """The texts that a user asks about."""
    return random_texts(n, 22, user)


def waits(ask: Callable[[str], Any], users: int, n: int) -> tuple[list[float], float]:
    """The seconds of each answer, and those until all users have all their answers."""

    def use(user: int) -> list[float]:
        found = []
        for text in texts_of(user, n):
            begin = time.perf_counter()
            ask(text)
            found.append(time.perf_counter() - begin)
        return found

    begin = time.perf_counter()
    with ThreadPoolExecutor(users) as pool:
        found = [seconds for own in pool.map(use, range(users)) for seconds in own]
    return found, time.perf_counter() - begin


def main() -> None:
    """Print a row for each number of users and each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--texts", type=int, default=8, help="of each user")
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
        ways = {"shared": lambda text: service.submit(text, budget=budget).result(), "by turns": by_turns}
        for way in ways.values():
            waits(way, 1, 2)  # to warm up
        for users in arguments.users:
            for name, way in ways.items():
                seconds, total = waits(way, users, arguments.texts)
                rows.append(
                    {
                        "users": users,
                        "batches": name,
                        "median s": f"{np.median(seconds):.3f}",
                        "95% s": f"{np.quantile(seconds, 0.95):.3f}",
                        "explanations per s": f"{len(seconds) / total:.1f}",
                    }
                )
    print(table(rows))


if __name__ == "__main__":
    main()
