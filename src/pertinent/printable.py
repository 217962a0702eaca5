"""Preparation of untrusted text for terminals, pages and single lines."""

from __future__ import annotations

from typing import Any

_REPLACEMENT = 0xFFFD
_PICTURES = 0x2400  # first code point of the Unicode block "Control Pictures"

_VISIBLE = {
    **{code: _PICTURES + code for code in range(32) if chr(code) not in "\t\n"},
    **dict.fromkeys(range(0x7F, 0xA0), _REPLACEMENT),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), _REPLACEMENT),  # text direction
    **dict.fromkeys(range(0xD800, 0xE000), _REPLACEMENT),  # lone surrogates, which cannot be printed
}

_LEAST = 8
"""Smallest number of characters to show of a text after its name."""


def shorten(text: str, most: int) -> str:
    """Return the text, cut to at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def shorten_name(name: str, most: int) -> str:
    """Return the name, shortened in the middle to at most `most` characters; names often differ at the end.

    The name of a part of a trace, which precedes its text and a colon, is kept if it leaves space.

    >>> shorten_name("patch at row 112, column 28", 19)
    'patch at …column 28'
    >>> shorten_name("search result 12: Bob keeps the map.", 28)
    'search result 12: Bob … map.'
    """
    part, colon, text = name.partition(": ")
    if colon and _LEAST <= most - len(part) - 2 < len(text):
        return f"{part}: {shorten_name(text, most - len(part) - 2)}"
    end = most // 2
    return name if len(name) <= most else f"{name[: most - end - 1]}…{name[len(name) - end :]}"


def replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which UTF-8 cannot encode, in a text or list of texts; keep other values."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [replace_surrogates(text) for text in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def visible(text: str) -> str:
    r"""Return the text with control characters, except tabs and line ends, replaced by visible ones.

    >>> visible("\x1b[2J cleared")
    '␛[2J cleared'
    """
    return text.replace("\r\n", "\n").translate(_VISIBLE)
