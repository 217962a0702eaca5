"""Plain data (what JSON and Parquet hold) to dataclasses and back, by their type annotations.

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
from collections.abc import Collection, Iterator, Mapping, Sequence
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
"""A position, counted from 0."""


@dataclass(frozen=True)
class Shape:
    """The length of each axis of an array: a number, the name of one of the `sizes`, or any (``None``).

    A row of booleans is saved as the positions of those that are true.
    """

    lengths: tuple[int | str | None, ...]

    def __init__(self, *lengths: int | str | None) -> None:
        object.__setattr__(self, "lengths", lengths)


@overload
def decode(hint: type[T], plain: Any, name: str = ..., sizes: Mapping[str, int] | None = ...) -> T: ...
@overload
def decode(hint: Any, plain: Any, name: str = ..., sizes: Mapping[str, int] | None = ...) -> Any: ...
def decode(hint: Any, plain: Any, name: str = "", sizes: Mapping[str, int] | None = None) -> Any:
    """A value of the annotated type from plain data, which may come from a damaged file.

    A dataclass is made of an object; fields that are missing have their defaults, and other entries of the
    object are ignored. A mapping whose keys are not strings is a list of pairs. An `InputError` names the
    field, what it must be and what it was.

    Parameters
    ----------
    hint
        A dataclass or an annotation: numbers and strings, perhaps with a `Range`, ``Literal``, ``Optional``,
        tuples, mappings, arrays with a `Shape`; an `Array` without one holds numbers, strings and ``None``.
    plain
        Numbers, strings, lists and dicts.
    name
        The name of the value in error messages.
    sizes
        The lengths of axes that shapes refer to by name.
    """
    return _Decoder(sizes or {}).decoded(hint, plain, name)


def decode_fields(cls: Any, plain: Any, **sizes: int) -> dict[str, Any]:
    """Return the saved fields of a dataclass by name, each as `decode` reads it; none may be missing."""
    return _Decoder(sizes, complete=True).fields(cls, plain, "")


def encode(value: Any) -> Any:  # noqa: PLR0911  one for each form of a value
    """The inverse of `decode`: numbers, strings, lists and dicts; anything else as a string.

    Fields of dataclasses that are not compared (``compare=False``) are left out.
    """
    if isinstance(value, np.ndarray):
        if value.dtype == np.bool_:
            return [encode(row) for row in value] if value.ndim > 1 else np.flatnonzero(value).tolist()
        return encode(value.tolist()) if value.dtype == object else value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _encoded(getattr(value, f.name), hint) for f, hint in _saved(type(value))}
    if isinstance(value, Mapping):
        return {str(key): encode(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [encode(each) for each in value]
    return value if is_plain(value) else str(value)


def is_plain(value: Any) -> bool:
    """Whether a value is a number, a string, a flag or ``None``."""
    return value is None or isinstance(value, bool | int | float | str)


def json_text(plain: Any, indent: int | None = None) -> str:
    """Plain data as JSON, with null for numbers that are not finite."""
    return json.dumps(_finite(plain), ensure_ascii=False, indent=indent)


def expect(condition: bool, name: str, must: str, got: object) -> None:
    """Raise an `InputError` that names the field, what it must be and, cut short, what it was."""
    if not condition:
        raise InputError(f"`{name}` must be {must}, but got {shorten(safe_repr(got), 60)}.")


@dataclass(frozen=True)
class _Decoder:
    """Decodes values whose shapes may name some `sizes`; if `complete`, dataclasses must have all fields."""

    sizes: Mapping[str, int]
    complete: bool = False

    def decoded(self, hint: Any, value: Any, name: str) -> Any:  # noqa: PLR0911  one for each form of a type
        origin, inner = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self._annotated(inner[0], inner[1:], value, name)
        if origin in (Union, UnionType) and NoneType in inner:
            rest = [each for each in inner if each is not NoneType]
            return None if value is None else self.decoded(Union[tuple(rest)], value, name)  # noqa: UP007
        if isinstance(hint, type) and is_dataclass(hint):
            return hint(**self.fields(hint, value, name))
        if origin in (tuple, list, Sequence):
            return self._sequence(hint, value, name)
        if origin is Mapping:
            return self._mapping(inner, value, name)
        if hint == Array:
            plain = isinstance(value, list) and all(is_plain(each) for each in value)
            expect(plain, name, "numbers or texts", value)
            return np.array(value, dtype=object)
        if origin is np.ndarray:
            return _array(value, name, hint, (None,))
        try:
            return convert_setting(name, value, hint)
        except SettingError as error:
            raise InputError(str(error)) from None

    def _annotated(self, hint: Any, markers: Sequence[Any], value: Any, name: str) -> Any:
        shape = next((each for each in markers if isinstance(each, Shape)), None)
        if shape is not None:
            lengths = tuple(self.sizes[n] if isinstance(n, str) else n for n in shape.lengths)
            return _array(value, name, hint, lengths)
        may_be_any = NOT_FINITE in markers and (value is None or isinstance(value, float))
        if may_be_any and (value is None or isnan(value)):
            return np.nan
        found = value if may_be_any else self.decoded(hint, value, name)
        for each in markers:
            if isinstance(each, Range) and found not in each:
                expect(False, name, str(each), value)
        return found

    def fields(self, cls: Any, value: Any, name: str) -> dict[str, Any]:
        """The saved fields of a dataclass by name."""
        _expect_object(value, name or cls.__name__)
        found = {}
        for f, hint in _saved(cls):
            if f.name in value:
                path = f"{name}.{f.name}" if name else f.name
                found[f.name] = self.decoded(hint, value[f.name], path)
            elif self.complete or (f.default is MISSING and f.default_factory is MISSING):
                raise InputError(f"`{name}.{f.name}` is missing." if name else f"`{f.name}` is missing.")
        return found

    def _sequence(self, hint: Any, value: Any, name: str) -> Any:
        expect(isinstance(value, list | tuple), name, "a list", value)
        kind, inner = get_origin(hint), get_args(hint)
        if kind is tuple and inner[-1] is not ...:
            expect(len(value) == len(inner), name, f"{len(inner)} values", value)
            return tuple(self.decoded(own, each, name) for own, each in zip(inner, value, strict=True))
        if inner[0] is str:
            expect(all(isinstance(each, str) for each in value), name, "a list of strings", value)
            return (tuple if kind is tuple else list)(value)
        numbered = is_dataclass(inner[0])
        found = [
            self.decoded(inner[0], each, f"{name}[{i}]" if numbered else name) for i, each in enumerate(value)
        ]
        return found if kind is list else tuple(found)

    def _mapping(self, hints: Sequence[Any], value: Any, name: str) -> dict[Any, Any]:
        if hints[0] is str:
            _expect_object(value, name)
            return {key: self.decoded(hints[1], each, f"{name}.{key}") for key, each in value.items()}
        return {
            self.decoded(hints[0], key, name): self.decoded(hints[1], each, name)
            for key, each in _pairs(value, name)
        }


@cache
def _saved(cls: Any) -> list[tuple[Any, Any]]:
    """The fields of a dataclass that are saved, each with its annotation."""
    hints = settings_types(cls)
    return [(f, hints[f.name]) for f in fields(cls) if f.init and f.compare]


def _encoded(value: Any, hint: Any) -> Any:
    """A field's value; a mapping whose keys are no strings becomes a list of pairs."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) is not Mapping or value is None:
        return encode(value)
    key, inner = get_args(hint)
    if key is str:
        return {name: _encoded(each, inner) for name, each in value.items()}
    return [[encode(name), _encoded(each, inner)] for name, each in value.items()]


