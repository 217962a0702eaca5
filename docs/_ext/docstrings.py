"""Changes to docstrings before napoleon reads them."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.domains.python import PyObject

ENTRY = re.compile(r"^([*\w]+(?:, [*\w]+)+)\n((?:[ ].*\n|\n)+)", re.MULTILINE)
"""Several names with one text in a numpydoc section."""


def split_names(app: Sphinx, *arguments: Any) -> None:
    """Repeat the text of several names for each name, because napoleon reads only the last one."""
    lines: list[str] = arguments[-1]

    def repeat(match: re.Match[str]) -> str:
        return "".join(f"{name}\n{match[2].rstrip()}\n" for name in match[1].split(", ")) + "\n"

    lines[:] = ENTRY.sub(repeat, "\n".join(lines) + "\n").splitlines()


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the changes, and call the attributes of a class by that name."""
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.connect("autodoc-process-docstring", split_names, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
