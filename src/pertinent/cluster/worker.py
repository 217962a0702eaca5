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

from pertinent.api.blocks import BlockTask, Item
from pertinent.api.named_model import NamedModel
from pertinent.api.run import Run
from pertinent.engine.engine import Engine
from pertinent.engine.progress import Progress

_PACKAGES = ("pertinent", "numpy", "torch", "transformers", "scikit-learn")
"""Packages that explanations may depend on."""


@dataclass(frozen=True)
class Started:
    """What a worker reports when it has loaded the model: its process, its versions, the model's digest."""

    pid: int
    host: str
    versions: Mapping[str, str]
    fingerprint: str


@dataclass(frozen=True)
class BlockResult:
    """The results of a block, how many there are and failed, and what the whole run should warn of."""

    results: Any
    done: int
    failed: int
    evaluations: int
    warnings: tuple[str, ...]


class Worker:
    """Does blocks, one after the other.

    Parameters
    ----------
    model
        The model itself, or its name.
    settings
        The arguments of `Run` that the blocks of a run have in common.
    threads
        The number of threads that numpy, torch and others may use.
    """

    def __init__(self, model: Any, settings: Mapping[str, Any], threads: int) -> None:
        self.model, self.settings, self.threads = model, settings, threads

    def start(self) -> Started:
        """Load the model."""
        os.environ["TOKENIZERS_PARALLELISM"] = str(self.threads > 1).lower()
        if isinstance(self.model, NamedModel):
            self.model = self.model.load()
        threadpool_limits(self.threads)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(self.threads)
        self.engine = Engine(self.model, batch_size=self.settings["batch_size"])
        return Started(os.getpid(), platform.node(), versions(), self.model.fingerprint.hex())

    def run(self, task: BlockTask, items: Sequence[Item], pack: bool) -> BlockResult:
        """The results of a block, packed if it is whole."""
        seen = [Progress(0, 0, None, 0)]
        run = Run(
            self.model,
            ids={item.index: item.id for item in items},
            engine=self.engine,
            progress=seen.append,
            **self.settings,
        )
        before = self.engine.rows
        results = list(task.carry_out(run, items))
        last = seen[-1]
        packed = task.pack(results) if pack else results
        return BlockResult(packed, last.done, last.failed, self.engine.rows - before, run.warnings)


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that explanations may depend on."""
    found = {"Python": ".".join(map(str, sys.version_info[:2]))}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
