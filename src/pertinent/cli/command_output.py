"""Output of a command: the terminal, an HTML report, Parquet, JSON, pictures; failures go to stderr."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pertinent
from pertinent.errors import PertinentError, SettingError
from pertinent.files import atomic_write, check_writable, write_text
from pertinent.printable import visible
from pertinent.results.base import Result, check_suffix
from pertinent.results.evaluation import Evaluation
from pertinent.results.explanation import Explanations
from pertinent.study.report import StudyReport

Failed = tuple[str, str]
"""What failed, and why."""

ALL_WELL, SOME_FAILED, NOTHING = 0, 1, 2
LISTED = 20
"""How many reasons of failures are listed."""

_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class NothingDone(PertinentError):
    """No input could be read or used; `failures` are the places and the reasons."""

    def __init__(self, failures: Sequence[Failed]) -> None:
        super().__init__("nothing could be explained")
        self.failures = failures


def complain(message: str, traceback: str = "") -> None:
    """Write a line to stderr, below the traceback, if any."""
    sys.stderr.write(f"{visible(traceback)}pertinent: {visible(message)}\n")


def conclude(n_explained: int, failures: Sequence[Failed]) -> int:
    """List what failed on stderr, and return the exit code."""
    from pertinent.rendering.by_input import failure_lines

    for line in failure_lines(failures, LISTED):
        complain(f"failed: {line}")
    if not n_explained:
        complain("error: nothing could be explained")
        return NOTHING
    return SOME_FAILED if failures else ALL_WELL


def print_json(text: str) -> None:
    """Print JSON on stdout, with characters that are unsafe to print as JSON escapes."""
    escaped = _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    sys.stdout.write(escaped + "\n")


@contextmanager
def logging_to_stderr(*, quiet: bool, debug: bool) -> Iterator[None]:
    """Show what the library logs and what others warn of, on stderr, while a command runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("pertinent: %(message)s"))
    handler.setLevel(logging.DEBUG if debug else logging.ERROR if quiet else logging.INFO)
    handler.addFilter(lambda record: debug or record.levelno > logging.INFO or record.name == PROGRESS)
    loggers = [logging.getLogger(name) for name in ("pertinent", "py.warnings")]
    levels = {logging.getLogger(PROGRESS): logging.INFO}
    if debug:
        levels[loggers[0]] = logging.DEBUG
    before = {logger: logger.level for logger in levels}
    for logger in loggers:
        logger.addHandler(handler)
    for logger, level in levels.items():
        logger.setLevel(level)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        for logger in loggers:
            logger.removeHandler(handler)
        for logger, level in before.items():
            logger.setLevel(level)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


PROGRESS = "pertinent.engine.progress"
"""The logger of progress where stderr is no terminal."""

STDOUT = Path("-")
PICTURES = (".png", ".svg", ".pdf")
_SHOWN = 20
"""How many explanations are printed if they are also written to a file."""


@dataclass
class CommandOutput:
    """The flags that name what to write, checked before any work is done.

    Attributes
    ----------
    html
        Write one self-contained HTML report.
    out
        Save the explanations with what was measured (.parquet, .csv or .json).
    plot
        Draw the result (.png, .svg or .pdf).
    json
        Write JSON; - for stdout, and nothing else there.
    quiet
        Print nothing but errors.
    by_class
        Whether explanations are also shown class by class.
    out_by_function
        Whether the public function itself writes the file of ``--out``.
    read
        Files that are read, which must not be written.
    """

    html: Path | None = None
    out: Path | None = None
    plot: Path | None = None
    json: Path | None = None
    quiet: bool = False
    by_class: bool = False
    out_by_function: bool = False
    read: Sequence[Path] = ()

    def __post_init__(self) -> None:
        """Check that the files can be written and have names of their own."""
        if self.out is not None and not self.out_by_function:
            check_suffix(self.out, Explanations.suffixes)
        if self.plot is not None and self.plot.suffix.lower() not in PICTURES:
            raise SettingError(f"--plot must end in {', '.join(PICTURES)}, but got {str(self.plot)!r}.")
        named = [p for p in (self.html, self.out, self.json, self.plot) if p is not None and p != STDOUT]
        for path in named:
            check_writable(path)
            if [p.resolve() for p in (*named, *self.read)].count(path.resolve()) > 1:
                raise SettingError(f"{str(path)!r} is named twice: each file needs a name of its own.")

    @property
    def silent(self) -> bool:
        """Whether nothing but JSON is printed."""
        return self.quiet or self.json == STDOUT

    @property
    def progress(self) -> bool | None:
        """The argument `progress` of a public function."""
        return False if self.silent else None

    def show(self, thing: Any) -> None:
        """Print something that rich can render, or a plain line."""
        from rich.console import Console
        from rich.text import Text

        shown = Text(visible(thing)) if isinstance(thing, str) else thing
        Console(quiet=self.silent, highlight=False).print(shown, soft_wrap=isinstance(thing, str))

    def show_all(self, explanations: Explanations) -> list[Failed]:
        """Print explanations, but not the failures, which go to stderr; return what could not be shown."""
        from pertinent.rendering.terminal.explanation import show_all

        failed: list[Failed] = []
        try:
            if self.by_class and len(explanations):
                explanations[0].by_class()
        except SettingError as error:  # the method does not score all classes: show and write the rest
            self.by_class, failed = False, [("--by-class", str(error))]
        if len(explanations) > _SHOWN and (self.out or self.html or self.json):
            self.show(f"{len(explanations):,} explanations.")
        elif len(explanations) == 1:
            self.show(explanations[0])
            if self.by_class:
                self.show("")
                self.show(explanations[0].by_class())
        elif len(explanations):
            self.show(show_all(Explanations(list(explanations)), by_class=self.by_class))
        return failed

    def write(self, explanations: Explanations, evaluation: Evaluation | None, title: str) -> list[Failed]:
        """Write the files asked for and print their paths; return those that could not be written."""
        failed = self.write_json(explanations)
        if not len(explanations):
            return failed
        if self.out is not None and self.out_by_function:
            self.show(f"Saved: {self.out.resolve()}")
        else:
            failed += self._write_file("--out", "Saved", self.out, explanations.save)
        save = partial(pertinent.save_report, explanations)
        save = partial(save, title=title, evaluation=evaluation, by_class=self.by_class)
        return failed + self._write_file("--html", "Report", self.html, save)

    def write_json(self, result: Result | StudyReport) -> list[Failed]:
        """Write JSON, to stdout or to a file."""
        if self.json != STDOUT:
            return self._write_file(
                "--json", "JSON", self.json, lambda path: write_text(path, result.to_json() + "\n")
            )
        print_json(result.to_json())
        return []

    def write_plot(self, result: Result | StudyReport) -> list[Failed]:
        """Draw a result, in the format that the suffix names."""

        def save(path: Path) -> None:
            with atomic_write(path) as unfinished:
                result.plot().savefig(unfinished, dpi=150, format=path.suffix[1:].lower())

        return self._write_file("--plot", "Plot", self.plot, save)

    def _write_file(
        self, option: str, what: str, path: Path | None, save: Callable[[Path], Any]
    ) -> list[Failed]:
        """Write one file if it was asked for; if that fails, the others are still written."""
        if path is None:
            return []
        try:
            save(path)
        except (PertinentError, OSError) as error:
            return [(f"{option} {path}", str(error))]
        self.show(f"{what}: {path.resolve()}")
        return []
