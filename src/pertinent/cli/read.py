"""From arguments to inputs."""

from __future__ import annotations

import logging
from argparse import Namespace
from pathlib import Path

from pertinent.cli.items import Columns, Item
from pertinent.cli.records import file_items, item_of, json_row
from pertinent.errors import SettingError

logger = logging.getLogger(__name__)

IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
"""The files of a folder that are images, by the end of their names."""

_GIVE = {"text": "texts, or --file", "image": "--image FILE", "table": "--row JSON, or --file"}


def kind_given(args: Namespace) -> str | None:
    """What kind of input the arguments hold; ``None`` where a file may be texts or rows."""
    found = {"text": args.inputs, "image": args.image, "table": args.row}
    kinds = [kind for kind, values in found.items() if values]
    if len(kinds) > 1:
        raise SettingError(f"One kind of input at a time, but got {' and '.join(kinds)}.")
    if not kinds and args.file is None:
        raise SettingError(
            f"No input: give a text, --file, --image or --row. See: pertinent {args.command} --help"
        )
    return kinds[0] if kinds else None


def items(args: Namespace, kind: str | None) -> list[Item]:
    """The inputs given, in order, for a model that reads this kind, or whatever is given."""
    named = kind_given(args)
    if kind is not None and (named not in (None, kind) or (args.file is not None and kind == "image")):
        raise SettingError(f"The model {args.model!r} reads {kind}s: give {_GIVE[kind]}.")
    if args.id_column is not None and args.file is None:
        raise SettingError("--id-column names a column of --file.")
    found: list[Item] = []
    for number, text in enumerate(args.inputs, start=1):
        if len(text) < 256 and Path(text).is_file():
            logger.warning("%r is explained as a text; to explain what is in the file, use --file.", text)
        found.append(Item(f"text {number}", text))
    found += [Item(str(path), path) for given in args.image or () for path in _images(Path(given))]
    found += [item_of(f"row {n}", json_row, text) for n, text in enumerate(args.row or (), start=1)]
    if args.file is not None:
        columns = Columns(kind or named, args.column, args.pair_column, id=args.id_column)
        found += file_items(args.file, columns, args.limit)
    return found[: args.limit]


def _images(path: Path) -> list[Path]:
    """The file, or all image files in a folder, by name."""
    if not path.is_dir():
        return [path]
    found = sorted(own for own in path.iterdir() if own.suffix.lower() in IMAGES)
    if not found:
        raise SettingError(f"There are no image files in the folder {str(path)!r} ({', '.join(IMAGES)}).")
    return found
