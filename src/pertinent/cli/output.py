"""Output: the terminal, an HTML report, Parquet, JSON; failures go to stderr."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pertinent.cli.console import complain, print_json
from pertinent.control_characters import visible
from pertinent.errors import PertinentError, SettingError
from pertinent.files import atomic_write, check_writable, write_text
from pertinent.report.by_input import failure_lines
from pertinent.results.base import check_suffix
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanations

Failed = tuple[str, str]
"""What failed, and why."""

ALL_WELL, SOME_FAILED, NOTHING = 0, 1, 2
PICTURES = (".png", ".svg", ".pdf")
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
        self._by_class = getattr(args, "by_class", False)
        self.silent = getattr(args, "quiet", False) or self.json == "-"
        self._console = Console(quiet=self.silent, highlight=False)
        if self.out is not None and not self._journalled:
            check_suffix(Path(self.out), Explanations.suffixes)
        if self.plot is not None and Path(self.plot).suffix.lower() not in PICTURES:
            raise SettingError(f"--plot must end in {', '.join(PICTURES)}, but got {self.plot!r}.")
        named = [Path(p) for p in (self.html, self.out, self.json, self.plot) if p is not None and p != "-"]
        read = [Path(p) for p in (getattr(args, "file", None), getattr(args, "data", None)) if p is not None]
        for path in named:
            check_writable(path)
            if [p.resolve() for p in (*named, *read)].count(path.resolve()) > 1:
                raise SettingError(f"{str(path)!r} is named twice: each file needs a name of its own.")

    def show(self, thing: Any) -> None:
        """Print something that rich can render, or a plain line."""
        self._console.print(
            Text(visible(thing)) if isinstance(thing, str) else thing, soft_wrap=isinstance(thing, str)
        )

    def show_all(self, explanations: Explanations) -> list[Failed]:
        """Print explanations, but not the failures, which go to stderr; return what could not be shown."""
        from pertinent.report.terminal.explanation import show_all

        failed = self._check_by_class(explanations)
        if len(explanations) > _SHOWN and (self.out or self.html or self.json):
            self.show(f"{len(explanations):,} explanations.")
        elif len(explanations) == 1:
            self.show(explanations[0])
            if self._by_class:
                self.show("")
                self.show(explanations[0].by_class())
        elif len(explanations):
            self.show(show_all(Explanations(list(explanations)), by_class=self._by_class))
        return failed

    def _check_by_class(self, explanations: Explanations) -> list[Failed]:
        """Where the method does not score all classes, show and write the rest."""
        try:
            for e in explanations[:1] if self._by_class else ():
                e.by_class()
        except SettingError as error:
            self._by_class = False
            return [("--by-class", str(error))]
        return []

    def write(self, explanations: Explanations, evaluation: Evaluation | None, title: str) -> list[Failed]:
        """Write the files asked for and print their paths; return those that could not be written."""
        failed = self.write_json(explanations.to_json, lambda path: _write_json(explanations, path))
        if not len(explanations):
            return failed
        if self.out is not None and self._journalled:  # the run itself has written it
            self.show(f"Saved: {Path(self.out).resolve()}")
        else:
            failed += self.write_file("--out", "Saved", self.out, explanations.save)
        return failed + self.write_file(
            "--html",
            "Report",
            self.html,
            lambda path: _save_report(explanations, path, title, evaluation, by_class=self._by_class),
        )

    def write_json(self, text: Callable[[], str], save: Callable[[Path], None]) -> list[Failed]:
        """Write JSON, to stdout or to a file."""
        if self.json != "-":
            return self.write_file("--json", "JSON", self.json, save)
        print_json(text())
        return []

    def write_file(
        self, option: str, what: str, path: str | None, save: Callable[[Path], None]
    ) -> list[Failed]:
        """Write one file if it was asked for; if that fails, the others are still written."""
        if path is None:
            return []
        try:
            save(Path(path))
        except (PertinentError, OSError) as error:
            return [(f"{option} {path}", str(error))]
        self.show(f"{what}: {Path(path).resolve()}")
        return []


def save_figure(figure: Any, path: Path) -> None:
    """Write a matplotlib figure in the format that the suffix names."""
    with atomic_write(path) as unfinished:
        figure.savefig(unfinished, dpi=150, format=path.suffix[1:].lower())


def conclude(n_explained: int, failures: Sequence[Failed]) -> int:
    """List what failed on stderr, and return the exit code."""
    for line in failure_lines(failures, _LISTED):
        complain(f"failed: {line}")
    if not n_explained:
        complain("error: nothing could be explained")
        return NOTHING
    return SOME_FAILED if failures else ALL_WELL


def _write_json(explanations: Explanations, path: Path) -> None:
    write_text(path, explanations.to_json() + "\n")


def _save_report(
    explanations: Explanations, path: Path, title: str, evaluation: Evaluation | None, *, by_class: bool
) -> None:
    from pertinent.report.html.page import save_report

    save_report(explanations, path, title=title, evaluation=evaluation, by_class=by_class)
