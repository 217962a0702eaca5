"""A journal of finished work, so that a run that was killed can be continued."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from zlib import crc32

from pertinent.errors import FileError
from pertinent.files import atomic_write, check_writable, sync
from pertinent.printable import shorten

if TYPE_CHECKING:
    from typing import Self

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_DIGESTS = ("model", "inputs", "ids")
"""Fields of a header that are digests, whose values mean nothing to a reader."""

_LONGEST = 60
"""Number of characters of a value that an error shows."""

SYNC_SECONDS = 1.0
"""Seconds between two writes to the disk: the most work that a power failure may cost."""


class Journal:
    """A file of lines: a header that describes the run, then a record for everything finished.

    A line is a checksum and a JSON object, in one `write`, so a killed process leaves whole lines and at
    most one torn one, which is cut off when the journal is opened again. `finished` maps the key of each
    record to its byte offset in the file and its name.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        check_writable(path)
        self.path = path
        self.finished: dict[tuple[int, ...], tuple[int, str | None]] = {}
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

    def add(self, key: tuple[int, ...], name: str | None, content: Mapping[str, Any]) -> None:
        """Append a record under a key; `name` identifies the input that it belongs to."""
        place = self._end
        self._append({"key": list(key), "name": name, **content})
        self.finished[key] = place, name

    def records(self) -> Iterator[dict[str, Any]]:
        """All records, in the order of their keys."""
        with self.path.open("rb") as lines:
            for key in sorted(self.finished):
                yield self._record(lines, key)

    def record(self, key: tuple[int, ...]) -> dict[str, Any]:
        """The record of one key."""
        with self.path.open("rb") as lines:
            return self._record(lines, key)

    def _record(self, lines: BinaryIO, key: tuple[int, ...]) -> dict[str, Any]:
        lines.seek(self.finished[key][0])
        record = _next_record(lines, self.path)
        assert record is not None
        return record

    def close(self) -> None:
        """Write everything to the disk, and close the file."""
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
        """Read the records of an earlier run, and return whether the file has a header."""
        with self.path.open("rb") as lines:
            before = _next(lines, self.path)
            if before is None:
                os.ftruncate(self._file, 0)
                return False
            changed = differences(before, json.loads(json.dumps(header)))
            if changed:
                raise FileError(
                    f"{str(self.path)!r} belongs to a run that differs in {'; '.join(changed)}. "
                    "Use the same arguments to continue it, or choose another file."
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
                "in it are kept: make room and run the same again to continue."
            ) from error
        self._end += len(line)


def journal_line(content: Mapping[str, Any]) -> bytes:
    """A line of a journal: a checksum and a JSON object."""
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32(text), text)


def write_journal(path: Path, header: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> None:
    """Write a whole journal at once."""
    with atomic_write(path) as unfinished, unfinished.open("wb") as lines:
        for content in chain([header], records):
            lines.write(journal_line(content))


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """The header of a journal, then its records, as they were written."""
    with path.open("rb") as lines:
        header = _next(lines, path)
        if header is None:
            return
        yield header
        while (record := _next_record(lines, path)) is not None:
            yield record


def differences(before: Any, now: Any, where: str = "") -> list[str]:
    """The differences between two descriptions, each as ``budget (100, now 200)``.

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
    """The object in the next line; ``None`` at the end of the file, where the last line may be torn."""
    place = lines.tell()
    line = lines.readline()
    if not line.endswith(b"\n") and (place or re.match(rb"[0-9a-f]{0,8}( |$)", line)):
        return None
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    try:
        found = json.loads(text) if checksum == b"%08x" % crc32(text) else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FileError(f"{str(path)!r} is damaged or not a journal: at byte {place} there is no record.")
    return found


def _next_record(lines: BinaryIO, path: Path) -> dict[str, Any] | None:
    """The next record, with its key and name."""
    place = lines.tell()
    record = _next(lines, path)
    if record is None:
        return None
    key, name = record.get("key"), record.get("name")
    is_key = isinstance(key, list) and key and all(type(part) is int and part >= 0 for part in key)
    if not is_key or not isinstance(name, str | None):
        raise FileError(f"{str(path)!r} is damaged: the record at byte {place} has no key.")
    return record


def _pair(before: Any, now: Any) -> str:
    """Two values, of which long ones are shown from where they differ."""
    texts = [json.dumps(value, ensure_ascii=False) for value in (before, now)]
    if max(map(len, texts)) > _LONGEST:
        differs = (i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b)
        same = max(0, next(differs, min(map(len, texts))) - _LONGEST // 4)
        texts = [f"…{text[same:]}" if same else text for text in texts]
    return ", now ".join(shorten(text, _LONGEST) for text in texts)
