"""Blocks of inputs, and what is done with them: what travels to another process or machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pertinent.runs.run import Run


LARGEST_BLOCK = 256
"""Number of inputs in a block, if their number is large or not known."""


@dataclass(frozen=True)
class NamedInput:
    """An input with the user's own name for it, in a stream that is too long for a list of names."""

    raw: Any
    id: str


@dataclass(frozen=True)
class Item:
    """One input and what is wanted of it.

    Attributes
    ----------
    index
        The position of the input among all.
    raw
        The input as the user gave it, prepared, or the exception in place of one that could not be read.
    request_indexes
        The positions of the requests that it is explained by.
    id
        The user's own name for the input.
    """

    index: int
    raw: Any
    request_indexes: tuple[int, ...] = (0,)
    id: str | None = None


@dataclass(frozen=True)
class Block:
    """Inputs that one worker does together; blocks are numbered from 0 in the order of the inputs."""

    number: int
    items: Sequence[Item]


def blocks_of(items: Iterable[Item], size: int) -> Iterator[Block]:
    """Consecutive blocks of at most `size` inputs, read as they are needed."""
    pending, number = iter(items), 0
    while block := list(islice(pending, size)):
        yield Block(number, block)
        number += 1


class BlockTask(Protocol):
    """What is done with every block; it travels to the workers, and the results travel back."""

    def carry_out(self, run: Run, items: Sequence[Item]) -> Iterator[Any]:
        """Do the work in a worker, whose model and engine are in the run; yield the results."""

    def failed(self, run: Run, item: Item, error: Exception) -> list[Any]:
        """The results of an input that no worker survived."""

    def pack(self, results: Sequence[Any]) -> Any:
        """The results of a whole block in the form in which they are handed back."""


class Workers(Protocol):
    """Processes that have a run's model, and do blocks."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model that they have, in hexadecimal digits."""

    def run(
        self, task: BlockTask, blocks: Iterable[Block], total: int | None, *, quiet: bool = False
    ) -> Iterator[tuple[Block, Any]]:
        """Do the blocks, read as workers are free; yield each with its packed results when it is done.

        `total` is the number of results if it is known, for the progress bar; with `quiet` there is no bar.
        """


@runtime_checkable
class Cluster(Protocol):
    """Where a run is done, if not in this process."""

    @property
    def block_size(self) -> int | None:
        """The number of inputs in a block; ``None`` for the default."""

    def open(self, run: Run) -> AbstractContextManager[Workers]:
        """Workers for a run, which are ended with the context."""

    def carry_out(self, run: Run, task: BlockTask, items: Iterable[Item], total: int | None) -> Iterator[Any]:
        """Do all items in blocks; yield the results as they come."""
