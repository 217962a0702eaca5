"""The command line. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from pertinent.cli.parser import COMMANDS, make_parser, parse
from pertinent.errors import PertinentError

BAD_USAGE = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        make_parser()[0].print_help()
        return BAD_USAGE
    debug = "--debug" in arguments
    try:
        args = parse(arguments)
        module, function = COMMANDS[args.command].split(":")
        with _logging(quiet=getattr(args, "quiet", False), debug=debug):
            return int(getattr(import_module(module), function)(args))
    except KeyboardInterrupt:
        return _complain(_interrupted(arguments), INTERRUPTED)
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does; Python must not fail when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (PertinentError, OSError) as error:
        if debug:
            raise
        return _complain(f"error: {error}")
    except Exception as error:
        if debug:
            raise
        return _complain(f"error: unexpected {type(error).__name__}: {error} (--debug shows where)")


def _interrupted(arguments: Sequence[str]) -> str:
    """That the run was interrupted, and how to continue it if that is possible."""
    if arguments[0] not in ("explain", "compare") or not any(
        a.partition("=")[0] == "--out" for a in arguments
    ):
        return "interrupted"
    return f"interrupted; finished explanations are kept. To continue: pertinent {shlex.join(arguments)}"


def _complain(message: str, code: int = BAD_USAGE) -> int:
    print(f"pertinent: {message}", file=sys.stderr)  # noqa: T201
    return code


@contextmanager
def _logging(*, quiet: bool, debug: bool) -> Iterator[None]:
    """Show what the library logs, on stderr, while a command runs."""
    logger = logging.getLogger("pertinent")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("pertinent: %(message)s"))
    handler.setLevel(logging.DEBUG if debug else logging.ERROR if quiet else logging.WARNING)
    before = logger.level
    logger.addHandler(handler)
    if debug:
        logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
