"""One input of a file, and which columns of the file it comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pertinent.errors import InputError, PertinentError, SettingError, unknown

_FORMS = (
    ("query", "document"),
    ("question", "context"),
    ("premise", "hypothesis"),
    ("text", "text_pair"),
    ("text",),
)
"""The default columns: the first of these groups that the file has completely."""


@dataclass(frozen=True)
class Item:
    """One input and its place in the file, or why it could not be read; its label and id, if asked for."""

    where: str
    raw: Any = None
    error: PertinentError | None = None
    label: Any = None
    id: str | None = None


@dataclass(frozen=True)
class Columns:
    """What the columns of a file hold, as the options name them; `kind` is what the model reads, if known."""

    kind: str | None
    column: str | None = None
    pair: str | None = None
    label: str | None = None
    id: str | None = None

    def check(self, names: Sequence[str]) -> None:
        """Raise an error unless the file's columns have different names and those asked for are there."""
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise InputError(f"Column names must differ, but these occur twice: {', '.join(twice)}.")
        rest = dict.fromkeys(names)
        self._take(rest)
        if self.kind != "table":
            self._text_columns(list(rest))

    def item(self, where: str, record: Any) -> Item:
        """The input in a record: the texts asked for, or a table row without its label and id."""
        try:
            if not isinstance(record, Mapping):
                if self.label is not None or self.id is not None:
                    raise InputError(f"A record must have named columns, but this is {str(record)[:40]!r}.")
                return Item(where, record)
            rest = dict(record)
            label, own_id = self._take(rest)
            raw = rest if self.kind == "table" else self._texts(rest)
        except PertinentError as error:
            return Item(where, error=error)
        return Item(where, raw, label=label, id=None if own_id is None else str(own_id))

    def _take(self, record: dict[str, Any]) -> tuple[Any, Any]:
        """The label and the id, taken out of the record."""
        asked = {"--label-column": self.label, "--id-column": self.id}
        for option, name in asked.items():
            if name is not None and name not in record:
                raise SettingError(f"{unknown('column', name, record)} Say which with {option}.")
        label, own_id = (None if name is None else record[name] for name in asked.values())
        for name in asked.values():
            if name is not None:
                record.pop(name, None)
        return label, own_id

    def _texts(self, record: Mapping[str, Any]) -> dict[str, str]:
        wanted = self._text_columns(list(record))
        for name in wanted.values():
            if not isinstance(record[name], str):
                raise InputError(f"The column {name!r} must hold text, but holds {record[name]!r}.")
        return {key: record[name] for key, name in wanted.items()}

    def _text_columns(self, names: Sequence[str]) -> dict[str, str]:
        """The names of the texts for the model, and the column that each comes from."""
        column = self.column
        if column is None and self.pair is None:
            for form in _FORMS:
                if set(form) <= set(names):
                    return {name: name for name in form}
            column = names[0] if len(names) == 1 else "text"
        wanted = {"text": column or "text"} | ({"text_pair": self.pair} if self.pair else {})
        for name in wanted.values():
            if name not in names:
                raise SettingError(f"{unknown('column', name, names)} Say which with --column.")
        return wanted
