"""Input flags of the command line: texts, a file, images, table rows."""

from __future__ import annotations

import logging
from collections import UserList
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pertinent.cli.input_files import (
    FileColumns,
    InputRecord,
    file_records,
    json_row,
    n_records,
    parse_record,
)
from pertinent.config.settings import Count
from pertinent.errors import InputError, SettingError
from pertinent.explainers.base import explainers, learned_methods
from pertinent.files import file_exists, folder_exists
from pertinent.inputs.fixed_parts import NONE
from pertinent.inputs.modality import TextColumns, modality_named
from pertinent.inputs.prompt import Prompt

logger = logging.getLogger(__name__)

IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
"""Suffixes of image files in a folder."""

_GIVE = {"inputs": "texts, or --file", "image": "--image FILE", "row": "--row JSON, or --file"}
"""How to pass the inputs of each flag, for error messages."""

_KINDS = {"inputs": "text", "image": "image", "row": "table"}
"""Kind of the inputs of each flag, for models that do not declare their kind."""


@dataclass(frozen=True)
class InputFlags:
    """Flags that specify the inputs.

    Attributes
    ----------
    inputs
        One or more texts.
    file
        A file of inputs, a folder of files, a pattern such as 'parts/*.csv', or - for stdin: .txt has one
        text per line; .csv, .tsv, .jsonl and .parquet have one text, pair, prompt or table row per record.
        Prompts have a column text or messages, and may have sources, answer, rather_than, span and fixed.
    column
        The column of --file with the text ('text', or the only column).
    pair_column
        The column with the second text of a pair.
    query_column
        The column with a query, which is never removed; --column names the column with its document.
    id_column
        The column with an id for each input, which is stored with its results.
    label_column
        The column with the correct class or value of each input.
    image
        An image file, or a folder of image files; may be repeated.
    row
        A table row, or an input of a custom kind, as a JSON object or array; may be repeated.
    answer
        For a language model: the answer to explain, as a continuation of the text (the model's greedy
        answer).
    rather_than
        For a language model: another answer to compare the answer with.
    source
        For a language model: a source that the text refers to; may be repeated.
    fixed
        For a language model: a part of the text that is never removed, or 'none'; may be repeated (the
        question at the end).
    chat
        For a language model: whether text and sources are sent through the chat template (if there are
        sources).
    limit
        Read only the first N inputs.
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
    fixed: list[Annotated[str, "TEXT"]] | None = None
    chat: Literal["yes", "no"] | None = None
    limit: Count | None = None

    @property
    def is_prompt(self) -> bool:
        """Return whether the texts are prompts for a language model with settings."""
        settings = self.answer, self.rather_than, self.source, self.fixed, self.chat
        return any(setting is not None for setting in settings)

    @property
    def flag(self) -> str | None:
        """Return the flag that provides the inputs, or ``None`` for a file."""
        flags = [flag for flag in _GIVE if getattr(self, flag)]
        texts = self.inputs or []
        methods = [text for text in texts if text in explainers or text in learned_methods]
        if texts and (self.file is not None or (methods and len(texts) > 1)):
            other = "--file" if self.file is not None else "names of methods"
            raise SettingError(
                f"Texts cannot be combined with {other}, but got {', '.join(map(repr, methods or texts))}. "
                "Several methods are one argument, as in --methods lime,shapley."
            )
        if len(flags) > 1:
            kinds = " and ".join(_KINDS[flag] for flag in flags)
            raise SettingError(f"The inputs must be of one kind, but got {kinds}.")
        if not flags and self.file is None:
            raise SettingError("No input: pass a text, --file, --image or --row. See --help.")
        return flags[0] if flags else None

    @property
    def kind(self) -> str | None:
        """Return the kind of the inputs, or ``None`` for a file, which may contain texts or rows."""
        return None if self.flag is None else _KINDS[self.flag]

    def read(self, kind: str | None, model: str) -> list[InputRecord]:
        """Read the inputs for a model that reads this kind of input, if known."""
        records = list(self.stream(kind, model))
        if not records:
            raise InputError(f"There is nothing to explain in {str(self.file)!r}.")
        return records

    def stream(self, kind: str | None, model: str) -> Iterator[InputRecord]:
        """Yield the inputs for a model that reads this kind of input, if known."""
        self._check(kind, model)
        records = self._command_line_records()
        if self.file is not None:
            texts = TextColumns(self.column, self.pair_column, self.query_column)
            columns = FileColumns(kind or self.kind, texts, self.label_column, self.id_column)
            records = chain(records, file_records(str(self.file), columns))
        return islice(records, self.limit)

    def count(self) -> int | None:
        """Count the inputs without reading them; ``None`` if that is impossible. See `n_records`."""
        in_file = 0 if self.file is None else n_records(str(self.file))
        if in_file is None:
            return None
        n = in_file + len(self.inputs or ()) + len(self.row or ()) + len(self._image_files())
        return n if self.limit is None else min(n, self.limit)

    def _check(self, kind: str | None, model: str) -> None:
        """Raise a `SettingError` unless the model reads this kind of input."""
        flag, modality = self.flag, None if kind is None else modality_named(kind)
        if modality is not None:
            in_files = self.file is None or modality.in_files
            if flag not in (None, modality.flag) or not in_files:
                raise SettingError(
                    f"The model {model!r} reads {modality.plural}: pass {_GIVE[modality.flag]}."
                )
        if self.id_column is not None and self.file is None:
            raise SettingError("--id-column requires --file.")
        if self.label_column is not None and (self.file is None or flag is not None):
            raise SettingError("--label-column requires all inputs to come from --file.")

    def _command_line_records(self) -> Iterator[InputRecord]:
        for number, text in enumerate(self.inputs or ()):
            if file_exists(Path(text)):
                logger.warning(
                    "%r is explained as a text; to explain the content of a file, use --file.", text
                )
            yield parse_record(f"text {number}", self._prompt, text)
        for path in self._image_files():
            yield InputRecord(str(path), path)
        for number, row in enumerate(self.row or ()):
            yield parse_record(f"row {number}", json_row, row)

    def _image_files(self) -> list[Path]:
        return [file for path in self.image or () for file in _expand_images(path)]

    def _prompt(self, text: str) -> str | Prompt:
        """Return the text, or a prompt with the answer and the sources."""
        if not self.is_prompt:
            return text
        fixed = NONE if self.fixed == [NONE] else self.fixed
        return Prompt(
            text,
            sources=self.source or (),
            answer=self.answer,
            rather_than=self.rather_than,
            fixed=fixed,
            chat=None if self.chat is None else self.chat == "yes",
        )


def as_inputs(records: Sequence[InputRecord]) -> UserList[Any]:
    """Return the inputs for a public function, with the error of each unreadable input.

    The result is not a list, because a list of two strings may be one pair.
    """
    return UserList(record.raw if record.error is None else record.error for record in records)


def ids_of(records: Sequence[InputRecord]) -> list[str] | None:
    """Return the id of each input, or its index if it has none; ``None`` if no input has an id."""
    return [each.id or each.where for each in records] if any(each.id for each in records) else None


def _expand_images(path: Path) -> list[Path]:
    """Return the file itself, or all image files in a folder, sorted by name."""
    if not folder_exists(path):
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in IMAGES)
    if not files:
        raise SettingError(f"There are no image files in the folder {str(path)!r} ({', '.join(IMAGES)}).")
    return files
