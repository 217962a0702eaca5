"""``pertinent explain --out FOLDER``, which keeps neither inputs nor explanations in memory."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pertinent
from pertinent.cli.cluster_flags import ClusterFlags
from pertinent.cli.command_output import LISTED, CommandOutput, complain, conclude
from pertinent.cli.input_flags import InputFlags
from pertinent.cli.loading import ModelFlags, kind_before_loading, load_methods, model_named
from pertinent.cli.signatures import call_with
from pertinent.errors import InputError, SettingError
from pertinent.rendering.by_input import named
from pertinent.results.explanation_folder import ExplanationFolder
from pertinent.runs.request import default_method
from pertinent.runs.run import NamedInput

_UNUSED = ("html", "json", "check", "by_class")


def explain_to_folder(args: Namespace, arguments: dict[str, Any]) -> int:
    """Explain a stream of inputs, and print the number of explanations."""
    for flag in _UNUSED:
        if getattr(args, flag):
            raise SettingError(
                f"--{flag.replace('_', '-')} needs all explanations in memory: omit it, or let the name of "
                "--out end in .parquet."
            )
    output, inputs = CommandOutput(quiet=args.quiet), call_with(args, InputFlags)
    model = call_with(args, ModelFlags, model=model_named(args, inputs)).named()
    kind = kind_before_loading(model)
    (arguments["method"],) = load_methods([args.method or default_method(kind)], args.set)
    stream = _Stream(inputs, kind, model.name)
    if stream.n is not None and not any(True for _ in stream):  # also raises errors of columns
        raise InputError("There is nothing to explain.")
    del arguments["check"]
    arguments |= {"cluster": call_with(args, ClusterFlags).cluster(), "progress": output.progress}
    folder = pertinent.explain(model, stream if stream.n is not None else iter(stream), **arguments)
    assert isinstance(folder, ExplanationFolder)
    output.show(f"{folder}.")
    output.show(f"Saved: {folder.path.resolve()}")
    code = conclude(len(folder), list(named(islice(folder.failures, LISTED))))
    if folder.n_failures > LISTED:
        complain(f"failed: {folder.n_failures:,} in total")
    return code


class _Stream:
    """Inputs with their ids, re-read in each iteration; `n` is their number, if known."""

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
