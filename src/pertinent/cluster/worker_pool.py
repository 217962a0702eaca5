"""Pool of Ray workers: idle workers get the next block, and dead workers are replaced."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from pertinent.cluster.worker import BlockResult, Started, Worker, versions
from pertinent.engine.progress import Progress, progress_callback
from pertinent.errors import ClusterError, ModelError, PertinentError
from pertinent.runs.executor import LARGEST_BLOCK, Block, Item, RunTask, Workers, blocks_of
from pertinent.runs.model_names import NamedModel
from pertinent.runs.run import Run
from pertinent.runs.session import add_warning

if TYPE_CHECKING:
    from pertinent.cluster.cluster import Cluster

logger = logging.getLogger(__name__)

QUEUED = 2
"""Largest number of parts assigned to a worker: the current one and the next."""

BLOCKS_PER_WORKER = 8
"""Number of blocks per worker, so that workers finish at nearly the same time."""

DEATHS, MOST_DEATHS = 2, 6
"""Number of worker deaths during one input before it fails: initially, and at most."""

LOAD_ATTEMPTS = 10
"""Number of consecutive failed attempts to load the model after which a pool without workers gives up."""

FIRST_DELAY, LONGEST_DELAY = 0.5, 8.0
"""First and longest delay in seconds between attempts to load the model; each failure doubles it."""


@dataclass(frozen=True, eq=False)
class _Part:
    """A block, or a single input of a block during which a worker died; `deaths` counts these deaths."""

    block: Block
    items: Sequence[Item]
    deaths: int = 0

    @property
    def is_whole(self) -> bool:
        return len(self.items) == len(self.block.items)


@dataclass(eq=False)
class _WorkerState:
    """The driver's view of a worker: its actor, whether its model is loaded, and its parts, oldest first."""

    actor: Any
    start: Any
    ready: bool = False
    parts: dict[Any, _Part] = field(default_factory=dict)


