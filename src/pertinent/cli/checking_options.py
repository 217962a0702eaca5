"""The options of ``pertinent check``, ``stability`` and ``sanity``, which judge removals and methods."""

from __future__ import annotations

import argparse

from pertinent.cli import options


def add_check(parser: argparse.ArgumentParser) -> None:
    """All of ``pertinent check``."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="sentiment, topics, table, a folder with a text classifier, or package.module:name",
    )
    parser.add_argument(
        "data", metavar="DATA", help=".txt, .csv, .tsv or .jsonl, as in `pertinent explain --file`"
    )
    parser.add_argument(
        "--label-column", metavar="NAME", help="the column with the true class, by name or number"
    )
    parser.add_argument("--column", metavar="NAME", help="the column with the text ('text', or the only one)")
    parser.add_argument("--pair-column", metavar="NAME", help="the column with the second text of a pair")
    parser.add_argument("--limit", type=options.positive, metavar="N", help="read the first N inputs only")
    parser.add_argument(
        "--removals",
        type=options.names,
        metavar="A,B,…",
        help="names from `pertinent removals` (all that fit)",
    )
    parser.add_argument(
        "--shares",
        type=options.shares,
        default=(0.2, 0.5, 0.8),
        metavar="S,S,…",
        help="shares of features to remove (.2,.5,.8)",
    )
    parser.add_argument(
        "--draws",
        type=options.positive,
        default=10,
        metavar="N",
        help="masks per input and share (%(default)s)",
    )
    parser.add_argument(
        "--features", metavar="WHAT", help="tokens, words, sentences; columns (tokens for transformers)"
    )
    parser.add_argument(
        "--seed", type=options.whole, default=0, metavar="N", help="same seed, same answer (%(default)s)"
    )
    options.add_place(parser.add_argument_group("the model"))
    _add_result(parser, "the scores by share", "RemovalCheck")


def add_stability(parser: argparse.ArgumentParser) -> None:
    """All of ``pertinent stability``."""
    options.add_inputs(parser)
    parser.add_argument(
        "--method",
        required=True,
        metavar="NAME|FOLDER",
        help="a name from `pertinent methods`, or a folder from `pertinent fit`",
    )
    parser.add_argument(
        "--seeds",
        type=options.several,
        default=5,
        metavar="N",
        help="how many seeds: 0, 1, 2 … (%(default)s)",
    )
    options.add_how(parser, "SETTING=VALUE")
    options.add_model(parser)
    _add_result(parser, "the rank correlation by number of features", "Stability")


def add_sanity(parser: argparse.ArgumentParser) -> None:
    """All of ``pertinent sanity``."""
    options.add_inputs(parser)
    parser.add_argument("--method", required=True, metavar="NAME", help="a name from `pertinent methods`")
    parser.add_argument(
        "--layers",
        type=options.names,
        default=["cascading"],
        metavar="WHICH",
        help="cascading: all, one more at each stage; last: the last alone; or names of modules, A,B,… "
        "(cascading)",
    )
    options.add_how(parser, "SETTING=VALUE")
    options.add_seed(parser)
    options.add_model(parser)
    _add_result(parser, "the rank correlation at each stage", "Sanity")


def _add_result(parser: argparse.ArgumentParser, drawn: str, cls: str) -> None:
    """The files to write of a result that is not an explanation."""
    group = parser.add_argument_group("output")
    group.add_argument("--plot", metavar="PATH.png", help=f"draw {drawn} (.png, .svg or .pdf)")
    group.add_argument("--json", metavar="PATH", help=f"save for `pertinent.{cls}.read`; - for stdout")
    group.add_argument("--quiet", action="store_true", help="print nothing but errors")
