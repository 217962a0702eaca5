"""Text from elsewhere, made harmless for terminals and pages, and short enough for a line."""

from __future__ import annotations

from typing import Any

_KEPT = "\t\n"
_UNKNOWN = 0xFFFD
_PICTURES = 0x2400  # the block of Unicode that has a picture of each control character

_VISIBLE = {
    **{code: _PICTURES + code for code in range(32) if chr(code) not in _KEPT},
    **dict.fromkeys(range(0x7F, 0xA0), _UNKNOWN),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), _UNKNOWN),  # reorder the line
    **dict.fromkeys(range(0xD800, 0xE000), _UNKNOWN),  # lone surrogates, which cannot be printed
}


def shorten(text: str, most: int) -> str:
    """The text, cut to at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def shorten_name(name: str, most: int) -> str:
    """The name, cut in the middle to at most `most` characters: names often differ at their end.

    >>> shorten_name("patch at row 112, column 28", 19)
    'patch at …column 28'
    """
    end = most // 2
    return name if len(name) <= most else f"{name[: most - end - 1]}…{name[len(name) - end :]}"


def replace_surrogates(value: Any) -> Any:
    """A text, or a list of texts, without lone surrogates, which UTF-8 cannot encode; others as they are."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [replace_surrogates(each) for each in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def visible(text: str) -> str:
    r"""The text with every control character but tab and the end of a line made visible.

    >>> visible("\x1b[2J cleared")
    '␛[2J cleared'
    """
    return text.replace("\r\n", "\n").translate(_VISIBLE)
