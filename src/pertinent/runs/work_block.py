"""Algorithms of a verb's own, run over many inputs in this process or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pertinent.engine.job import JobResult
from pertinent.runs.blocks import Item
from pertinent.runs.run import Run, Work

WorksOf: TypeAlias = Callable[[Run, Item], Iterable[Work | JobResult]]
"""The algorithms to run on an input; it travels to the workers, so it must be a function of a module."""


@dataclass(frozen=True)
class WorkBlock:
    """Runs the algorithms of every input of a block; the results are `JobResult`, one for each algorithm."""

    works_of: WorksOf

    def carry_out(self, run: Run, items: Sequence[Item], total: int | None = None) -> Iterator[JobResult]:
        """Run the algorithms of all inputs in one engine."""
        return run.carry_out((work for item in items for work in self.works_of(run, item)), total)

    def failed(self, run: Run, item: Item, error: Exception) -> list[JobResult]:
        """Every algorithm of an input that no worker survived has failed."""
        return [JobResult(work.key, None, error) for work in self.works_of(run, item)]

    def pack(self, results: Sequence[JobResult]) -> Sequence[JobResult]:
        """The results as they are."""
        return results


def carry_out_items(run: Run, items: Sequence[Item], works_of: WorksOf, total: int) -> Iterator[JobResult]:
    """Run the algorithms of all inputs, `total` of them, where the run says; yield each when it ends."""
    task = WorkBlock(works_of)
    if run.cluster is None:
        return task.carry_out(run, items, total)
    return run.cluster.carry_out(run, task, items, total)
