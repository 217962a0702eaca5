"""Command line. Heavy modules are imported only by the command that needs them."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Sequence
from functools import partial
from io import TextIOWrapper
from pkgutil import resolve_name
from traceback import format_exc

from pertinent.cli.command_output import NothingDone, complain, conclude, logging_to_stderr
from pertinent.cli.commands import COMMANDS
from pertinent.cli.parser import main_parser, parse
from pertinent.cli.signatures import call_with
from pertinent.errors import PertinentError

BAD_USAGE = 2
INTERRUPTED = 130
TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """Exception raised on SIGTERM, which cluster schedulers send; finished work is kept."""


def _terminate(*_: object) -> None:
    raise Terminated


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    os.environ.setdefault(
        "OMP_WAIT_POLICY", "PASSIVE"
    )  # before torch loads, so that waiting threads do not occupy cores
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # the terminal may lack some characters
    if not arguments:
        main_parser().print_help()
        return BAD_USAGE
    debug = "--debug" in arguments
    if argv is None:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        args = parse(arguments)
        with logging_to_stderr(quiet=getattr(args, "quiet", False), debug=debug):
            verb = resolve_name(f"pertinent.cli.{COMMANDS[args.command].runs}")
            return int(call_with(args, partial(verb, args)))
    except KeyboardInterrupt as stopped:
        terminated = isinstance(stopped, Terminated)
        complain(_interruption_message("terminated" if terminated else "interrupted", arguments))
        return TERMINATED if terminated else INTERRUPTED
    except BrokenPipeError:
        # The reader, for example `head`, closed the pipe: redirect stdout so that the flush at exit succeeds.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except NothingDone as error:
        return conclude(0, error.failures)
    except Exception as error:  # noqa: BLE001  a user gets a line, not a traceback
        expected = isinstance(error, PertinentError | OSError)
        unexpected = f"unexpected {type(error).__name__}: {error} (--debug shows where)"
        complain(f"error: {error if expected else unexpected}", format_exc() if debug else "")
        return BAD_USAGE


def _interruption_message(reason: str, arguments: Sequence[str]) -> str:
    """Return a message with the reason and, if possible, the command that resumes the run."""
    if arguments[0] not in ("explain", "compare", "fit") or not any(a[:5] == "--out" for a in arguments):
        return reason
    return f"{reason}; finished work is kept. To resume: pertinent {shlex.join(arguments)}"
