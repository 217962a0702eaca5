"""Explanations of more inputs than fit into memory: a folder of Parquet files with an index."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from pertinent.config.serialization import PlainData
from pertinent.config.settings import checked
from pertinent.errors import FileError, InputError
from pertinent.files import check_is_file
from pertinent.number_format import count
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure
from pertinent.results.journal import read_journal

logger = logging.getLogger(__name__)

INDEX = "index.journal"
"""The folder's index: a journal with one record per file."""

END = "end"
"""Name of the last record, which marks the run as finished."""

_RECOMPUTE = "Repeat the call to recompute it."

_LISTED = 5
"""Number of blocks that a message lists."""


class ExplanationFolder:
    """Explanations in a folder, in the order of their inputs, read one file at a time.

    Each file is verified against the digest in the index when it is read.

    Parameters
    ----------
    path
        Folder that `explain` wrote with ``out=``.
    """

    path: Path

    @checked
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.is_finished:
            logger.warning("The run %r is not finished; returning its finished explanations.", str(path))

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        """Return the last record of each block, and the final record."""
        index = self.path / INDEX
        check_is_file(index)
        last = {tuple(record["key"]): record for record in islice(read_journal(index), 1, None)}
        records = [last[key] for key in sorted(last)]
        try:
            for record in records:
                data = PlainData(record, "record")
                data.value("key", tuple[int, int])
                data.value("explanations", int)
                data.value("failures", int)
                if record["name"] != END:
                    data.text("digest")
        except InputError as error:
            raise FileError(f"{str(index)!r} is damaged: {error}") from error
        missing = missing_blocks(records)
        if missing:
            raise FileError(
                f"{str(index)!r} is damaged: it has no record of {block_names(missing)}. {_RECOMPUTE}"
            )
        return records

    @property
    def is_finished(self) -> bool:
        """Return whether the run is finished."""
        return bool(self._records) and self._records[-1]["name"] == END

    @property
    def files(self) -> list[Path]:
        """Return the Parquet files, each readable by `Explanations.read`, in the order of their inputs."""
        return [self.path / part_name(r["key"][0]) for r in self._records if r["name"] != END]

    @property
    def n_failures(self) -> int:
        """Return the number of failures."""
        return sum(record["failures"] for record in self._records)

    @property
    def failures(self) -> Iterator[Failure]:
        """Yield the failed inputs with reasons."""
        for record in self._records:
            if record["failures"]:
                yield from self._read(record).failures

    def __len__(self) -> int:
        return sum(record["explanations"] for record in self._records)

    def __iter__(self) -> Iterator[Explanation]:
        warnings = self._records[-1].get("warnings", []) if self.is_finished else []
        for record in self._records:
            for e in self._read(record) if record["name"] != END else ():
                yield replace(e, warnings=tuple(dict.fromkeys((*e.warnings, *warnings)))) if warnings else e

    def _read(self, record: Mapping[str, Any]) -> Explanations:
        """Read the file of a record; raise a `FileError` if it is not the file that the run wrote."""
        path = self.path / part_name(record["key"][0])
        if not is_intact(self.path, record):
            raise FileError(f"{str(path)!r} is missing, damaged or does not match the index. {_RECOMPUTE}")
        return Explanations.read(path)

    def __str__(self) -> str:
        """Return a text such as ``1,000 explanations in 4 files``."""
        return f"{count(len(self), 'explanation')} in {count(len(self.files), 'file')}"

    def __repr__(self) -> str:
        failed = f", {self.n_failures:,} failed" if self.n_failures else ""
        return f"<{self}{failed}>"


def is_intact(folder: Path, record: Mapping[str, Any]) -> bool:
    """Return whether the file of a record exists and matches the record's digest."""
    try:
        content = (folder / part_name(record["key"][0])).read_bytes()
    except OSError:
        return False
    return record.get("digest") == content_digest(content)


def content_digest(content: bytes) -> str:
    """Return the digest of a file, in the form used by the index."""
    return blake2b(content, digest_size=16).hexdigest()


def missing_blocks(records: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the blocks that a finished run must have but the records lack."""
    numbers = {record["key"][0]: record["name"] for record in records}
    ends = [number for number, name in numbers.items() if name == END]
    return [number for number in range(max(ends, default=0)) if number not in numbers]


def block_names(numbers: Sequence[int]) -> str:
    """Return the names of blocks for a message, such as ``blocks 1, 2``; long lists are cut."""
    listed = ", ".join(map(str, numbers[:_LISTED])) + ", …" * (len(numbers) > _LISTED)
    return f"block{'s' * (len(numbers) > 1)} {listed}"


def part_name(number: int) -> str:
    """Return the file name for the explanations of a block."""
    return f"part-{number:08}.parquet"
