"""``pertinent check``: which removal suits a model, and should it be trained counterfactually?"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pertinent.api.check import check_removal
from pertinent.cli.models import kind_read, load_model
from pertinent.cli.output import Output, conclude
from pertinent.cli.read import known_columns
from pertinent.cli.records import Item, file_items
from pertinent.errors import SettingError
from pertinent.models.base import Model
from pertinent.removal.base import removals
from pertinent.results.removal_check import RemovalCheck

PICTURES = (".png", ".svg", ".pdf")


def check(args: Namespace) -> int:
    """Check the removals, print the table and the advice, and write the files asked for."""
    output = Output(args)
    kind = kind_read(args.model)
    if kind == "image":
        raise SettingError("Images are not read from a file of inputs: use `pertinent.check_removal`.")
    if output.plot is not None and Path(output.plot).suffix.lower() not in PICTURES:
        raise SettingError(f"--plot must end in {', '.join(PICTURES)}, but got {output.plot!r}.")
    named = [removals.make(name) for name in args.removals] if args.removals else None
    found = file_items(
        args.data,
        kind,
        column=args.column,
        pair=args.pair_column,
        label=args.label_column,
        limit=args.limit,
    )
    readable = [item for item in found if item.error is None]
    if not readable:
        return conclude(0, _reasons(found))
    model = load_model(args.model, args.device, args.dtype)
    checked = check_removal(
        model,
        _inputs(model, readable),
        [item.label for item in readable] if args.label_column else None,
        removals=named,
        shares=args.shares,
        draws=args.draws,
        features=args.features,
        seed=args.seed,
        batch_size=args.batch_size,
        progress=False if output.silent else None,
    )
    failed = [(readable[f.index].where, f.reason) for f in checked.failures]
    output.show(replace(checked, failures=()))
    _write(checked, output)
    return conclude(checked.inputs, [*_reasons(found), *failed])


def _inputs(model: Model, items: Sequence[Item]) -> list[object]:
    """The inputs for the model; of table rows only the columns it knows."""
    columns = getattr(model, "columns", None)
    known = items if columns is None else known_columns(items, columns.names)
    return [item.raw for item in known]


def _reasons(items: Sequence[Item]) -> list[tuple[str, str]]:
    return [(item.where, str(item.error)) for item in items if item.error is not None]


def _write(checked: RemovalCheck, output: Output) -> None:
    if output.json == "-":
        sys.stdout.write(checked.to_json() + "\n")
    elif output.json is not None:
        checked.save(output.json)
        output.show(f"JSON: {Path(output.json).resolve()}")
    if output.plot is not None:
        checked.plot().savefig(output.plot, dpi=150)
        output.show(f"Plot: {Path(output.plot).resolve()}")
