"""The options of each command, and how their values are read."""

from __future__ import annotations

import argparse


def add_inputs(parser: argparse.ArgumentParser, verb: str = "explain") -> None:
    """What to explain or to learn from."""
    group = parser.add_argument_group(f"what to {verb}")
    group.add_argument("inputs", nargs="*", metavar="TEXT", help="one text or several")
    group.add_argument(
        "--file",
        metavar="PATH",
        help=".txt: a text on each line; .csv, .tsv, .jsonl, .parquet: a text, pair or table row in each "
        "record; -: lines from stdin",
    )
    group.add_argument(
        "--column", metavar="NAME", help="the file's column with the text ('text', or the only one)"
    )
    group.add_argument("--pair-column", metavar="NAME", help="the column with the second text of a pair")
    group.add_argument(
        "--id-column", metavar="NAME", help="the column with a name for each input, kept with its explanation"
    )
    group.add_argument(
        "--image", action="append", metavar="FILE", help="an image file, or a folder of them; may be repeated"
    )
    group.add_argument(
        "--row",
        action="append",
        metavar="JSON",
        help="a table row, as a JSON object or array; may be repeated",
    )
    group.add_argument("--limit", type=positive, metavar="N", help=f"{verb} the first N inputs only")


def add_how(parser: argparse.ArgumentParser, setting: str) -> None:
    """How to explain it, but for the seed."""
    parser.add_argument(
        "--set", action="append", default=[], metavar=setting, help="a setting of the method; may be repeated"
    )
    parser.add_argument(
        "--budget",
        type=positive,
        metavar="N",
        help="how many masks each explanation may ask for; a gradient counts as two",
    )
    add_features(parser)
    parser.add_argument(
        "--target",
        metavar="NAME",
        help="the class, label or value to explain, by name or number (the predicted class)",
    )
    add_scale(parser)
    add_measured(parser)


def add_early_stopping(parser: argparse.ArgumentParser) -> None:
    """When to stop before the budget is spent."""
    parser.add_argument(
        "--early-stopping",
        metavar="RULE",
        help="'stable' to stop before the budget is spent, as soon as the order of the 5 strongest features "
        "is settled with 95%% confidence; 'stable:top=3,confidence=0.9' for other numbers",
    )


def add_by_class(parser: argparse.ArgumentParser) -> None:
    """Whether other classes are shown, too."""
    parser.add_argument(
        "--by-class",
        action="store_true",
        help="show the five most likely classes (labels, values) side by side, too, where the method scores "
        "all of them",
    )


def add_measured(parser: argparse.ArgumentParser) -> None:
    """The sparsities and the removal."""
    parser.add_argument(
        "--sparsity",
        type=shares,
        metavar="S,S,…",
        help="shares of features that count as chosen (.05,.1,.2,.5)",
    )
    add_removal(parser)


def add_features(parser: argparse._ActionsContainer) -> None:
    """What a feature is."""
    parser.add_argument(
        "--features",
        metavar="WHAT",
        help="words, tokens, sentences; patches:SIDE, pixels, superpixels:COUNT; columns",
    )


def add_scale(parser: argparse._ActionsContainer) -> None:
    """What scores are of."""
    parser.add_argument(
        "--scale",
        choices=("natural", "logit"),
        default="natural",
        help="score features by probabilities, or by logits (%(default)s)",
    )


def add_removal(parser: argparse._ActionsContainer) -> None:
    """How features are removed."""
    parser.add_argument(
        "--removal",
        metavar="NAME",
        help="how features are removed: a name from `pertinent removals`, optionally with settings, such as "
        "uniform-noise:samples=5",
    )


