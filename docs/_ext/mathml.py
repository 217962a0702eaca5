"""Renders formulas as MathML, which browsers display without scripts."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def visit_inline(translator: Any, node: nodes.Element) -> None:
    """Write a formula in a line."""
    _write(translator, node, is_block=False)


def visit_block(translator: Any, node: nodes.Element) -> None:
    """Write a formula of its own."""
    _write(translator, node, is_block=True)


def _write(translator: Any, node: nodes.Element, *, is_block: bool) -> None:
    try:
        translator.body.append(latex2mathml.tex2mathml(node.astext(), as_block=is_block))
    except MathError as error:
        logger.warning("The formula %r cannot be rendered: %s", node.astext(), error, location=node)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
