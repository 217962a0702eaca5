"""`pertinent study create`, `serve` and `report`."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress

import pertinent
from pertinent.cli.command_output import CommandOutput, conclude
from pertinent.cli.signatures import call_with
from pertinent.cli.verbs import arguments_of


def create(args: Namespace) -> int:
    """Create a study from files of explanations and print how to run it."""
    output = CommandOutput(quiet=args.quiet)
    study = pertinent.create_study(args.files, **arguments_of(args))
    d = study.description
    output.show(
        f"{d.inputs} inputs, {len(d.methods)} methods ({', '.join(d.methods)}), {d.inputs + d.checks} "
        "questions per participant."
    )
    output.show(f"The design is balanced with {study.cycle} participants, or multiples of that number.")
    output.show(f"Next: pertinent study serve {study.folder}")
    return 0


def serve(args: Namespace) -> int:
    """Serve the page of a study until it is interrupted."""
    with suppress(KeyboardInterrupt):
        pertinent.serve_study(args.study, **arguments_of(args))
    return 0


def report(args: Namespace) -> int:
    """Show the tables of a study, and write JSON and a plot."""
    output = call_with(args, CommandOutput)
    result = pertinent.report_study(args.study, **arguments_of(args))
    output.show(result)
    return conclude(1, output.write(result))
