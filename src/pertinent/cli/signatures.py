"""Command-line options from the signature of a public function: flags, types, ranges, defaults and help.

Types and ranges come from the annotations, the help from the ``Parameters`` section of the docstring: the
first sentence about the parameter. "As in `explain`" is replaced by that function's text about the parameter
of the same name.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pertinent.cli.commands import COMMANDS
from pertinent.config.settings import convert_setting
from pertinent.config.settings_parser import SEVERAL, read_text, types_in
from pertinent.errors import SettingError

T = TypeVar("T")

_AS_IN = re.compile(r"As in `([\w.]+)`[.;,]? ?")
_SECTION = re.compile(r"(?:Parameters|Attributes)\n-+\n(.*?)(?=\n\n[A-Z]\w+\n-{3,}\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"^(\S.*)\n((?:(?: {4}.*)?(?:\n|\Z))+)", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[\w)`\"'])\. (?=[A-Z`\"])")


@dataclass(frozen=True)
class Option:
    """One flag of a command.

    A flag for a list or mapping may be repeated. A metavar in brackets means that the value is optional, and
    empty by default. If the value is the name of a file or a Python object, `reader` is the function that
    reads it, as ``module:name``.
    """

    name: str
    hint: Any
    default: Any
    text: str
    metavar: str = ""
    reader: str | None = None

    @property
    def flag(self) -> str:
        """Return ``--name``, or ``--no-name`` if the default is ``True``."""
        return f"--{'no-' if self.default is True else ''}{self.name.replace('_', '-')}"

    @property
    def required(self) -> bool:
        """Return whether the function has no default for it."""
        return self.default is inspect.Parameter.empty

    @property
    def types(self) -> list[Any]:
        """Return the types that a value, or one of several values, may have."""
        types = types_in(self.hint)
        for kind in types:
            if get_origin(kind) in (list, *SEVERAL):
                types += types_in(get_args(kind)[0])
        return [kind for kind in types if kind is not NoneType]

    def is_a(self, name: str) -> bool:
        """Return whether a value may be an instance of a class with this name."""
        return any(getattr(kind, "__name__", "") == name for kind in self.types)

    def add_to(self, group: argparse._ActionsContainer, *, required: bool = False) -> None:
        """Add the flag to a group; its value is converted later by `convert`."""
        repeated = self._is_any(list, Mapping)
        if self.name == "inputs":
            group.add_argument(self.name, nargs="*", metavar=self._metavar, help=self.help)
        elif bool in self.types:
            action = "store_false" if self.default is True else "store_true"
            group.add_argument(self.flag, dest=self.name, action=action, help=self.help)
        else:
            group.add_argument(
                self.flag,
                dest=self.name,
                action="append" if repeated else "store",
                **({"nargs": "?", "const": ""} if self._metavar.startswith("[") else {}),
                default=None if self.required or repeated else self.default,
                required=required or self.required,
                metavar=self.metavar or self._metavar.strip("[]"),
                help=self.help,
            )

    @property
    def help(self) -> str:
        """Return the first sentence about the parameter, and the default."""
        text = _SENTENCE_END.split(self.text)[0].removesuffix(".")
        if re.match(r"[A-Z]([a-z]| [a-z])", text):
            text = f"{text[:1].lower()}{text[1:]}"
        text = f"do not {text}" if self.default is True else text
        if not (self.required or self.default in (None, (), "") or isinstance(self.default, bool)):
            is_tuple = isinstance(self.default, tuple)
            text += f" ({','.join(map(str, self.default)) if is_tuple else self.default})"
        return text.replace("%", "%%")

    def convert(self, text: Any) -> Any:
        """Convert a string, or a list of strings, to the declared type, and check its range."""
        if self._is_any(Mapping):
            return dict(_parse_pair(self.flag, each) for each in text)
        if Path in self.types:
            return [Path(each) for each in text] if isinstance(text, list) else Path(text)
        if isinstance(text, list):
            (inner,) = (get_args(kind)[0] for kind in types_in(self.hint) if get_origin(kind) is list)
            return [read_text(self.flag, each, inner) for each in text]
        return convert_setting(self.flag, read_text(self.flag, text, self.hint), self.hint)

    def _is_any(self, *origins: Any) -> bool:
        return any(get_origin(kind) in origins for kind in self.types)

    @property
    def _metavar(self) -> str:
        """Return the value's placeholder in the help, from the annotation or the type."""
        choices = [choice for kind in self.types if get_origin(kind) is Literal for choice in get_args(kind)]
        if name := _annotated_name(self.hint):
            return name
        if self._is_any(Mapping):
            return "NAME=VALUE"
        if self._is_any(*SEVERAL):
            return "X,X,…" if float in self.types else "A,B,…"
        if choices:
            return f"{{{','.join(choices)}}}"
        for kind, name in {Path: "PATH", int: "N", float: "X"}.items():
            if kind in self.types:
                return name
        return "NAME|FOLDER" if self.is_a("Explainer") else "NAME"


