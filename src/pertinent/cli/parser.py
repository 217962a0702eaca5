"""Command-line parser; the flags of a command are derived from signatures when it is used."""

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
from pertinent.cli.commands import COMMANDS, ELSEWHERE, POSITIONAL, READERS, Command
from pertinent.cli.input_flags import InputFlags
from pertinent.cli.loading import ModelFlags
from pertinent.cli.signatures import Option, options_of, summary_of, texts
from pertinent.errors import SettingError, unknown

_FOR_PARAMETERS = {"id_column": "ids", "label_column": "labels"}
"""Input flags that a command has only if its function has the parameter."""


SET = Option(
    "set",
    list[Annotated[str, "SETTING=VALUE"]],
    (),
    "A setting of the method, such as samples=25; for one of several, METHOD.SETTING=VALUE; may be repeated",
)


class Parser(argparse.ArgumentParser):
    """Parser that raises errors instead of exiting; the values of `options` are converted later."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **settings)
        self.options: list[Option] = []

    def error(self, message: str) -> NoReturn:
        """Raise a `SettingError`."""
        raise SettingError(f"{message[:1].upper()}{message[1:]}. See: {self.prog} --help")

    def add_options(self, title: str, options: Sequence[Option], command: Command) -> None:
        """Add a group of flags, unless it is empty."""
        group = self.add_argument_group(title) if options else self
        for option in options:
            option = replace(option, default=command.defaults.get(option.name, option.default))
            option.add_to(group, required=option.name in command.required)
            self.options.append(option)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line and convert values to the types of the parameters.

    The namespace also has the original strings in `texts`. The error for an unknown command or option
    suggests closest one.
    """
    name, *rest = arguments
    if name.startswith("-"):
        main_parser().parse_args(arguments)
    if rest and rest[0][:1] != "-" and any(command.startswith(f"{name} ") for command in COMMANDS):
        name, *rest = f"{name} {rest[0]}", *rest[1:]
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS)
    parser = command_parser(name)
    # Intermixed, so texts may come before and after options.
    args, unread = parser.parse_known_intermixed_args(rest)
    if unread:
        flags = (flag for flag in parser._option_string_actions if flag.startswith("--"))  # noqa: SLF001
        raise unknown(f"argument of {name}", unread[0], flags)
    raw = dict(vars(args))
    for option in parser.options:
        value = getattr(args, option.name)
        if value is None and not option.required:
            setattr(args, option.name, option.default)
        elif isinstance(value, str | list) and value != option.default and option.reader is None:
            setattr(args, option.name, option.convert(value))
    args.command, args.texts = name, raw
    return args


def main_parser() -> Parser:
    """Return the parser of the command line without a command."""
    parser = Parser(
        prog="pertinent",
        usage="pertinent COMMAND [options]",
        description=texts()["main"],
        epilog=f"{texts()['commands']}{texts()['exit codes']}",
    )
    parser.add_argument("--version", action="version", version=f"pertinent {pertinent.__version__}")
    return parser


def command_parser(name: str) -> Parser:
    """Return the parser of one command, from the signatures and docstrings of its functions."""
    command = COMMANDS[name]
    verb = resolve_name(f"pertinent.cli.{command.runs}")
    function = verb if command.function is None else getattr(pertinent, command.function)
    parameters = {} if function is verb else inspect.signature(function).parameters
    names = {*parameters} - {*command.without}
    positional = {argument: texts for argument, texts in POSITIONAL.items() if argument in names}
    parser = Parser(
        prog=f"pertinent {name}",
        usage=" ".join([f"pertinent {name}", *(metavar for metavar, _ in positional.values()), "[options]"]),
        description="\n\n".join(textwrap.fill(text, 100) for text in summary_of(function)),
        epilog=f"{texts()[name]}{texts()['exit codes']}",
    )
    parser.add_argument("--debug", action="store_true", help="log all messages, and show tracebacks")
    for argument, (metavar, about) in positional.items():
        if argument == "files":
            parser.add_argument(argument, metavar="FILE", type=Path, nargs="+", help=command.files)
        elif argument != "inputs":
            parser.add_argument(argument, metavar=metavar, type=Path, help=about)
    options = [] if function is verb else options_of(function, {*ELSEWHERE, *command.elsewhere})
    for i, option in enumerate(options):
        if option.name in READERS:
            metavar, reader = READERS[option.name]
            options[i] = replace(option, metavar=metavar, reader=reader)
    parser.set_defaults(parameters={option.name: option.reader for option in options})
    if {"settings", "words"} & {*parameters}:
        options.insert(1, SET)
    if "inputs" in parameters:
        unused = [flag for flag, parameter in _FOR_PARAMETERS.items() if parameter not in parameters]
        parser.add_options(command.titles[0], options_of(InputFlags, {*command.without, *unused}), command)
    settings = [option for option in options if option.name != "out"]
    parser.add_options(command.titles[1], [*settings, *options_of(verb, {"args"})], command)
    if "model" in parameters:
        parser.add_options("the model", options_of(ModelFlags), command)
    if "cluster" in parameters:
        parser.add_options("a cluster", options_of(ClusterFlags), command)
    files = {option.name: option for option in [*options_of(CommandOutput), *options]}
    written = [*(["out"] if "out" in parameters else []), *command.outputs]
    parser.add_options("output", [files[name] for name in written], command)
    return parser
