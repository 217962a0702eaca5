"""Reading files and writing them atomically, with errors that name the file."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pertinent._optional import optional
from pertinent.errors import FileError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_LONGEST = 40
"""Number of characters of a file's name that its temporary file's name repeats, to limit the length."""

_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{16}")
"""Names of temporary files: a dot, the beginning of the target's name, and random digits."""

_UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP)
"""Errors of file systems that cannot sync folders."""

_CHUNK = 4096
"""Number of rows of a Parquet file that are in memory at a time."""


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write to; it replaces `path` when the context ends without an error.

    The content is synced to the disk before the name, and the name before the context ends, so a power
    failure leaves either the old or the new file. The temporary file is always removed.
    """
    with _temporary(path) as unfinished:
        try:
            yield unfinished
            sync(unfinished)
            if path.exists():
                unfinished.chmod(stat.S_IMODE(path.stat().st_mode))
            unfinished.replace(path)
            sync(path.parent)
        except FileError:
            raise
        except OSError as error:
            raise _unwritable(path, error) from error


def check_writable(path: Path) -> None:
    """Raise a `FileError` if no file can be written to `path`, by creating a temporary file next to it."""
    with _temporary(path):
        pass


def sync(path: Path) -> None:
    """Force the content of a file, or the names in a folder, to the disk."""
    is_folder = path.is_dir()
    if is_folder and fcntl is None:  # Windows cannot open folders
        return
    file = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(file)
    except OSError as error:
        if not is_folder or error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(file)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove the temporary files of processes that were killed while they wrote to `name` in a folder.

    Without a `name`, the temporary files of all files in the folder are removed. Temporary files of running
    processes are locked, and are kept.
    """
    if fcntl is None:
        return
    with suppress(OSError):  # a folder that is missing or cannot be listed is reported when it is written
        for path in list(folder.iterdir()):
            match = _TEMPORARY.fullmatch(path.name)
            if match is not None and (name is None or match[1] == name[:_LONGEST]):
                _remove_unlocked(path)


def _remove_unlocked(path: Path) -> None:
    with suppress(OSError):  # another process removes it, or it is not ours
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(file)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically; characters that cannot be encoded become XML character references."""
    with atomic_write(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", errors="xmlcharrefreplace")


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    with atomic_write(path) as unfinished:
        unfinished.write_bytes(data)


def write_json(path: Path, content: Any) -> None:
    """Write an indented JSON file."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    check_is_file(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise FileError(f"{str(path)!r} is damaged or not a JSON file: {error}") from error


@dataclass(frozen=True)
class ParquetRows:
    """The rows of a Parquet file, the names of its columns, and its metadata."""

    columns: list[str]
    rows: list[dict[str, Any]]
    metadata: dict[bytes, bytes]


def read_parquet(path: Path) -> ParquetRows:
    """Read any Parquet file; one that is damaged or not Parquet raises a `FileError`."""
    with _parquet(path) as file:
        table = file.read()
        table.validate(full=True)
        return ParquetRows(table.column_names, table.to_pylist(), table.schema.metadata or {})


def parquet_columns(path: Path) -> list[str]:
    """Return the names of the columns of a Parquet file."""
    with _parquet(path) as file:
        return list(file.schema_arrow.names)


def n_parquet_rows(path: Path) -> int:
    """Return the number of rows of a Parquet file."""
    with _parquet(path) as file:
        return int(file.metadata.num_rows)


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of any Parquet file, reading a few thousand at a time."""
    with _parquet(path) as file:
        for batch in file.iter_batches(_CHUNK):
            batch.validate(full=True)
            yield from batch.to_pylist()


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    parquet = optional("pyarrow.parquet")
    check_is_file(path)
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except Exception as error:
        # A damaged file can raise any error, from wrong bytes to excessive sizes.
        raise FileError(f"{str(path)!r} is damaged or not a Parquet file: {error}") from error


def file_exists(path: Path) -> bool:
    """Return whether a file exists; False for names that are invalid on the file system."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def folder_exists(path: Path) -> bool:
    """Return whether a folder exists; False for names that are invalid on the file system."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def make_folder(path: Path) -> None:
    """Create a folder and its parents; raise a `FileError` if that fails."""
    if file_exists(path):
        raise FileError(f"{str(path)!r} is a file; name a folder.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise FileError(f"The folder {str(path)!r} cannot be created: {_reason(error)}.") from error


def check_is_file(path: Path) -> None:
    """Raise a `FileError` unless the file exists."""
    if not file_exists(path):
        raise FileError(f"There is no file {str(path)!r}.")


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """Yield a new, empty file next to `path`, which is locked, and removed when the context ends."""
    temporary = _temporary_name(path)
    file: int | None = None
    try:
        try:
            file = _create(temporary, path)
            yield temporary
        finally:
            _remove(temporary)
            if file is not None:
                os.close(file)
    finally:
        _remove(temporary)  # again, because an interrupt may have prevented the first attempt


def _temporary_name(path: Path) -> Path:
    """Return the name of a new file next to `path`; raise a `FileError` if `path` cannot be written."""
    try:
        _check_target(path)
        return path.with_name(f".{path.name[:_LONGEST]}.{secrets.token_hex(8)}")
    except FileError:
        raise
    except (OSError, ValueError) as error:  # a name may be too long, or hold a null character
        raise _unwritable(path, error) from error


def _check_target(path: Path) -> None:
    if path.is_dir():
        raise FileError(f"{str(path)!r} is a folder; name a file in it.")
    if path.exists() and not path.is_file():
        raise FileError(f"{str(path)!r} is not a regular file and cannot be replaced; name another.")
    if not path.parent.is_dir():
        raise FileError(f"There is no folder {str(path.parent)!r} to write into.")


def _create(temporary: Path, path: Path) -> int | None:
    """Create an empty file for `path`, with the permissions of new files; return it open and locked.

    Return None where files cannot be locked.
    """
    try:
        while True:
            file = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            if fcntl is None:
                os.close(file)
                return None
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            if temporary.exists():
                return file
            os.close(file)  # another process's `remove_leftovers` came between creating and locking
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from error


def _remove(temporary: Path) -> None:
    with suppress(OSError, ValueError):  # already raised when the file was created
        temporary.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError | ValueError) -> FileError:
    return FileError(f"{str(path)!r} cannot be written: {_reason(error)}.")


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
