"""Conversion of dataclasses to plain data (the types of JSON and Parquet) and back, by type annotations.

>>> @dataclass(frozen=True)
... class Point:
...     name: str
...     share: Annotated[float, Range(above=0, at_most=1)]
...     error: Annotated[float, NOT_FINITE] = 0.0
>>> decode(Point, {"name": "a", "share": 0.5, "error": None})
Point(name='a', share=0.5, error=nan)
>>> encode(Point("a", 0.5))
{'name': 'a', 'share': 0.5, 'error': 0.0}
>>> decode(Point, {"name": "a", "share": 2})
Traceback (most recent call last):
pertinent.errors.InputError: `share` must be above 0 and at most 1, but got 2.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from math import isfinite, isnan
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin, overload

import numpy as np

from pertinent.array_types import Array, Floats, Ints, Masks
from pertinent.config.settings import Range, convert_setting, settings_types
from pertinent.errors import InputError, SettingError, safe_repr
from pertinent.printable import shorten

T = TypeVar("T")

NOT_FINITE = "may be NaN or infinite"
"""Annotates a number that may be NaN (null in JSON) or, unless a range excludes it, infinite."""

Index: TypeAlias = Annotated[int, Range(at_least=0), Range(below=2**63)]
"""Index, counted from 0."""


@dataclass(frozen=True)
class Shape:
    """The length of each axis of an array: a number, the name of one of the `sizes`, or any (``None``).

    A row of booleans is saved as the indices of the true values.
    """

    lengths: tuple[int | str | None, ...]

    def __init__(self, *lengths: int | str | None) -> None:
        object.__setattr__(self, "lengths", lengths)


@overload
def decode(hint: type[T], plain: Any, name: str = ..., sizes: Mapping[str, int] | None = ...) -> T: ...
@overload
def decode(hint: Any, plain: Any, name: str = ..., sizes: Mapping[str, int] | None = ...) -> Any: ...
def decode(hint: Any, plain: Any, name: str = "", sizes: Mapping[str, int] | None = None) -> Any:
    """Convert plain data, possibly from a damaged file, to the annotated type.

    Objects are converted to dataclasses. Missing fields get their defaults, and unknown entries are ignored.
    A mapping whose keys are not strings is represented by a list of pairs. An `InputError` names the field,
    what it must be and what it was.

    Parameters
    ----------
    hint
        A dataclass or an annotation: numbers and strings, optionally with a `Range`, ``Literal``,
        ``Optional``, tuples, mappings, arrays with a `Shape`; an `Array` without a shape holds numbers,
        strings and ``None``.
    plain
        Numbers, strings, lists and dicts.
    name
        Name of the value in error messages.
    sizes
        Lengths of axes that shapes refer to by name.
    """
    return _Decoder(sizes or {}).decode(hint, plain, name)


def decode_fields(cls: Any, plain: Any, **sizes: int) -> dict[str, Any]:
    """Return the saved fields of a dataclass by name, decoded; no field may be missing."""
    return _Decoder(sizes, complete=True).fields(cls, plain, "")


def encode(value: Any) -> Any:  # noqa: PLR0911  one for each form of a value
    """Convert a value to numbers, strings, lists and dicts that `decode` accepts; other objects to `str`.

    Dataclass fields that are not compared (``compare=False``) are omitted.
    """
    if isinstance(value, np.ndarray):
        if value.dtype == np.bool_:
            return [encode(row) for row in value] if value.ndim > 1 else np.flatnonzero(value).tolist()
        return encode(value.tolist()) if value.dtype == object else value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _encode_field(getattr(value, f.name), hint) for f, hint in _saved_fields(type(value))}
    if isinstance(value, Mapping):
        return {str(key): encode(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [encode(element) for element in value]
    return value if is_plain(value) else str(value)


def is_plain(value: Any) -> bool:
    """Return whether a value is a number, a string, a boolean or ``None``."""
    return value is None or isinstance(value, bool | int | float | str)


def json_text(plain: Any, indent: int | None = None) -> str:
    """Return plain data as JSON, with null for NaN and infinity."""
    return json.dumps(_replace_not_finite(plain), ensure_ascii=False, indent=indent)


def expect(condition: bool, name: str, must: str, got: object) -> None:
    """Raise an `InputError` that names the field, what it must be and, shortened, what it was."""
    if not condition:
        raise InputError(f"`{name}` must be {must}, but got {shorten(safe_repr(got), 60)}.")


@dataclass(frozen=True)
class _Decoder:
    """Decoder of values whose shapes refer to `sizes`; if `complete`, no saved field may be missing."""

    sizes: Mapping[str, int]
    complete: bool = False

    def decode(self, hint: Any, value: Any, name: str) -> Any:  # noqa: PLR0911  one for each form of a type
        origin, inner = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self._annotated(inner[0], inner[1:], value, name)
        if origin in (Union, UnionType) and NoneType in inner:
            members = tuple([member for member in inner if member is not NoneType])
            return None if value is None else self.decode(Union[members], value, name)  # noqa: UP007
        if isinstance(hint, type) and is_dataclass(hint):
            return hint(**self.fields(hint, value, name))
        if origin in (tuple, list, Sequence):
            return self._sequence(hint, value, name)
        if origin is Mapping:
            return self._mapping(inner, value, name)
        if hint == Array:
            expect(isinstance(value, list) and all(map(is_plain, value)), name, "numbers or texts", value)
            return np.array(value, dtype=object)
        if origin is np.ndarray:
            return _array(value, name, hint, (None,))
        try:
            return convert_setting(name, value, hint)
        except SettingError as error:
            raise InputError(str(error)) from None

    def _annotated(self, hint: Any, markers: Sequence[Any], value: Any, name: str) -> Any:
        for marker in markers:
            if isinstance(marker, Shape):
                lengths = tuple(self.sizes[n] if isinstance(n, str) else n for n in marker.lengths)
                return _array(value, name, hint, lengths)
        if NOT_FINITE in markers and (value is None or isinstance(value, float)):
            number: Any = np.nan if value is None else value
            if isnan(number):
                return np.nan
        else:
            number = self.decode(hint, value, name)
        for marker in markers:
            if isinstance(marker, Range):
                expect(number in marker, name, str(marker), value)
        return number

    def fields(self, cls: Any, value: Any, name: str) -> dict[str, Any]:
        """Return the saved fields of a dataclass by name."""
        _expect_object(value, name or cls.__name__)
        decoded = {}
        for f, hint in _saved_fields(cls):
            path = f"{name}.{f.name}" if name else f.name
            if f.name in value:
                decoded[f.name] = self.decode(hint, value[f.name], path)
            elif self.complete or (f.default is MISSING and f.default_factory is MISSING):
                raise InputError(f"`{path}` is missing.")
        return decoded

    def _sequence(self, hint: Any, value: Any, name: str) -> Any:
        expect(isinstance(value, list | tuple), name, "a list", value)
        kind, inner = get_origin(hint), get_args(hint)
        if kind is tuple and inner[-1] is not ...:
            expect(len(value) == len(inner), name, f"{len(inner)} values", value)
            return tuple(self.decode(member, v, name) for member, v in zip(inner, value, strict=True))
        if inner[0] is str:  # the common case, checked quickly
            expect(all(isinstance(v, str) for v in value), name, "a list of strings", value)
            decoded = list(value)
        else:
            names = [f"{name}[{i}]" if is_dataclass(inner[0]) else name for i in range(len(value))]
            decoded = [self.decode(inner[0], v, path) for v, path in zip(value, names, strict=True)]
        return decoded if kind is list else tuple(decoded)

    def _mapping(self, hints: Sequence[Any], value: Any, name: str) -> dict[Any, Any]:
        if hints[0] is str:
            _expect_object(value, name)
            return {key: self.decode(hints[1], v, f"{name}.{key}") for key, v in value.items()}
        expect(isinstance(value, list | tuple), name, "a list of pairs", value)
        for pair in value:
            expect(isinstance(pair, list | tuple) and len(pair) == 2, name, "a list of pairs", pair)
        return {self.decode(hints[0], k, name): self.decode(hints[1], v, name) for k, v in value}


@cache
def _saved_fields(cls: Any) -> list[tuple[Any, Any]]:
    """Return the saved fields of a dataclass with their annotations."""
    hints = settings_types(cls)
    return [(f, hints[f.name]) for f in fields(cls) if f.init and f.compare]


def _encode_field(value: Any, hint: Any) -> Any:
    """Encode a field; a mapping whose keys are not strings becomes a list of pairs."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) is not Mapping or value is None:
        return encode(value)
    key_hint, inner = get_args(hint)
    if key_hint is str:
        return {key: _encode_field(entry, inner) for key, entry in value.items()}
    return [[encode(key), _encode_field(entry, inner)] for key, entry in value.items()]


