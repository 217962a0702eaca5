"""The options of ``pertinent attack``."""

from __future__ import annotations

import argparse

from pertinent.cli import options


def add_attack(parser: argparse.ArgumentParser) -> None:
    """All of ``pertinent attack``."""
    options.add_inputs(parser, "attack")
    options.add_features(parser)
    group = parser.add_argument_group("which features may change (all)")
    group.add_argument(
        "--only",
        action="append",
        type=options.names,
        metavar="A,B,…",
        help="a set of features, by name or number from 0; may be repeated, for several sets",
    )
    group.add_argument(
        "--top", type=options.positive, metavar="K", help="the K most important features by --method"
    )
    group.add_argument("--method", metavar="NAME", help="with --top: a name from `pertinent methods`")
    group.add_argument(
        "--set", action="append", default=[], metavar="SETTING=VALUE", help="with --method: a setting of it"
    )
    how = parser.add_argument_group("how to attack")
    how.add_argument("--toward", metavar="NAME", help="the class to reach, by name or number (any other)")
    how.add_argument("--norm", choices=("l2", "linf"), default="l2", help="of the change (%(default)s)")
    how.add_argument(
        "--algorithm",
        choices=("auto", "projection", "pgd", "decision"),
        default="auto",
        help="auto: projection where the model has gradients, else decision (%(default)s)",
    )
    how.add_argument(
        "--steps", type=options.positive, metavar="N", help="steps at most (as many as suit the algorithm)"
    )
    options.add_seed(parser)
    options.add_model(parser)
    group = parser.add_argument_group("output")
    group.add_argument("--json", metavar="PATH", help="write JSON; - for stdout, and nothing else there")
    group.add_argument("--quiet", action="store_true", help="print nothing but errors")
