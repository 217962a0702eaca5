"""From arguments to inputs."""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

from pertinent.cli.records import Item, item_of, json_row, records
from pertinent.errors import InputError, SettingError

logger = logging.getLogger(__name__)

_GIVE = {"text": "texts, or --file", "image": "--image FILE", "table": "--row JSON, or --file"}


def kind_given(args: Namespace) -> str | None:
    """What kind of input the arguments hold; ``None`` where a file may be texts or rows."""
    found = {"text": args.inputs, "image": args.image, "table": args.row}
    kinds = [kind for kind, values in found.items() if values]
    if len(kinds) > 1:
        raise SettingError(f"One kind of input at a time, but got {' and '.join(kinds)}.")
    if not kinds and args.file is None:
        raise SettingError(
            "Nothing to explain: give a text, --file, --image or --row. See: pertinent explain --help"
        )
    return kinds[0] if kinds else None


def items(args: Namespace, kind: str) -> list[Item]:
    """The inputs given, in order, for a model that reads this kind."""
    named = kind_given(args)
    if named not in (None, kind) or (args.file is not None and kind == "image"):
        raise SettingError(f"The model {args.model!r} reads {kind}s: give {_GIVE[kind]}.")
    found: list[Item] = []
    for number, text in enumerate(args.inputs, start=1):
        if len(text) < 256 and Path(text).is_file():
            logger.warning("%r is explained as a text; to explain what is in the file, use --file.", text)
        found.append(Item(f"text {number}", text))
    found += [Item(path, Path(path)) for path in args.image or ()]
    found += [item_of(f"row {n}", json_row, text) for n, text in enumerate(args.row or (), start=1)]
    if args.file is not None:
        found += islice(records(args.file, kind, args.column, args.pair_column), args.limit)
    if not found:
        raise InputError(f"There is nothing to explain in {args.file!r}.")
    return found[: args.limit]


def known_columns(found: Iterable[Item], names: Collection[str]) -> list[Item]:
    """The items without columns that the model does not know (a label, an id), which are logged."""
    extra: dict[str, None] = {}
    kept = []
    for item in found:
        if isinstance(item.raw, dict):
            extra |= dict.fromkeys(str(name) for name in item.raw if name not in names)
            item = replace(item, raw={k: v for k, v in item.raw.items() if k in names})
        kept.append(item)
    if extra:
        logger.warning("The model does not know these columns, so they are left out: %s.", ", ".join(extra))
    return kept
