"""A journal of finished work, from which a killed run can resume."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias
from zlib import crc32

from pertinent.errors import FileError
from pertinent.files import atomic_write, check_writable, file_exists, sync
from pertinent.printable import shorten

if TYPE_CHECKING:
    from typing import Self

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

Key: TypeAlias = tuple[int, ...]
"""Key of a record: the indices of a block of inputs and of a request."""

_DIGESTS = ("model",)
"""Header fields whose values are digests, which error messages omit."""

_LONGEST = 60
"""Number of characters of a value shown in error messages."""

SYNC_SECONDS = 1.0
"""Seconds between syncs to disk: a power failure loses at most the work in between."""


class Journal:
    """A file of lines: a header that describes a run, then a record for each finished part.

    A line is a checksum and a JSON object, written by a single `write`. A killed process leaves complete
    lines and at most one torn line, which is removed when the journal is reopened. `finished` maps the key of
    each record to its byte offset in the file and its name.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        check_writable(path)
        self.path = path
        self.finished: dict[Key, tuple[int, str | None]] = {}
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
            self._file = os.open(path, flags, 0o666)
        except OSError as error:
            raise FileError(f"{str(path)!r} cannot be written: {error.strerror}.") from error
        try:
            self._lock()
            self._end = 0
            self._synced = time.monotonic()
            if not self._read(header):
                self._append(header)
                sync(path.parent)
        except BaseException:
            os.close(self._file)
            raise

    def add(self, key: Key, name: str | None, content: Mapping[str, Any]) -> None:
        """Append a record with a key; `name` identifies the inputs that it belongs to."""
        offset = self._end
        self._append({"key": list(key), "name": name, **content})
        self.finished[key] = offset, name

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield all records in the order of their keys."""
        with self.path.open("rb") as lines:
            for _, (offset, _) in sorted(self.finished.items()):
                lines.seek(offset)
                record = _next_record(lines, self.path)
                assert record is not None
                yield record

    def close(self) -> None:
        """Sync the file to disk and close it."""
        os.fsync(self._file)
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FileError(f"Another process is writing {str(self.path)!r}: wait until it ends.") from error

    def _read(self, header: Mapping[str, Any]) -> bool:
        """Read the records of an earlier run; return whether the file has a header."""
        with self.path.open("rb") as lines:
            before = _next(lines, self.path)
            if before is None:
                os.ftruncate(self._file, 0)
                return False
            changed = differences(before, json.loads(json.dumps(header)))
            if changed:
                raise FileError(
                    f"{str(self.path)!r} belongs to a run that differs in {'; '.join(changed)}. "
                    "Use the same arguments to resume it, or choose another file."
                )
            self._end = lines.tell()
            while (record := _next_record(lines, self.path)) is not None:
                self.finished[tuple(record["key"])] = self._end, record["name"]
                self._end = lines.tell()
        os.ftruncate(self._file, self._end)
        return True

    def _append(self, content: Mapping[str, Any]) -> None:
        line = journal_line(content)
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            if time.monotonic() - self._synced > SYNC_SECONDS:
                os.fsync(self._file)
                self._synced = time.monotonic()
        except OSError as error:
            os.ftruncate(self._file, self._end)
            raise FileError(
                f"{str(self.path)!r} cannot be written: {error.strerror}. The {len(self.finished)} results "
                "in it are kept: free some disk space and repeat the call to resume."
            ) from error
        self._end += len(line)


def journal_line(content: Mapping[str, Any]) -> bytes:
    """Return a line of a journal: a checksum and a JSON object."""
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32(text), text)


def write_journal(path: Path, header: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> None:
    """Write a journal atomically."""
    with atomic_write(path) as unfinished, unfinished.open("wb") as lines:
        for content in chain([header], records):
            lines.write(journal_line(content))


def replace_header(path: Path, header: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Replace the header of a journal, keeping its records."""
    with Journal(path, header):  # locked, so no other process writes to it
        write_journal(path, new, islice(read_journal(path), 1, None))


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the header of a journal, then its records in writing order."""
    with path.open("rb") as lines:
        header = _next(lines, path)
        if header is None:
            return
        yield header
        while (record := _next_record(lines, path)) is not None:
            yield record


def journal_header(path: Path) -> dict[str, Any] | None:
    """Return the header of a journal; None if the file does not exist or is empty."""
    return next(read_journal(path), None) if file_exists(path) else None


def differences(before: Any, now: Any, where: str = "") -> list[str]:
    """Return the differences between two descriptions, each as ``budget (100, now 200)``.

    >>> differences({"seed": 0, "of": {"budget": 100}}, {"seed": 0, "of": {"budget": 200}})
    ['of.budget (100, now 200)']
    """
    if isinstance(before, dict) and isinstance(now, dict):
        names = dict.fromkeys([*before, *now])
        pairs = [(f"{where}.{name}".lstrip("."), before.get(name), now.get(name)) for name in names]
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(before, now, strict=True))]
    elif before == now:
        return []
    else:
        return [where if where in _DIGESTS else f"{where} ({_pair(before, now)})"]
    return [line for name, a, b in pairs for line in differences(a, b, name)]


def _next(lines: BinaryIO, path: Path) -> dict[str, Any] | None:
    """Return the object in the next line; None at the end of the file, whose last line may be torn."""
    offset = lines.tell()
    line = lines.readline()
    if not line.endswith(b"\n") and (offset or re.match(rb"[0-9a-f]{0,8}( |$)", line)):
        return None
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    try:
        content = json.loads(text) if checksum == b"%08x" % crc32(text) else None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise FileError(f"{str(path)!r} is damaged or not a journal: there is no record at byte {offset}.")
    return content


def _next_record(lines: BinaryIO, path: Path) -> dict[str, Any] | None:
    """Return the next record, which has a key and a name; None at the end of the file."""
    offset = lines.tell()
    record = _next(lines, path)
    if record is None:
        return None
    key, name = record.get("key"), record.get("name")
    is_key = isinstance(key, list) and key and all(type(part) is int and part >= 0 for part in key)
    if not is_key or not isinstance(name, str | None):
        raise FileError(f"{str(path)!r} is damaged: the record at byte {offset} has no key.")
    return record


def _pair(before: Any, now: Any) -> str:
    """Return two values as text; long values are shown from the first difference."""
    texts = [json.dumps(value, ensure_ascii=False) for value in (before, now)]
    if max(map(len, texts)) > _LONGEST:
        differs = (i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b)
        same = max(0, next(differs, min(map(len, texts))) - _LONGEST // 4)
        texts = [f"…{text[same:]}" if same else text for text in texts]
    return ", now ".join(shorten(text, _LONGEST) for text in texts)
