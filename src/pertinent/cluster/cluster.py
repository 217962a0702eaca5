"""The cluster: where Ray is, how many workers there are and what each of them has."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pertinent.cluster.connection import connected
from pertinent.cluster.worker_pool import WorkerPool
from pertinent.config.settings import Count, NotNegative, Settings
from pertinent.errors import ClusterError
from pertinent.runs.blocks import LARGEST_BLOCK, BlockTask, Item, blocks_of
from pertinent.runs.run import Run

logger = logging.getLogger(__name__)

BLOCKS_PER_WORKER = 8
"""Number of blocks for each worker, so that none waits long for the others at the end."""


@dataclass(frozen=True)
class Cluster(Settings):
    """Workers on Ray that do the work of `explain`, `compare` and others, on one machine or many.

    Results are the same as without a cluster, whatever the number of workers and the size of blocks.

    Attributes
    ----------
    address
        The address of a running Ray, such as ``"10.0.0.1:6379"`` or ``"auto"``; by default the one that this
        process is connected to, else a Ray that is started on this machine and stopped again.
    workers
        The number of workers, each a process with the model; by default as many as there is room for.
    cpus_per_worker
        The number of cores, and of threads, of a worker.
    gpus_per_worker
        The number of GPUs of a worker, or the share of one.
    block_size
        The number of inputs that a worker does together; by default at most 256.

    Examples
    --------
    >>> import pertinent
    >>> cluster = pertinent.Cluster(workers=2)
    >>> pertinent.explain("sentiment", ["so good", "so bad"], cluster=cluster)  # doctest: +SKIP
    <2 explanations>
    """

    address: str | None = None
    workers: Count | None = None
    cpus_per_worker: Count = 1
    gpus_per_worker: NotNegative = 0.0
    block_size: Count | None = None

    @contextmanager
    def open(self, run: Run) -> Iterator[WorkerPool]:
        """Workers for a run, which are ended with the context."""
        wanted = self.workers or max(1, (os.cpu_count() or 1) // self.cpus_per_worker)
        with connected(self.address, wanted * self.cpus_per_worker) as ray:
            pool = WorkerPool(ray, run, self._n_workers(ray), self.cpus_per_worker, self.gpus_per_worker)
            try:
                yield pool
            finally:
                pool.close()

    def carry_out(self, run: Run, task: BlockTask, items: Iterable[Item], total: int | None) -> Iterator[Any]:
        """Do all items in blocks; yield the results as they come."""
        with self.open(run) as pool:
            size = self.block_size or LARGEST_BLOCK
            if self.block_size is None and total is not None:
                size = min(size, max(1, total // (BLOCKS_PER_WORKER * pool.n_workers)))
            for _, results in pool.run(task, blocks_of(items, size), total):
                yield from results

    def _n_workers(self, ray: Any) -> int:
        """The number of workers, of which at least one must fit on the cluster now."""
        there = ray.cluster_resources()
        needed = {"CPU": self.cpus_per_worker, "GPU": self.gpus_per_worker}
        fitting = min(int(there.get(name, 0) / each) for name, each in needed.items() if each)
        if not fitting:
            has = " and ".join(f"{there.get(name, 0):g} {name}s" for name in needed)
            raise ClusterError(
                f"No worker fits on the cluster, which has {has}: a worker has cpus_per_worker="
                f"{self.cpus_per_worker} and gpus_per_worker={self.gpus_per_worker:g}."
            )
        if self.workers is not None and fitting < self.workers:
            logger.warning(
                "%d of %d workers fit now; the others begin when there is room.", fitting, self.workers
            )
        return self.workers or fitting
