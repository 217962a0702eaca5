"""A worker: a process that holds the model and an engine, and processes blocks of inputs."""

from __future__ import annotations

import os
import platform
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from threadpoolctl import threadpool_limits

from pertinent.engine.engine import Engine
from pertinent.engine.progress import Progress
from pertinent.runs.executor import Item, RunTask, run_task
from pertinent.runs.model_names import NamedModel
from pertinent.runs.session import Session

_PACKAGES = ("pertinent", "numpy", "torch", "transformers", "scikit-learn")
"""Packages that may affect explanations."""


@dataclass(frozen=True)
class Started:
    """Report of a worker that has loaded the model: its process, versions and the model's digest."""

    pid: int
    host: str
    versions: Mapping[str, str]
    fingerprint: str


@dataclass(frozen=True)
class BlockResult:
    """Results of a block, the numbers of done and failed inputs, and warnings for the run."""

    results: Any
    done: int
    failed: int
    evaluations: int
    warnings: Sequence[str]


class Worker:
    """A Ray actor that processes blocks one by one.

    Parameters
    ----------
    model
        The model, or its name.
    batch_size
        As in `explain`; by default the engine determines it and keeps it across blocks.
    threads
        Number of threads that numpy, torch and other libraries may use.
    """

    def __init__(self, model: Any, batch_size: int | None, threads: int) -> None:
        self._model, self._batch_size, self._threads = model, batch_size, threads

    def start(self) -> Started:
        """Load the model."""
        os.environ["TOKENIZERS_PARALLELISM"] = str(self._threads > 1).lower()
        if isinstance(self._model, NamedModel):
            self._model = self._model.load()
        threadpool_limits(self._threads)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(self._threads)
        self._engine = Engine(self._model, batch_size=self._batch_size)
        return Started(os.getpid(), platform.node(), versions(), self._model.fingerprint.hex())

    def run(self, task: RunTask, items: Sequence[Item], pack: bool) -> BlockResult:
        """Return the results of a block or part of one, packed if it is a whole block."""
        session, before = Session(self._model), self._engine.rows
        progress = deque([Progress(0, 0, None, 0)], maxlen=1)
        total = sum(len(task.keys(item)) for item in items)
        self._engine.progress = progress.append
        results = [result for _, result in run_task(self._engine, session, task, items, total)]
        evaluations = self._engine.rows - before
        packed = task.pack(results) if pack else results
        return BlockResult(packed, progress[0].done, progress[0].failed, evaluations, session.warnings)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that may affect explanations."""
    installed = {"Python": ".".join(map(str, sys.version_info[:2]))}
    for name in _PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            installed[name] = "not installed"
    return installed