def _expect_object(value: Any, name: str) -> None:
    is_object = isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    expect(is_object, name, "an object with named fields", value)


def _replace_not_finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _replace_not_finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_not_finite(element) for element in value]
    return None if isinstance(value, float) and not isfinite(value) else value


class PlainData:
    """Fields of an object returned by `json.loads`.

    Each method returns the value of one field, or raises an `InputError` that names the field, what it must
    be and what it was.
    """

    def __init__(self, content: Any, name: str) -> None:
        _expect_object(content, name)
        self._content: Mapping[str, Any] = content

    def __contains__(self, name: str) -> bool:
        return name in self._content

    def value(self, name: str, hint: Any = Any) -> Any:
        """Return the value of a field, decoded; by default unchanged."""
        if name not in self._content:
            raise InputError(f"`{name}` is missing.")
        return decode(hint, self._content[name], name)

    def mapping(self, name: str) -> dict[str, Any]:
        """Return an object with arbitrary content."""
        return dict(self.value(name, Mapping[str, Any]))

    def text(self, name: str, choices: Collection[str] | None = None) -> str:
        """Return a string, which must be one of `choices` if given."""
        text = str(self.value(name, str))
        expect(choices is None or text in choices, name, f"one of {', '.join(choices or ())}", text)
        return text

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings."""
        return tuple(self.value(name, tuple[str, ...]))

    def number(self, name: str) -> float:
        """Return a finite number."""
        return float(self.value(name, float))

    def floats(self, name: str, *shape: int | None) -> Floats:
        """Return an array of numbers of this shape (``None``: any length), with NaN for ``None``."""
        return np.asarray(self.value(name, Annotated[Floats, Shape(*shape)]))


def _array(value: Any, name: str, hint: Any, shape: tuple[int | None, ...]) -> Array:
    """Return an array of the declared type: `Floats`, with NaN for ``None``, `Ints` or `Masks`."""
    if hint == Masks:
        return _masks(value, name, shape)
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise InputError(f"`{name}` must be rows of equal length.") from error
    if not array.size and 0 in shape:
        array = array.reshape([length or 0 for length in shape])  # the shape of an empty list is ambiguous
    if len(array.shape) != len(shape) or any(
        length not in (None, n) for length, n in zip(shape, array.shape, strict=True)
    ):
        expected = " × ".join("any" if length is None else str(length) for length in shape)
        raise InputError(f"`{name}` must have shape {expected}, but has {' × '.join(map(str, array.shape))}.")
    if hint == Ints:
        expect(array.dtype.kind == "i" or not array.size, name, "whole numbers", value)
        return array.astype(np.int64)
    if array.dtype == object:
        array = np.array([np.nan if v is None else v for v in array.ravel()]).reshape(array.shape)
    expect(array.dtype.kind in "iuf" or not array.size, name, "numbers", value)
    return array.astype(np.float64)


def _masks(value: Any, name: str, shape: tuple[int | None, ...]) -> Masks:
    """Return rows of booleans, each from the indices of its true values."""
    *outer, length = shape
    assert length is not None, "a saved set does not contain the number of features"
    if outer:
        expect(isinstance(value, list | tuple), name, "a list", value)
        rows = [_masks(row, name, (length,)) for row in value]
        return np.array(rows, dtype=np.bool_).reshape(len(rows), length)
    positions = _array(value, name, Ints, (None,))
    expect(bool(((positions >= 0) & (positions < length)).all()), name, f"from 0 to {length - 1}", value)
    return np.isin(np.arange(length), positions)
