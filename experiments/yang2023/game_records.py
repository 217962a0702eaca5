"""The record of the paper's game on one set: every score, and what was noted besides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pertinent.array_types import Floats


class Record:
    """Scores by ``texts/method/seed``, in one file that is written anew by `save`.

    Scores are kept as float16, those of all texts one after the other, with the number of tokens of each
    text. `meta` holds plain values.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._arrays: dict[str, Any] = {}
        self.meta: dict[str, Any] = {}
        if path.is_file():
            with np.load(path) as stored:
                self._arrays = {name: stored[name] for name in stored.files if name != "meta"}
                self.meta = json.loads(str(stored["meta"]))

    def __contains__(self, key: str) -> bool:
        return f"{key}/scores" in self._arrays

    @property
    def keys(self) -> list[str]:
        """The names of all scores."""
        return [name.removesuffix("/scores") for name in self._arrays if name.endswith("/scores")]

    def add(self, key: str, scores: Sequence[Floats], special: Sequence[Sequence[float]] = ()) -> None:
        """Keep the scores of some texts, and those of their special tokens where they play."""
        self._arrays[f"{key}/scores"] = np.concatenate(scores).astype(np.float16)
        self._arrays[f"{key}/lengths"] = np.array([len(row) for row in scores], dtype=np.int16)
        if any(len(row) for row in special):
            self._arrays[f"{key}/special"] = np.array(special, dtype=np.float16)

    def note(self, key: str, **values: float) -> None:
        """Keep plain values."""
        self.meta[key] = values

    def scores(self, key: str) -> list[Floats]:
        """Return the scores of each text."""
        ends = np.cumsum(self._arrays[f"{key}/lengths"].astype(int))[:-1]
        return np.split(self._arrays[f"{key}/scores"].astype(float), ends)

    def special(self, key: str, n: int) -> list[Floats]:
        """Return the scores of n special tokens of each text; they are 0 where they did not play."""
        texts = len(self._arrays[f"{key}/lengths"])
        found = self._arrays.get(f"{key}/special")
        return list(np.zeros((texts, n)) if found is None else found[:, :n].astype(float))

    def save(self) -> None:
        """Write the file."""
        unfinished = self.path.with_suffix(".part.npz")
        np.savez_compressed(unfinished, meta=np.array(json.dumps(self.meta)), **self._arrays)
        unfinished.rename(self.path)
