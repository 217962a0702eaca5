"""A store in a Parquet file, preceded by a journal; and merging the files of shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pertinent._optional import optional
from pertinent.config.serialization import encode
from pertinent.config.settings import checked
from pertinent.errors import FileError, require
from pertinent.files import check_writable, file_exists, remove_leftovers, sync
from pertinent.results.explanation import Explanation, Explanations
from pertinent.results.explanation_files import (
    StoredExplanations,
    journal_of,
    read_record,
    read_stored,
    write_rows,
)
from pertinent.results.failures import Failure, merge_failures
from pertinent.results.journal import Journal, differences, journal_header, replace_header, write_journal
from pertinent.runs.executor import Block, Item, Workers
from pertinent.runs.explain import ExplainTask, merge_warnings
from pertinent.runs.request import Request
from pertinent.runs.run import Run, Shard
from pertinent.runs.store import Header, Store, UnfinishedBlocks, add_requests, fill, plain_requests


def explain_to_file(run: Run, requests: Sequence[Request], out: Path) -> Explanations:
    """Explain every input with every request into a Parquet file, skipping what it already contains."""
    store = FileStore(out)
    fill(store, run, requests)
    return store.read(requests)


class FileStore(Store):
    """A Parquet file, with a journal next to it until the run finishes. Each block is one input."""

    def __init__(self, path: Path) -> None:
        check_writable(path)
        if path.suffix.lower() != ".parquet":
            raise FileError(
                f"`out` must end in .parquet, but got {str(path)!r}; use save() for other formats."
            )
        optional("pyarrow.parquet")  # reported before anything is computed
        self.path, self._journal_path = path, journal_of(path)
        for each in (path, self._journal_path):
            remove_leftovers(each.parent, each.name)
        self._stored: StoredExplanations | None = None
        self._journal: Journal | None = None

    @contextmanager
    def open(self, header: Header, requests: Sequence[Request]) -> Iterator[Sequence[Request]]:
        """Open the journal, unless the file already contains all requests."""
        stored = read_stored(self.path) if file_exists(self.path) else None
        before = journal_header(self._journal_path) if stored is None else stored.header
        if stored is not None and before is None:
            raise FileError(
                f"{str(self.path)!r} exists but is not a run that can be resumed: choose another file."
            )
        is_finished = stored is not None
        header, every = add_requests(self.path, before, header, requests, is_finished=is_finished)
        self._header, numbers = header, range(len(every))
        if stored is not None and header == before:
            self._stored = stored
            self.finished = {(int(i), n): name for i, name in stored.inputs.items() for n in numbers}
            self.n_results = len(self.finished)
            yield every
            return
        if stored is not None and journal_header(self._journal_path) != header:
            write_journal(self._journal_path, header, _records(stored))
        elif stored is None and before is not None and before != header:
            replace_header(self._journal_path, before, header)
        with Journal(self._journal_path, header) as self._journal:
            self.finished = {key: name for key, (_, name) in self._journal.finished.items()}
            self.n_results = len(self.finished)
            for record in self._journal.records():
                self._check(record, len(every))
            yield every

    def _check(self, record: Mapping[str, Any], n_requests: int) -> None:
        """Raise a `FileError` unless a journal record is complete and has a key of the run."""
        key = record["key"]
        explanation, _ = read_record(self._journal_path, record, Explanation.from_dict)
        is_key = len(key) == 2 and key[1] < n_requests
        if not is_key or (explanation is not None and explanation.index != key[0]):
            raise FileError(
                f"{str(self._journal_path)!r} is damaged: the record {key} belongs to no input and request."
            )

    def blocks(self, items: Iterable[Item]) -> Iterator[Block]:
        """Yield a block for each input, with the input's index as its number."""
        return (Block(item.index, [item]) for item in items)

    def explanations(self) -> Iterator[Explanation]:
        """Yield the finished explanations in the order of their inputs."""
        if self._stored is not None:
            yield from self._stored.explanations(Explanation.from_dict)
        for record in [] if self._journal is None else self._journal.records():
            explanation, _ = read_record(self._journal_path, record, Explanation.from_dict)
            if explanation is not None:
                yield explanation

    def add(self, workers: Workers, task: ExplainTask, blocks: UnfinishedBlocks, total: int | None) -> None:
        """Explain unfinished inputs, adding each explanation to the journal when it is available."""
        items = (item for block in blocks for item in block.items)
        if self._journal is None:
            if any(True for _ in items):
                raise blocks.other_inputs("there are more inputs")
            return
        for outcome in workers.results(task, items, total):
            explanation = None if outcome.explanation is None else outcome.explanation.to_dict()
            record = {"explanation": explanation, "failures": encode(outcome.failures)}
            self._journal.add(outcome.key, blocks.digests[outcome.key[0]], record)

    def finish(self, warnings: Sequence[str]) -> None:
        """Write the file from the journal and remove the journal."""
        journal = self._journal
        if journal is not None:
            inputs = {index: name for (index, _), (_, name) in journal.finished.items()}
            rows = (_row(record, warnings) for record in journal.records() if record["explanation"])
            failures = merge_failures(list(self._failures(journal)), len(self._header["requests"]))
            write_rows(self.path, rows, failures, {**self._header, "inputs": inputs})
        elif self._journal_path.exists():  # an earlier process was killed before removing the journal
            sync(self.path)
            sync(self.path.parent)
        self._journal_path.unlink(missing_ok=True)

    def _failures(self, journal: Journal) -> Iterator[Failure]:
        for record in journal.records():
            yield from read_record(journal.path, record, dict)[1]

    def read(self, requests: Sequence[Request]) -> Explanations:
        """Read the explanations by these requests, in order."""
        stored = self._stored or read_stored(self.path)
        numbers = [self._header["requests"].index(plain) for plain in plain_requests(requests)]
        order = {number: rank for rank, number in enumerate(numbers)}
        rows = [row for row in stored.rows if row["request_index"] in order]
        rows.sort(key=lambda row: (row["index"], order[row["request_index"]]))
        methods = {None, *(request.method.name for request in requests)}
        return Explanations(
            list(replace(stored, rows=rows).explanations(Explanation.from_dict)),
            [failure for failure in stored.failures if failure.method in methods],
        )


