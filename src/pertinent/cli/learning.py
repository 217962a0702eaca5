"""``pertinent fit`` and ``pertinent train``."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pertinent
from pertinent.cli.command_output import CommandOutput, Failed, NothingDone, conclude
from pertinent.cli.input_files import InputRecord
from pertinent.cli.input_flags import InputFlags, as_inputs
from pertinent.cli.loading import DEFAULTS, read_pairs
from pertinent.cli.signatures import call_with
from pertinent.cli.verbs import Call
from pertinent.config.settings_parser import read_settings
from pertinent.errors import ExampleError, InputError
from pertinent.explainers.base import learned_methods
from pertinent.inputs.modality import modality_named
from pertinent.learners.fit import setting_owner
from pertinent.number_format import count
from pertinent.runs.session import prepare_input

ENOUGH = 20
"""Number of held-out inputs below which their measures are uncertain."""

_PLACEHOLDERS = {"inputs": ["some text"], "image": ["--image", "FILE"], "row": ["--row", "JSON"]}
"""Placeholders for the inputs in the suggested command, by their flag."""


def fit(args: Namespace) -> int:
    """Fit an explainer; print its measures and a command that uses it."""
    output = CommandOutput(quiet=args.quiet)
    call = Call.from_flags(args, output)
    settings = _settings(args)
    from pertinent.finetuning.run_folder import RECORD

    model = call.model.load()
    usable: list[InputRecord] = []
    failed: list[Failed] = []
    kind = ""
    for record in call.records:
        try:
            raw = record.raw if record.error is None else record.error
            kind = prepare_input(model, raw, args.features).kind
            usable.append(record)
        except Exception as error:  # noqa: BLE001  reported, the other inputs are used
            failed.append((record.where, str(error)))
    if not usable:
        raise NothingDone(failed)
    call.records = usable
    if "labels" in call.arguments:
        call.arguments["labels"] = [record.label for record in usable]
    finished = (args.out / RECORD).is_file()
    fitted = call.to(pertinent.fit, **settings)
    for line in _report(fitted.network.card, finished=finished):
        output.show(line)
    output.show(f"Saved: {args.out.resolve()}")
    output.show(f"Next: {_next_command(args, kind)}")
    return conclude(len(usable), failed)


def train(args: Namespace, *, validation: Path | None = None) -> int:
    """Fine-tune a text classifier on a file and print its accuracy.

    Parameters
    ----------
    validation
        A file like --file on which the model is measured after each epoch; the best model is kept.
    """
    output = CommandOutput(quiet=args.quiet)
    call = Call.from_flags(args, output)
    held_out: list[InputRecord] = []
    if validation is not None:
        held_out = call_with(args, InputFlags, file=validation, limit=None).read("text", args.model)
        call.arguments["validation"] = as_inputs(held_out), [each.label for each in held_out]
    for record in [*call.records, *held_out]:
        if record.error is not None:  # a model must not be trained on part of a file by mistake
            raise InputError(f"{record.where}: {record.error}") from record.error
    try:
        trained = replace(call, model=call.model.load()).to(pertinent.train)
    except ExampleError as error:
        where = (held_out if error.data == "validation" else call.records)[error.row].where
        hint = "" if error.label is None else " --new-head trains for the labels of the file."
        raise InputError(f"{where}: {error.reason}{hint}") from error
    accuracy = "" if trained.accuracy is None else f", validation accuracy {trained.accuracy:.1%}"
    examples, steps = count(len(call.records), "example"), count(trained.steps, "step")
    output.show(f"Trained on {examples} in {steps}{accuracy}.")
    output.show(f"Saved: {trained.folder.resolve()}")
    return 0


def _settings(args: Namespace) -> dict[str, Any]:
    """Return the settings of the method and of its teacher, converted to their declared types."""
    texts, explainer = read_pairs([args.method], args.set)[args.method], learned_methods.get(args.method)
    owners = {name: setting_owner(explainer, args.teacher, name) for name in texts}
    return {name: read_settings(owners[name], {name: text})[name] for name, text in texts.items()}


def _report(card: Mapping[str, Any], *, finished: bool) -> list[str]:
    """Return lines about the training and the measures on held-out inputs."""
    verb, n_held_out = "Already fitted" if finished else "Fitted", card["dev_examples"]
    steps = count(card["trees"], "tree") if "trees" in card else count(card["steps"], "step")
    measures = {
        name.removeprefix("dev_").replace("_", " "): value
        for name, value in card.items()
        if name.startswith("dev_") and name != "dev_examples" and isinstance(value, float)
    }
    listed = ", ".join(f"{name} {value:.3f}" for name, value in measures.items())
    lines = [f"{verb}: {card['method']}, on {count(card['examples'], 'input')} in {steps}."]
    lines.append(f"On {count(n_held_out, 'held-out input')}: {listed or 'no measure'}.")
    if measures.get("random", -inf) >= measures.get("faithfulness", measures.get("quality", inf)):
        lines.append("Equally many random features do as well: do not use this explainer.")
    if "doubt" in card:
        lines.append(card["doubt"])
    if n_held_out < ENOUGH:
        lines.append(f"These measures are uncertain: fit on more inputs to hold out at least {ENOUGH}.")
    return lines


def _next_command(args: Namespace, kind: str) -> str:
    """Return a command that uses the fitted explainer."""
    inputs = _PLACEHOLDERS[modality_named(kind).flag]
    words = ["pertinent", "explain", *inputs, "--method", args.texts["out"]]
    defaults = {"model": DEFAULTS.get(kind), "dtype": "float32", "scale": "natural"}
    for name in ("model", "dtype", "features", "removal", "scale"):
        if args.texts[name] not in (None, "", defaults.get(name)):
            words += [f"--{name}", args.texts[name]]
    return shlex.join(words)
