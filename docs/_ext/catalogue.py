"""Sphinx directives that list what is registered, with the settings and docstrings of the classes."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.ext.napoleon import NumpyDocstring
from sphinx.util.docutils import SphinxDirective

import pertinent
from pertinent.cli.commands import COMMANDS
from pertinent.cli.parser import command_parser
from pertinent.diagnostics.base import diagnostics
from pertinent.explainers import explainers
from pertinent.learners import learned
from pertinent.metrics import metrics
from pertinent.models.heads.base import heads
from pertinent.removals import removals


class Rst(SphinxDirective):
    """Parses the reStructuredText that a subclass writes."""

    def lines(self) -> Iterator[str]:
        """Yield lines of reStructuredText."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the parsed lines."""
        node = nodes.section()
        node.document = self.state.document
        source = self.env.docname
        content = StringList(list(self.lines()), source=source)
        self.state.nested_parse(content, 0, node, match_titles=True)
        return node.children


class Catalogue(Rst):
    """``.. catalogue:: methods`` lists every registered class: a table, then a section for each."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        """Yield a summary table and a section for each entry."""
        kind = self.arguments[0]
        entries = list(getattr(self, f"_{kind}")())
        yield from table(("", "summary", "source"), [(f"`{e[0]}`_", e[1], e[2]) for e in entries])
        for name, summary, source, cls, notes in entries:
            yield from heading(name)
            yield from (f"{summary[:1].upper()}{summary[1:]}.", "")
            yield from (f"*{source}*", "") if source else ()
            for note in notes:
                yield from (note, "")
            yield from docstring(cls, self.config)

    def _methods(self) -> Iterator[tuple[Any, ...]]:
        for entry in pertinent.list_methods():
            if not entry.fitted_first:
                yield entry.name, entry.summary, entry.paper, explainers.get(entry.name), []

    def _learned(self) -> Iterator[tuple[Any, ...]]:
        for entry in pertinent.list_methods():
            if entry.fitted_first:
                yield entry.name, entry.summary, entry.paper, learned.get(entry.name).learner, []

    def _metrics(self) -> Iterator[tuple[Any, ...]]:
        for entry in pertinent.list_metrics():
            cls = metrics.get(entry.name)
            better = f"Better: {cls.better}." if cls.better else ""
            yield entry.name, entry.summary, entry.paper, cls, [better] if better else []

    def _removals(self) -> Iterator[tuple[Any, ...]]:
        for entry in pertinent.list_removals():
            cls = removals.get(entry.name)
            yield entry.name, entry.summary, f"for {', '.join(cls.kinds())}", cls, []

    def _diagnostics(self) -> Iterator[tuple[Any, ...]]:
        for name, cls in diagnostics.all().items():
            yield name, cls.summary, getattr(cls, "paper", ""), cls, []

    def _heads(self) -> Iterator[tuple[Any, ...]]:
        for name, cls in heads.all().items():
            yield name, cls.summary, "", cls, []


class Commands(Rst):
    """``.. commands::`` shows the help of every command."""

    def lines(self) -> Iterator[str]:
        """Yield a section for each command."""
        for name in COMMANDS:
            yield from heading(f"pertinent {name}")
            yield from (".. code-block:: text", "")
            yield from (f"   {line}" for line in command_parser(name).format_help().splitlines())
            yield ""


def heading(title: str) -> Iterator[str]:
    """Yield a section title."""
    yield from ("", title, "-" * len(title), "")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield a list table."""
    yield from (".. list-table::", "   :header-rows: 1", "")
    for row in [head, *rows]:
        for i, cell in enumerate(row):
            yield f"   {'* -' if i == 0 else '  -'} {cell}"
    yield ""


def docstring(cls: type, config: Any) -> Iterator[str]:
    """Yield the docstring of a class, its parameters as a field list."""
    text = cleandoc(cls.__doc__ or "")
    yield from str(NumpyDocstring(text, config, what="class", obj=cls)).splitlines()
    yield ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("catalogue", Catalogue)
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
