"""A run: a model, its inputs, and where and how the work is done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from pertinent.engine.progress import Callback
from pertinent.errors import InputError, PertinentError, require
from pertinent.models.base import Model
from pertinent.results.failures import Failure
from pertinent.runs.executor import Executor, Item, LocalExecutor, RunTask, executor_of

T = TypeVar("T")


@dataclass(frozen=True)
class NamedInput:
    """An input of a stream, with the user's name for it."""

    raw: Any
    id: str


@dataclass(frozen=True)
class Shard:
    """The `number`-th of `of` equal shards of the inputs, counted from 1: every `of`-th input.

    >>> [index for index in range(8) if index in Shard.parse("2/3")]
    [1, 4, 7]
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse a shard such as ``"2/8"``."""
        match = re.fullmatch(r"([1-9]\d{0,8})/([1-9]\d{0,8})", text)
        require(match is not None and int(match[1]) <= int(match[2]), "shard", "I/N with 1 ≤ I ≤ N", text)
        assert match is not None
        return cls(int(match[1]), int(match[2]))

    def __contains__(self, index: int) -> bool:
        return index % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True)
class Run:
    """A model, its inputs, and where and how the work is done.

    Attributes
    ----------
    one
        Whether the user passed a single input instead of a collection.
    ids
        User's name for each input.
    shard
        Shard of the inputs that this run processes; None for all inputs.
    title
        Text of the progress bar.
    batch_size, progress
        As in `explain`.
    independent
        Whether inputs of the same size get different random masks, so a network that learns from the answers
        cannot learn their common error.
    executor
        Executor that does the work.
    warnings
        Warnings that apply to all results.
    """

    model: Model
    inputs: Iterable[Any] = ()
    one: bool = False
    ids: Sequence[Any] | None = None
    shard: Shard | None = None
    title: str = "explain"
    batch_size: int | None = None
    progress: Callback | bool | None = None
    independent: bool = False
    executor: Executor = field(default_factory=LocalExecutor)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def from_model(cls, model: Any, title: str, cluster: Executor | None = None, **options: Any) -> Run:
        """Create a run without inputs from the arguments of a public function."""
        executor = executor_of(cluster)
        return cls(executor.resolve_model(model), title=title, executor=executor, **options)

    @classmethod
    def from_arguments(
        cls, model: Any, inputs: Any, title: str, shard: str | None = None, **options: Any
    ) -> Run:
        """Create a run over one or several inputs, or a shard, from the arguments of a public function."""
        run = cls.from_model(model, title, **options)
        several = run.model.split(inputs)
        run = replace(run, inputs=[inputs] if several is None else several, one=several is None)
        if shard is None:
            return run
        parsed, n = Shard.parse(shard), run.n_inputs
        require(not run.one, "shard", "omitted for a single input", shard)
        require(n is None or parsed.of <= n, "shard", f"one of at most {n} (the number of inputs)", shard)
        return replace(run, shard=parsed)

    def listed(self) -> Run:
        """Return the same run with all inputs in a list; raise an error if there are none."""
        inputs = list(self.inputs)
        require(len(inputs) > 0, "inputs", "at least one", inputs)
        return replace(self, inputs=inputs)

    def over(self, inputs: Sequence[Any], model: Model | None = None) -> Run:
        """Return the same run over other inputs, optionally with another model."""
        return replace(self, inputs=inputs, one=False, ids=None, model=model or self.model)

    @property
    def n_inputs(self) -> int | None:
        """Return the number of inputs, or None for a stream."""
        return len(self.inputs) if isinstance(self.inputs, Sized) else None

    def count_results(self, per_input: int = 1) -> int | None:
        """Return the number of results, `per_input` for each input; None for a stream."""
        n, shard = self.n_inputs, self.shard
        n = n if n is None or shard is None else len(range(shard.number - 1, n, shard.of))
        return None if n is None else n * per_input

    def items(self, n_requests: int = 1) -> Iterator[Item]:
        """Yield the inputs that this run processes, each to be explained with every request."""
        request_indexes = tuple(range(n_requests))
        for index, raw in enumerate(self.inputs):
            if self.shard is not None and index not in self.shard:
                continue
            name = None if self.ids is None or index >= len(self.ids) else str(self.ids[index])
            if isinstance(raw, NamedInput):
                raw, name = raw.raw, raw.id
            if isinstance(raw, np.ndarray) and self.n_inputs is None:
                raw = raw.copy()  # a stream may reuse one buffer for all inputs
            yield Item(index, raw, request_indexes, name)

    def results(self, task: RunTask, items: Iterable[Item], total: int | None) -> Iterator[Any]:
        """Run a task on inputs; yield each result as it becomes available.

        If the inputs raise an error, the results of the inputs read before are yielded first.
        """
        source = DeferredError(items)
        with self.executor.open(self) as workers:
            yield from workers.results(task, source, total)
        source.check()


class DeferredError(Generic[T]):
    """An iterable that ends when its source raises an error; `check` re-raises the error."""

    def __init__(self, source: Iterable[T]) -> None:
        self._source = source
        self._error: Exception | None = None

    def __iter__(self) -> Iterator[T]:
        try:
            yield from self._source
        except Exception as error:  # noqa: BLE001  raised by `check`
            self._error = error

    def check(self) -> None:
        """Raise the source's error, if there was one."""
        if self._error is not None:
            raise self._error


def raise_first(failures: Sequence[Failure], done: str, finished: Sequence[Any] = ()) -> NoReturn:
    """Raise an error because nothing could be `done`: the only error, or the first with the number of inputs.

    The error carries the `failures` and the `finished` results.
    """
    if not failures:
        raise InputError("There are no inputs to explain.")
    first = failures[0]
    n_inputs = len({failure.index for failure in failures})
    if n_inputs == 1 and first.error is not None:
        raise first.error
    kind = type(first.error) if isinstance(first.error, PertinentError) else InputError
    error = kind(f"None of the {n_inputs} inputs could be {done}; the first: {first}")
    error.failures, error.finished = tuple(failures), finished
    raise error
