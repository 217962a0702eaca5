"""Writing files that are never half there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pertinent.errors import FileError


@contextmanager
def appearing_whole(path: Path) -> Iterator[Path]:
    """A file to write to, which takes the place of `path` when it is finished, or not at all."""
    if not path.parent.is_dir():
        raise FileError(f"There is no folder {str(path.parent)!r} to write into.")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