def add_seed(parser: argparse.ArgumentParser, seed: int | None = 0) -> None:
    """The seed."""
    default = "that of each explanation" if seed is None else seed
    parser.add_argument(
        "--seed", type=whole, default=seed, metavar="N", help=f"same seed, same answer ({default})"
    )


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """What to measure."""
    parser.add_argument(
        "--metrics",
        type=names_with_settings,
        metavar="A,B,…",
        help="names from `pertinent metrics`, optionally with settings, such as faithfulness:k=5 "
        "(sufficiency,comprehensiveness)",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """The model, and where it runs."""
    group = parser.add_argument_group("the model")
    add_name(group)
    add_place(group)


def add_name(group: argparse._ArgumentGroup) -> None:
    """Which model."""
    group.add_argument(
        "--model",
        metavar="NAME|FOLDER|MODULE:NAME",
        help="sentiment, topics, digits, table, diabetes; a folder with a transformers classifier of texts "
        "or images; or package.module:name, a model or function in a module of your own, which is imported "
        "(sentiment for texts, digits for images, table for rows)",
    )


def add_place(group: argparse._ArgumentGroup) -> None:
    """The device, precision and batch size of a model."""
    add_device(group)
    group.add_argument(
        "--batch-size",
        type=positive,
        metavar="N",
        help="tokens (transformers) or rows in a batch (found during the run)",
    )


def add_device(group: argparse._ArgumentGroup) -> None:
    """The device and precision of a model."""
    group.add_argument(
        "--device",
        default="cpu",
        metavar="NAME",
        help="where it runs: cpu, cuda, cuda:1, mps … (%(default)s)",
    )
    group.add_argument(
        "--dtype",
        default="float32",
        metavar="NAME",
        help="its precision: float32, bfloat16, float16, float64 (%(default)s)",
    )


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """The files to write."""
    group = parser.add_argument_group("output")
    group.add_argument("--html", metavar="PATH", help="write one self-contained HTML report")
    group.add_argument(
        "--out",
        metavar="PATH.parquet",
        help="save for `pertinent evaluate` and `pertinent.read`; each is kept as it is finished, "
        "and the same command continues a run that was stopped",
    )
    group.add_argument("--json", metavar="PATH", help="write JSON; - for stdout, and nothing else there")
    group.add_argument("--quiet", action="store_true", help="print nothing but errors")


def add_train(parser: argparse.ArgumentParser) -> None:
    """All of ``pertinent train``."""
    parser.add_argument(
        "model", metavar="MODEL", help="sentiment, topics, or a folder with a transformers model"
    )
    parser.add_argument("data", metavar="DATA", help="what to train on: .csv, .tsv, .jsonl, .parquet")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where the trained model goes")
    parser.add_argument(
        "--dev", metavar="FILE", help="examples to measure on; the best epoch's model is kept"
    )
    columns = parser.add_argument_group("what is in the file")
    columns.add_argument(
        "--label-column", default="label", metavar="NAME", help="the column with the label (%(default)s)"
    )
    columns.add_argument(
        "--column", metavar="NAME", help="the column with the text ('text', or the only one)"
    )
    columns.add_argument("--pair-column", metavar="NAME", help="the column with the second text of a pair")
    columns.add_argument("--query-column", metavar="NAME", help="the column with a query, never removed")
    columns.add_argument("--document-column", metavar="NAME", help="the column with the query's document")
    how = parser.add_argument_group("how to train")
    how.add_argument("--standard", action="store_true", help="whole texts only, no counterfactuals")
    how.add_argument(
        "--removal", default="attention-mask", metavar="NAME", help="what removed tokens become (%(default)s)"
    )
    how.add_argument(
        "--sparsity", type=shares, metavar="S,S,…", help="shares of tokens that are kept (.05,.1,.2,.5)"
    )
    how.add_argument("--new-head", action="store_true", help="start with a new layer for the file's labels")
    how.add_argument("--epochs", type=positive, default=3, metavar="N", help="(%(default)s)")
    how.add_argument(
        "--batch-size", type=positive, default=32, metavar="N", help="examples in a step (%(default)s)"
    )
    how.add_argument("--learning-rate", type=rate, default=1e-5, metavar="X", help="(%(default)s)")
    how.add_argument("--max-length", type=positive, metavar="N", help="truncate texts to N tokens")
    how.add_argument(
        "--patience", type=positive, metavar="N", help="stop when the dev accuracy has not improved N times"
    )
    how.add_argument(
        "--checkpoint-steps", type=positive, metavar="N", help="save a checkpoint every N steps (each epoch)"
    )
    how.add_argument("--resume", action="store_true", help="continue from the last checkpoint in FOLDER")
    how.add_argument("--seed", type=whole, default=0, metavar="N", help="same seed, same model (%(default)s)")
    how.add_argument(
        "--device",
        default="cpu",
        metavar="NAME",
        help="where it runs: cpu, cuda, cuda:1, mps … (%(default)s)",
    )
    how.add_argument(
        "--precision",
        choices=("float32", "bfloat16", "float16"),
        default="float32",
        help="mixed precision (%(default)s)",
    )
    how.add_argument("--quiet", action="store_true", help="print nothing but errors")


def names(text: str) -> list[str]:
    """Comma-separated names."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("must be at least one name")
    return names


def names_with_settings(text: str) -> list[str]:
    """Comma-separated names, each of which may have settings.

    >>> names_with_settings("purity,faithfulness:k=5,target=1")
    ['purity', 'faithfulness:k=5,target=1']
    """
    found: list[str] = []
    for part in names(text):
        if found and ":" in found[-1] and "=" in part and ":" not in part:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


def shares(text: str) -> tuple[float, ...]:
    """Comma-separated shares."""
    try:
        return tuple(float(share) for share in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be shares such as .05,.1, but got {text!r}") from None


def whole(text: str) -> int:
    """A whole number."""
    return _integer(text, 0)


def positive(text: str) -> int:
    """A whole number above 0."""
    return _integer(text, 1)


def several(text: str) -> int:
    """A whole number above 1."""
    return _integer(text, 2)


def rate(text: str) -> float:
    """A learning rate or a probability."""
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, but got {text!r}")
    return rate


def _integer(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, but got {text!r}")
    return int(text)
