"""Everything that `pertinent` raises on purpose.

PertinentError
├── InputError      the thing to explain cannot be used (empty text, NaN in a row, wrong shape)
├── ModelError      the model cannot be wrapped, or answered with something unusable
├── SettingError    a name or setting is unknown or out of range
│   └── BudgetError the budget does not suffice, or was overrun
├── FileError       a file is missing, unreadable or not ours
└── MissingExtra    an optional dependency is not installed
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class PertinentError(Exception):
    """The root of the tree: catch this to catch them all."""


class InputError(PertinentError, ValueError):
    """The thing to explain cannot be used."""


class ModelError(PertinentError, RuntimeError):
    """The model cannot be wrapped, or answered with something unusable."""


class SettingError(PertinentError, ValueError):
    """A name or setting is unknown or out of range."""


class BudgetError(SettingError):
    """The budget does not suffice, or was overrun."""


class FileError(PertinentError, OSError):
    """A file is missing, unreadable or not ours."""


class MissingExtra(PertinentError, ImportError):
    """An optional dependency is not installed."""


def unknown(what: str, name: object, known: Iterable[str]) -> SettingError:
    """The error for a name that is not known, with the nearest one that is."""
    known = sorted(known)
    near = get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return SettingError(f"Unknown {what} {name!r}.{hint} Known: {', '.join(known)}.")


def require(condition: bool, setting: str, must: str, got: object) -> None:
    """Raise a `SettingError` that names the setting, what it must be and what it was."""
    if not condition:
        raise SettingError(f"`{setting}` must be {must}, but got {got!r}.")
