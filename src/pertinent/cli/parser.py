"""The parser of the command line; the flags of a command are derived when that command is named."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, NoReturn

import pertinent
from pertinent.cli.cluster_flags import ClusterFlags
from pertinent.cli.command_output import CommandOutput
from pertinent.cli.commands import COMMANDS, ELSEWHERE, READERS, Command
from pertinent.cli.input_flags import InputFlags
from pertinent.cli.loading import ModelFlags
from pertinent.cli.signatures import Option, options_of, summary_of, texts
from pertinent.errors import SettingError, unknown

_FOR_PARAMETERS = {"id_column": "ids", "label_column": "labels"}
"""Flags for inputs that a command has if its function has the parameter."""


SET = Option(
    "set",
    list[Annotated[str, "SETTING=VALUE"]],
    (),
    "A setting of the method, such as samples=25; of one of several, METHOD.SETTING=VALUE; may be repeated",
)


class Parser(argparse.ArgumentParser):
    """Raises an error where argparse would exit; the texts of `options` are read after parsing."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings)
        self.options: list[Option] = []

    def error(self, message: str) -> NoReturn:
        """Raise instead of exiting."""
        raise SettingError(f"{message[:1].upper()}{message[1:]}. See: {self.prog} --help")

    def add_options(self, title: str, options: Sequence[Option], command: Command) -> None:
        """Add a group of flags, if there are any."""
        group = self.add_argument_group(title) if options else self
        for option in options:
            made = replace(option, default=command.defaults.get(option.name, option.default))
            made.add_to(group, required=option.name in command.required)
            self.options.append(made)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; the error for a misspelt command or option suggests the closest one.

    Values are read as the types of the parameters; `texts` keeps what was given.
    """
    name, *rest = arguments
    if name.startswith("-"):
        main_parser().parse_args(arguments)
    if rest and rest[0][:1] != "-" and any(command.startswith(f"{name} ") for command in COMMANDS):
        name, *rest = f"{name} {rest[0]}", *rest[1:]
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS)
    parser = command_parser(name)
    # Intermixed, so that texts may come before and after options.
    args, unread = parser.parse_known_intermixed_args(rest)
    if unread:
        flags = (flag for flag in parser._option_string_actions if flag.startswith("--"))  # noqa: SLF001
        raise unknown(f"argument of {name}", unread[0], flags)
    raw = dict(vars(args))
    for option in parser.options:
        given = getattr(args, option.name)
        if given is None and not option.required:
            setattr(args, option.name, option.default)
        elif isinstance(given, str | list) and given != option.default and option.reader is None:
            setattr(args, option.name, option.read(given))
    args.command, args.texts = name, raw
    return args


def main_parser() -> Parser:
    """The parser of the command line without a command."""
    parser = Parser(
        prog="pertinent",
        usage="pertinent COMMAND [options]",
        description=texts()["main"],
        epilog=f"{texts()['commands']}{texts()['exit codes']}",
    )
    parser.add_argument("--version", action="version", version=f"pertinent {pertinent.__version__}")
    return parser


def command_parser(name: str) -> Parser:
    """The parser of one command, from the signatures and docstrings of its functions."""
    command = COMMANDS[name]
    verb = resolve_name(f"pertinent.cli.{command.runs}")
    function = verb if command.function is None else getattr(pertinent, command.function)
    parameters = {} if function is verb else inspect.signature(function).parameters
    positional = {"inputs": "[TEXT …] ", "explanations": "FILE ", "files": "FILE … ", "study": "FOLDER "}
    named = (text for what, text in positional.items() if what in parameters and what not in command.without)
    parser = Parser(
        prog=f"pertinent {name}",
        usage=f"pertinent {name} {''.join(named)}[options]",
        description="\n\n".join(textwrap.fill(text, 100) for text in summary_of(function)),
        epilog=f"{texts()[name]}{texts()['exit codes']}",
    )
    parser.add_argument("--debug", action="store_true", help="log everything, and show tracebacks")
    if "explanations" in parameters:
        parser.add_argument(
            "explanations", metavar="FILE", type=Path, help="what `pertinent explain --out` wrote"
        )
    if "files" in parameters:
        about = {**ELSEWHERE, **command.elsewhere}["files"].removeprefix("FILE, ")
        parser.add_argument("files", metavar="FILE", type=Path, nargs="+", help=about)
    if "study" in parameters:
        parser.add_argument("study", metavar="FOLDER", type=Path, help="what `pertinent study create` made")
    own = [] if function is verb else options_of(function, {*ELSEWHERE, *command.elsewhere})
    own = [replace(o, **dict(zip(("metavar", "reader"), READERS.get(o.name, ()), strict=False))) for o in own]
    parser.set_defaults(parameters={option.name: option.reader for option in own})
    if {"settings", "words"} & {*parameters}:
        own.insert(1, SET)
    if "inputs" in parameters:
        unused = [flag for flag, parameter in _FOR_PARAMETERS.items() if parameter not in parameters]
        without = {*command.without, *unused}
        parser.add_options(command.titles[0], options_of(InputFlags, without), command)
    how = [option for option in own if option.name != "out"]
    parser.add_options(command.titles[1], [*how, *options_of(verb, {"args"})], command)
    if "model" in parameters:
        parser.add_options("the model", options_of(ModelFlags), command)
    if "cluster" in parameters:
        parser.add_options("a cluster", options_of(ClusterFlags), command)
    files = {option.name: option for option in options_of(CommandOutput)}
    written = [option for option in own if option.name == "out"]
    parser.add_options("output", [*written, *(files[output] for output in command.outputs)], command)
    return parser
