"""Output: the terminal, an HTML report, Parquet, JSON; failures go to stderr."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pertinent.files import check_writable, write_text
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanations

ALL_WELL, SOME_FAILED, NOTHING = 0, 1, 2
_LISTED = 20
_SHOWN = 20
"""How many explanations are printed if they are also written to a file."""


class Output:
    """The outputs asked for, checked before any work is done."""

    def __init__(self, args: Namespace) -> None:
        self.html: str | None = getattr(args, "html", None)
        self.out: str | None = getattr(args, "out", None)
        self._journalled = getattr(args, "command", "") in ("explain", "compare")
        self.json: str | None = getattr(args, "json", None)
        self.plot: str | None = getattr(args, "plot", None)
        self.silent = getattr(args, "quiet", False) or self.json == "-"
        self._console = Console(quiet=self.silent, highlight=False)
        for path in (self.html, self.out, self.json, self.plot):
            if path is not None and path != "-":
                check_writable(Path(path))

    def show(self, thing: Any) -> None:
        """Print something that rich can render, or a plain line."""
        self._console.print(
            Text(thing) if isinstance(thing, str) else thing, soft_wrap=isinstance(thing, str)
        )

    def show_all(self, explanations: Explanations) -> None:
        """Print explanations, but not the failures, which go to stderr."""
        if len(explanations) > _SHOWN and (self.out or self.html or self.json):
            self.show(f"{len(explanations):,} explanations.")
        elif len(explanations):
            self.show(explanations[0] if len(explanations) == 1 else explanations[:])

    def write(self, explanations: Explanations, evaluation: Evaluation | None, title: str) -> None:
        """Write the files asked for, and print their paths."""
        if self.json == "-":
            sys.stdout.write(explanations.to_json() + "\n")
        elif self.json is not None:
            write_text(Path(self.json), explanations.to_json() + "\n")
            self.show(f"JSON: {Path(self.json).resolve()}")
        if not len(explanations):
            return
        if self.out is not None:
            if not self._journalled:  # the run itself has written it
                explanations.save(self.out)
            self.show(f"Saved: {Path(self.out).resolve()}")
        if self.html is not None:
            from pertinent.report.page import save_report

            save_report(explanations, self.html, title=title, evaluation=evaluation)
            self.show(f"Report: {Path(self.html).resolve()}")


def conclude(n_explained: int, failures: Sequence[tuple[str, str]]) -> int:
    """List what failed on stderr, and return the exit code."""
    for where, reason in failures[:_LISTED]:
        sys.stderr.write(f"pertinent: failed: {where}: {reason}\n")
    if len(failures) > _LISTED:
        sys.stderr.write(f"pertinent: failed: … and {len(failures) - _LISTED} more\n")
    if not n_explained:
        sys.stderr.write("pertinent: error: nothing could be explained\n")
        return NOTHING
    return SOME_FAILED if failures else ALL_WELL
