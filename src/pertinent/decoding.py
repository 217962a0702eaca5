"""Plain data from a file, which may be damaged: every value is checked as it is taken."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import isfinite
from typing import Any

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.errors import InputError

_SHOWN = 60


class PlainData:
    """The fields of an object, as `json.loads` gives it.

    Each method gives the value of one field, or raises an `InputError` that names the field, what it
    must be and what it was.
    """

    def __init__(self, content: Any, name: str) -> None:
        named = isinstance(content, Mapping) and all(isinstance(key, str) for key in content)
        expect(named, name, "an object with named fields", content)
        self._content: Mapping[str, Any] = content

    def __contains__(self, name: str) -> bool:
        """Whether there is such a field and it holds something."""
        return self._content.get(name) is not None

    def value(self, name: str) -> Any:
        """Whatever it holds."""
        if name not in self._content:
            raise InputError(f"`{name}` is missing.")
        return self._content[name]

    def mapping(self, name: str) -> dict[str, Any]:
        """An object with any content."""
        PlainData(self.value(name), name)
        return dict(self.value(name))

    def items(self, name: str) -> list[Any]:
        """A list with any content."""
        found = self.value(name)
        expect(isinstance(found, list | tuple), name, "a list", found)
        return list(found)

    def pairs(self, name: str) -> Iterator[tuple[Any, Any]]:
        """A list of pairs."""
        return pairs(self.value(name), name)

    def text(self, name: str, known: Collection[str] | None = None) -> str:
        """A text; one of those `known`, if they are given."""
        found = self.value(name)
        expect(isinstance(found, str), name, "a text", found)
        expect(known is None or found in known, name, f"one of {', '.join(known or ())}", found)
        return str(found)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        found = self.items(name)
        expect(all(isinstance(text, str) for text in found), name, "a list of texts", found)
        return tuple(found)

    def flag(self, name: str) -> bool:
        """True or false."""
        found = self.value(name)
        expect(isinstance(found, bool), name, "true or false", found)
        return bool(found)

    def whole(self, name: str, least: int = 0, below: int | None = None) -> int:
        """A whole number."""
        return whole(self.value(name), name, least, below)

    def number(self, name: str) -> float:
        """A finite number."""
        found = number(self.value(name), name)
        expect(isfinite(found), name, "finite", found)
        return found

    def floats(self, name: str, *shape: int | None) -> Floats:
        """An array of numbers of this shape, ``None`` for any length; ``None`` among them becomes NaN."""
        found = _array(self.value(name), name, shape)
        if found.dtype == object:
            flat = [np.nan if value is None else value for value in found.ravel()]
            found = np.array(flat).reshape(found.shape)
        expect(found.dtype.kind in "iuf" or not found.size, name, "numbers", self.value(name))
        return np.asarray(found.astype(np.float64))

    def wholes(self, name: str, *shape: int | None) -> Ints:
        """An array of whole numbers of this shape."""
        return wholes(self.value(name), name, *shape)


def pairs(value: Any, name: str) -> Iterator[tuple[Any, Any]]:
    """The pairs in a list."""
    expect(isinstance(value, list | tuple), name, "a list of pairs", value)
    for pair in value:
        expect(isinstance(pair, list | tuple) and len(pair) == 2, name, "a list of pairs", pair)
        yield pair[0], pair[1]


def number(value: Any, name: str) -> float:
    """A number, perhaps NaN or infinite."""
    expect(isinstance(value, int | float) and not isinstance(value, bool), name, "a number", value)
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"`{name}` is too large a number.") from None


def share(value: Any, name: str) -> float:
    """A number above 0 and at most 1."""
    found = number(value, name)
    expect(0 < found <= 1, name, "above 0 and at most 1", found)
    return found


def whole(value: Any, name: str, least: int = 0, below: int | None = None) -> int:
    """A whole number in a range."""
    expect(isinstance(value, int) and not isinstance(value, bool), name, "a whole number", value)
    wanted = f"at least {least}" if below is None else f"from {least} to {below - 1}"
    expect(least <= value < (2**63 if below is None else below), name, wanted, value)
    return int(value)


def wholes(value: Any, name: str, *shape: int | None) -> Ints:
    """An array of whole numbers."""
    found = _array(value, name, shape)
    expect(found.dtype.kind == "i" or not found.size, name, "whole numbers", value)
    return np.asarray(found.astype(np.int64))


def expect(condition: bool, name: str, must: str, got: object) -> None:
    """Raise an `InputError` that names the field, what it must be and, cut short, what it was."""
    if not condition:
        text = repr(got)
        text = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        raise InputError(f"`{name}` must be {must}, but got {text}.")


def _array(value: Any, name: str, shape: tuple[int | None, ...]) -> Any:
    try:
        found = np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise InputError(f"`{name}` must be rows that are equally long.") from error
    if not found.size and 0 in shape:
        found = found.reshape([length or 0 for length in shape])  # an empty list does not show its rows
    if len(found.shape) != len(shape) or any(
        w not in (None, n) for w, n in zip(shape, found.shape, strict=True)
    ):
        wanted = " × ".join("any" if length is None else str(length) for length in shape)
        raise InputError(
            f"`{name}` must have the shape {wanted}, but has {' × '.join(map(str, found.shape))}."
        )
    return found
