"""The cluster that a command is given."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

from pertinent.config.settings import Count, NotNegative
from pertinent.errors import SettingError

if TYPE_CHECKING:
    from pertinent.cluster.cluster import Cluster


@dataclass(frozen=True)
class ClusterFlags:
    """The flags that name a cluster.

    Attributes
    ----------
    ray
        Do the work on Ray, at this address, or without one on this machine alone.
    workers
        With --ray: the number of workers (as many as there is room for).
    cpus_per_worker
        With --ray: the number of cores of a worker (1).
    gpus_per_worker
        With --ray: the number of GPUs of a worker, or the share of one (0).
    block_size
        With --ray: the number of inputs that a worker does together (at most 256).
    """

    ray: Annotated[str, "[ADDRESS]"] | None = None
    workers: Count | None = None
    cpus_per_worker: Count | None = None
    gpus_per_worker: NotNegative | None = None
    block_size: Count | None = None

    def made(self) -> Cluster | None:
        """The cluster, if there is one."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "ray"}
        given = {name: value for name, value in own.items() if value is not None}
        if self.ray is None:
            for name in given:
                raise SettingError(f"--{name.replace('_', '-')} is about workers: give --ray, too.")
            return None
        from pertinent.cluster.cluster import Cluster

        return Cluster(self.ray or None, **given)
