"""Numbers that the papers printed, from the file ``published.toml`` of each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def read_published(paper: str) -> dict[str, Any]:
    """Return the tables of a paper's numbers by name."""
    path = Path(__file__).parents[1] / paper / "published.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))
