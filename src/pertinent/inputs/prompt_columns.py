"""Prompts in the columns of files and data frames."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pertinent.errors import InputError, SettingError, safe_repr, unknown
from pertinent.inputs.modality import TextColumns

LISTS = ("sources", "messages")
COLUMNS = ("text", *LISTS, "answer", "rather_than", "span", "fixed")
"""Columns of a file that are fields of a prompt; other columns are ignored."""


def prompt_columns(names: Sequence[str], chosen: TextColumns) -> dict[str, str]:
    """Return the column of each field of a prompt; without messages there must be a text."""
    if chosen.pair or chosen.query:
        raise SettingError("A prompt is one text: omit --pair-column and --query-column.")
    columns = {name: name for name in COLUMNS if name in names}
    if "messages" in columns and chosen.text is None:
        return columns
    text = chosen.text or (names[0] if len(names) == 1 and not columns else "text")
    if text not in names:
        raise SettingError(f"{unknown('column', text, names)} Say which with --column.")
    return columns | {"text": text}


def prompt_fields(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a prompt from the columns of a record; empty values are omitted.

    Lists may also be written in JSON, and sources may be separated by blank lines.

    >>> record = {"question": "Who won?", "sources": '["Ada won.", "Bob lost."]'}
    >>> prompt_fields(record, {"text": "question", "sources": "sources"})
    {'text': 'Who won?', 'sources': ['Ada won.', 'Bob lost.']}
    """
    fields = {}
    for field, name in columns.items():
        value = _cleaned(record[name])
        if is_empty(value):
            continue
        if field not in (*LISTS, "fixed") and not isinstance(value, str):
            raise InputError(f"The column {name!r} must contain text, but contains {safe_repr(value)}.")
        fields[field] = _list_in(value, name) if field in LISTS else value
    return fields


def is_empty(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, a blank text or an empty list."""
    if isinstance(value, str):
        return not value.strip()
    if value is None or isinstance(value, list | tuple | dict):
        return not value
    return isinstance(value, float) and value != value  # noqa: PLR0124  NaN


def _list_in(value: Any, name: str) -> Any:
    """Return a list, which may be written in JSON or, for sources, separated by blank lines."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise InputError(f"The column {name!r} must contain a JSON list, but: {error}.") from error
    if name == "sources":
        return paragraphs(value)
    raise InputError(f"The column {name!r} must contain a JSON list, but contains {value[:40]!r}.")


def _cleaned(value: Any) -> Any:
    """Return a value without the missing keys of mappings, which columns of tables fill with None."""
    if isinstance(value, Mapping):
        return {key: _cleaned(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_cleaned(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


def paragraphs(text: str | None) -> list[str]:
    """Return the texts that are separated by blank lines."""
    return [part.strip() for part in re.split(r"\n\s*\n", text or "") if part.strip()]
