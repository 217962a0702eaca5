"""What the command line understands, and what its ``--help`` teaches."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from pertinent import __version__
from pertinent.errors import SettingError, unknown

COMMANDS = {
    "explain": "pertinent.cli.commands:explain",
    "compare": "pertinent.cli.commands:compare",
    "evaluate": "pertinent.cli.commands:evaluate",
    "demo": "pertinent.cli.demo:demo",
    "methods": "pertinent.cli.commands:catalogue",
    "metrics": "pertinent.cli.commands:catalogue",
    "removals": "pertinent.cli.commands:catalogue",
}
"""Each command and the function that runs it."""

_EXIT_CODES = """\
exit codes:
  0    all went well
  1    some inputs failed (they are listed on stderr), the others were explained
  2    bad usage, or nothing could be explained
  130  interrupted
"""

_MAIN = """\
Finds and tests the features that a model's decision rests on: words of a text, parts of an image,
columns of a table row. Works offline on the embedded models 'sentiment', 'topics', 'digits' and
'table', or on a folder with a transformers text classifier.

  pertinent demo                                  see it at work, and get an HTML report
  pertinent explain "a slow start, then wonderful"
  pertinent compare "a slow start, then wonderful" --methods kernel-shap,lime
  pertinent explain --help                        each command has examples
"""

_EXPLAIN = """\
Explain texts, images or table rows: score every feature by what it does for the model's decision,
or search for the few features that carry it.

examples:
  pertinent explain "a slow start, then wonderful"
  pertinent explain "one text" "another text" --method parallel-local-search --sparsity .1,.2
  pertinent explain --file reviews.csv --column review --limit 50 --html report.html
  pertinent explain --image seven.png --features patches:2
  pertinent explain --file wines.csv --model table --method shapley-sampling --set samples=25
  pertinent explain "some text" --model ./my-classifier --device cuda --dtype bfloat16 --save out.parquet

Each explanation is also measured: sufficiency (how much is lost with only the chosen features;
lower is better) and comprehensiveness (how much is lost without them; higher is better).
"""

_COMPARE = """\
Explain the same inputs by several methods, measure them all, and show them side by side.

examples:
  pertinent compare "a slow start, then wonderful" --methods kernel-shap,lime,random
  pertinent compare --file reviews.txt --methods kernel-shap,parallel-local-search --budget 500
  pertinent compare --file reviews.jsonl --methods lime,shapley-sampling --set lime.samples=300 --show
  pertinent compare --file wines.csv --model table --methods kernel-shap,leave-one-out --html report.html
"""

_EVALUATE = """\
Measure explanations that `pertinent explain --save FILE.parquet` wrote, with the model they explain.

examples:
  pertinent evaluate out.parquet
  pertinent evaluate out.parquet --model topics --metrics insertion,deletion
  pertinent evaluate out.parquet --removal mask-token --html report.html
"""

_DEMO = """\
Explain four texts, one image and one table row with the embedded models, offline; print the
explanations and write them into one HTML file that needs nothing else.

examples:
  pertinent demo
  pertinent demo --html /tmp/report.html
  NO_COLOR=1 pertinent demo
"""

_CATALOGUE = """\
List the {what} there are, with the paper, and the settings with their defaults.

examples:
  pertinent {what}
  pertinent {what} | less
  {use}