def _expect_object(value: Any, name: str) -> None:
    named = isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    expect(named, name, "an object with named fields", value)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


class PlainData:
    """The fields of an object, as `json.loads` gives it.

    Each method gives the value of one field, or raises an `InputError` that names the field, what it
    must be and what it was.
    """

    def __init__(self, content: Any, name: str) -> None:
        _expect_object(content, name)
        self._content: Mapping[str, Any] = content

    def __contains__(self, name: str) -> bool:
        return name in self._content

    def value(self, name: str, hint: Any = Any) -> Any:
        """The value of a field as `decode` reads it; by default as it is."""
        if name not in self._content:
            raise InputError(f"`{name}` is missing.")
        return decode(hint, self._content[name], name)

    def mapping(self, name: str) -> dict[str, Any]:
        """An object with any content."""
        return dict(self.value(name, Mapping[str, Any]))

    def text(self, name: str, known: Collection[str] | None = None) -> str:
        """A string; one of those `known`, if they are given."""
        found = str(self.value(name, str))
        expect(known is None or found in known, name, f"one of {', '.join(known or ())}", found)
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        return tuple(self.value(name, tuple[str, ...]))

    def number(self, name: str) -> float:
        """A finite number."""
        return float(self.value(name, float))

    def floats(self, name: str, *shape: int | None) -> Floats:
        """An array of numbers of this shape, ``None`` for any length; ``None`` among them becomes NaN."""
        return np.asarray(self.value(name, Annotated[Floats, Shape(*shape)]))


def _pairs(value: Any, name: str) -> Iterator[tuple[Any, Any]]:
    expect(isinstance(value, list | tuple), name, "a list of pairs", value)
    for pair in value:
        expect(isinstance(pair, list | tuple) and len(pair) == 2, name, "a list of pairs", pair)
        yield pair[0], pair[1]


def _array(value: Any, name: str, hint: Any, shape: tuple[int | None, ...]) -> Array:
    """An array of the type that the hint declares: `Floats`, `Ints` or `Masks`."""
    if hint == Masks:
        *outer, length = shape
        assert length is not None, "a saved set does not show how many features there are"
        if outer:
            expect(isinstance(value, list | tuple), name, "a list", value)
            rows = [_array(row, name, hint, (length,)) for row in value]
            return np.array(rows, dtype=np.bool_).reshape(len(rows), length)
        members = _wholes(value, name, (None,))
        inside = bool(((members >= 0) & (members < length)).all())
        expect(inside, name, f"from 0 to {length - 1}", value)
        return np.isin(np.arange(length), members)
    return _wholes(value, name, shape) if hint == Ints else _floats(value, name, shape)


def _wholes(value: Any, name: str, shape: tuple[int | None, ...]) -> Ints:
    found = _shaped(value, name, shape)
    expect(found.dtype.kind == "i" or not found.size, name, "whole numbers", value)
    return np.asarray(found.astype(np.int64))


def _floats(value: Any, name: str, shape: tuple[int | None, ...]) -> Floats:
    """An array of numbers; ``None`` among them becomes NaN."""
    found = _shaped(value, name, shape)
    if found.dtype == object:
        flat = [np.nan if each is None else each for each in found.ravel()]
        found = np.array(flat).reshape(found.shape)
    expect(found.dtype.kind in "iuf" or not found.size, name, "numbers", value)
    return np.asarray(found.astype(np.float64))


def _shaped(value: Any, name: str, shape: tuple[int | None, ...]) -> Array:
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
