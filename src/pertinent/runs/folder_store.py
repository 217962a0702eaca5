"""A store in a folder, with one Parquet file per block of inputs, and an index."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pertinent._optional import optional
from pertinent.errors import FileError
from pertinent.files import folder_exists, remove_leftovers, write_bytes
from pertinent.results.explanation import Explanation, Explanations
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
from pertinent.results.journal import Journal, journal_header
from pertinent.runs.executor import LARGEST_BLOCK, Block, Item, Workers, blocks_of
from pertinent.runs.explain import ExplainTask, Outcome
from pertinent.runs.request import Request
from pertinent.runs.run import Run
from pertinent.runs.store import Header, Store, UnfinishedBlocks, add_requests, fill

logger = logging.getLogger(__name__)


def is_folder(out: Path) -> bool:
    """Return whether `out` refers to a folder: it has no suffix, or is an existing folder."""
    return out.suffix == "" or folder_exists(out)


def explain_to_folder(run: Run, request: Request, out: Path) -> ExplanationFolder:
    """Explain every input with a request into a folder, skipping the blocks that it already contains.

    Inputs are read as needed. Neither inputs nor explanations are kept in memory.
    """
    fill(FolderStore(out, run.executor.block_size or LARGEST_BLOCK), run, [request])
    return ExplanationFolder(out)


class FolderStore(Store):
    """A folder with one Parquet file per block of inputs, and a journal that lists the files."""

    def __init__(self, path: Path, block_size: int) -> None:
        optional("pyarrow.parquet")  # reported before anything is computed
        self.path, self._block_size = path, block_size
        try:
            path.mkdir(exist_ok=True)
            remove_leftovers(path)
            foreign = not (path / INDEX).is_file() and any(path.iterdir())
        except OSError as error:
            raise FileError(f"The folder {str(path)!r} cannot be written: {error.strerror}.") from error
        if foreign:
            raise FileError(f"The folder {str(path)!r} contains other files: choose a new or empty folder.")

    @contextmanager
    def open(self, header: Header, requests: Sequence[Request]) -> Iterator[Sequence[Request]]:
        """Open the index; damaged or missing parts count as unfinished."""
        header = {**header, "block_size": self._block_size}
        stored = journal_header(self.path / INDEX)
        self._header, every = add_requests(self.path, stored, header, requests, is_finished=False)
        with Journal(self.path / INDEX, self._header) as self._index:
            records = list(self._index.records())
            parts = [record for record in records if record["name"] != END]
            damaged = {r["key"][0] for r in parts if not is_intact(self.path, r)}
            if lost := sorted(damaged | set(missing_blocks(records))):
                logger.warning(
                    "%s of %r: the file or its record in the index is damaged or missing; the block is "
                    "recomputed.",
                    block_names(lost).capitalize(),
                    str(self.path),
                )
            self._parts = [record for record in parts if record["key"][0] not in damaged]
            self.finished = {tuple(record["key"]): record["name"] for record in self._parts}
            self.n_results = sum(r["explanations"] + r["failures"] for r in self._parts)
            yield every

    def blocks(self, items: Iterable[Item]) -> Iterator[Block]:
        """Yield blocks of consecutive inputs."""
        return blocks_of(items, self._block_size)

    def explanations(self) -> Iterator[Explanation]:
        """Yield the finished explanations in the order of their inputs."""
        for record in self._parts:
            yield from Explanations.read(self.path / part_name(record["key"][0]))

    def add(self, workers: Workers, task: ExplainTask, blocks: UnfinishedBlocks, total: int | None) -> None:
        """Explain unfinished blocks; write each block's file, then its record in the index."""
        task = FolderTask(task.requests, task.one, task.independent, self._header)
        for block, (content, record) in workers.run(task, blocks, total):
            write_bytes(self.path / part_name(block.number), content)
            self._index.add((block.number, 0), blocks.digests.pop(block.number), record)
        self._n_blocks = blocks.n_read

    def finish(self, warnings: Sequence[str]) -> None:
        """Add the final record to the index, which marks the run as finished."""
        if (self._n_blocks, 0) not in self._index.finished:
            self._index.add(
                (self._n_blocks, 0), END, {"explanations": 0, "failures": 0, "warnings": warnings}
            )


@dataclass(frozen=True)
class FolderTask(ExplainTask):
    """Task that explains the inputs of a block and creates the content of its file on the worker."""

    header: Mapping[str, Any] | None = None

    def pack(self, results: Sequence[Outcome]) -> tuple[bytes, dict[str, Any]]:
        """Return the content of a block's file, and its record in the index."""
        ordered = sorted(results, key=lambda each: each.key)
        rows = [each.explanation.to_dict() for each in ordered if each.explanation is not None]
        failures = [failure for each in ordered for failure in each.failures]
        content = rows_to_bytes(rows, failures, self.header or {})
        counts = {"explanations": len(rows), "failures": len(failures)}
        return content, {**counts, "digest": content_digest(content)}