def _records(stored: StoredExplanations) -> Iterator[dict[str, Any]]:
    """Yield journal records of the file's inputs without failures; failed inputs are retried."""
    failed = {failure.index for failure in stored.failures}
    for row in stored.rows:
        if row["index"] not in failed:
            key, name = [row["index"], row["request_index"]], stored.inputs[str(row["index"])]
            yield {"key": key, "name": name, "explanation": row, "failures": []}


def _row(record: Mapping[str, Any], warnings: Sequence[str]) -> dict[str, Any]:
    """Return the explanation of a record, with its request and the run's warnings."""
    explanation, number = record["explanation"], record["key"][1]
    merged = merge_warnings(explanation["warnings"], warnings)
    return {**explanation, "request_index": number, "warnings": merged}


@checked
def merge(files: Sequence[str | Path], out: str | Path) -> Explanations:
    """Merge the files of all shards of a run into the file that a single run would have written.

    The call made for the shards, without `shard`, then reuses the results in the merged file.

    Parameters
    ----------
    files
        Files written by `explain` or `compare`, one for each shard, in any order.
    out
        The Parquet file to write.
    """
    require(len(files) > 0, "files", "at least one", files)
    shards: dict[Shard, StoredExplanations] = {}
    for path in map(Path, files):
        stored, header = _read_shard(path)
        shard = Shard.parse(header.pop("shard"))
        if not shards:
            first, whole, of = path, header, shard.of
        changed = differences({**whole, "shards": of}, {**header, "shards": shard.of})
        if changed:
            raise FileError(
                f"{str(path)!r} is a shard of a different run than {str(first)!r}: it differs in "
                f"{'; '.join(changed)}."
            )
        if shard in shards:
            raise FileError(
                f"{str(shards[shard].path)!r} and {str(path)!r} are both shard {shard}: pass only one."
            )
        shards[shard] = stored
    missing = [str(shard) for n in range(1, of + 1) if (shard := Shard(n, of)) not in shards]
    if missing:
        raise FileError(
            f"Shard{'s' * (len(missing) > 1)} {', '.join(missing)} of the run must also be merged."
        )
    every = shards.values()
    rows = sorted(
        (row for each in every for row in each.rows), key=lambda row: (row["index"], row["request_index"])
    )
    failures = sorted((f for each in every for f in each.failures), key=lambda failure: failure.index)
    inputs = {index: name for each in every for index, name in each.inputs.items()}
    write_rows(Path(out), rows, failures, {**whole, "inputs": inputs})
    return Explanations.read(out)


def _read_shard(path: Path) -> tuple[StoredExplanations, dict[str, Any]]:
    """Return the content of a shard's file and the header of its run."""
    if not file_exists(path) and file_exists(journal_of(path)):
        raise FileError(f"The run {str(path)!r} is not finished: repeat its call first to finish it.")
    stored = read_stored(path)
    if stored.header is None or "shard" not in stored.header:
        raise FileError(f"{str(path)!r} was not written by a run with `shard`.")
    return stored, dict(stored.header)
