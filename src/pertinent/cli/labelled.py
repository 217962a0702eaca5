"""Files with a text and a label in each record, for training."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from pertinent.cli.items import Columns
from pertinent.cli.records import file_items
from pertinent.errors import InputError, SettingError


@dataclass(frozen=True)
class Labelled:
    """Texts with their labels, and the place of each in the file."""

    texts: list[Any]
    labels: list[Any]
    where: list[str]


def labelled(file: str, args: Namespace) -> Labelled:
    """Read a file; a bad record is an error, so that nobody trains on half a file by mistake."""
    query, document = args.query_column, args.document_column
    if (query is None) != (document is None):
        raise SettingError("--query-column and --document-column go together.")
    column, pair = (args.column, args.pair_column) if query is None else (query, document)
    found = file_items(file, Columns("text", column, pair, args.label_column))
    for item in found:
        if item.error is not None:
            raise InputError(f"{item.where}: {item.error}") from item.error
    texts = [item.raw for item in found]
    if query is not None:
        texts = [{"query": text["text"], "document": text["text_pair"]} for text in texts]
    return Labelled(texts, [item.label for item in found], [item.where for item in found])
