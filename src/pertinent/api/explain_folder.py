"""Explaining more inputs than fit into memory, block by block, into a folder of Parquet files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pertinent._optional import optional
from pertinent.api.block_worker import ThisProcess
from pertinent.api.blocks import LARGEST_BLOCK, Block, blocks_of
from pertinent.api.explain_run import ExplainBlock, Outcome, check_lengths, items_of, merged
from pertinent.api.request import Request
from pertinent.api.run import Run
from pertinent.digests import digest
from pertinent.engine.journal import Journal
from pertinent.errors import FileError
from pertinent.files import write_bytes
from pertinent.results.explanation_files import write_rows
from pertinent.results.explanation_folder import END, INDEX, ExplanationFolder, part_name


def is_folder(out: Path) -> bool:
    """Whether a run writes a folder of files to `out`: a name without a suffix, or a folder that is there."""
    return out.suffix == "" or out.is_dir()


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
            finished = [record for record in index.records() if record["name"] != END]
            total = None if run.n_tasks is None else run.n_tasks * len(requests)
            if total is not None:
                total = max(0, total - sum(r["explanations"] + r["failures"] for r in finished))
            todo = _Unfinished(blocks_of(items_of(run, len(requests)), size), index)
            for block, part in workers.run(ExplainToFile(tuple(requests), header), todo, total):
                write_bytes(folder / part_name(block.number), part.content)
                counts = {"explanations": part.n_explanations, "failures": part.n_failures}
                index.add((block.number,), todo.names.pop(block.number), counts)
            if (todo.n,) not in index.finished:
                index.add((todo.n,), END, {"explanations": 0, "failures": 0})
            if todo.n + 1 < len(index.finished):
                raise _other_inputs(folder, f"there are fewer of them, in {todo.n} blocks")
    return ExplanationFolder(folder)


def _make(folder: Path) -> None:
    """Make the folder, or check that it is there for such a run."""
    try:
        folder.mkdir(exist_ok=True)
        foreign = not (folder / INDEX).is_file() and any(folder.iterdir())
    except OSError as error:
        raise FileError(f"The folder {str(folder)!r} cannot be written: {error.strerror}.") from error
    if foreign:
        raise FileError(f"The folder {str(folder)!r} holds other files: choose a new or an empty one.")


class _Unfinished:
    """The blocks that are not in the index; `n` is the number of all blocks that were read.

    Blocks that are in it must hold the inputs that they held then. `names` are digests of the others.
    """

    def __init__(self, blocks: Iterable[Block], index: Journal) -> None:
        self._blocks, self._index = blocks, index
        self.n = 0
        self.names: dict[int, str] = {}

    def __iter__(self) -> Iterator[Block]:
        for block in self._blocks:
            self.n += 1
            name = digest([(item.index, item.id, _content(item.raw)) for item in block.items]).hex()
            before = self._index.finished.get((block.number,))
            if before is None:
                self.names[block.number] = name
                yield block
            elif before[1] != name:
                raise _other_inputs(self._index.path.parent, f"block {block.number} is not what it was")


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
        with TemporaryDirectory() as name:
            file = Path(name, "part.parquet")
            write_rows(file, rows, failures, self.header)
            return Part(file.read_bytes(), len(rows), len(failures))
