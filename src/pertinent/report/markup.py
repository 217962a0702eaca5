"""The one way for text into a page: it is escaped, and its control characters are made visible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import markupsafe

from pertinent.control_characters import visible

if TYPE_CHECKING:
    from typing_extensions import Self


class Markup(markupsafe.Markup):
    r"""A part of a page. What is put into it is text, unless it is a part of a page itself.

    >>> str(Markup("<b>{}</b>").format("<i>\x00\u202e"))
    '<b>&lt;i&gt;␀�</b>'
    """

    __slots__ = ()

    @classmethod
    def escape(cls, s: Any, /) -> Self:
        """Text as a part of a page."""
        return super().escape(s if isinstance(s, Markup) else visible(str(s)))
