"""Simulation of the utilisation of many workers, by the size of blocks.

    python benchmarks/block_schedule.py [--workers 1000] [--minutes 60] [--seconds 0.14] [--blocks 16 64]

As in `pertinent.cluster`, blocks are assigned to workers in order, and each worker has one block in work and
one in a queue. The mean and the standard deviation of the time of an input are `--seconds`. Some workers are
slower than the others. Workers are lost at random times: a new worker loads the model, and the inputs of the
lost block are repeated one by one, which takes twice the time. The number of inputs is that of all workers in
`--minutes` without losses. Efficiency is the time of the inputs on a normal worker, divided by the time for
which the workers existed.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass

from common import new_parser, save

LOADING = 30.0
"""Seconds in which a worker starts and loads the model."""

SLOWDOWN = 2.0
"""Factor of the time of a slow worker, and of a repeated input."""


@dataclass(frozen=True)
class Case:
    """Simulated cluster: `slow` is a share of its workers, `lost_per_hour` the rate of losses per worker."""

    workers: int
    block_size: int
    slow: float
    lost_per_hour: float


def efficiency(case: Case, minutes: float, seconds: float, seed: int) -> float:
    """Return the share of the workers' time that is spent on completed inputs."""
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
        queue = waiting[worker]
        while len(queue) < 2 and todo:
            queue.append(todo.popleft())
        if not queue:
            continue
        seconds_needed = queue[0] * speed[worker]
        until_lost = rng.expovariate(rate) if rate else float("inf")
        if until_lost < seconds_needed:
            first, *others = queue
            queue.clear()
            repeated = [first * SLOWDOWN / case.block_size] * case.block_size
            todo.extendleft([*others, *repeated])
            end = now + until_lost
            heapq.heappush(events, (end + LOADING, worker))
        else:
            queue.popleft()
            end = max(end, now + seconds_needed)
            heapq.heappush(events, (now + seconds_needed, worker))
    return useful / (case.workers * end)


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=0.14)
    parser.add_argument("--blocks", type=int, nargs="+", default=[16, 64, 256, 1024, 4096])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    losses = {"equal workers": (0, 0), "5% slow": (0.05, 0), "5% slow, each lost once in 10 h": (0.05, 0.1)}
    rows = []
    for size in arguments.blocks:
        row: dict[str, object] = {"block": size, "time of a block": f"{size * arguments.seconds:.0f} s"}
        for name, (slow, lost) in losses.items():
            case = Case(arguments.workers, size, slow, lost)
            row[name] = f"{efficiency(case, arguments.minutes, arguments.seconds, arguments.seed):.1%}"
        rows.append(row)
    save(rows, arguments.json)


if __name__ == "__main__":
    main()
