"""The parser of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from pertinent import __version__
from pertinent.cli import attack_options, checking_options, fit_options, help_texts, options
from pertinent.errors import SettingError, unknown

COMMANDS = {
    "explain": "pertinent.cli.commands:explain",
    "compare": "pertinent.cli.commands:compare",
    "evaluate": "pertinent.cli.commands:evaluate",
    "check": "pertinent.cli.check:check",
    "stability": "pertinent.cli.stability:stability",
    "sanity": "pertinent.cli.sanity:sanity",
    "attack": "pertinent.cli.attack:attack",
    "train": "pertinent.cli.train:train",
    "fit": "pertinent.cli.fit:fit",
    "demo": "pertinent.cli.demo:demo",
    "methods": "pertinent.cli.commands:catalogue",
    "metrics": "pertinent.cli.commands:catalogue",
    "removals": "pertinent.cli.commands:catalogue",
}
"""Each command and the function that runs it."""


class Parser(argparse.ArgumentParser):
    """Raises an error where argparse would print it and exit."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise instead of exiting."""
        raise SettingError(f"{message[:1].upper()}{message[1:]}. See: {self.prog} --help")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; the error for a misspelt command or option suggests the closest one."""
    parser, commands = make_parser()
    command = arguments[0]
    if command.startswith("-"):
        parser.parse_args(arguments)
    if command not in commands:
        raise unknown("command", command, commands)
    # Intermixed, so that texts may come before and after options.
    args, unread = commands[command].parse_known_intermixed_args(arguments[1:])
    if unread:
        options = (o for o in commands[command]._option_string_actions if o.startswith("--"))  # noqa: SLF001
        raise unknown(f"argument of {command}", unread[0], options)
    args.command = command
    return args


def make_parser() -> tuple[Parser, dict[str, Parser]]:
    """The main parser, and the parser of each command."""
    parser = Parser(prog="pertinent", description=help_texts.MAIN, epilog=help_texts.EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"pertinent {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)

    def command(name: str, about: str, description: str) -> Parser:
        made: Parser = commands.add_parser(
            name, help=about, description=description, epilog=help_texts.EXIT_CODES
        )
        made.add_argument("--debug", action="store_true", help="log everything, and show tracebacks")
        return made

    explain = command("explain", "explain texts, images or table rows", help_texts.EXPLAIN)
    options.add_inputs(explain)
    explain.add_argument(
        "--method",
        default="shapley",
        metavar="NAME|FOLDER",
        help="a name from `pertinent methods`, or a folder from `pertinent fit` (%(default)s)",
    )
    options.add_how(explain, "SETTING=VALUE")
    options.add_early_stopping(explain)
    options.add_seed(explain)
    explain.add_argument(
        "--no-measure", action="store_true", help="leave out sufficiency and comprehensiveness"
    )
    options.add_by_class(explain)
    options.add_model(explain)
    options.add_outputs(explain)

    compare = command("compare", "explain by several methods, side by side", help_texts.COMPARE)
    options.add_inputs(compare)
    compare.add_argument(
        "--methods",
        type=options.names,
        required=True,
        metavar="A,B,…",
        help="names from `pertinent methods`, or folders from `pertinent fit`",
    )
    options.add_how(compare, "METHOD.SETTING=VALUE")
    options.add_seed(compare)
    options.add_metrics(compare)
    compare.add_argument(
        "--show", action="store_true", help="print every explanation too, not only the table"
    )
    options.add_model(compare)
    options.add_outputs(compare)

    evaluate = command("evaluate", "measure explanations that were saved", help_texts.EVALUATE)
    evaluate.add_argument("file", metavar="FILE.parquet", help="what `pertinent explain --out` wrote")
    options.add_metrics(evaluate)
    options.add_measured(evaluate)
    options.add_seed(evaluate, None)
    options.add_model(evaluate)
    options.add_outputs(evaluate)

    checking_options.add_check(command("check", "find out which removal suits a model", help_texts.CHECK))

    checking_options.add_stability(
        command("stability", "find out how much explanations depend on the seed", help_texts.STABILITY)
    )

    checking_options.add_sanity(
        command("sanity", "find out whether explanations depend on what the model learned", help_texts.SANITY)
    )

    attack_options.add_attack(
        command("attack", "find out how little must change for another decision", help_texts.ATTACK)
    )

    options.add_train(
        command("train", "fine-tune a text classifier, with tokens removed too", help_texts.TRAIN)
    )

    fit_options.add_fit(command("fit", "fit an explainer that answers in one pass", help_texts.FIT))

    demo = command("demo", "explain examples with the embedded models", help_texts.DEMO)
    demo.add_argument(
        "--html",
        default="pertinent-report.html",
        metavar="PATH",
        help="where to write the report (%(default)s)",
    )
    uses = {
        "methods": 'pertinent explain --method lime --set samples=300 --set kernel_width=10 "some text"',
        "metrics": "pertinent evaluate out.parquet --metrics insertion,deletion",
        "removals": 'pertinent explain --removal mask-token "some text"',
    }
    for what, use in uses.items():
        command(what, f"list all {what}", help_texts.CATALOGUE.format(what=what, use=use))
    return parser, dict(commands.choices)
