"""``pertinent check``: which removal suits a model, and should it be trained counterfactually?"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

from pertinent.cli.items import Columns, Item
from pertinent.cli.models import is_own, kind_read, load_model
from pertinent.cli.output import Output, conclude, save_figure
from pertinent.cli.records import file_items
from pertinent.diagnostics.check_removal import check_removal
from pertinent.errors import SettingError
from pertinent.removal.base import removals


def check(args: Namespace) -> int:
    """Check the removals, print the table and the advice, and write the files asked for."""
    output = Output(args)
    own = load_model(args.model, args.device, args.dtype) if is_own(args.model) else None
    kind = kind_read(args.model, own)
    if kind == "image":
        raise SettingError("Images are not read from a file of inputs: use `pertinent.check_removal`.")
    named = [removals.make(name) for name in args.removals] if args.removals else None
    columns = Columns(kind, args.column, args.pair_column, args.label_column)
    found = file_items(args.data, columns, args.limit)
    readable = [item for item in found if item.error is None]
    if not readable:
        return conclude(0, _reasons(found))
    model = own or load_model(args.model, args.device, args.dtype)
    checked = check_removal(
        model,
        [item.raw for item in readable],
        [item.label for item in readable] if args.label_column else None,
        removals=named,
        shares=args.shares,
        draws=args.draws,
        features=args.features,
        seed=args.seed,
        batch_size=args.batch_size,
        progress=False if output.silent else None,
    )
    failed = [(readable[f.index].where, str(f)) for f in checked.failures]
    output.show(replace(checked, failures=()))
    unwritten = output.write_json(checked.to_json, checked.save)
    unwritten += output.write_file(
        "--plot", "Plot", output.plot, lambda path: save_figure(checked.plot(), path)
    )
    return conclude(checked.inputs, [*_reasons(found), *failed, *unwritten])


def _reasons(items: Sequence[Item]) -> list[tuple[str, str]]:
    return [(item.where, str(item.error)) for item in items if item.error is not None]
