"""Files with a text and a label in each record, for training."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pertinent._optional import optional
from pertinent.cli.read import Item, file_items, item_of, picked, wanted_columns
from pertinent.errors import FileError, InputError, SettingError, unknown


@dataclass(frozen=True)
class Labelled:
    """Texts with their labels, and where each of them stands."""

    texts: list[Any]
    labels: list[Any]
    where: list[str]


def labelled(file: str, args: Namespace) -> Labelled:
    """Read a file; a bad record is an error: nobody wants to train on half a file by mistake."""
    query, document = args.query_column, args.document_column
    if (query is None) != (document is None):
        raise SettingError("--query-column and --document-column go together.")
    column, pair = (args.column, args.pair_column) if query is None else (query, document)
    reads = _parquet_items if Path(file).suffix.lower() == ".parquet" else _text_items
    found = reads(file, column, pair, args.label_column)
    if not found:
        raise InputError(f"There are no examples in {file!r}.")
    for item in found:
        if item.error is not None:
            raise InputError(f"{item.where}: {item.error}") from item.error
    texts = [item.raw for item in found]
    if query is not None:
        texts = [{"query": text["text"], "document": text["text_pair"]} for text in texts]
    return Labelled(texts, [item.label for item in found], [item.where for item in found])


def _text_items(file: str, column: str | None, pair: str | None, label: str) -> list[Item]:
    return file_items(file, "text", column=column, pair=pair, label=label)


def _parquet_items(file: str, column: str | None, pair: str | None, label: str) -> list[Item]:
    parquet = optional("pyarrow.parquet")
    path = Path(file)
    if not path.is_file():
        raise FileError(f"There is no file {file!r}.")
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise FileError(f"{file!r} is damaged or not a Parquet file: {error}") from error
    names = table.column_names
    if label not in names:
        raise SettingError(f"{unknown('column', label, names)} Say which with --label-column.")
    wanted = wanted_columns([name for name in names if name != label], column, pair)

    def read(record: Mapping[str, Any]) -> Any:
        return picked(record, wanted)

    return [
        replace(item_of(f"{path.name} row {number}", read, record), label=record[label])
        for number, record in enumerate(table.to_pylist())
    ]
