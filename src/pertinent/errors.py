"""Everything that `pertinent` raises on purpose.

PertinentError
├── InputError      the thing to explain cannot be used (an empty text, a row without values, a wrong shape)
│   └── ExampleError  one of the inputs to train on cannot be used
├── ModelError      the model cannot be wrapped, or returned something unusable
├── SettingError    a name or setting is unknown or out of range
│   └── BudgetError the budget is too small, or was exceeded
├── ClusterError    a cluster cannot be reached or used, or its workers differ from this process
├── FileError       a file is missing, unreadable or not of the expected kind
└── MissingExtra    an optional dependency is not installed
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


class PertinentError(Exception):
    """The base class: catch this to catch all of them.

    Where every input failed, `failures` are all the failures, and `finished` is what was done nevertheless.
    """

    failures: Sequence[Any] = ()
    finished: Sequence[Any] = ()


class InputError(PertinentError, ValueError):
    """The thing to explain cannot be used."""


class ExampleError(InputError):
    """One of the inputs to train on cannot be used.

    `row` is its index in the `data`, which are ``"train"`` or ``"validation"``; `label` is its label, if that
    is what cannot be used.
    """

    def __init__(self, data: str, row: int, reason: object, label: object = None) -> None:
        super().__init__(f"{'Validation example' if data == 'validation' else 'Example'} {row}: {reason}")
        self.data, self.row, self.reason, self.label = data, row, str(reason), label


class ModelError(PertinentError, RuntimeError):
    """The model cannot be wrapped, or returned something unusable."""


class SettingError(PertinentError, ValueError):
    """A name or setting is unknown or out of range."""


class BudgetError(SettingError):
    """The budget is too small, or was exceeded."""


class ClusterError(PertinentError, RuntimeError):
    """A cluster cannot be reached or used, or its workers differ from this process."""


class FileError(PertinentError, OSError):
    """A file is missing, unreadable or not of the expected kind."""


class MissingExtra(PertinentError, ImportError):
    """An optional dependency is not installed."""


def unknown(what: str, name: object, known: Iterable[str], meant: str | None = None) -> SettingError:
    """The error for an unknown name, which suggests the name that is `meant`, else the closest known one."""
    known = sorted(known)
    said = name if isinstance(name, str) else safe_repr(name)
    near = get_close_matches(said, known, n=1, cutoff=0.6) if meant is None else [meant]
    if not near and len(said) > 2:
        near = [each for each in known if said in each]
    hint = f" Did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""
    listed = f"Known: {', '.join(known)}." if known else "There is none."
    return SettingError(f"Unknown {what} {safe_repr(name)}.{hint} {listed}")


def sendable(error: Exception | None) -> PertinentError | None:
    """Return an error that can be sent to another process; other exceptions may hold what cannot."""
    if error is None:
        return None
    if isinstance(error, PertinentError) and len(error.args) == 1:
        return type(error)(str(error))
    return ModelError(f"{type(error).__name__}: {error}")


def require(condition: bool, setting: str, must: str, got: object) -> None:
    """Raise a `SettingError` that names the setting, what it must be and what it was."""
    if not condition:
        raise SettingError(f"`{setting}` must be {must}, but got {safe_repr(got)}.")


def safe_repr(value: object) -> str:
    """What `repr` says of a value; its type, if its own `__repr__` raises an error."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  the user's own code
        return f"an object of type {type(value).__name__}"


def as_text(value: object, setting: str) -> str:
    """What `str` says of a value; a `SettingError` if its own `__str__` raises an error."""
    try:
        return str(value)
    except Exception as error:
        raise SettingError(
            f"`{setting}` must be texts or numbers, but {safe_repr(value)} raised {type(error).__name__}."
        ) from error
