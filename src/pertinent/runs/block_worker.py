"""What does blocks: a model with one engine, in a worker or in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pertinent.engine.engine import Engine
from pertinent.engine.progress import Callback, Progress, progress_callback
from pertinent.models.base import Model
from pertinent.runs.blocks import Block, BlockTask, Item
from pertinent.runs.run import Run

SHARED = ("one", "batch_size", "independent")
"""The fields of a run that the runs of all its blocks have."""


@dataclass(frozen=True)
class BlockResult:
    """The results of a block, how many there are and failed, and what the whole run should warn of."""

    results: Any
    done: int
    failed: int
    evaluations: int
    warnings: tuple[str, ...]


class BlockWorker:
    """Does blocks with one engine, which keeps the batch size that it has found.

    Parameters
    ----------
    model
        The model.
    shared
        The fields of the run in `SHARED`.
    """

    def __init__(self, model: Model, shared: Mapping[str, Any]) -> None:
        self.model, self.shared = model, shared
        self.engine = Engine(model, batch_size=shared["batch_size"])

    def run(
        self, task: BlockTask, items: Sequence[Item], *, pack: bool, progress: Callback | None = None
    ) -> BlockResult:
        """The results of a block, packed if it is whole."""
        last, before = Progress(0, 0, None, 0), self.engine.rows

        def note(now: Progress) -> None:
            nonlocal last
            last = Progress(now.done, now.failed, now.total, now.evaluations - before)
            if progress is not None:
                progress(last)

        ids = {item.index: item.id for item in items}
        run = Run(self.model, ids=ids, engine=self.engine, progress=note, **self.shared)
        results = list(task.carry_out(run, items))
        packed = task.pack(results) if pack else results
        return BlockResult(packed, last.done, last.failed, self.engine.rows - before, run.warnings)


class ThisProcess:
    """The only worker of a run that has no cluster."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model."""
        return self._run.model.fingerprint.hex()

    def run(
        self, task: BlockTask, blocks: Iterable[Block], total: int | None, *, quiet: bool = False
    ) -> Iterator[tuple[Block, Any]]:
        """Do the blocks, one after the other; yield each with its packed results."""
        worker = BlockWorker(self._run.model, {name: getattr(self._run, name) for name in SHARED})
        done = failed = evaluations = 0
        with progress_callback(False if quiet else self._run.progress, self._run.title) as callback:

            def add(now: Progress) -> None:
                counts = done + now.done, failed + now.failed
                callback(Progress(*counts, total, evaluations + now.evaluations))

            for block in blocks:
                result = worker.run(task, block.items, pack=True, progress=add)
                done, failed = done + result.done, failed + result.failed
                evaluations += result.evaluations
                for said in result.warnings:
                    self._run.add_warning(said)
                yield block, result.results
