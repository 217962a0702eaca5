"""Settings given as text, converted to the types that a dataclass declares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from pertinent.errors import SettingError

_BETWEEN = re.compile(r",|(?<=[\d.])\+")
"""Between the values of a tuple: a comma or, where that separates settings, a plus; not that of 1e+5."""


def split_settings(text: str, what: str) -> tuple[str, dict[str, str]]:
    """The name and the settings in a text such as ``name:setting=value,setting=value``."""
    name, _, rest = text.partition(":")
    settings = {}
    for pair in filter(None, rest.split(",")):
        setting, equals, value = pair.partition("=")
        if not equals or not setting:
            raise SettingError(
                f"The settings of a {what} must be like {name}:setting=value, but got {text!r}."
            )
        settings[setting] = value
    return name, settings


def read_settings(cls: Any, settings: Mapping[str, str]) -> dict[str, Any]:
    """The settings, each as the type that the class declares; unknown ones stay text."""
    hints = _hints(cls)
    return {name: _read(name, text, hints.get(name, str)) for name, text in settings.items()}


def _hints(cls: Any) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except NameError:  # a type that is not imported at run time: use the type of the default
        return {f.name: str if f.default is None else type(f.default) for f in fields(cls)}


def _read(name: str, text: str, hint: Any) -> Any:
    kinds = (hint,) if get_origin(hint) is tuple else get_args(hint) or (hint,)
    if NoneType in kinds and text.lower() == "none":
        return None
    for kind in kinds:
        if get_origin(kind) is tuple:
            return tuple(_read(name, part, get_args(kind)[0]) for part in _BETWEEN.split(text))
    if str in kinds:  # a class by name or number is told apart where the names are known
        return text
    wanted = {bool: "true or false", int: "a whole number", float: "a number"}
    for kind in wanted:
        if kind in kinds:
            try:
                return _flag(text) if kind is bool else kind(text)
            except ValueError:
                continue
    missed = [what for kind, what in wanted.items() if kind in kinds]
    if missed:
        raise SettingError(f"`{name}` must be {' or '.join(missed)}, but got {text!r}.")
    return text


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"
