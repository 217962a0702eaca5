"""Which of the marks that a user gives belong to which explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pertinent.errors import SettingError, require
from pertinent.results.explanation import Explanation


def with_marks(explanations: Sequence[Explanation], marks: Any) -> list[Explanation]:
    """The explanations with their marks."""
    entries = _entries(explanations, marks)
    return [replace(e, marks=entry) for e, entry in zip(explanations, entries, strict=True)]


def _entries(explanations: Sequence[Explanation], marks: Any) -> list[Any]:
    """The entry of each explanation: by its `id` in a mapping, else by the `index` of its input."""
    if isinstance(marks, Mapping):
        known = {str(name): entry for name, entry in marks.items()}
        found = [known.get(str(e.id)) for e in explanations]
        require(any(entry is not None for entry in found), "marks", "by the ids of explanations", list(marks))
        return found
    if isinstance(marks, str) or not isinstance(marks, Sequence | np.ndarray):
        raise SettingError(f"`marks` must be a list with an entry for each input, but got {marks!r}.")
    if len(explanations) == len(marks) == 1:
        return list(marks)
    inputs: dict[int, bytes] = {}
    for e in explanations:
        if inputs.setdefault(e.index, e.input.fingerprint) != e.input.fingerprint:
            raise SettingError(
                f"Different inputs have the index {e.index}, so it does not say whose `marks` are whose: "
                "explain them in one call, or give ids= there and marks= as a mapping from id to entry here."
            )
    least = max(inputs) + 1
    require(len(marks) >= least, "marks", f"one entry for each input, at least {least}", len(marks))
    return [marks[e.index] for e in explanations]
