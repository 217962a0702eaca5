"""A load test of the web page: many users ask at once, and each must get the answer to its own question.

    python benchmarks/serve.py [--users 100] [--rounds 3] [--budget 100]

Starts `pertinent serve` with the embedded sentiment model. In each round every user asks for the explanation
of a text of its own. Prints how many answers were lost, how many belonged to another text or differ from what
`pertinent.explain` finds, how long users waited, and the memory of the server after each round (Linux).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from common import random_texts, table

import pertinent


async def ask(client: httpx.AsyncClient, text: str, budget: int) -> tuple[dict[str, Any], float]:
    """The events of one explanation by name, and the seconds until the last of them."""
    begin, question = time.perf_counter(), {"model": "sentiment", "text": text, "budget": budget}
    answer = await client.post("/api/explain", json=question)
    events = {"status": answer.status_code}
    for each in answer.text.strip().split("\n\n") if answer.status_code == 200 else ():
        name, data = each.split("\n", 1)
        events[name.removeprefix("event: ")] = json.loads(data.removeprefix("data: "))
    return events, time.perf_counter() - begin


async def rounds(address: str, texts: list[list[str]], budget: int, process: int) -> list[dict[str, object]]:
    """A row of results for each round."""
    found = []
    base, _, query = address.partition("?")
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=base, timeout=600, limits=limits, follow_redirects=True) as client:
        await client.get(f"/?{query}")
        await ask(client, "to warm up", budget)
        for number, own in enumerate(texts):
            answers = await asyncio.gather(*(ask(client, text, budget) for text in own))
            seconds = [wait for _, wait in answers]
            lost = sum("done" not in events for events, _ in answers)
            mixed = sum(not _is_of(events, text) for (events, _), text in zip(answers, own, strict=True))
            found.append(
                {
                    "round": number + 1,
                    "users": len(own),
                    "lost": lost,
                    "mixed up": mixed,
                    "scores differ by": f"{_difference(answers[0][0], own[0], budget):.1e}",
                    "median s": f"{np.median(seconds):.2f}",
                    "longest s": f"{max(seconds):.2f}",
                    "server MiB": _memory(process),
                }
            )
    return found


def _is_of(events: dict[str, Any], text: str) -> bool:
    return "input" in events and "".join(piece[0] for piece in events["input"]["pieces"]) == text


def _difference(events: dict[str, Any], text: str, budget: int) -> float:
    alone = pertinent.explain(pertinent.load("sentiment"), text, budget=budget, progress=False)
    return float(np.abs(np.array(events["done"]["scores"]) - alone.scores).max())


def _memory(process: int) -> str:
    status = Path(f"/proc/{process}/status")
    if not status.is_file():
        return "unknown"
    resident = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return f"{int(resident.split()[1]) / 1024:.0f}"


def main() -> None:
    """Print a row for each round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=int, default=100)
    arguments = parser.parse_args()
    texts = [random_texts(arguments.users, 22, seed) for seed in range(arguments.rounds)]
    texts = [[f"{text} {i}" for i, text in enumerate(own)] for own in texts]  # no two are alike
    command = [sys.executable, "-m", "pertinent", "serve", "--port", "0", "--model", "sentiment"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().split()[-1]
            print(table(asyncio.run(rounds(address, texts, arguments.budget, server.pid))))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
