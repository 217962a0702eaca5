"""`pertinent study create`, `serve` and `report`."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress

import pertinent
from pertinent.cli.command_output import CommandOutput, conclude
from pertinent.cli.signatures import given
from pertinent.cli.verbs import arguments_of


def create(args: Namespace) -> int:
    """Make a study from files of explanations."""
    output = CommandOutput(quiet=args.quiet)
    study = pertinent.create_study(args.files, **arguments_of(args))
    own = study.description
    output.show(
        f"{own.inputs} texts, {len(own.methods)} methods ({', '.join(own.methods)}), "
        f"{own.inputs + own.checks} questions for each person."
    )
    output.show(f"Every question is asked equally often with {study.cycle} people, or a multiple of them.")
    output.show(f"To ask them: pertinent study serve {study.folder}")
    return 0


def serve(args: Namespace) -> int:
    """Serve the page of a study until it is interrupted, which is how it ends."""
    with suppress(KeyboardInterrupt):
        pertinent.serve_study(args.study, **arguments_of(args))
    return 0


def report(args: Namespace) -> int:
    """Show the tables of a study, and write JSON and a plot."""
    output = given(args, CommandOutput)
    found = pertinent.report_study(args.study, **arguments_of(args))
    output.show(found)
    return conclude(1, [*output.write_json(found), *output.write_plot(found)])
