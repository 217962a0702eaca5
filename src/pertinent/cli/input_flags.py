"""The inputs that a command is given: texts, a file, images, table rows."""

from __future__ import annotations

import logging
from collections import UserList
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

from pertinent.cli.input_files import (
    FileColumns,
    InputRecord,
    file_records,
    json_row,
    known_kind,
    n_records,
    read_file,
    record_of,
)
from pertinent.config.settings import Count
from pertinent.errors import SettingError
from pertinent.explainers.base import explainers, learned_methods
from pertinent.files import file_exists, folder_exists
from pertinent.inputs.modality import TextColumns, modality_named
from pertinent.inputs.prompt import Prompt

logger = logging.getLogger(__name__)

IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
"""The files of a folder that are images, by the end of their names."""

_GIVE = {"inputs": "texts, or --file", "image": "--image FILE", "row": "--row JSON, or --file"}
"""What to give for the inputs of each flag."""

_KINDS = {"inputs": "text", "image": "image", "row": "table"}
"""The kind of the inputs of each flag, for a model that does not say what it reads."""


@dataclass(frozen=True)
class InputFlags:
    """The flags that name inputs, and the inputs that they name.

    Attributes
    ----------
    inputs
        One text or several.
    file
        .txt: a text on each line; .csv, .tsv, .jsonl, .parquet: a text, pair or table row in each record; a
        folder of such files, or a pattern such as 'parts/*.csv'; -: lines from stdin.
    column
        The file's column with the text ('text', or the only one).
    pair_column
        The column with the second text of a pair.
    query_column
        The column with a query, which is never removed; its document is in --column.
    id_column
        The column with a name for each input, kept with its results.
    label_column
        The column with the right class or value of each input.
    image
        An image file, or a folder of them; may be repeated.
    row
        A table row, or an input of a kind of your own, as a JSON object or array; may be repeated.
    answer
        Of a language model: the answer to explain, as it follows the text (its own greedy answer).
    rather_than
        Of a language model: another answer, with which the answer is compared.
    source
        Of a language model: a source that the text asks about; may be repeated.
    limit
        Read the first N inputs only.
    """

    inputs: list[Annotated[str, "TEXT"]] | None = None
    file: Path | None = None
    column: str | None = None
    pair_column: str | None = None
    query_column: str | None = None
    id_column: str | None = None
    label_column: str | None = None
    image: list[Annotated[Path, "FILE"]] | None = None
    row: list[Annotated[str, "JSON"]] | None = None
    answer: Annotated[str, "TEXT"] | None = None
    rather_than: Annotated[str, "TEXT"] | None = None
    source: list[Annotated[str, "TEXT"]] | None = None
    limit: Count | None = None

    @property
    def is_prompt(self) -> bool:
        """Whether texts are prompts of a language model, with an answer or with sources."""
        return self.answer is not None or self.rather_than is not None or bool(self.source)

    @property
    def flag(self) -> str | None:
        """The flag that gives inputs; ``None`` if a file does."""
        flags = [flag for flag in _GIVE if getattr(self, flag)]
        texts = self.inputs or []
        methods = [text for text in texts if text in explainers or text in learned_methods]
        if texts and (self.file is not None or (methods and len(texts) > 1)):
            beside = "--file" if self.file is not None else "other texts"
            raise SettingError(
                f"Texts cannot be given beside {beside}, but got {', '.join(map(repr, methods or texts))}: "
                "several methods are one argument, as in --methods lime,shapley."
            )
        if len(flags) > 1:
            kinds = " and ".join(_KINDS[flag] for flag in flags)
            raise SettingError(f"One kind of input at a time, but got {kinds}.")
        if not flags and self.file is None:
            raise SettingError("No input: give a text, --file, --image or --row. See --help.")
        return flags[0] if flags else None

    @property
    def kind(self) -> str | None:
        """The kind of input that is given; ``None`` where a file may hold texts or rows."""
        return None if self.flag is None else _KINDS[self.flag]

    def read(self, kind: str | None, model: str) -> list[InputRecord]:
        """The inputs, in order, for a model that reads this kind, or whatever is given."""
        self._check(kind, model)
        found = list(self._named())
        if self.file is not None:
            found += read_file(str(self.file), self._columns(kind), self.limit)
        return found[: self.limit]

    def stream(self, kind: str | None, model: str) -> Iterator[InputRecord]:
        """Like `read`, but one by one."""
        self._check(kind, model)
        records = self._named()
        if self.file is not None:
            columns = known_kind(str(self.file), self._columns(kind))
            records = chain(records, file_records(str(self.file), columns))
        return islice(records, self.limit)

    def count(self) -> int | None:
        """The number of inputs, as far as it is known before they are read; see `n_records`."""
        in_file = 0 if self.file is None else n_records(str(self.file))
        if in_file is None:
            return None
        n = in_file + len(self.inputs or ()) + len(self.row or ()) + len(self._image_files())
        return n if self.limit is None else min(n, self.limit)

    def _check(self, kind: str | None, model: str) -> None:
        """Raise an error unless the model reads this kind of input."""
        flag, modality = self.flag, None if kind is None else modality_named(kind)
        if modality is not None:
            in_files = self.file is None or modality.in_files
            if flag not in (None, modality.flag) or not in_files:
                raise SettingError(
                    f"The model {model!r} reads {modality.plural}: give {_GIVE[modality.flag]}."
                )
        if self.id_column is not None and self.file is None:
            raise SettingError("--id-column names a column of --file.")
        if self.label_column is not None and (self.file is None or flag is not None):
            raise SettingError("--label-column names a column of --file: give all inputs by --file.")

    def _columns(self, kind: str | None) -> FileColumns:
        texts = TextColumns(self.column, self.pair_column, self.query_column)
        return FileColumns(kind or self.kind, texts, self.label_column, self.id_column)

    def _named(self) -> Iterator[InputRecord]:
        """The inputs that are on the command line itself."""
        for number, text in enumerate(map(_no_file, self.inputs or ())):
            yield record_of(f"text {number}", self._prompt, text)
        for path in self._image_files():
            yield InputRecord(str(path), path)
        for number, row in enumerate(self.row or ()):
            yield record_of(f"row {number}", json_row, row)

    def _image_files(self) -> list[Path]:
        return [path for named in self.image or () for path in _images(named)]

    def _prompt(self, text: str) -> str | Prompt:
        """The text, or the prompt that it makes with an answer or sources."""
        if not self.is_prompt:
            return text
        return Prompt(text, sources=self.source or (), answer=self.answer, rather_than=self.rather_than)


def as_inputs(records: Sequence[InputRecord]) -> UserList[Any]:
    """The inputs for a public function; in place of one that could not be read, the error.

    That this is no list tells that there are several: a list of two strings may be one pair.
    """
    return UserList(record.raw if record.error is None else record.error for record in records)


def ids_of(records: Sequence[InputRecord]) -> list[str] | None:
    """The user's own name for each input, or its place where it has none; ``None`` if none has a name."""
    return [each.id or each.where for each in records] if any(each.id for each in records) else None


def _no_file(text: str) -> str:
    """The text; a warning is logged if it names a file."""
    if file_exists(Path(text)):
        logger.warning("%r is explained as a text; to explain what is in the file, use --file.", text)
    return text


def _images(path: Path) -> list[Path]:
    """The file, or all image files in a folder, by name."""
    if not folder_exists(path):
        return [path]
    found = sorted(own for own in path.iterdir() if own.suffix.lower() in IMAGES)
    if not found:
        raise SettingError(f"There are no image files in the folder {str(path)!r} ({', '.join(IMAGES)}).")
    return found
