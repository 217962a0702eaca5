"""The way to stderr: messages, failures and logs, with control characters made visible."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pertinent.control_characters import visible
from pertinent.errors import PertinentError

Failed = tuple[str, str]
"""What failed, and why."""

ALL_WELL, SOME_FAILED, NOTHING = 0, 1, 2
_LISTED = 20
"""How many reasons of failures are listed."""

_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class NothingDone(PertinentError):
    """No input could be read or used; `failures` are the places and the reasons."""

    def __init__(self, failures: Sequence[Failed]) -> None:
        super().__init__("nothing could be explained")
        self.failures = failures


def complain(message: str, traceback: str = "") -> None:
    """A line on stderr, below the traceback, if any."""
    sys.stderr.write(f"{visible(traceback)}pertinent: {visible(message)}\n")


def conclude(n_explained: int, failures: Sequence[Failed]) -> int:
    """List what failed on stderr, and return the exit code."""
    from pertinent.report.by_input import failure_lines

    for line in failure_lines(failures, _LISTED):
        complain(f"failed: {line}")
    if not n_explained:
        complain("error: nothing could be explained")
        return NOTHING
    return SOME_FAILED if failures else ALL_WELL


def print_json(text: str) -> None:
    """JSON on stdout, with everything that is not to be printed as an escape of JSON's own."""
    escaped = _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    sys.stdout.write(escaped + "\n")


@contextmanager
def logging_to_stderr(*, quiet: bool, debug: bool) -> Iterator[None]:
    """Show what the library logs and what others warn of, on stderr, while a command runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("pertinent: %(message)s"))
    handler.setLevel(logging.DEBUG if debug else logging.ERROR if quiet else logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("pertinent", "py.warnings")]
    before = loggers[0].level
    for logger in loggers:
        logger.addHandler(handler)
    if debug:
        loggers[0].setLevel(logging.DEBUG)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        for logger in loggers:
            logger.removeHandler(handler)
        loggers[0].setLevel(before)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))
