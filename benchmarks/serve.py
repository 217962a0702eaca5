"""Load test of the web app: many simultaneous users must each get the explanation of their text.

    python benchmarks/serve.py [--users 100] [--rounds 3] [--budget 100] [--json out.json]

Starts `pertinent serve` with the embedded sentiment model. In each round every user requests the explanation
of a different text. Prints the number of lost answers, of answers for another text, the difference from
`pertinent.explain`, the waiting times, and the memory of the server after each round (Linux).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from typing import Any

import httpx
import numpy as np
from common import new_parser, random_texts, resident_memory, save

import pertinent


async def ask(client: httpx.AsyncClient, text: str, budget: int) -> tuple[dict[str, Any], float]:
    """Return the events of one explanation by name, and the seconds until the last event."""
    start, question = time.perf_counter(), {"model": "sentiment", "text": text, "budget": budget}
    answer = await client.post("/api/explain", json=question)
    events = {"status": answer.status_code}
    for each in answer.text.strip().split("\n\n") if answer.status_code == 200 else ():
        name, data = each.split("\n", 1)
        events[name.removeprefix("event: ")] = json.loads(data.removeprefix("data: "))
    return events, time.perf_counter() - start


async def rounds(address: str, texts: list[list[str]], budget: int, process: int) -> list[dict[str, object]]:
    """Return a row of results for each round."""
    rows = []
    base, _, query = address.partition("?")
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=base, timeout=600, limits=limits, follow_redirects=True) as client:
        await client.get(f"/?{query}")
        await ask(client, "to warm up", budget)
        for number, texts_of_round in enumerate(texts):
            answers = await asyncio.gather(*(ask(client, text, budget) for text in texts_of_round))
            seconds = [wait for _, wait in answers]
            lost = sum("done" not in events for events, _ in answers)
            pairs = zip(answers, texts_of_round, strict=True)
            rows.append(
                {
                    "round": number + 1,
                    "users": len(texts_of_round),
                    "lost": lost,
                    "mixed up": sum(not _matches(events, text) for (events, _), text in pairs),
                    "scores differ by": f"{_difference(answers[0][0], texts_of_round[0], budget):.1e}",
                    "median s": f"{np.median(seconds):.2f}",
                    "longest s": f"{max(seconds):.2f}",
                    "server MiB": f"{resident_memory(process):.0f}",
                }
            )
    return rows


def _matches(events: dict[str, Any], text: str) -> bool:
    return "input" in events and "".join(part[0] for part in events["input"]["pieces"]) == text


def _difference(events: dict[str, Any], text: str, budget: int) -> float:
    explanation = pertinent.explain(pertinent.load("sentiment"), text, budget=budget, progress=False)
    return float(np.abs(np.array(events["done"]["scores"]) - explanation.scores).max())


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=int, default=100)
    arguments = parser.parse_args()
    texts = [random_texts(arguments.users, 22, seed) for seed in range(arguments.rounds)]
    texts = [[f"{text} {i}" for i, text in enumerate(of_round)] for of_round in texts]  # all texts differ
    command = [sys.executable, "-m", "pertinent", "serve", "--port", "0", "--model", "sentiment"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().split()[-1]
            save(asyncio.run(rounds(address, texts, arguments.budget, server.pid)), arguments.json)
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
