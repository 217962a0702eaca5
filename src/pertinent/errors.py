"""The exceptions of `pertinent`, and helpers that raise them.

PertinentError
├── InputError      an input cannot be explained (an empty text, a row without values, a wrong shape)
│   └── ExampleError  a training or validation example cannot be used
├── ModelError      a model cannot be wrapped, or returned an unusable answer
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
    """Base class of all exceptions of `pertinent`.

    Attributes
    ----------
    failures
        All failures, if every input failed.
    finished
        The results that were finished before the exception.
    """

    failures: Sequence[Any] = ()
    finished: Sequence[Any] = ()


class InputError(PertinentError, ValueError):
    """An input that cannot be explained."""


class ExampleError(InputError):
    """A training or validation example that cannot be used.

    Attributes
    ----------
    data
        ``"train"`` or ``"validation"``.
    row
        The index of the example.
    reason
        Why it cannot be used.
    label
        Label of the example, if the label is what cannot be used.
    """

    def __init__(self, data: str, row: int, reason: object, label: object = None) -> None:
        super().__init__(f"{'Validation example' if data == 'validation' else 'Example'} {row}: {reason}")
        self.data, self.row, self.reason, self.label = data, row, str(reason), label


class ModelError(PertinentError, RuntimeError):
    """A model that cannot be wrapped, or that returned an unusable answer."""


class SettingError(PertinentError, ValueError):
    """A name or setting that is unknown or out of range."""


class BudgetError(SettingError):
    """A budget that is too small, or was exceeded."""


class ClusterError(PertinentError, RuntimeError):
    """A cluster that cannot be reached or used, or whose workers differ from this process."""


class FileError(PertinentError, OSError):
    """A file that is missing, unreadable or not of the expected kind."""


class MissingExtra(PertinentError, ImportError):
    """An optional dependency that is not installed."""


def unknown(what: str, name: object, names: Iterable[str], suggestion: str | None = None) -> SettingError:
    """Return the error for an unknown name; it suggests `suggestion`, or else the closest name."""
    names = sorted(names)
    text = name if isinstance(name, str) else safe_repr(name)
    near = get_close_matches(text, names, n=1, cutoff=0.6) if suggestion is None else [suggestion]
    if not near and len(text) > 2:
        near = [candidate for candidate in names if text in candidate]
    hint = f" Did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""
    available = f"Known: {', '.join(names)}." if names else "There is none."
    return SettingError(f"Unknown {what} {safe_repr(name)}.{hint} {available}")


def sendable(error: Exception | None) -> PertinentError | None:
    """Return a picklable error; other exceptions may contain objects that cannot be pickled."""
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
    """Return the `repr` of a value, or its type if `__repr__` raises an error."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  user code
        return f"an object of type {type(value).__name__}"


def as_text(value: object, setting: str) -> str:
    """Return the `str` of a value; raise a `SettingError` if `__str__` raises an error."""
    try:
        return str(value)
    except Exception as error:
        raise SettingError(
            f"`{setting}` must be texts or numbers, but {safe_repr(value)} raised {type(error).__name__}."
        ) from error
