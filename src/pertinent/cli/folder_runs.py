"""``pertinent explain --out FOLDER``: inputs stream in, explanations stream out, none are kept in memory."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pertinent
from pertinent.api.evaluate import DEFAULT_METRICS
from pertinent.cli.cluster_flags import ClusterFlags
from pertinent.cli.command_output import LISTED, CommandOutput, complain, conclude
from pertinent.cli.input_flags import InputFlags
from pertinent.cli.loading import ModelFlags, load_methods, model_named
from pertinent.cli.signatures import call_with
from pertinent.errors import InputError, SettingError
from pertinent.rendering.by_input import named
from pertinent.results.explanation_folder import ExplanationFolder
from pertinent.runs.blocks import NamedInput
from pertinent.runs.model_names import is_own

_UNUSED = ("html", "json", "check", "by_class")


def explain_to_folder(args: Namespace, arguments: dict[str, Any], *, measure: bool) -> int:
    """Explain inputs that need not fit into memory, and print how many there are."""
    for flag in _UNUSED:
        if getattr(args, flag):
            raise SettingError(
                f"--{flag.replace('_', '-')} needs all explanations in memory: leave it out, or give --out a "
                "name that ends in .parquet."
            )
    output, inputs = CommandOutput(quiet=args.quiet), call_with(args, InputFlags)
    model, cluster = (
        call_with(args, ModelFlags, model=model_named(args, inputs)),
        call_with(args, ClusterFlags).made(),
    )
    loaded = model.load() if cluster is None or is_own(model.model) else None
    (method,) = load_methods([args.method], args.set)
    stream = _Stream(inputs, model.kind if loaded is None else loaded.kind, model.model)
    if stream.n is not None and not any(True for _ in stream):  # wrong columns are found here, too
        raise InputError("There is nothing to explain.")
    del arguments["check"]
    found = pertinent.explain(
        loaded if cluster is None else model.on_workers(),
        stream if stream.n is not None else iter(stream),
        **arguments
        | {
            "method": method,
            "metrics": DEFAULT_METRICS if measure else (),
            "cluster": cluster,
            "progress": output.progress,
        },
    )
    assert isinstance(found, ExplanationFolder)
    output.show(f"{found}.")
    output.show(f"Saved: {found.path.resolve()}")
    code = conclude(len(found), list(named(islice(found.failures, LISTED))))
    if found.n_failures > LISTED:
        complain(f"failed: {found.n_failures:,} in all")
    return code


class _Stream:
    """The inputs with their names, read whenever they are iterated over; `n` is how many, if it is known."""

    def __init__(self, inputs: InputFlags, kind: str | None, model: str) -> None:
        self._arguments = inputs, kind, model
        self.n = inputs.count()

    def __len__(self) -> int:
        assert self.n is not None
        return self.n

    def __iter__(self) -> Iterator[NamedInput]:
        inputs, kind, model = self._arguments
        for record in inputs.stream(kind, model):
            yield NamedInput(record.raw if record.error is None else record.error, record.id or record.where)