class WorkerPool(Workers):
    """Workers that hold the model of a run.

    Parameters
    ----------
    ray
        The Ray module, connected to a cluster.
    run
        The run, whose inputs are passed to `run` in blocks.
    cluster
        Settings of the cluster.
    n_workers
        Number of workers.
    """

    def __init__(self, ray: Any, run: Run, cluster: Cluster, n_workers: int) -> None:
        self.n_workers, self._block_size = n_workers, cluster.block_size
        self._ray, self._run = ray, run
        self._arguments = self._store_model(run.model), run.batch_size, cluster.cpus_per_worker
        # Ray must not restart a dead worker, because only the pool knows which block it processed.
        self._class = ray.remote(Worker).options(
            num_cpus=cluster.cpus_per_worker,
            num_gpus=cluster.gpus_per_worker,
            max_restarts=0,
            # Waiting threads must not occupy cores.
            runtime_env={"env_vars": {"OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE")}},
        )
        self._failed_loads = 0
        self._retry_at: float | None = None
        self._fingerprint = None if isinstance(run.model, NamedModel) else run.model.fingerprint.hex()
        self._workers: list[_WorkerState] = []
        self._waiting: deque[_Part] = deque()
        self._start_missing()

    @property
    def fingerprint(self) -> str:
        """Return the model's fingerprint, after waiting until a worker has loaded the model."""
        while self._fingerprint is None:
            self._await_one()
        return self._fingerprint

    def close(self) -> None:
        """Stop all workers."""
        for worker in self._workers:
            self._ray.kill(worker.actor)
        self._workers.clear()

    def results(
        self, task: RunTask, items: Iterable[Item], total: int | None, *, quiet: bool = False
    ) -> Iterator[Any]:
        """Run a task on inputs in blocks; yield individual results when their block is done."""
        size = self._block_size or LARGEST_BLOCK
        if self._block_size is None and total is not None:
            size = min(size, max(1, total // (BLOCKS_PER_WORKER * self.n_workers)))
        for _, results in self.run(task, blocks_of(items, size), total, quiet=quiet):
            yield from results

    def run(
        self, task: RunTask, blocks: Iterable[Block], total: int | None, *, quiet: bool = False
    ) -> Iterator[tuple[Block, Any]]:
        """Run a task on blocks, which are read as workers become free; yield each with its packed results."""
        self._task, self._stored_task = task, self._ray.put(task)
        self._source = iter(blocks)
        self._waiting.clear()
        self._partial: dict[int, list[Any]] = {}
        self._fatal_blocks: set[int] = set()
        self._innocent = 0
        self._finished: deque[tuple[Block, Any]] = deque()
        self._counts = Counter(done=0, failed=0, evaluations=0)
        with progress_callback(False if quiet else self._run.progress, self._run.title) as callback:
            while self._submit_parts():
                self._await_one()
                callback(Progress(total=total, **self._counts))
                while self._finished:
                    yield self._finished.popleft()

    # -- parts ---------------------------------------------------------------------------------------

    def _submit_parts(self) -> bool:
        """Fill the queue of every ready worker; return whether any work is left."""
        for _ in range(QUEUED):
            for worker in self._workers:
                if worker.ready and len(worker.parts) < QUEUED and (part := self._next_part()) is not None:
                    result = worker.actor.run.remote(self._stored_task, part.items, part.is_whole)
                    worker.parts[result] = part
        if any(worker.parts for worker in self._workers):
            return True
        part = self._next_part()  # for workers that are still loading the model
        if part is not None:
            self._waiting.appendleft(part)
        return part is not None

    def _next_part(self) -> _Part | None:
        if self._waiting:
            return self._waiting.popleft()
        block = next(self._source, None)
        return None if block is None else _Part(block, block.items)

    def _await_one(self) -> None:
        """Wait until a worker has loaded the model, finished a part, died, or is due to be replaced."""
        awaited = {}
        for worker in self._workers:
            awaited.update(dict.fromkeys(worker.parts if worker.ready else [worker.start], worker))
        timeout = None if self._retry_at is None else max(0.0, self._retry_at - time.monotonic())
        if timeout == 0.0:
            self._start()
            return
        if not awaited:
            time.sleep(timeout or 0.0)
            return
        finished, _ = self._ray.wait(list(awaited), num_returns=1, timeout=timeout)
        for ended in finished:
            worker, result = awaited[ended], self._get(ended)
            if isinstance(result, Started):
                self._check(result)
                worker.ready = True
                self._start_missing()
            elif isinstance(result, BlockResult):
                self._deliver(worker.parts.pop(ended), result)
            else:
                self._replace(worker, result)

    def _get(self, ended: Any) -> Any:
        """Return a worker's result, or the error if it has died; re-raise errors of its code."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(ended)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, PertinentError):
                raise type(cause)(str(cause)) from error
            raise ClusterError(f"A worker failed: {type(cause).__name__}: {cause}") from error
        except errors.RayError as error:
            return error

    def _deliver(self, part: _Part, result: BlockResult) -> None:
        """Count the results of a part and merge them into its block."""
        self._counts.update(done=result.done, failed=result.failed, evaluations=result.evaluations)
        for warning in result.warnings:
            add_warning(self._run.warnings, warning)
        self._innocent += part.deaths
        self._combine(part, result.results)

    def _combine(self, part: _Part, results: Any) -> None:
        """Add the results of a part to its block, which is finished when all its inputs have results."""
        block = part.block
        if part.is_whole:
            self._finished.append((block, results))
            return
        partial = self._partial.setdefault(block.number, [])
        partial.append(results)
        if len(partial) == len(block.items):
            del self._partial[block.number]
            self._innocent += block.number not in self._fatal_blocks
            self._finished.append((block, self._task.pack(list(chain.from_iterable(partial)))))

    def _replace(self, worker: _WorkerState, error: Exception) -> None:
        """Replace a dead worker and requeue its parts."""
        self._workers.remove(worker)
        self._ray.kill(worker.actor)
        reason = _reason(error)
        logger.warning("A worker died and will be replaced: %s", reason)
        if worker.ready:
            self._start_missing()
        elif all(other.ready for other in self._workers):
            self._delay_next_load(error)
        unfinished = []
        for pending, part in worker.parts.items():
            ended, _ = self._ray.wait([pending], timeout=0)
            result = self._get(pending) if ended else error
            if isinstance(result, BlockResult):
                self._deliver(part, result)
            else:
                unfinished.append(part)
        again = self._after_death(unfinished[0], reason) + unfinished[1:] if unfinished else []
        self._waiting.extendleft(reversed(again))

    def _after_death(self, part: _Part, reason: str) -> list[_Part]:
        """Return the inputs of a part during which a worker died, as single-input parts.

        An input is retried after all others, and fails after several deaths.
        """
        if len(part.items) > 1:
            return [_Part(part.block, [item]) for item in part.items]
        deaths = part.deaths + 1
        if deaths < deaths_allowed(self._innocent):
            self._waiting.append(replace(part, deaths=deaths))
            return []
        self._fatal_blocks.add(part.block.number)
        error = ModelError(
            f"{deaths} workers died while processing only this input; the last reason: {reason}"
        )
        results = self._task.failures(part.items[0], error)
        self._counts.update(done=len(results), failed=len(results))
        self._combine(part, self._task.pack(results) if part.is_whole else results)
        return []

    # -- workers -------------------------------------------------------------------------------------

    def _store_model(self, model: Any) -> Any:
        """Put the model into the cluster's object store once for all workers; return a name unchanged."""
        if isinstance(model, NamedModel):
            return model
        model.fingerprint  # noqa: B018  computed once, and sent with the model
        try:
            return self._ray.put(model)
        except Exception as error:
            reason = str(error.__cause__ or error).strip().splitlines()[0]
            raise ModelError(
                f"The model cannot be sent to workers ({reason}): pass a name from which they can load it, "
                "such as a folder or 'package.module:name'."
            ) from error

    def _start_missing(self) -> None:
        """Start all missing workers immediately once a worker has loaded the model."""
        self._failed_loads = 0
        for _ in range(self.n_workers - len(self._workers)):
            self._start()
        self._retry_at = None

    def _start(self) -> None:
        actor = self._class.remote(*self._arguments)
        self._workers.append(_WorkerState(actor, actor.start.remote()))
        self._retry_at = None

    def _delay_next_load(self, error: Exception) -> None:
        """Schedule the next attempt to load the model, by one worker, after all loading workers have died.

        Raise `ClusterError` if no worker is left and `LOAD_ATTEMPTS` attempts have failed.
        """
        self._failed_loads += 1
        if not self._workers and self._failed_loads >= LOAD_ATTEMPTS:
            raise ClusterError(
                f"No worker could load the model in {LOAD_ATTEMPTS} consecutive attempts; the last one died: "
                f"{_reason(error)} Check that the model fits into the memory of a worker."
            ) from error
        delay = min(FIRST_DELAY * 2.0 ** (self._failed_loads - 1), LONGEST_DELAY)
        self._retry_at = time.monotonic() + delay

    def _check(self, started: Started) -> None:
        """Raise an error unless a worker has this process's versions and the other workers' model."""
        different = [
            f"{name} {started.versions.get(name)} (here {version})"
            for name, version in versions().items()
            if started.versions.get(name) != version
        ]
        if different:
            raise ClusterError(
                f"The worker on {started.host!r} has {', '.join(different)}: install the same versions on "
                "all machines."
            )
        self._fingerprint = self._fingerprint or started.fingerprint
        if started.fingerprint != self._fingerprint:
            raise ModelError(
                f"The worker on {started.host!r} has loaded a different model than the other workers: put "
                "the same files and code on all machines."
            )


def deaths_allowed(innocent: int) -> int:
    """Return the number of worker deaths during one input before it fails.

    It grows with the number of deaths during `innocent` inputs, which were explained later: if workers are
    killed at random, the same input may be affected repeatedly.

    >>> [deaths_allowed(innocent) for innocent in (0, 1, 5, 100)]
    [2, 3, 5, 6]
    """
    return min(DEATHS + innocent.bit_length(), MOST_DEATHS)


def _reason(error: Exception) -> str:
    """Return the line of Ray's message that explains why a worker died."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "because" in line), lines[0] if lines else type(error).__name__)
