"""Cluster flags of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pertinent.config.settings import Count, NotNegative
from pertinent.errors import SettingError

if TYPE_CHECKING:
    from pertinent.cluster.cluster import Cluster


@dataclass(frozen=True)
class ClusterFlags:
    """Flags that describe a cluster.

    Attributes
    ----------
    ray
        Run on the Ray cluster at this address, or without an address on this machine.
    workers
        With --ray: the number of workers (by default as many as the resources allow).
    cpus_per_worker
        With --ray: the number of cores per worker (1).
    gpus_per_worker
        With --ray: the number of GPUs per worker, possibly a fraction (0).
    block_size
        With --ray: the number of inputs per block, which a single worker explains (at most 256).
    """

    ray: Annotated[str, "[ADDRESS]"] | None = None
    workers: Count | None = None
    cpus_per_worker: Count | None = None
    gpus_per_worker: NotNegative | None = None
    block_size: Count | None = None

    def cluster(self) -> Cluster | None:
        """Return the cluster, if requested."""
        settings = {name: value for name, value in vars(self).items() if value is not None}
        if settings.pop("ray", None) is None:
            for name in settings:
                raise SettingError(f"--{name.replace('_', '-')} requires --ray.")
            return None
        from pertinent.cluster.cluster import Cluster

        return Cluster(self.ray or None, **settings)
