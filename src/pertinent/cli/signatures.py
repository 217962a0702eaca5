"""From a public function to the options of a command: flags, types, ranges, defaults and help.

The types and ranges come from the annotations, the help from the section ``Parameters`` of the docstring:
the first sentence about a parameter is what the terminal shows, so it must make sense there. "As in
`explain`" stands for what that function says about the parameter of the same name.
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

MAKERS = {
    "Removal": "pertinent.removals.base:removals.parse",
    "Metric": "pertinent.metrics.base:metrics.parse",
    "EarlyStopping": "pertinent.explainers.early_stopping:EarlyStopping.from_setting",
}
"""What makes an instance of a class from its text, so that a mistake is found before a model is loaded."""

_AS_IN = re.compile(r"As in `([\w.]+)`[.;,]? ?")
_SECTION = re.compile(r"(?:Parameters|Attributes)\n-+\n(.*?)(?=\n\n[A-Z]\w+\n-{3,}\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"^(\S.*)\n((?:(?: {4}.*)?(?:\n|\Z))+)", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[\w)`\"'])\. (?=[A-Z`\"])")


@dataclass(frozen=True)
class Option:
    """One flag: a parameter of a public function, or what the terminal adds to them.

    A flag whose type is a list or a mapping may be repeated. One whose value is named in brackets may be
    given without it, which is then an empty text. If the value is the name of a file or a Python object,
    `reader` is the function that reads it, as ``module:name``.
    """

    name: str
    hint: Any
    default: Any
    text: str
    metavar: str = ""
    reader: str | None = None

    @property
    def flag(self) -> str:
        """``--name``, or ``--no-name`` for what is done by default."""
        return f"--{'no-' if self.default is True else ''}{self.name.replace('_', '-')}"

    @property
    def required(self) -> bool:
        """Whether the function has no default for it."""
        return self.default is inspect.Parameter.empty

    @property
    def types(self) -> list[Any]:
        """The types that a value, or one of several values, may have."""
        found = types_in(self.hint)
        for kind in found:
            if get_origin(kind) in (list, *SEVERAL):
                found += types_in(get_args(kind)[0])
        return [kind for kind in found if kind is not NoneType]

    def is_a(self, name: str) -> bool:
        """Whether a value may be an instance of a class of this name."""
        return any(getattr(kind, "__name__", "") == name for kind in self.types)

    def add_to(self, group: argparse._ActionsContainer, *, required: bool = False) -> None:
        """Add the flag; its text is read by `read`, when the whole command line is known."""
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
        """The first sentence about the parameter, and the default."""
        first = _SENTENCE_END.split(self.text)[0].removesuffix(".")
        shown = f"{first[:1].lower()}{first[1:]}" if re.match(r"[A-Z]([a-z]| [a-z])", first) else first
        shown = f"do not {shown}" if self.default is True else shown
        unsaid = self.required or self.default in (None, (), "") or isinstance(self.default, bool)
        several = isinstance(self.default, tuple)
        default = ",".join(map(str, self.default)) if several else self.default
        return (shown if unsaid else f"{shown} ({default})").replace("%", "%%")

    def read(self, given: Any) -> Any:
        """The value that a text (or a list of texts) stands for, of the declared type and range."""
        if self._is_any(Mapping):
            return dict(_pair(self.flag, each) for each in given)
        if Path in self.types:
            return [Path(each) for each in given] if isinstance(given, list) else Path(given)
        if isinstance(given, list):
            (inner,) = (get_args(kind)[0] for kind in types_in(self.hint) if get_origin(kind) is list)
            return [read_text(self.flag, each, inner) for each in given]
        value = convert_setting(self.flag, read_text(self.flag, given, self.hint), self.hint)
        for name, maker in MAKERS.items():
            if value is not None and self.is_a(name):
                make = resolve_name(maker)
                return tuple(map(make, value)) if isinstance(value, tuple) else make(value)
        return value

    def _is_any(self, *origins: Any) -> bool:
        return any(get_origin(kind) in origins for kind in self.types)

    @property
    def _metavar(self) -> str:
        """What stands for the value in the help: named by the annotation, or by the type."""
        choices = [choice for kind in self.types if get_origin(kind) is Literal for choice in get_args(kind)]
        if name := _name_in(self.hint):
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


def options_of(function: Callable[..., Any], leave_out: Container[str] = ()) -> list[Option]:
    """An option for each parameter of a public function but those that are given in another way.

    ``**words`` stands for the parameters of `explain` that say how to explain.
    """
    found: list[Option] = []
    texts, hints = parameter_texts(function), get_type_hints(inspect.unwrap(function), include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "words":
            from pertinent.runs.request import WORDS

            known = {*inspect.signature(function).parameters}
            words = options_of(resolve_name("pertinent:explain"), leave_out)
            found += [option for option in words if option.name in WORDS.keys() - known - {"metrics"}]
        elif name not in leave_out:
            text = _for_terminal(texts.get(name, ""), hints)
            found.append(Option(name, hints.get(name, Any), parameter.default, text))
    return found


def given(args: argparse.Namespace, what: Callable[..., T], **more: Any) -> T:
    """Call something with the arguments that the command line has for it."""
    known = inspect.signature(what).parameters
    return what(**{name: value for name, value in vars(args).items() if name in known} | more)


@cache
def texts() -> dict[str, str]:
    """The sections of ``texts.txt``."""
    content = Path(__file__).with_name("texts.txt").read_text("utf-8")
    _, *parts = re.split(r"^\[(.*)\]\n", content, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def summary_of(function: Callable[..., Any]) -> list[str]:
    """The paragraphs before the first section of a docstring, without formulas."""
    text = re.split(r"\n\n[A-Z]\w+\n-{3,}\n", inspect.getdoc(function) or "")[0]
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    return [_for_terminal(each, {}) for each in paragraphs if ":math:" not in each]


def parameter_texts(thing: Any) -> dict[str, str]:
    """What a numpy-style docstring says about each parameter, with references to other functions resolved."""
    found: dict[str, str] = {}
    for section in _SECTION.findall(inspect.getdoc(thing) or ""):
        for names, text in _ENTRY.findall(section):
            about = " ".join(text.split())
            for name in (each.strip(" *") for each in names.split(",")):
                found[name] = _resolved(thing, name, about)
    return found


def _resolved(thing: Any, name: str, text: str) -> str:
    """The text, with "As in `other`" replaced by what `other` says about the same parameter."""
    reference = _AS_IN.match(text)
    if reference is None:
        return text
    own_names = getattr(inspect.unwrap(thing), "__globals__", {})
    other = own_names.get(reference[1]) or resolve_name(f"pertinent.{reference[1]}")
    return f"{parameter_texts(other).get(name, '')} {text[reference.end() :]}".strip()


def _for_terminal(text: str, parameters: Iterable[str]) -> str:
    """A text about Python in the words of the command line: commands for functions, flags for parameters."""
    text = re.sub(r"``\"?(.*?)\"?``", r"\1", text)
    commands = {f"{command.function}": f"`pertinent {name}`" for name, command in COMMANDS.items()}
    words = commands | {f"{name}()": command for name, command in commands.items()}
    words |= {name: f"--{name.replace('_', '-')}" for name in parameters}
    return re.sub(r"`([\w()]+)`", lambda found: words.get(found[1], found[1]), text)


def _name_in(hint: Any) -> str:
    """What an annotation such as ``Annotated[str, "JSON"]`` calls the value."""
    if get_origin(hint) is Annotated and isinstance(get_args(hint)[1], str):
        return str(get_args(hint)[1])
    return next(filter(None, map(_name_in, get_args(hint))), "")


def _pair(flag: str, text: str) -> tuple[str, Any]:
    """The name and the value in ``name=value``; the value may be JSON."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise SettingError(f"{flag} must be NAME=VALUE, but got {text!r}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