"""


class Parser(argparse.ArgumentParser):
    """Raises what argparse would print and exit with."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise instead of exiting."""
        raise SettingError(f"{message[:1].upper()}{message[1:]}. See: {self.prog} --help")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; a misspelt command or option is answered with the nearest one."""
    parser, commands = make_parser()
    command = arguments[0]
    if command.startswith("-"):
        parser.parse_args(arguments)
    if command not in commands:
        raise unknown("command", command, commands)
    # Intermixed, so that texts may stand before and after options.
    args, unread = commands[command].parse_known_intermixed_args(arguments[1:])
    if unread:
        options = (o for o in commands[command]._option_string_actions if o.startswith("--"))  # noqa: SLF001
        raise unknown(f"argument of {command}", unread[0], options)
    args.command = command
    return args


def make_parser() -> tuple[Parser, dict[str, Parser]]:
    """The parser, and that of each command."""
    parser = Parser(prog="pertinent", description=_MAIN, epilog=_EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"pertinent {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)

    def command(name: str, about: str, description: str) -> Parser:
        made: Parser = commands.add_parser(name, help=about, description=description, epilog=_EXIT_CODES)
        made.add_argument("--debug", action="store_true", help="log everything, and show tracebacks")
        return made

    explain = command("explain", "explain texts, images or table rows", _EXPLAIN)
    _add_inputs(explain)
    explain.add_argument(
        "--method", default="kernel-shap", help="a name from `pertinent methods` (%(default)s)"
    )
    _add_how(explain, "SETTING=VALUE")
    explain.add_argument(
        "--no-measure", action="store_true", help="leave out sufficiency and comprehensiveness"
    )
    _add_model(explain)
    _add_outputs(explain)

    compare = command("compare", "explain by several methods, side by side", _COMPARE)
    _add_inputs(compare)
    compare.add_argument(
        "--methods", type=_names, required=True, metavar="A,B,…", help="names from `pertinent methods`"
    )
    _add_how(compare, "METHOD.SETTING=VALUE")
    _add_metrics(compare)
    compare.add_argument(
        "--show", action="store_true", help="print every explanation too, not only the table"
    )
    _add_model(compare)
    _add_outputs(compare)

    evaluate = command("evaluate", "measure explanations that were saved", _EVALUATE)
    evaluate.add_argument("file", metavar="FILE.parquet", help="what `pertinent explain --save` wrote")
    _add_metrics(evaluate)
    _add_measured(evaluate)
    _add_model(evaluate)
    _add_outputs(evaluate)

    demo = command("demo", "see it at work on the embedded models", _DEMO)
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
        command(what, f"list the {what} there are", _CATALOGUE.format(what=what, use=use))
    return parser, dict(commands.choices)


def _add_inputs(parser: Parser) -> None:
    group = parser.add_argument_group("what to explain")
    group.add_argument("inputs", nargs="*", metavar="TEXT", help="one text or several")
    group.add_argument(
        "--file",
        metavar="PATH",
        help=".txt: a text on each line; .csv, .tsv, .jsonl: a text, pair or table row in each record; "
        "-: lines from stdin",
    )
    group.add_argument(
        "--column", metavar="NAME", help="the file's column with the text ('text', or the only one)"
    )
    group.add_argument("--pair-column", metavar="NAME", help="the column with the second text of a pair")
    group.add_argument("--image", action="append", metavar="FILE", help="an image file; may be repeated")
    group.add_argument(
        "--row",
        action="append",
        metavar="JSON",
        help="a table row, as a JSON object or array; may be repeated",
    )
    group.add_argument("--limit", type=_positive, metavar="N", help="explain the first N inputs only")


def _add_how(parser: Parser, setting: str) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar=setting, help="a setting of the method; may be repeated"
    )
    parser.add_argument(
        "--budget", type=_positive, metavar="N", help="how many masks each explanation may ask for"
    )
    parser.add_argument(
        "--features",
        metavar="WHAT",
        help="words, tokens, sentences; patches:SIDE, pixels, superpixels:COUNT; columns",
    )
    parser.add_argument(
        "--target", metavar="CLASS", help="the class to explain, by name or number (the predicted)"
    )
    _add_measured(parser)


def _add_measured(parser: Parser) -> None:
    parser.add_argument(
        "--sparsity",
        type=_shares,
        metavar="S,S,…",
        help="shares of features that count as chosen (.05,.1,.2,.5)",
    )
    parser.add_argument(
        "--removal", metavar="NAME", help='what "without" means: a name from `pertinent removals`'
    )
    parser.add_argument(
        "--seed", type=_whole, default=0, metavar="N", help="same seed, same answer (%(default)s)"
    )


def _add_metrics(parser: Parser) -> None:
    parser.add_argument(
        "--metrics",
        type=_names,
        metavar="A,B,…",
        help="names from `pertinent metrics` (sufficiency,comprehensiveness)",
    )


def _add_model(parser: Parser) -> None:
    group = parser.add_argument_group("the model")
    group.add_argument(
        "--model",
        metavar="NAME|FOLDER",
        help="sentiment, topics, digits, table, or a folder with a transformers text classifier "
        "(sentiment for texts, digits for images, table for rows)",
    )
    group.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where it runs (%(default)s)")
    group.add_argument(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        default="float32",
        help="its precision (%(default)s)",
    )
    group.add_argument(
        "--batch-size",
        type=_positive,
        metavar="N",
        help="tokens (transformers) or rows in a batch (found while working)",
    )


def _add_outputs(parser: Parser) -> None:
    group = parser.add_argument_group("where the answer goes")
    group.add_argument("--html", metavar="PATH", help="write one self-contained HTML report")
    group.add_argument(
        "--save", metavar="PATH.parquet", help="save for `pertinent evaluate` and `pertinent.read`"
    )
    group.add_argument("--json", metavar="PATH", help="write JSON; - for stdout, and nothing else there")
    group.add_argument("--quiet", action="store_true", help="print nothing but errors")


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("must be at least one name")
    return names


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(share) for share in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be shares such as .05,.1, but got {text!r}") from None


def _whole(text: str) -> int:
    return _integer(text, 0)


def _positive(text: str) -> int:
    return _integer(text, 1)


def _integer(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, but got {text!r}")
    return int(text)
