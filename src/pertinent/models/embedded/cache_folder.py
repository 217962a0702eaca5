"""The folder where trained models are kept between runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """``$PERTINENT_CACHE``, else ``pertinent`` in the system's cache folder; it may not exist yet."""
    chosen = os.environ.get("PERTINENT_CACHE")
    return Path(chosen).expanduser() if chosen else _system_caches() / "pertinent"


def _system_caches() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ".cache"
