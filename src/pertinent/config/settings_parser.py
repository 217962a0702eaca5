"""Parsing of settings in text form, according to the types that a dataclass declares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pertinent.config.settings import settings_types
from pertinent.errors import SettingError

_SEPARATOR = re.compile(r",|(?<=[\d.])\+")
"""Separator of tuple values: a comma or, if commas separate settings, a plus, but not in 1e+5."""

_FLAGS = {"true": True, "false": False}

_NUMBERS = {bool: "true or false", int: "a whole number", float: "a number"}

SEVERAL = (tuple, Sequence, Iterable)
"""Types with comma-separated values."""


def split_settings(text: str, what: str) -> tuple[str, dict[str, str]]:
    """Split a text such as ``name:setting=value,setting=value`` into the name and the settings."""
    name, _, rest = text.partition(":")
    settings = {}
    for pair in filter(None, rest.split(",")):
        setting, equals, value = pair.partition("=")
        if not equals or not setting:
            raise SettingError(
                f"Settings of a {what} must be written as {name}:setting=value, but got {text!r}."
            )
        settings[setting] = value
    return name, settings


def read_settings(cls: Any, settings: Mapping[str, str]) -> dict[str, Any]:
    """Convert settings to the types that the class declares; unknown settings stay text."""
    # If a type cannot be imported at run time, the types of the defaults are used.
    hints = settings_types(cls) or {
        f.name: str if f.default is None else type(f.default) for f in fields(cls)
    }
    return {name: read_text(name, text, hints.get(name, str)) for name, text in settings.items()}


def read_text(name: str, text: str, hint: Any) -> Any:
    """Convert a text to the declared type; it stays text if a string is accepted.

    >>> read_text("sparsity", ".1,.2", float | Sequence[float])
    (0.1, 0.2)
    >>> read_text("metrics", "purity,faithfulness:k=5,target=1", Sequence[str])
    ('purity', 'faithfulness:k=5,target=1')
    """
    kinds = types_in(hint)
    if NoneType in kinds and text.lower() == "none":
        return None
    if any(get_origin(kind) is Literal and text in get_args(kind) for kind in kinds):
        return text
    for kind in kinds:
        if get_origin(kind) in SEVERAL:
            inner = get_args(kind)[0]
            parts = split_names(text) if str in types_in(inner) else _SEPARATOR.split(text)
            return tuple(read_text(name, part.strip(), inner) for part in parts)
    expected = [description for kind, description in _NUMBERS.items() if kind in kinds]
    if (
        str in kinds or not expected
    ):  # class names and indices are resolved later, when the names are available
        return text
    for kind in _NUMBERS:
        if kind in kinds:
            try:
                return _FLAGS[text.lower()] if kind is bool else kind(text)
            except (KeyError, ValueError):
                continue
    raise SettingError(f"`{name}` must be {' or '.join(expected)}, but got {text!r}.")


def types_in(hint: Any) -> list[Any]:
    """Return the members of a union, without their ranges."""
    if get_origin(hint) is Annotated:
        return types_in(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return [kind for member in get_args(hint) for kind in types_in(member)]
    return [hint]


def split_names(text: str) -> list[str]:
    """Split comma-separated names, each with optional settings.

    >>> split_names("purity, faithfulness:k=5,target=1")
    ['purity', 'faithfulness:k=5,target=1']
    """
    names: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        if names and ":" in names[-1] and "=" in part and ":" not in part:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names
