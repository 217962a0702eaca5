"""Text from elsewhere, made harmless for terminals and pages."""

from __future__ import annotations

_KEPT = "\t\n"
_UNKNOWN = 0xFFFD
_PICTURES = 0x2400  # the block of Unicode that has a picture of each control character

_VISIBLE = {
    **{code: _PICTURES + code for code in range(32) if chr(code) not in _KEPT},
    **dict.fromkeys(range(0x7F, 0xA0), _UNKNOWN),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), _UNKNOWN),  # reorder the line
    **dict.fromkeys(range(0xD800, 0xE000), _UNKNOWN),  # lone surrogates, which cannot be printed
}


def visible(text: str) -> str:
    r"""The text with every control character but tab and the end of a line made visible.

    >>> visible("\x1b[2J cleared")
    '␛[2J cleared'
    """
    return text.replace("\r\n", "\n").translate(_VISIBLE)
