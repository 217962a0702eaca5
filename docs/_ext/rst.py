"""Helpers that write reStructuredText, and a directive that parses it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from inspect import cleandoc
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.ext.napoleon import NumpyDocstring
from sphinx.util.docutils import SphinxDirective

from pertinent.cli.signatures import parameter_texts
from pertinent.config.settings import Range, field_default, setting_names, settings_types

SECTION = re.compile(r"^([A-Z]\w+)\n-{3,}\n", re.MULTILINE)
"""A section of a numpydoc docstring."""

SETTINGS = ("Parameters", "Attributes")
"""Sections about settings."""


class Rst(SphinxDirective):
    """Base class of directives that write reStructuredText."""

    def lines(self) -> Iterator[str]:
        """Yield lines of reStructuredText."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the parsed lines."""
        node = nodes.section()
        node.document = self.state.document
        content = StringList(list(self.lines()), source=self.env.docname)
        self.state.nested_parse(content, 0, node, match_titles=True)
        return node.children


def heading(title: str, underline: str = "-") -> Iterator[str]:
    """Yield a section title."""
    yield from ("", title, underline * len(title), "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, widths: str = "auto") -> Iterator[str]:
    """Yield a list table."""
    yield from ("", ".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", "")
    for row in [head, *rows]:
        for i, cell in enumerate(row):
            yield f"   {'* -' if i == 0 else '  -'} {cell}".rstrip()
    yield ""


def sentence(text: str) -> str:
    """Return a summary as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def docstring(cls: type, config: Any) -> Iterator[str]:
    """Yield the docstring of a class, without the sections about settings."""
    first, *sections = SECTION.split(cleandoc(cls.__doc__ or ""))
    titled = zip(sections[::2], sections[1::2], strict=True)
    kept = [f"{title}\n{'-' * len(title)}\n{text}" for title, text in titled if title not in SETTINGS]
    text = "\n".join([first, *kept])
    yield from str(NumpyDocstring(text, config, what="class", obj=cls)).splitlines()
    yield ""


def settings(cls: Any, omit: Sequence[str] = ()) -> Iterator[str]:
    """Yield a definition list of the settings of a dataclass: name, type, default and meaning."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        texts |= parameter_texts(base)
    types, names = settings_types(cls), setting_names(cls)
    shown = [f for f in fields(cls) if f.name in names and f.name not in omit]
    if shown:
        yield from ("", ".. rst-class:: settings", "")
    for f in shown:
        kind = type_text(types.get(f.name, Any))
        yield f"``{f.name}`` : {', '.join(filter(None, [kind, default_text(field_default(f))]))}"
        yield f"   {texts.get(f.name, '…')}"
    yield ""


def default_text(value: Any) -> str:
    """Return a default in words."""
    return "required" if repr(value).startswith("<dataclasses") else f"default ``{value!r}``"


def type_text(hint: Any) -> str:
    """Return a type as text.

    >>> type_text(Annotated[int, Range(at_least=1)] | None)
    'int ≥ 1 or None'
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = [text for bound in inner[1:] if isinstance(bound, Range) for text in _bounds(bound)]
        return " ".join([type_text(inner[0]), ", ".join(bounds)]).strip()
    if origin is Literal:
        return " or ".join(f'``"{value}"``' for value in inner)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(type_text, inner)))
    if origin is not None and inner:
        kind = "tuple" if origin is tuple else origin.__name__.lower()
        return f"{kind} of {type_text(inner[0])}"
    return {Any: "", NoneType: "None"}.get(hint, getattr(hint, "__name__", str(hint)))


def _bounds(bound: Range) -> Iterator[str]:
    signs = {"at_least": "≥", "above": ">", "at_most": "≤", "below": "<"}
    for name, sign in signs.items():
        limit = getattr(bound, name)
        if abs(limit) < 10**9:
            yield f"{sign} {limit:g}"