def options_of(function: Callable[..., Any], omit: Container[str] = ()) -> list[Option]:
    """Return an option for each parameter of a function, except for those to `omit`.

    ``**words`` represents the parameters of `explain` that belong to a request.
    """
    options: list[Option] = []
    texts, hints = parameter_texts(function), get_type_hints(inspect.unwrap(function), include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "words":
            from pertinent.runs.request import WORDS

            parameters = {*inspect.signature(function).parameters}
            words = options_of(resolve_name("pertinent:explain"), omit)
            options += [option for option in words if option.name in WORDS.keys() - parameters - {"metrics"}]
        elif name not in omit:
            text = _for_terminal(texts.get(name, ""), hints)
            options.append(Option(name, hints.get(name, Any), parameter.default, text))
    return options


def call_with(args: argparse.Namespace, function: Callable[..., T], **more: Any) -> T:
    """Call a function with the parsed arguments that it has as parameters."""
    parameters = inspect.signature(function).parameters
    return function(**{name: value for name, value in vars(args).items() if name in parameters} | more)


@cache
def texts() -> dict[str, str]:
    """Return the sections of ``texts.txt``."""
    content = Path(__file__).with_name("texts.txt").read_text("utf-8")
    _, *parts = re.split(r"^\[(.*)\]\n", content, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def summary_of(function: Callable[..., Any]) -> list[str]:
    """Return the paragraphs before the first section of a docstring, without formulas."""
    text = re.split(r"\n\n[A-Z]\w+\n-{3,}\n", inspect.getdoc(function) or "")[0]
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    return [_for_terminal(each, {}) for each in paragraphs if ":math:" not in each]


def parameter_texts(thing: Any) -> dict[str, str]:
    """Return the text about each parameter in a numpy-style docstring, with references resolved."""
    documented: dict[str, str] = {}
    for section in _SECTION.findall(inspect.getdoc(thing) or ""):
        for names, text in _ENTRY.findall(section):
            about = " ".join(text.split())
            for name in (each.strip(" *") for each in names.split(",")):
                documented[name] = _resolve_references(thing, name, about)
    return documented


def _resolve_references(thing: Any, name: str, text: str) -> str:
    """Replace "As in `other`" by the text of `other` about the parameter of the same name."""
    reference = _AS_IN.match(text)
    if reference is None:
        return text
    names = getattr(inspect.unwrap(thing), "__globals__", {})
    other = names.get(reference[1]) or resolve_name(f"pertinent.{reference[1]}")
    rest = text[reference.end() :]
    return f"{parameter_texts(other).get(name, '')} {rest[:1].upper()}{rest[1:]}".strip()


def _for_terminal(text: str, parameters: Iterable[str]) -> str:
    """Convert a text about Python to the command line: commands for functions, flags for parameters."""
    text = re.sub(r"``\"?(.*?)\"?``", r"\1", text)
    commands = {f"{command.function}": f"`pertinent {name}`" for name, command in COMMANDS.items()}
    words = commands | {f"{name}()": command for name, command in commands.items()}
    words |= {name: f"--{name.replace('_', '-')}" for name in parameters}
    return re.sub(r"`([\w()]+)`", lambda match: words.get(match[1], match[1]), text)


def _annotated_name(hint: Any) -> str:
    """Return the name in an annotation such as ``Annotated[str, "JSON"]``."""
    if get_origin(hint) is Annotated and isinstance(get_args(hint)[1], str):
        return str(get_args(hint)[1])
    return next(filter(None, map(_annotated_name, get_args(hint))), "")


def _parse_pair(flag: str, text: str) -> tuple[str, Any]:
    """Return the name and the value in ``name=value``; the value may be JSON."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise SettingError(f"{flag} must be NAME=VALUE, but got {text!r}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
