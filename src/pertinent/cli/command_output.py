"""Output of a command to the terminal, HTML, Parquet, JSON and plots; failures go to stderr."""

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
from pertinent.results.hops import Hops
from pertinent.study.report import StudyReport

Failed = tuple[str, str]
"""The input or file that failed, and the reason."""

SUCCESS, SOME_FAILED, ALL_FAILED = 0, 1, 2
LISTED = 20
"""Number of failure reasons to list."""

_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class NothingDone(PertinentError):
    """Raised if no input could be read or used; `failures` lists their positions and the reasons."""

    def __init__(self, failures: Sequence[Failed]) -> None:
        super().__init__("nothing could be explained")
        self.failures = failures


def complain(message: str, traceback: str = "") -> None:
    """Write a message to stderr, preceded by the traceback, if any."""
    sys.stderr.write(f"{visible(traceback)}pertinent: {visible(message)}\n")


def conclude(n_explained: int, failures: Sequence[Failed]) -> int:
    """List the failures on stderr, and return the exit code."""
    from pertinent.rendering.by_input import failure_lines

    for line in failure_lines(failures, LISTED):
        complain(f"failed: {line}")
    if not n_explained:
        complain("error: nothing could be explained")
        return ALL_FAILED
    return SOME_FAILED if failures else SUCCESS


def print_json(text: str) -> None:
    """Print JSON on stdout, with escapes for characters that are unsafe to print."""
    escaped = _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    sys.stdout.write(escaped + "\n")


@contextmanager
def logging_to_stderr(*, quiet: bool, debug: bool) -> Iterator[None]:
    """Write log messages of the library, and all warnings, to stderr while a command runs."""
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
"""Logger of progress if stderr is not a terminal."""

STDOUT = Path("-")
PLOTS = (".png", ".svg", ".pdf")
_PRINTED = 20
"""Largest number of explanations that are printed although they are also written to a file."""


@dataclass
class CommandOutput:
    """Flags for files to write, which are checked before the command starts.

    Attributes
    ----------
    html
        Write a self-contained HTML report to this file.
    out
        Write the explanations with their measures to this file (.parquet, .csv or .json).
    plot
        Write a plot of the result to this file (.png, .svg or .pdf).
    json
        Write JSON to this file; - prints only JSON on stdout.
    quiet
        Print only errors.
    by_class
        Whether explanations are also shown by class.
    out_by_function
        Whether the public function itself writes the file of ``--out``.
    read
        Files that the command reads and must not overwrite.
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
        """Check that the files can be written and have different names."""
        if self.out is not None and not self.out_by_function:
            check_suffix(self.out, Explanations.suffixes)
        if self.plot is not None and self.plot.suffix.lower() not in PLOTS:
            raise SettingError(f"--plot must end in {', '.join(PLOTS)}, but got {str(self.plot)!r}.")
        named = [p for p in (self.html, self.out, self.json, self.plot) if p is not None and p != STDOUT]
        for path in named:
            check_writable(path)
            if [p.resolve() for p in (*named, *self.read)].count(path.resolve()) > 1:
                raise SettingError(f"{str(path)!r} is used twice: each file must have a different name.")

    @property
    def silent(self) -> bool:
        """Return whether only JSON is printed on stdout."""
        return self.quiet or self.json == STDOUT

    @property
    def progress(self) -> bool | None:
        """Return the argument `progress` of a public function."""
        return False if self.silent else None

    def show(self, thing: Any) -> None:
        """Print a line, or something that rich can render."""
        from rich.console import Console
        from rich.text import Text

        renderable = Text(visible(thing)) if isinstance(thing, str) else thing
        Console(quiet=self.silent, highlight=False).print(renderable, soft_wrap=isinstance(thing, str))

    def show_all(self, explanations: Explanations) -> list[Failed]:
        """Print explanations without the failures, which go to stderr; return those not shown."""
        from pertinent.rendering.terminal.explanation import show_all

        failed: list[Failed] = []
        try:
            if self.by_class and len(explanations):
                explanations[0].by_class()
        except SettingError as error:  # the method does not score all classes
            self.by_class, failed = False, [("--by-class", str(error))]
        if len(explanations) > _PRINTED and (self.out or self.html or self.json):
            self.show(f"{len(explanations):,} explanations.")
        elif len(explanations) == 1:
            self.show(explanations[0])
            if self.by_class:
                self.show("")
                self.show(explanations[0].by_class())
        elif len(explanations):
            self.show(show_all(Explanations(list(explanations)), by_class=self.by_class))
        return failed

    def write(
        self,
        result: Result | StudyReport,
        explanations: Explanations | None = None,
        evaluation: Evaluation | None = None,
        title: str = "",
    ) -> list[Failed]:
        """Write the requested files and print their paths; return those that could not be written.

        The JSON file and the plot contain the result, the other files the explanations.
        """

        def plot(path: Path) -> None:
            with atomic_write(path) as unfinished:
                result.plot().savefig(unfinished, dpi=150, format=path.suffix[1:].lower())

        writers: dict[str, tuple[str, Path | None, Callable[[Path], Any]]] = {
            "--json": ("JSON", self.json, lambda path: write_text(path, result.to_json() + "\n")),
            "--plot": ("Plot", self.plot, plot),
        }
        if explanations is not None and len(explanations):
            reported = result if isinstance(result, Hops) else explanations
            report = partial(pertinent.save_report, reported, title=title, evaluation=evaluation)
            save = (lambda _: None) if self.out_by_function else explanations.save
            writers["--out"] = "Saved", self.out, save
            writers["--html"] = "Report", self.html, partial(report, by_class=self.by_class)
        failed: list[Failed] = []
        for flag, (noun, path, write) in writers.items():
            if path == STDOUT:
                print_json(result.to_json())
            elif path is not None:
                try:
                    write(path)
                    self.show(f"{noun}: {path.resolve()}")
                except (PertinentError, OSError) as error:
                    failed.append((f"{flag} {path}", str(error)))
        return failed
