"""The commands that train something: ``pertinent fit`` and ``pertinent train``."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pertinent
from pertinent.cli.command_output import CommandOutput, NothingDone, conclude
from pertinent.cli.input_files import InputRecord
from pertinent.cli.input_flags import InputFlags, as_inputs
from pertinent.cli.loading import DEFAULTS, read_pairs
from pertinent.cli.signatures import given
from pertinent.cli.verbs import Call
from pertinent.config.settings_parser import read_settings
from pertinent.errors import ExampleError, InputError
from pertinent.explainers.base import learned_methods
from pertinent.inputs.modality import modality_named
from pertinent.learners.fit import setting_owner
from pertinent.models.base import Model
from pertinent.outputs import percent

ENOUGH = 20
"""With fewer held-out inputs what is measured on them says little."""

_PLACEHOLDERS = {"inputs": ["some text"], "image": ["--image", "FILE"], "row": ["--row", "JSON"]}
"""The inputs in the suggested command, by their flag."""


def fit(args: Namespace) -> int:
    """Fit an explainer, and print how well it does and how to use it."""
    output = CommandOutput(quiet=args.quiet)
    call = Call.from_flags(args, output)
    settings = _settings(args)
    from pertinent.finetuning.run_folder import RECORD

    model = call.model.load()
    kinds = [_kind(model, record, args.features) for record in call.records]
    pairs = list(zip(call.records, kinds, strict=True))
    unusable = [(record.where, str(kind)) for record, kind in pairs if isinstance(kind, Exception)]
    call.records = [record for record, kind in pairs if isinstance(kind, str)]
    if not call.records:
        raise NothingDone(unusable)
    if "labels" in call.arguments:
        call.arguments["labels"] = [record.label for record in call.records]
    finished = (args.out / RECORD).is_file()
    fitted = call.to(pertinent.fit, **settings)
    for line in _report(fitted.network.card, finished=finished):
        output.show(line)
    output.show(f"Saved: {args.out.resolve()}")
    output.show(f"Next: {_next(args, next(kind for kind in kinds if isinstance(kind, str)))}")
    return conclude(len(call.records), unusable)


def train(args: Namespace, *, validation: Path | None = None) -> int:
    """Fine-tune a text classifier on a file, and print its accuracy.

    Parameters
    ----------
    validation
        A file like --file to measure on; the best epoch's model is kept.
    """
    output = CommandOutput(quiet=args.quiet)
    call = Call.from_flags(args, output)
    held_out: list[InputRecord] = []
    if validation is not None:
        held_out = given(args, InputFlags, file=validation, limit=None).read("text", args.model)
        call.arguments["validation"] = as_inputs(held_out), [each.label for each in held_out]
    for record in [*call.records, *held_out]:
        if record.error is not None:  # nobody should train on half a file by mistake
            raise InputError(f"{record.where}: {record.error}") from record.error
    try:
        trained = replace(call, model=call.model.load()).to(pertinent.train)
    except ExampleError as error:
        where = (held_out if error.data == "validation" else call.records)[error.row].where
        hint = "" if error.label is None else " --new-head trains for the labels of the file."
        raise InputError(f"{where}: {error.reason}{hint}") from error
    accuracy = "" if trained.accuracy is None else f", validation accuracy {trained.accuracy:.1%}"
    examples, steps = _count(len(call.records), "example"), _count(trained.steps, "step")
    output.show(f"Trained on {examples} in {steps}{accuracy}.")
    output.show(f"Saved: {trained.folder.resolve()}")
    return 0


def _kind(model: Model, record: InputRecord, features: Any) -> str | Exception:
    """What kind of input a record holds, or why the model cannot use it."""
    try:
        return record.error or model.prepare(record.raw, features).kind
    except Exception as error:  # noqa: BLE001  told to the user, the other inputs are used
        return error


def _settings(args: Namespace) -> dict[str, Any]:
    """The settings of the method and of what it learns from, as the types that they declare."""
    texts, explainer = read_pairs([args.method], args.set)[args.method], learned_methods.get(args.method)
    owners = {name: setting_owner(explainer, args.teacher, name) for name in texts}
    return {name: read_settings(owners[name], {name: text})[name] for name, text in texts.items()}


def _report(card: Mapping[str, Any], *, finished: bool) -> list[str]:
    """What was learned from how much, and how well."""
    begin = "Was fitted before" if finished else "Fitted"
    n_dev = card["dev_examples"]
    examples = _count(card["examples"], "input")
    steps = _count(card["trees"], "tree") if "trees" in card else _count(card["steps"], "step")
    lines = [f"{begin}: {card['method']}, on {examples} in {steps}."]
    lines.append(_measured(card, _count(n_dev, "held-out input")))
    if "dev_random" in card and card["dev_random"] >= card.get("dev_faithfulness", card.get("dev_quality")):
        lines.append("That says nothing: as many random features do as well.")
    if {"dev_comprehensiveness", "dev_leave_one_out"} <= set(card):
        own, other = card["dev_comprehensiveness"], card["dev_leave_one_out"]
        lines.append(
            f"Without its top features the answer loses {own:.3f}, without leave-one-out's {other:.3f}."
        )
    if "doubt" in card:
        lines.append(card["doubt"])
    if n_dev < ENOUGH:
        lines.append(f"That is uncertain: fit on more inputs, to hold out at least {ENOUGH}.")
    return lines


def _measured(card: Mapping[str, Any], held_out: str) -> str:
    """How well the best network does on the held-out inputs, in words."""
    if "dev_faithfulness" in card:
        share, random = (percent(card[f"dev_{name}"]) for name in ("faithfulness", "random"))
        kept = "With the selected features alone the model decides as before"
        return f"{kept} for {share} of {held_out}, with as many random ones for {random}."
    if "trees" in card:
        used = _count(len(card["used"]), "column")
        return f"Mean squared error of linear models of {used} on {held_out}: {card['dev_loss']:.3g}."
    measure, best = "Loss", card.get("dev_loss")
    if "dev_spearman" in card:
        measure, best = f"Rank correlation with {card['learned_from']['method']}", card["dev_spearman"]
    if "dev_quality" in card:
        own, random = (f"{card[f'dev_{name}']:.3f}" for name in ("sufficiency", "random_sufficiency"))
        can_go = f"{percent(card['dev_share_removed'])} of the features of {held_out} can go"
        return f"{can_go}, at a sufficiency of {own}; with as many random ones it is {random}."
    shown = "none" if best is None else f"{best:.3f}"
    return f"{measure} on {held_out}, by which the best network was chosen: {shown}."


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _next(args: Namespace, kind: str) -> str:
    """A command that explains with what was fitted."""
    inputs = _PLACEHOLDERS[modality_named(kind).flag]
    words = ["pertinent", "explain", *inputs, "--method", args.texts["out"]]
    defaults = {"model": DEFAULTS.get(kind), "dtype": "float32", "scale": "natural"}
    for name in ("model", "dtype", "features", "removal", "scale"):
        if args.texts[name] not in (None, "", defaults.get(name)):
            words += [f"--{name}", args.texts[name]]
    return shlex.join(words)
