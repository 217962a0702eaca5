"""Settings and arguments, validated against their declared types and ranges.

>>> @checked
... def draw(samples: Count, share: Share = 0.5) -> int:
...     return samples
>>> draw(10.0)
10
>>> draw("10")
Traceback (most recent call last):
pertinent.errors.SettingError: `samples` must be a whole number, but got '10'.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from functools import cache, wraps
from inspect import signature
from math import inf, isfinite
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeAlias, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as type_hints

import numpy as np

from pertinent.errors import SettingError, require, safe_repr, unknown
from pertinent.printable import shorten

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """The numbers that a setting may take; `above` and `below` exclude the bound itself.

    >>> str(Range(above=0, at_most=1))
    'above 0 and at most 1'
    """

    at_least: float = -inf
    above: float = -inf
    at_most: float = inf
    below: float = inf

    def __contains__(self, value: float) -> bool:
        return self.at_least <= value <= self.at_most and self.above < value < self.below

    def __str__(self) -> str:
        bounds = [f"{name.replace('_', ' ')} {bound:g}" for name, bound in vars(self).items()]
        return " and ".join(bound for bound in bounds if "inf" not in bound)


Count: TypeAlias = Annotated[int, Range(at_least=1), Range(at_most=10**9)]
Seed: TypeAlias = Annotated[int, Range(at_least=0), Range(below=2**63)]
Positive: TypeAlias = Annotated[float, Range(above=0)]
NotNegative: TypeAlias = Annotated[float, Range(at_least=0)]
Share: TypeAlias = Annotated[float, Range(above=0, at_most=1)]
ShareOrZero: TypeAlias = Annotated[float, Range(at_least=0, at_most=1)]
ProperShare: TypeAlias = Annotated[float, Range(above=0, below=1)]

_NUMBERS = {bool: "True or False", int: "a whole number", float: "a number"}
_WORDS = {**_NUMBERS, str: "a string", NoneType: "None", Any: "a value"}


@dataclass(frozen=True)
class Settings:
    """Base class of objects with settings, which the constructor validates and converts."""

    def __post_init__(self) -> None:
        """Check the settings; subclasses with additional checks call this first."""
        cls: Any = type(self)
        hints = settings_types(cls)
        for f in fields(self):
            if f.init and f.name in hints:
                value = getattr(self, f.name)
                object.__setattr__(self, f.name, convert_setting(f.name, value, hints[f.name]))


@cache
def settings_types(cls: Any) -> dict[str, Any]:
    """Return the declared type of each setting; empty if a type cannot be imported at run time."""
    try:
        return type_hints(cls, include_extras=True)
    except NameError:
        return {}


def setting_names(dataclass_or_instance: Any) -> list[str]:
    """Return the setting names of a dataclass or an instance of one."""
    return [f.name for f in fields(dataclass_or_instance) if f.init and f.metadata.get("setting", True)]


def check_settings(
    name: str, thing: Any, settings: Mapping[str, Any], also_known: Sequence[str] = ()
) -> None:
    """Raise a `SettingError` for a setting that the dataclass `thing`, called `name`, does not have.

    The error suggests the closest setting, or one of the names in `also_known`.
    """
    for setting in settings:
        if setting not in setting_names(thing):
            raise unknown(f"setting of {name}", setting, [*setting_names(thing), *also_known])


def replace_settings(thing: T, settings: Mapping[str, Any], *, also_known: Sequence[str] = ()) -> T:
    """Return a copy of `thing` with some settings changed; an unknown setting raises a `SettingError`."""
    check_settings(str(getattr(thing, "name", type(thing).__name__)), thing, settings, also_known)
    changed: T = replace(thing, **settings)  # type: ignore[type-var]
    return changed


def changed_settings(thing: Any) -> dict[str, Any]:
    """Return the settings of a dataclass instance that differ from their defaults."""
    changed = {}
    for f in fields(thing):
        value, default = getattr(thing, f.name), field_default(f)
        if f.init and (type(value) is not type(default) or value != default):
            changed[f.name] = value
    return changed


def field_default(field: Field[Any]) -> Any:
    """Return the default of a dataclass field."""
    return field.default_factory() if field.default_factory is not MISSING else field.default


def labels(named: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Return labels for names with settings: the name plus the settings that differ between equal names.

    >>> labels([("lime", {"samples": 5, "width": 2}), ("lime", {"width": 2}), ("random", {"seeds": 1})])
    ['lime samples=5', 'lime', 'random']
    """
    variants: dict[str, list[Mapping[str, Any]]] = {}
    for name, settings in named:
        variants.setdefault(name, []).append(settings)

    def differs(name: str, setting: str) -> bool:
        return len({repr(settings.get(setting)) for settings in variants[name]}) > 1

    return [
        " ".join([name, *(f"{k}={v}" for k, v in settings.items() if differs(name, k))])
        for name, settings in named
    ]


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to check its arguments against their declared types and ranges."""
    declared = signature(function)
    named = [name for name, p in declared.parameters.items() if p.kind is not p.VAR_KEYWORD]

    @cache
    def hints() -> dict[str, Any]:
        """Return the parameter types; called late, because types may be defined after the function."""
        annotations = {name: hint for name, hint in function.__annotations__.items() if name in named}
        annotated = SimpleNamespace(__annotations__=annotations)
        return type_hints(annotated, vars(sys.modules[function.__module__]), None, True)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        bound = declared.bind(*args, **kwargs)
        for name in bound.arguments.keys() & hints().keys():
            bound.arguments[name] = convert_setting(name, bound.arguments[name], hints()[name])
        return function(*bound.args, **bound.kwargs)

    return call


def convert_setting(name: str, value: Any, hint: Any) -> Any:
    """Convert the value to the declared type, or raise a `SettingError` that names the setting."""
    try:
        return _convert(name, value, hint)
    except _WrongTypeError:
        got = shorten(safe_repr(value), 60)
        raise SettingError(f"`{name}` must be {_describe(hint)}, but got {got}.") from None


class _WrongTypeError(Exception):
    """The value does not have the declared type."""


def _convert(name: str, value: Any, hint: Any) -> Any:  # noqa: PLR0911  one for each form of a type
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _convert_number_in_range(name, value, inner)
    if origin in (Union, UnionType):
        return _convert_to_union(name, value, inner)
    if origin is Literal:
        if isinstance(value, str) and value in inner:
            return value
        raise unknown(name, value, inner)
    if origin in (tuple, Sequence):
        return _convert_sequence(name, value, hint)
    if origin is Mapping:
        _require_type(isinstance(value, Mapping))
        return {_convert(name, k, inner[0]): _convert(name, v, inner[1]) for k, v in value.items()}
    if hint in _NUMBERS:
        return _convert_number(value, hint)
    if origin is Callable:
        _require_type(callable(value))
    elif isinstance(hint, type) and origin is None and hint is not Any:
        _require_type(isinstance(value, hint))
    return value


def _convert_number_in_range(name: str, value: Any, annotated: Sequence[Any]) -> Any:
    number = _convert(name, value, annotated[0])
    for bounds in annotated[1:]:
        if isinstance(bounds, Range):
            require(number in bounds, name, str(bounds), value)
    return number


def _require_type(condition: bool) -> None:
    if not condition:
        raise _WrongTypeError


def _convert_to_union(name: str, value: Any, hints: Sequence[Any]) -> Any:
    """Convert the value to the first of several types that accepts it."""
    if value is None and NoneType in hints:  # an earlier `Literal` would reject it
        return None
    for hint in hints:
        try:
            return _convert(name, value, hint)
        except _WrongTypeError:
            continue
    raise _WrongTypeError


def _convert_sequence(name: str, value: Any, hint: Any) -> Any:
    """Convert to a tuple of values of one type; a fixed-length tuple is returned unchanged."""
    _require_type(hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping | set))
    _require_type(getattr(value, "ndim", 1) == 1)
    inner = get_args(hint)
    if get_origin(hint) is tuple and inner[-1] is not ...:
        return value
    return tuple(_convert(name, element, inner[0]) for element in value)


def _convert_number(value: Any, kind: type) -> Any:
    """Convert a Python or numpy number to `kind`; booleans and infinity are rejected."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or kind is bool:
        _require_type(isinstance(value, bool) and kind is bool)
        return value
    _require_type(isinstance(value, int) or (isinstance(value, float) and isfinite(value)))
    _require_type(kind is not int or value % 1 == 0)
    try:
        return kind(value)
    except OverflowError:  # an integer beyond the largest float
        raise _WrongTypeError from None


def _describe(hint: Any) -> str:
    """Return a type in words.

    >>> _describe(Share | Sequence[Share] | None)
    'a number, several numbers or None'
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _describe(inner[0])
    if origin in (Union, UnionType):
        members = list(dict.fromkeys(map(_describe, inner)))
        return f"{', '.join(members[:-1])} or {members[-1]}"
    if origin in (tuple, Sequence):
        return "several " + _describe(inner[0]).partition(" ")[2].removesuffix("s") + "s"
    if origin is Mapping:
        return "a mapping"
    if origin is Callable:
        return "a function"
    name = str(getattr(hint, "__name__", hint))
    return _WORDS.get(hint, f"a{'n' if name[0] in 'AEIOU' else ''} {name}")
