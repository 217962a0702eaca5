"""How well many workers are used: a simulation of how blocks are handed out.

    python benchmarks/block_schedule.py [--workers 1000] [--minutes 60] [--seconds 0.14] [--blocks 16,64]

Blocks go to workers in order, each of which has one that it does and one that waits, as in
`pertinent.cluster`. Inputs take `--seconds` on average, with a standard deviation of as much. Some workers
are slower than the others. Workers are lost at random moments: a new one loads the model again, and the
inputs of the block that was lost are done again, each alone, at twice the time. There are as many inputs as
all workers together would do in `--minutes` if nothing were lost. Efficiency is the time that the inputs
take on a worker that is not slow, divided by the time for which the workers were there.
"""

from __future__ import annotations

import argparse
import heapq
import random
from collections import deque
from dataclasses import dataclass

LOADING = 30.0
"""Seconds that a worker takes to start and load the model."""

SLOWDOWN = 2.0
"""How much longer a slow worker takes, and an input that is done alone."""


@dataclass(frozen=True)
class Case:
    """A simulated cluster: `slow` is a share of its workers, `lost_per_hour` a number for each of them."""

    workers: int
    block_size: int
    slow: float
    lost_per_hour: float


def efficiency(case: Case, minutes: float, seconds: float, seed: int) -> float:
    """The share of the workers' time that was spent on inputs that were then done."""
    rng = random.Random(seed)
    n_blocks = round(case.workers * minutes * 60 / (seconds * case.block_size))
    # The sum of many inputs' times is nearly normal.
    mean, deviation = seconds * case.block_size, seconds * case.block_size**0.5
    speed = [SLOWDOWN if rng.random() < case.slow else 1.0 for _ in range(case.workers)]
    rate = case.lost_per_hour / 3600
    todo = deque(max(0.1 * mean, rng.gauss(mean, deviation)) for _ in range(n_blocks))
    useful = sum(todo)
    waiting: list[deque[float]] = [deque() for _ in range(case.workers)]
    events = [(LOADING, worker) for worker in range(case.workers)]
    end = 0.0
    while events:
        now, worker = heapq.heappop(events)
        own = waiting[worker]
        while len(own) < 2 and todo:
            own.append(todo.popleft())
        if not own:
            continue
        takes = own[0] * speed[worker]
        until_lost = rng.expovariate(rate) if rate else float("inf")
        if until_lost < takes:
            first, *others = own
            own.clear()
            alone = [first * SLOWDOWN / case.block_size] * case.block_size
            todo.extendleft([*others, *alone])
            end = now + until_lost
            heapq.heappush(events, (end + LOADING, worker))
        else:
            own.popleft()
            end = max(end, now + takes)
            heapq.heappush(events, (now + takes, worker))
    return useful / (case.workers * end)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=0.14)
    parser.add_argument("--blocks", default="16,64,256,1024,4096")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| block | a block takes | all alike | 5% half as fast | and each lost once in 10 h |")
    print("|---|---|---|---|---|")
    for size in map(int, given.blocks.split(",")):
        cases = [Case(given.workers, size, slow, lost) for slow, lost in ((0, 0), (0.05, 0), (0.05, 0.1))]
        found = [efficiency(case, given.minutes, given.seconds, given.seed) for case in cases]
        shares = " | ".join(f"{share:.1%}" for share in found)
        print(f"| {size} | {size * given.seconds:.0f} s | {shares} |")


if __name__ == "__main__":
    main()
