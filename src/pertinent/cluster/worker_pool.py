"""Workers on Ray: blocks stream to those that are free, and a worker that dies is replaced."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
"""Number of pieces that a worker has at most: the one that it does, and the next."""

BLOCKS_PER_WORKER = 8
"""Number of blocks for each worker, so that workers end at nearly the same time."""

DEATHS, MOST_DEATHS = 2, 6
"""Numbers of workers that an input must cost, alone, before it is blamed: at first, and at most."""

LOAD_ATTEMPTS = 10
"""Number of consecutive attempts to load the model after which a pool without workers gives up."""

FIRST_DELAY, LONGEST_DELAY = 0.5, 8.0
"""Seconds between attempts to load the model: the first delay, doubled by each failure up to the longest."""


@dataclass(frozen=True, eq=False)
class _BlockPart:
    """A block, or an input of one that a worker did not survive; `deaths` counts those that it cost alone."""

    block: Block
    items: Sequence[Item]
    deaths: int = 0

    @property
    def is_whole(self) -> bool:
        return len(self.items) == len(self.block.items)


@dataclass(eq=False)
class _WorkerState:
    """A worker as the driver sees it: its actor, the loading of its model, and its pieces, oldest first."""

    actor: Any
    start: Any
    ready: bool = False
    pieces: dict[Any, _BlockPart] = field(default_factory=dict)


class WorkerPool(Workers):
    """Workers that have the model of a run.

    Parameters
    ----------
    ray
        The module, connected to a cluster.
    run
        The run, whose inputs are given to `run` in blocks.
    cluster
        The settings of the cluster.
    n_workers
        The number of workers.
    """

    def __init__(self, ray: Any, run: Run, cluster: Cluster, n_workers: int) -> None:
        self.n_workers, self._block_size = n_workers, cluster.block_size
        self._ray, self._run = ray, run
        self._arguments = self._sent(run.model), run.batch_size, cluster.cpus_per_worker
        # A worker that dies is replaced here, where it is known which block it did.
        self._class = ray.remote(Worker).options(
            num_cpus=cluster.cpus_per_worker, num_gpus=cluster.gpus_per_worker, max_restarts=0
        )
        self._failed_loads = 0
        self._retry_at: float | None = None
        self._fingerprint = None if isinstance(run.model, NamedModel) else run.model.fingerprint.hex()
        self._hands: list[_WorkerState] = []
        self._waiting: deque[_BlockPart] = deque()
        self._hire_missing()

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the model; wait until a worker has loaded it."""
        while self._fingerprint is None:
            self._await_one()
        return self._fingerprint

    def close(self) -> None:
        """End all workers."""
        for hand in self._hands:
            self._ray.kill(hand.actor)
        self._hands.clear()

    def results(
        self, task: RunTask, items: Iterable[Item], total: int | None, *, quiet: bool = False
    ) -> Iterator[Any]:
        """Run a task on inputs in blocks; yield single results when their block is done."""
        size = self._block_size or LARGEST_BLOCK
        if self._block_size is None and total is not None:
            size = min(size, max(1, total // (BLOCKS_PER_WORKER * self.n_workers)))
        for _, results in self.run(task, blocks_of(items, size), total, quiet=quiet):
            yield from results

    def run(
        self, task: RunTask, blocks: Iterable[Block], total: int | None, *, quiet: bool = False
    ) -> Iterator[tuple[Block, Any]]:
        """Run a task on blocks, read as workers are free; yield each with its packed results."""
        self._task, self._sent_task = task, self._ray.put(task)
        self._source = iter(blocks)
        self._waiting.clear()
        self._parts: dict[int, list[Any]] = {}
        self._blamed: set[int] = set()
        self._innocent = 0
        self._finished: deque[tuple[Block, Any]] = deque()
        self._done = self._failed = self._evaluations = 0
        with progress_callback(False if quiet else self._run.progress, self._run.title) as callback:
            while self._hand_out():
                self._await_one()
                callback(Progress(self._done, self._failed, total, self._evaluations))
                while self._finished:
                    yield self._finished.popleft()

    # -- what is handed out --------------------------------------------------------------------------

    def _hand_out(self) -> bool:
        """Give every worker that has loaded the model enough to do; return whether anything is left to do."""
        for _ in range(QUEUED):
            for hand in self._hands:
                if hand.ready and len(hand.pieces) < QUEUED and (piece := self._next()) is not None:
                    sent = hand.actor.run.remote(self._sent_task, piece.items, piece.is_whole)
                    hand.pieces[sent] = piece
        if any(hand.pieces for hand in self._hands):
            return True
        piece = self._next()  # is there anything for the workers that have not loaded the model yet?
        if piece is not None:
            self._waiting.appendleft(piece)
        return piece is not None

    def _next(self) -> _BlockPart | None:
        if self._waiting:
            return self._waiting.popleft()
        block = next(self._source, None)
        return None if block is None else _BlockPart(block, block.items)

    # -- what comes back -----------------------------------------------------------------------------

    def _await_one(self) -> None:
        """Wait until a worker has loaded the model, has finished a piece, has died or is to be replaced."""
        awaited = {}
        for hand in self._hands:
            awaited.update(dict.fromkeys(hand.pieces if hand.ready else [hand.start], hand))
        timeout = None if self._retry_at is None else max(0.0, self._retry_at - time.monotonic())
        if timeout == 0.0:
            self._hire()
            return
        if not awaited:
            time.sleep(timeout or 0.0)
            return
        finished, _ = self._ray.wait(list(awaited), num_returns=1, timeout=timeout)
        if not finished:
            return
        (ended,) = finished
        hand = awaited[ended]
        found = self._received(ended)
        if isinstance(found, Started):
            self._check(found)
            hand.ready = True
            self._hire_missing()
        elif isinstance(found, BlockResult):
            self._deliver(hand.pieces.pop(ended), found)
        else:
            self._bury(hand, found)

    def _received(self, sent: Any) -> Any:
        """What a worker returned, or the error if it is dead; its own errors are raised."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(sent)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, PertinentError):
                raise type(cause)(str(cause)) from error
            raise ClusterError(f"A worker failed: {type(cause).__name__}: {cause}") from error
        except errors.RayError as error:
            return error

    def _deliver(self, piece: _BlockPart, result: BlockResult) -> None:
        """Take in the results of a piece; if they were the last of its block, pack those of all pieces."""
        self._done += result.done
        self._failed += result.failed
        self._evaluations += result.evaluations
        for warning in result.warnings:
            add_warning(self._run.warnings, warning)
        self._innocent += piece.deaths
        self._put_together(piece, result.results)

    def _put_together(self, piece: _BlockPart, results: Any) -> None:
        block = piece.block
        if piece.is_whole:
            self._finished.append((block, results))
            return
        parts = self._parts.setdefault(block.number, [])
        parts.append(results)
        if len(parts) == len(block.items):
            del self._parts[block.number]
            self._innocent += block.number not in self._blamed
            self._finished.append((block, self._task.pack([one for part in parts for one in part])))

    def _bury(self, hand: _WorkerState, error: Exception) -> None:
        """Replace a worker that has died, and have its pieces done by others."""
        self._hands.remove(hand)
        self._ray.kill(hand.actor)
        reason = _reason(error)
        logger.warning("A worker died and will be replaced: %s", reason)
        if hand.ready:
            self._hire_missing()
        elif all(other.ready for other in self._hands):
            self._delay_next_load(error)
        begun, again = False, list[_BlockPart]()
        for sent, piece in hand.pieces.items():
            done, _ = self._ray.wait([sent], timeout=0)
            found = self._received(sent) if done else error
            if isinstance(found, BlockResult):
                self._deliver(piece, found)
            elif begun:
                again.append(piece)
            else:
                begun = True
                again += self._after_death(piece, reason)
        self._waiting.extendleft(reversed(again))

    def _after_death(self, piece: _BlockPart, reason: str) -> list[_BlockPart]:
        """What is to be done again of a piece that cost a worker: each of its inputs alone.

        An input that cost several workers alone is a failure.
        """
        if len(piece.items) > 1:
            return [_BlockPart(piece.block, [item]) for item in piece.items]
        deaths = piece.deaths + 1
        if deaths < deaths_of_one(self._innocent):
            self._waiting.append(replace(piece, deaths=deaths))
            return []
        self._blamed.add(piece.block.number)
        error = ModelError(f"{deaths} workers died of this input alone, the last because: {reason}")
        results = self._task.failures(piece.items[0], error)
        self._done += len(results)
        self._failed += len(results)
        self._put_together(piece, self._task.pack(results) if piece.is_whole else results)
        return []

    # -- workers -------------------------------------------------------------------------------------

    def _sent(self, model: Any) -> Any:
        """The model, once in the cluster's object store; a name as it is."""
        if isinstance(model, NamedModel):
            return model
        model.fingerprint  # noqa: B018  computed here, once, and sent with the model
        try:
            return self._ray.put(model)
        except Exception as error:
            reason = str(error.__cause__ or error).strip().splitlines()[0]
            raise ModelError(
                f"The model cannot be sent to workers ({reason}): give its name, by which they load it, such "
                "as a folder or 'package.module:name'."
            ) from error

    def _hire_missing(self) -> None:
        """Start all missing workers immediately, after a worker has shown that the model can be loaded."""
        self._failed_loads = 0
        for _ in range(self.n_workers - len(self._hands)):
            self._hire()
        self._retry_at = None

    def _hire(self) -> None:
        actor = self._class.remote(*self._arguments)
        self._hands.append(_WorkerState(actor, actor.start.remote()))
        self._retry_at = None

    def _delay_next_load(self, error: Exception) -> None:
        """Schedule the next attempt to load the model, by one worker, after all that were loading have died.

        Raise `ClusterError` if no worker is left and `LOAD_ATTEMPTS` attempts have failed.
        """
        self._failed_loads += 1
        if not self._hands and self._failed_loads >= LOAD_ATTEMPTS:
            raise ClusterError(
                f"No worker could load the model in {LOAD_ATTEMPTS} consecutive attempts; the last one died: "
                f"{_reason(error)} Check that the model fits into the memory of a worker."
            ) from error
        delay = min(FIRST_DELAY * 2.0 ** (self._failed_loads - 1), LONGEST_DELAY)
        self._retry_at = time.monotonic() + delay

    def _check(self, started: Started) -> None:
        """Raise an error unless a worker has the versions of this process, and the model that others have."""
        own = versions()
        differing = [
            f"{name} {started.versions.get(name)} (here {own[name]})"
            for name in own
            if started.versions.get(name) != own[name]
        ]
        if differing:
            raise ClusterError(
                f"The worker on {started.host!r} has {', '.join(differing)}: install the same versions on "
                "all machines."
            )
        self._fingerprint = self._fingerprint or started.fingerprint
        if started.fingerprint != self._fingerprint:
            raise ModelError(
                f"The model that the worker on {started.host!r} has loaded is not the one that others have: "
                "put the same files and code on all machines."
            )


def deaths_of_one(innocent: int) -> int:
    """The number of workers that an input must cost, alone, before it is blamed.

    It grows with the number of workers that died over `innocent` inputs, which were explained later: where
    workers are killed at random, two of them may happen to do the same input.

    >>> [deaths_of_one(innocent) for innocent in (0, 1, 5, 100)]
    [2, 3, 5, 6]
    """
    return min(DEATHS + innocent.bit_length(), MOST_DEATHS)


def _reason(error: Exception) -> str:
    """The line of Ray's message that says why a worker died."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "because" in line), lines[0] if lines else type(error).__name__)
