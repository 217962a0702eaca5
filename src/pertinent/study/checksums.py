"""Checksums in the JSON objects of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pertinent.config.fingerprints import digest
from pertinent.config.serialization import PlainData
from pertinent.errors import InputError

_NAME = "checksum"


def add_checksum(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with a checksum of its fields added."""
    return {**plain, _NAME: _checksum(plain)}


def verify_checksum(plain: Any, name: str) -> PlainData:
    """Return the fields of a JSON object; raise an `InputError` unless they have their checksum."""
    data = PlainData(plain, name)
    if data.text(_NAME) != _checksum({key: value for key, value in plain.items() if key != _NAME}):
        raise InputError("its checksum does not match")
    return data


def _checksum(plain: Mapping[str, Any]) -> str:
    return digest(dict(plain)).hex()
