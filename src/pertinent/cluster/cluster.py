"""Settings of a cluster: where Ray is, the number of workers, and the resources of each."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pertinent.cluster.connection import connected
from pertinent.cluster.worker_pool import WorkerPool
from pertinent.config.settings import Count, NotNegative, Settings
from pertinent.errors import ClusterError
from pertinent.models.base import Model
from pertinent.models.wrap import wrap
from pertinent.runs.executor import Executor
from pertinent.runs.model_names import NamedModel
from pertinent.runs.run import Run

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cluster(Settings, Executor):
    """Ray workers that do the work of `explain`, `compare` and others, on one or several machines.

    Results are the same as without a cluster, for any number of workers and any block size.

    Attributes
    ----------
    address
        Address of a running Ray, such as ``"10.0.0.1:6379"`` or ``"auto"``; by default the Ray that this
        process is connected to, or else a local Ray that is started for the run.
    workers
        Number of workers, each a process with the model; by default as many as fit.
    cpus_per_worker
        Number of cores, and of threads, per worker.
    gpus_per_worker
        Number of GPUs per worker, possibly a fraction.
    block_size
        Number of inputs per block of work; by default at most 256.

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

    def resolve_model(self, model: Any) -> Model:
        """Return the model of a run; a name is resolved by the workers."""
        if isinstance(model, str):
            return NamedModel(model)
        return model if isinstance(model, NamedModel) else wrap(model)

    @contextmanager
    def open(self, run: Run) -> Iterator[WorkerPool]:
        """Yield the workers for a run; they stop when the context ends."""
        requested = self.workers or max(1, (os.cpu_count() or 1) // self.cpus_per_worker)
        with connected(self.address, requested * self.cpus_per_worker) as ray:
            pool = WorkerPool(ray, run, self, self._n_workers(ray))
            try:
                yield pool
            finally:
                pool.close()

    def _n_workers(self, ray: Any) -> int:
        """Return the number of workers, at least one of which must fit on the cluster now."""
        available = ray.cluster_resources()
        needed = {"CPU": self.cpus_per_worker, "GPU": self.gpus_per_worker}
        fitting = min(int(available.get(name, 0) / each) for name, each in needed.items() if each)
        if not fitting:
            has = " and ".join(f"{available.get(name, 0):g} {name}s" for name in needed)
            raise ClusterError(
                f"No worker fits on the cluster, which has {has}: reduce cpus_per_worker="
                f"{self.cpus_per_worker} or gpus_per_worker={self.gpus_per_worker:g}."
            )
        if self.workers is not None and fitting < self.workers:
            logger.warning(
                "%d of %d workers fit now; the others start when resources become free.",
                fitting,
                self.workers,
            )
        return self.workers or fitting
