"""Reading files and writing them atomically, with errors that name the file."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pertinent._optional import optional
from pertinent.errors import FileError


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary file to write to, which replaces `path` only once it is complete."""
    check_writable(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be written: {error.strerror}.") from error
    os.close(handle)
    unfinished = Path(name)
    try:
        yield unfinished
        unfinished.chmod(0o666 & ~_umask())
        unfinished.replace(path)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{str(path)!r} cannot be written: {error.strerror or error}.") from error
    finally:
        unfinished.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise a `FileError` if no file can be written to `path`."""
    if path.is_dir():
        raise FileError(f"{str(path)!r} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise FileError(f"There is no folder {str(path.parent)!r} to write into.")


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
    """The contents of a JSON file."""
    check_is_file(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"{str(path)!r} is damaged or not a JSON file: {error}") from error


def read_parquet(path: Path) -> Any:
    """Any Parquet file, as a pyarrow table."""
    parquet = optional("pyarrow.parquet")
    check_is_file(path)
    try:
        return parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise FileError(f"{str(path)!r} is damaged or not a Parquet file: {error}") from error


def check_is_file(path: Path) -> None:
    """Raise a `FileError` unless there is such a file."""
    if not path.is_file():
        raise FileError(f"There is no file {str(path)!r}.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
