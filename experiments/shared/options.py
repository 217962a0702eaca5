"""Options of the command line from the keyword parameters of functions."""

from __future__ import annotations

import argparse
import inspect
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

_ENTRY = re.compile(r"^(\w[\w, ]*)\n((?: {4}.*\n?|\n)+)", re.MULTILINE)


def add_options(parser: argparse.ArgumentParser, functions: Iterable[Callable[..., Any]]) -> None:
    """Add a flag for each keyword parameter; functions share the flag of a parameter that several have.

    The type and whether a flag takes several values come from the annotation, the choices from
    ``Annotated[type, choices]``, and the help from the section ``Parameters`` of the docstring.
    """
    added: set[str] = set()
    for function in functions:
        hints, texts = get_type_hints(function, include_extras=True), parameter_texts(function)
        for parameter in keyword_parameters(function):
            if parameter.name not in added:
                added.add(parameter.name)
                _add(parser, parameter, hints[parameter.name], texts.get(parameter.name, ""))


def keyword_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the keyword-only parameters of a function."""
    parameters = inspect.signature(function).parameters.values()
    return [parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]


def parameter_texts(function: Callable[..., Any]) -> dict[str, str]:
    """Return the description of each parameter in a numpy-style docstring."""
    section = re.split(r"Parameters\n-+\n", inspect.getdoc(function) or "")[1:]
    entries = _ENTRY.findall(f"{section[0]}\n") if section else []
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}


def options_for(function: Callable[..., Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Return those options of a function that were set on the command line."""
    values = vars(arguments)
    return {p.name: values[p.name] for p in keyword_parameters(function) if p.name in values}


def changed(sizes: T, words: Sequence[str]) -> T:
    """Return a dataclass of numbers with changes such as ``texts=100``."""
    names = [field.name for field in fields(sizes)]  # type: ignore[arg-type]
    changes = dict(word.partition("=")[::2] for word in words)
    for name, value in changes.items():
        if name not in names or not value.isdigit():
            raise SystemExit(f"--sizes must be NAME=NUMBER with a name of {', '.join(names)}; got {name}.")
    return replace(sizes, **{name: int(value) for name, value in changes.items()})  # type: ignore[type-var]


def _add(parser: argparse.ArgumentParser, parameter: inspect.Parameter, hint: Any, text: str) -> None:
    choices = None
    if get_origin(hint) is Annotated:
        hint, choices = get_args(hint)
    if get_origin(hint) is UnionType:
        (hint,) = [kind for kind in get_args(hint) if kind is not NoneType]
    is_required = parameter.default is inspect.Parameter.empty
    flag = parameter.name.replace("_", "-")
    options: dict[str, Any] = {"default": argparse.SUPPRESS, "required": is_required}
    if hint is bool:
        action = "store_false" if parameter.default else "store_true"
        flag = f"no-{flag}" if parameter.default else flag
        parser.add_argument(f"--{flag}", dest=parameter.name, action=action, help=text, **options)
        return
    if get_origin(hint) is Sequence:
        (hint,) = get_args(hint)
        options["nargs"] = "*"
    if choices is not None:
        options["choices"] = tuple(choices)
        text += f" Of {', '.join(map(str, choices))}."
    default = parameter.default
    if default not in (None, inspect.Parameter.empty, math.inf, (), tuple(choices or ())):
        several = isinstance(default, Sequence) and not isinstance(default, str)
        text += f" Default: {' '.join(map(str, default)) if several else default}."
    metavar = {int: "N", float: "X", Path: "PATH"}.get(hint, "NAME")
    options |= {"type": hint, "help": text.replace("%", "%%"), "metavar": metavar}
    parser.add_argument(f"--{flag}", dest=parameter.name, **options)
