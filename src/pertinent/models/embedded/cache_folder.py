"""The folder where trained models are kept between runs."""

from __future__ import annotations

import logging
import os
import stat
import sys
from pathlib import Path

from pertinent.errors import FileError

logger = logging.getLogger(__name__)


def cache_folder() -> Path:
    """``$PERTINENT_CACHE``, else ``pertinent`` in the system's cache folder; it may not exist yet."""
    chosen = os.environ.get("PERTINENT_CACHE")
    return Path(chosen).expanduser() if chosen else _system_caches() / "pertinent"


def own_cache_folder() -> Path | None:
    """The same folder, made if need be; ``None``, with a warning, where others could write to it."""
    folder = cache_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_is_own(folder)
    except OSError as error:
        logger.warning("The cache folder is not used, so a model is trained each time: %s", error)
        return None
    return folder


def read_kept(path: Path) -> bytes:
    """A file of the cache folder, which must not be a link to somewhere else."""
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
        return file.read()


def _check_is_own(folder: Path) -> None:
    if not hasattr(os, "getuid"):  # Windows
        return
    for found in (folder.lstat(), folder.stat()):
        if found.st_uid != os.getuid():
            raise FileError(f"{str(folder)!r} belongs to another user: set PERTINENT_CACHE to one of yours.")
    if folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise FileError(f"others may write to {str(folder)!r}: run chmod 700 on it.")


def _system_caches() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ".cache"
