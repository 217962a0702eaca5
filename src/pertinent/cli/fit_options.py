"""The options of ``pertinent fit``."""

from __future__ import annotations

import argparse

from pertinent.cli import options


def add_fit(parser: argparse.ArgumentParser) -> None:
    """All of ``pertinent fit``."""
    options.add_inputs(parser, "learn from")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where the explainer goes")
    parser.add_argument(
        "--method",
        default="amortized-shapley",
        metavar="NAME",
        help="amortized-shapley, fastshap, cxplain, aim, l2x, vibi, invase, magnex or maple (%(default)s)",
    )
    parser.add_argument(
        "--label-column", metavar="NAME", help="the column with the right class or value, for cxplain"
    )
    _add_learned(parser.add_argument_group("what it learns"))
    _add_training(parser.add_argument_group("how it is trained"))
    model = parser.add_argument_group("the model")
    options.add_name(model)
    options.add_device(model)
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def _add_learned(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--teacher",
        metavar="NAME",
        help="the method that amortized-shapley learns from: a name from `pertinent methods` "
        "(shapley-sampling with samples=25)",
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help="a setting of the method or of what it learns from, such as samples=50; may be repeated",
    )
    group.add_argument(
        "--teacher-explanations",
        metavar="FILE.parquet",
        help="learn from explanations that `pertinent explain --out` or an earlier fit wrote",
    )
    group.add_argument(
        "--classes",
        choices=("predicted", "all"),
        help="the scores of the predicted class, or of all classes (all for a small network, else predicted)",
    )
    options.add_features(group)
    options.add_scale(group)
    options.add_removal(group)


def _add_training(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--validation-fraction",
        type=options.rate,
        default=0.1,
        metavar="SHARE",
        help="the share of inputs held out to measure on; the best epoch's network is kept (%(default)s)",
    )
    group.add_argument(
        "--epochs",
        type=options.positive,
        metavar="N",
        help="(10 for a transformer's encoder, 100 for a small network)",
    )
    group.add_argument(
        "--batch-size",
        type=options.positive,
        default=32,
        metavar="N",
        help="inputs in a step (%(default)s)",
    )
    group.add_argument(
        "--learning-rate",
        type=options.rate,
        metavar="X",
        help="(5e-5 for a transformer's encoder, 1e-3 for a small network)",
    )
    group.add_argument(
        "--patience",
        type=options.positive,
        default=3,
        metavar="N",
        help="stop when the held-out inputs have not improved N times (%(default)s)",
    )
    group.add_argument(
        "--precision",
        choices=("float32", "bfloat16", "float16"),
        default="float32",
        help="mixed precision (%(default)s)",
    )
    group.add_argument(
        "--seed", type=options.whole, default=0, metavar="N", help="same seed, same explainer (%(default)s)"
    )
