"""``pertinent sanity``: do explanations depend on what the model has learned?"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

from pertinent.api.request import Request
from pertinent.cli.models import DEFAULTS, is_own, kind_read, load_model
from pertinent.cli.output import Output, conclude, save_figure
from pertinent.cli.read import items, kind_given
from pertinent.cli.settings import make_methods
from pertinent.diagnostics.sanity import sanity as check_sanity


def sanity(args: Namespace) -> int:
    """Explain at every stage, print the table, and write the files asked for."""
    output = Output(args)
    (explainer,) = make_methods([args.method], args.set)
    request = Request.of(
        explainer,
        budget=args.budget,
        features=args.features,
        target=args.target,
        sparsity=args.sparsity,
        removal=args.removal,
        scale=args.scale,
        seed=args.seed,
    )
    args.model = args.model or DEFAULTS[kind_given(args) or "text"]
    own = load_model(args.model, args.device, args.dtype) if is_own(args.model) else None
    found = items(args, kind_read(args.model, own))
    unreadable = [(item.where, str(item.error)) for item in found if item.error is not None]
    if len(unreadable) == len(found):
        return conclude(0, unreadable)
    model = own or load_model(args.model, args.device, args.dtype)
    raws = [item.raw if item.error is None else item.error for item in found]
    ids = [item.id or item.where for item in found] if any(item.id for item in found) else None
    only = args.layers[0] if args.layers in (["cascading"], ["last"]) else args.layers
    progress = False if output.silent else None
    checked = check_sanity(
        model, raws, request, layers=only, ids=ids, batch_size=args.batch_size, progress=progress
    )
    output.show(replace(checked, failures=()))
    unwritten = output.write_json(checked.to_json, checked.save)
    unwritten += output.write_file(
        "--plot", "Plot", output.plot, lambda path: save_figure(checked.plot(), path)
    )
    failed = [(found[f.index].where, str(f)) for f in checked.failures]
    return conclude(checked.inputs, [*failed, *unwritten])
