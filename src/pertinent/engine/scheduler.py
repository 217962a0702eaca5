"""The scheduler decides which rows share a batch; `BatchSize` determines a good batch size."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from pertinent.engine.job import Chunk, OpenQuestion

Lane: TypeAlias = tuple[type, Hashable]
"""Kind and group of rows: only rows in the same lane share a batch."""

GOOD = 0.9
"""Smallest efficiency of a good batch; a full batch of equal rows has efficiency 1."""

FULL = 0.99
"""Smallest efficiency of a full batch."""

SMALL_TURN = 6
"""Every sixth good batch is the smallest one, which costs little and lets its jobs proceed."""


class Bucket:
    """Chunks of one lane and one cost, oldest first."""

    def __init__(self) -> None:
        self.chunks: deque[Chunk] = deque()
        self.total = 0

    @property
    def job(self) -> int:
        """Return the number of the oldest waiting job."""
        return self.chunks[0].open.run.number

    def pop(self, n_rows: int) -> list[Chunk]:
        """Remove and return at most `n_rows` rows."""
        taken: list[Chunk] = []
        while self.chunks and n_rows > 0:
            chunk = self.chunks.popleft()
            if len(chunk.keys) > n_rows:
                chunk, rest = chunk.cut(n_rows)
                self.chunks.appendleft(rest)
            taken.append(chunk)
            n_rows -= len(chunk.keys)
        self.total -= sum(chunk.total for chunk in taken)
        return taken


class Scheduler:
    """Sorts chunks into buckets by lane and cost, and combines them into batches.

    It aims for batches worth their launch, a device that is never idle, and few open jobs. `limit` returns
    the largest cost of a batch for a question type; `launch_overhead` and `mixed_length_penalty` are as in
    `Model`.
    """

    def __init__(
        self, limit: Callable[[type], int], launch_overhead: int, mixed_length_penalty: float
    ) -> None:
        self.limit = limit
        self.launch_overhead = launch_overhead
        self.mixed_length_penalty = mixed_length_penalty
        self.cost = 0
        self._lanes: dict[Lane, dict[int, Bucket]] = {}
        self._batches = 0

    @property
    def backlog(self) -> float:
        """Return the number of batches that all waiting rows would fill."""
        return sum(
            sum(bucket.total for bucket in buckets.values()) / self.limit(kind)
            for (kind, _), buckets in self._lanes.items()
        )

    def put(self, chunk: Chunk) -> None:
        """Queue a chunk."""
        bucket = self._lanes.setdefault((chunk.kind, chunk.group), {}).setdefault(chunk.cost, Bucket())
        bucket.chunks.append(chunk)
        bucket.total += chunk.total
        self.cost += chunk.total

    def withdraw(self, questions: Collection[OpenQuestion]) -> None:
        """Remove the waiting rows of cancelled questions."""
        for question in questions:
            question.withdrawn = True
        for lane, buckets in list(self._lanes.items()):
            for cost, bucket in list(buckets.items()):
                left = [chunk for chunk in bucket.chunks if not chunk.open.withdrawn]
                total = sum(chunk.total for chunk in left)
                self.cost -= bucket.total - total
                bucket.chunks, bucket.total = deque(left), total
                self._tidy(lane, cost)

    def pop_batch(self, least: float = 0.0) -> list[Chunk]:
        """Remove and return the chunks of the next batch; none if no batch has efficiency `least`.

        Among good batches, the one with the oldest job is first; otherwise the most efficient one.
        """
        small = least > 0 and self._batches % SMALL_TURN == SMALL_TURN - 1
        best: tuple[Any, Lane, list[int]] | None = None
        good = False
        for lane, buckets in self._lanes.items():
            limit = self.limit(lane[0])
            totals = {cost: bucket.total for cost, bucket in buckets.items()}
            enough = self._least_cost(least, limit)
            if not small and (
                sum(totals.values()) < enough or (least == FULL and max(totals.values()) < enough)
            ):
                continue
            costs = sorted(totals, reverse=True)
            for run in runs(costs, totals, limit, self.launch_overhead, self.mixed_length_penalty):
                efficiency = self._efficiency(run, totals, limit)
                good = good or efficiency >= least
                score = (min(efficiency, GOOD), -min(buckets[cost].job for cost in run))
                if small:
                    score = (-sum(totals[cost] for cost in run), 0)
                if (small or efficiency >= least) and (best is None or score > best[0]):
                    best = score, lane, run
        if best is None or not good:
            return []
        self._batches += 1
        return self._take(best[1], best[2])

    def _efficiency(self, run: list[int], totals: Mapping[int, int], limit: int) -> float:
        """Return the useful fraction of a batch's time, relative to a full batch of equal rows."""
        longest, useful, padded, several = run[0], 0, 0, 0
        for cost in run:
            rows = min(totals[cost] // cost, max(1, limit // longest) - padded // longest)
            if not rows:
                break
            useful, padded, several = useful + rows * cost, padded + rows * longest, several + 1
        penalty = self.mixed_length_penalty if several > 1 else 0.0
        share = useful / (self.launch_overhead + padded * (1 + penalty))
        return share * (limit + self.launch_overhead) / limit

    def _least_cost(self, efficiency: float, limit: int) -> float:
        """Return the total cost of equal rows for a batch with this efficiency."""
        share = efficiency * limit / (limit + self.launch_overhead)
        return share / (1 - share) * self.launch_overhead

    def _take(self, lane: Lane, run: list[int]) -> list[Chunk]:
        n_left = max(1, self.limit(lane[0]) // run[0])
        chunks: list[Chunk] = []
        for cost in run:
            bucket = self._lanes[lane][cost]
            part = bucket.pop(n_left)
            n_left -= sum(len(chunk.keys) for chunk in part)
            chunks += part
            self._tidy(lane, cost)
        self.cost -= sum(chunk.total for chunk in chunks)
        return chunks

    def _tidy(self, lane: Lane, cost: int) -> None:
        """Remove the bucket, then the lane, if they are empty."""
        buckets = self._lanes[lane]
        if not buckets[cost].chunks:
            del buckets[cost]
        if not buckets:
            del self._lanes[lane]


def runs(
    costs: Iterable[int],
    totals: Mapping[int, int],
    limit: int,
    launch_overhead: int,
    mixed_length_penalty: float = 0.0,
) -> Iterator[list[int]]:
    """Yield runs of neighbouring costs that share a batch, starting with the most expensive.

    Every row of a batch is padded to the longest row, and mixed lengths slow down all rows by the penalty. A
    run ends when this would cost more than launching another batch, or when it is full.

    >>> list(runs([9, 8, 4, 3], {9: 18, 8: 8, 4: 16, 3: 9}, limit=40, launch_overhead=10))
    [[9, 8], [4, 3]]
    >>> list(runs([9, 8, 4, 3], {9: 18, 8: 8, 4: 16, 3: 9}, 40, 10, mixed_length_penalty=0.5))
    [[9], [8], [4], [3]]
    """
    run: list[int] = []
    room = 0
    for cost in costs:
        longest = run[0] if run else cost
        size = totals[cost] * longest // max(1, cost)
        extra = (
            size - totals[cost] + mixed_length_penalty * (size + (totals[longest] if len(run) == 1 else 0))
        )
        if run and (room < longest or extra > launch_overhead):
            yield run
            run = []
        if not run:
            size, room = totals[cost], limit
        run.append(cost)
        room -= size
    yield run


QUICK = 0.05
"""Seconds: faster batches are doubled in size, because launching takes too much of their time."""

SLOW = 1.0
"""Seconds: slower batches are never doubled in size, so progress remains visible."""

PAYS = 0.75
"""The size is doubled again if a row takes less than this fraction of its time at half the size."""

TRUST = 16
"""Number of full batches that must fit into memory before a failed size is tried again."""


class BatchSize:
    """Doubles the cost of a batch while that pays off, and halves it when memory runs out.

    Doubling pays off while batches are fast, or while it reduces the time per row, as for a model with a
    large fixed cost per call. On a busy machine batches seem slow, which delays growth but does not stop it.
    Explanations do not depend on the size.
    """

    def __init__(self, first: int, largest: int, fixed: int | None = None) -> None:
        self.cost = fixed or first
        self._largest = fixed or largest
        self._too_large: int | None = None
        self._fitted = 0
        self._before = self.cost
        self._fastest: dict[int, float] = {}

    @property
    def is_shrunken(self) -> bool:
        """Return whether the size was reduced because memory ran out."""
        return self.cost < self._before

    def observe(self, cost: int, seconds: float) -> None:
        """Adapt the size to an answered batch that used more than half of it."""
        if 2 * cost <= self.cost:
            return
        self._fitted += 1
        if self._fitted >= TRUST:
            self._too_large = None
        larger = 2 * self.cost
        fits = larger <= self._largest and (self._too_large is None or larger < self._too_large)
        if fits and (self.is_shrunken or self._pays(seconds)):
            self.cost = larger

    def _pays(self, seconds: float) -> bool:
        """Return whether doubling pays off, based on the fastest batches of this size and of half of it."""
        fastest = min(seconds, self._fastest.get(self.cost, seconds))
        self._fastest[self.cost] = fastest
        half = self._fastest.get(self.cost // 2)
        return fastest < QUICK or (fastest < SLOW and (half is None or fastest / 2 < PAYS * half))

    def halve(self, failed: int) -> None:
        """Halve the size after a batch of cost `failed` did not fit into memory."""
        if self._too_large is None:
            self._before = self.cost
        self._too_large, self._fitted = failed, 0
        self.cost = max(1, min(self.cost, failed) // 2)

    def restore(self) -> None:
        """Restore the size before halving: a single row did not fit, so the size was not the cause."""
        self.cost, self._too_large = self._before, None
