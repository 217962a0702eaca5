"""Base class of executors, which determine where a run is done, and the executor for this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from pertinent.engine.engine import Engine
from pertinent.engine.job import Job, JobResult
from pertinent.engine.progress import progress_callback
from pertinent.models.base import Model
from pertinent.runs.model_names import load_or_wrap
from pertinent.runs.session import Session

if TYPE_CHECKING:
    from pertinent.runs.run import Run

LARGEST_BLOCK = 256
"""Number of inputs in a block if the total is large or unknown."""


@dataclass(frozen=True)
class Item:
    """An input of a run.

    Attributes
    ----------
    index
        Index of the input among all inputs.
    raw
        The user's input, a prepared input, or the exception of an input that could not be read.
    request_indexes
        Indices of the requests that explain it.
    id
        Your name for the input.
    """

    index: int
    raw: Any
    request_indexes: tuple[int, ...] = (0,)
    id: str | None = None


@dataclass(frozen=True)
class Block:
    """Consecutive inputs of a run, numbered from 0."""

    number: int
    items: Sequence[Item]


def blocks_of(items: Iterable[Item], size: int) -> Iterator[Block]:
    """Yield blocks of at most `size` inputs, read as needed."""
    pending, number = iter(items), 0
    while block := list(islice(pending, size)):
        yield Block(number, block)
        number += 1


class RunTask(ABC):
    """What a run does with each of its inputs. Tasks are sent to the workers of a cluster."""

    def keys(self, item: Item) -> Sequence[Any]:
        """Return the keys of an input's results; by default its index."""
        return [item.index]

    @abstractmethod
    def job(self, session: Session, item: Item, key: Any) -> Job:
        """Return the job of a key; an exception becomes the result of the job."""

    def start(self, session: Session, item: Item, key: Any) -> Job | JobResult:
        """Return the job of a key, or a `JobResult` with the error if it cannot start."""
        try:
            return self.job(session, item, key)
        except Exception as error:  # noqa: BLE001  recorded, the other inputs go on
            return JobResult(key, None, error)

    def result(self, item: Item, ended: JobResult, warnings: Sequence[str] = ()) -> Any:
        """Return a job's result; `warnings` are the run's warnings so far."""
        return ended

    def failures(self, item: Item, error: Exception) -> list[Any]:
        """Return the results of an input that cannot be processed."""
        return [self.result(item, JobResult(key, None, error)) for key in self.keys(item)]

    def pack(self, results: Sequence[Any]) -> Any:
        """Return a block's results in the form in which a worker sends them back."""
        return results

    def sharing_passes(self, model: Model) -> AbstractContextManager[Any]:
        """Return a context in which the model caches the forward passes that several jobs reuse."""
        return nullcontext()


class Workers(ABC):
    """Base class of the processes, or this process, that run tasks on the model of a run."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Return the model's fingerprint as hexadecimal digits."""

    @abstractmethod
    def run(
        self, task: RunTask, blocks: Iterable[Block], total: int | None, *, quiet: bool = False
    ) -> Iterator[tuple[Block, Any]]:
        """Run a task on blocks, read as needed; yield each when it is done, with packed results.

        `total` is the number of results for the progress bar, or None; `quiet` disables the bar.
        """

    @abstractmethod
    def results(
        self, task: RunTask, items: Iterable[Item], total: int | None, *, quiet: bool = False
    ) -> Iterator[Any]:
        """Run a task on inputs, read as needed; yield individual results as they become available."""


class Executor(ABC):
    """Base class of executors of a run: this process, or a cluster.

    Attributes
    ----------
    block_size
        Number of inputs in a block; None for the default.
    """

    block_size: int | None = None

    @abstractmethod
    def open(self, run: Run) -> AbstractContextManager[Workers]:
        """Return the workers for a run, which stop when the context ends."""

    def resolve_model(self, model: Any) -> Model:
        """Return the model for the argument `model` of a public function."""
        return load_or_wrap(model)


class LocalExecutor(Executor):
    """The executor that works in this process."""

    @contextmanager
    def open(self, run: Run) -> Iterator[Workers]:
        """Yield this process as the only worker."""
        yield LocalWorkers(run)


def executor_of(cluster: Executor | None) -> Executor:
    """Return the executor for the argument `cluster` of a public function."""
    return LocalExecutor() if cluster is None else cluster


@dataclass(eq=False)
class _OpenBlock:
    """A block in progress: the number of its results, and those available so far."""

    block: Block
    n_results: int
    results: list[Any] = field(default_factory=list)


class LocalWorkers(Workers):
    """The only worker of a run in this process.

    Inputs of consecutive blocks share one engine, so batches mix inputs of several blocks.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._engine = Engine(run.model, batch_size=run.batch_size)

    @property
    def fingerprint(self) -> str:
        """Return the model's fingerprint as hexadecimal digits."""
        return self._run.model.fingerprint.hex()

    def run(
        self, task: RunTask, blocks: Iterable[Block], total: int | None, *, quiet: bool = False
    ) -> Iterator[tuple[Block, Any]]:
        """Run a task on blocks; yield each when all its results are available."""
        opened: dict[int, _OpenBlock] = {}

        def items() -> Iterator[Item]:
            for block in blocks:
                n_results = sum(len(task.keys(item)) for item in block.items)
                opened.update(
                    dict.fromkeys([item.index for item in block.items], _OpenBlock(block, n_results))
                )
                yield from block.items

        for item, result in self._stream(task, items(), total, quiet=quiet):
            current = opened[item.index]
            current.results.append(result)
            if len(current.results) == current.n_results:
                for finished in current.block.items:
                    del opened[finished.index]
                yield current.block, task.pack(current.results)

    def results(
        self, task: RunTask, items: Iterable[Item], total: int | None, *, quiet: bool = False
    ) -> Iterator[Any]:
        """Run a task on inputs; yield each result when its job ends."""
        return (result for _, result in self._stream(task, items, total, quiet=quiet))

    def _stream(
        self, task: RunTask, items: Iterable[Item], total: int | None, *, quiet: bool
    ) -> Iterator[tuple[Item, Any]]:
        session = Session(self._run.model, self._run.warnings)
        with progress_callback(False if quiet else self._run.progress, self._run.title) as callback:
            self._engine.progress = callback
            yield from run_task(self._engine, session, task, items, total)


def run_task(
    engine: Engine, session: Session, task: RunTask, items: Iterable[Item], total: int | None
) -> Iterator[tuple[Item, Any]]:
    """Run the jobs of a task in an engine; yield each result with its input when the job ends."""
    items_by_key: dict[Any, Item] = {}

    def jobs() -> Iterator[Job | JobResult]:
        for item in items:
            for key in task.keys(item):
                items_by_key[key] = item
                yield task.start(session, item, key)

    with task.sharing_passes(session.model):
        for ended in engine.run(jobs(), total):
            item = items_by_key.pop(ended.key)
            yield item, task.result(item, ended, session.warnings)
        engine.progress = lambda _: None
        for _ in engine.run(session.repeats, len(session.repeats)):
            pass  # these algorithms compare the answers themselves
