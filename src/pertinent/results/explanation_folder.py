"""Explanations of more inputs than fit into memory: a folder of Parquet files, and an index of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from pertinent.decoding import PlainData
from pertinent.engine.journal import read_journal
from pertinent.errors import FileError, InputError
from pertinent.files import check_is_file
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.failures import Failure
from pertinent.settings import checked

logger = logging.getLogger(__name__)

INDEX = "index.journal"
"""The file in the folder that lists the others: a journal with a record for each."""

END = "end"
"""The name of the last record, which says that the run is finished."""


class ExplanationFolder:
    """Explanations in a folder, in the order of their inputs, which are read one file at a time.

    Parameters
    ----------
    path
        The folder that `explain` wrote with ``out=``.
    """

    path: Path

    @checked
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.is_finished:
            logger.warning("The run %r is not finished: this is what it has so far.", str(path))

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        index = self.path / INDEX
        check_is_file(index)
        found = sorted(islice(read_journal(index), 1, None), key=lambda record: record["key"])
        try:
            for record in found:
                PlainData(record, "record").value("explanations", int)
                PlainData(record, "record").value("failures", int)
        except InputError as error:
            raise FileError(f"{str(index)!r} is damaged: {error}") from error
        return found

    @property
    def is_finished(self) -> bool:
        """Whether the run that wrote it has ended."""
        return bool(self._records) and self._records[-1]["name"] == END

    @property
    def files(self) -> list[Path]:
        """The Parquet files, in the order of their inputs; `Explanations.read` reads one of them."""
        return [self.path / part_name(r["key"][0]) for r in self._records if r["name"] != END]

    @property
    def n_failures(self) -> int:
        """The number of failures."""
        return sum(record["failures"] for record in self._records)

    @property
    def failures(self) -> Iterator[Failure]:
        """The inputs that failed and why, read from the files that have some."""
        for record in self._records:
            if record["failures"]:
                yield from Explanations.read(self.path / part_name(record["key"][0])).failures

    def __len__(self) -> int:
        return sum(record["explanations"] for record in self._records)

    def __iter__(self) -> Iterator[Explanation]:
        for file in self.files:
            yield from Explanations.read(file)

    def __str__(self) -> str:
        """As ``1,000 explanations in 4 files``."""
        n, n_files = len(self), len(self.files)
        return f"{n:,} explanation{'' if n == 1 else 's'} in {n_files:,} file{'' if n_files == 1 else 's'}"

    def __repr__(self) -> str:
        failed = f", {self.n_failures:,} failed" if self.n_failures else ""
        return f"<{self}{failed}>"


def part_name(number: int) -> str:
    """The name of the file with the explanations of a block."""
    return f"part-{number:08}.parquet"
