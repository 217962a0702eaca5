"""Explaining more inputs than fit into memory, block by block, into a folder of Parquet files."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pertinent._optional import optional
from pertinent.config.fingerprints import digest
from pertinent.engine.journal import Journal
from pertinent.errors import FileError
from pertinent.files import folder_exists, remove_leftovers, write_bytes
from pertinent.results.explanation import Explanations
from pertinent.results.explanation_files import rows_to_bytes
from pertinent.results.explanation_folder import (
    END,
    INDEX,
    ExplanationFolder,
    block_names,
    content_digest,
    is_intact,
    missing_blocks,
    part_name,
)
from pertinent.runs.block_worker import ThisProcess
from pertinent.runs.blocks import LARGEST_BLOCK, Block, Workers, blocks_of
from pertinent.runs.explain_run import ExplainBlock, Outcome, check_lengths, items_of, merged
from pertinent.runs.model_check import check_predictions, first_predictions
from pertinent.runs.request import Request
from pertinent.runs.run import Run

logger = logging.getLogger(__name__)


def is_folder(out: Path) -> bool:
    """Whether a run writes a folder of files to `out`: a name without a suffix, or a folder that is there."""
    return out.suffix == "" or folder_exists(out)


def explain_to_folder(run: Run, requests: Sequence[Request], folder: Path) -> ExplanationFolder:
    """Explain every input by every request, except those that an earlier run of the same has written.

    A block of inputs is one file. Inputs are read as there is somebody to explain them, and nothing is kept
    in memory.
    """
    check_lengths(run, requests)
    optional("pyarrow.parquet")  # better missed now than at the end
    _make(folder)
    run.model.forget()  # it may have changed since it was wrapped
    size = LARGEST_BLOCK if run.cluster is None else run.cluster.block_size or LARGEST_BLOCK
    with nullcontext(ThisProcess(run)) if run.cluster is None else run.cluster.open(run) as workers:
        header: dict[str, Any] = {
            "model": workers.fingerprint,
            "requests": [request.to_dict() for request in requests],
            "block_size": size,
        }
        if run.shard is not None:
            header["shard"] = str(run.shard)
        header = json.loads(json.dumps(header))
        with Journal(folder / INDEX, header) as index:
            _drop_damaged(index, folder)
            finished = [record for record in index.records() if record["name"] != END]
            total = None if run.n_tasks is None else run.n_tasks * len(requests)
            if total is not None:
                total = max(0, total - sum(r["explanations"] + r["failures"] for r in finished))
            todo = _Unfinished(blocks_of(items_of(run, len(requests)), size), index)
            _check_model(workers, requests, finished, todo, folder)
            for block, part in workers.run(ExplainToFile(tuple(requests), header), todo, total):
                write_bytes(folder / part_name(block.number), part.content)
                record = {
                    "explanations": part.n_explanations,
                    "failures": part.n_failures,
                    "digest": content_digest(part.content),
                }
                index.add((block.number,), todo.names.pop(block.number), record)
            if (todo.n,) not in index.finished:
                index.add((todo.n,), END, {"explanations": 0, "failures": 0})
            if todo.n + 1 < len(index.finished):
                raise _other_inputs(folder, f"there are fewer of them, in {todo.n} blocks")
    return ExplanationFolder(folder)


def _make(folder: Path) -> None:
    """Make the folder, or check that it is there for such a run."""
    try:
        folder.mkdir(exist_ok=True)
        remove_leftovers(folder)
        foreign = not (folder / INDEX).is_file() and any(folder.iterdir())
    except OSError as error:
        raise FileError(f"The folder {str(folder)!r} cannot be written: {error.strerror}.") from error
    if foreign:
        raise FileError(f"The folder {str(folder)!r} holds other files: choose a new or an empty one.")


def _drop_damaged(index: Journal, folder: Path) -> None:
    """Forget the records whose files are damaged, missing or swapped, so that they are recomputed."""
    records = list(index.records())
    damaged = [
        record["key"][0] for record in records if record["name"] != END and not is_intact(folder, record)
    ]
    for number in damaged:
        del index.finished[number,]
    lost = sorted({*damaged, *missing_blocks(records)})
    if lost:
        logger.warning(
            "%s of %r: the file or its record in the index is damaged or missing; the block is recomputed.",
            block_names(lost).capitalize(),
            str(folder),
        )


def _check_model(
    workers: Workers,
    requests: Sequence[Request],
    finished: Sequence[Mapping[str, Any]],
    todo: _Unfinished,
    folder: Path,
) -> None:
    """Raise a `FileError` if the model predicts something else for the first finished inputs."""
    number = next((record["key"][0] for record in finished if record["explanations"]), None)
    block = None if number is None else todo.find(number)
    if block is None:
        return
    predictions = first_predictions(Explanations.read(folder / part_name(block.number)))
    items = [replace(item, request_indexes=(0,)) for item in block.items if item.index in predictions]
    check_predictions(workers, requests, items, predictions, folder)


class _Unfinished:
    """Iterator over the blocks that are not in the index.

    Blocks in the index must hold the inputs that they held before. `n` counts all blocks that were read, and
    `names` are digests of the unfinished ones.
    """

    def __init__(self, blocks: Iterable[Block], index: Journal) -> None:
        self._blocks, self._index = iter(blocks), index
        self._waiting: deque[Block] = deque()
        self.n = 0
        self.names: dict[int, str] = {}

    def find(self, number: int) -> Block | None:
        """Read blocks up to the one with this number, and return it; the unfinished ones are kept."""
        while (block := self._read()) is not None:
            if block.number in self.names:
                self._waiting.append(block)
            if block.number == number:
                return block
        return None

    def __iter__(self) -> Iterator[Block]:
        while self._waiting:
            yield self._waiting.popleft()
        while (block := self._read()) is not None:
            if block.number in self.names:
                yield block

    def _read(self) -> Block | None:
        """Read the next block, and check its inputs or name it."""
        block = next(self._blocks, None)
        if block is None:
            return None
        self.n += 1
        name = digest([(item.index, item.id, _content(item.raw)) for item in block.items]).hex()
        before = self._index.finished.get((block.number,))
        if before is None:
            self.names[block.number] = name
        elif before[1] != name:
            raise _other_inputs(self._index.path.parent, f"block {block.number} is not what it was")
        return block


def _content(raw: Any) -> Any:
    return f"unreadable: {raw}" if isinstance(raw, Exception) else raw


def _other_inputs(folder: Path, how: str) -> FileError:
    return FileError(
        f"{str(folder)!r} was begun with other inputs: {how}. Give the same inputs in the same order to "
        "continue, or choose another folder."
    )


@dataclass(frozen=True)
class Part:
    """The content of a Parquet file, and the numbers of explanations and failures in it."""

    content: bytes
    n_explanations: int
    n_failures: int


@dataclass(frozen=True)
class ExplainToFile(ExplainBlock):
    """Explains the inputs of a block, and makes the file of the explanations where that is done."""

    header: Mapping[str, Any]

    def pack(self, results: Sequence[Outcome]) -> Part:  # type: ignore[override]
        """The file with the explanations in the order of the inputs."""
        ordered = sorted(results, key=lambda each: (each.input_index, each.request_index))
        rows = [each.explanation.to_dict() for each in ordered if each.explanation is not None]
        failures = merged([failure for each in ordered for failure in each.failures], self.requests)
        return Part(rows_to_bytes(rows, failures, self.header), len(rows), len(failures))
