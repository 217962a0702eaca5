"""A worker: a process that keeps the model and one engine, and does blocks of inputs."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from threadpoolctl import threadpool_limits

from pertinent.runs.block_worker import BlockResult, BlockWorker
from pertinent.runs.blocks import BlockTask, Item
from pertinent.runs.model_names import NamedModel

_PACKAGES = ("pertinent", "numpy", "torch", "transformers", "scikit-learn")
"""Packages that explanations may depend on."""


@dataclass(frozen=True)
class Started:
    """What a worker reports when it has loaded the model: its process, its versions, the model's digest."""

    pid: int
    host: str
    versions: Mapping[str, str]
    fingerprint: str


class Worker:
    """Does blocks, one after the other, on Ray.

    Parameters
    ----------
    model
        The model itself, or its name.
    shared
        As for `BlockWorker`.
    threads
        The number of threads that numpy, torch and others may use.
    """

    def __init__(self, model: Any, shared: Mapping[str, Any], threads: int) -> None:
        self._model, self._shared, self._threads = model, shared, threads

    def start(self) -> Started:
        """Load the model."""
        os.environ["TOKENIZERS_PARALLELISM"] = str(self._threads > 1).lower()
        model = self._model.load() if isinstance(self._model, NamedModel) else self._model
        threadpool_limits(self._threads)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(self._threads)
        self._worker = BlockWorker(model, self._shared)
        return Started(os.getpid(), platform.node(), versions(), model.fingerprint.hex())

    def run(self, task: BlockTask, items: Sequence[Item], pack: bool) -> BlockResult:
        """The results of a block, packed if it is whole."""
        return self._worker.run(task, items, pack=pack)


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that explanations may depend on."""
    found = {"Python": ".".join(map(str, sys.version_info[:2]))}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
