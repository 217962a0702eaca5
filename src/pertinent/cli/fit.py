"""``pertinent fit``: an explainer that learns from a model's answers."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pertinent.api.run import Run
from pertinent.cli.items import Columns, Item
from pertinent.cli.models import DEFAULTS, is_own, kind_read, load_model
from pertinent.cli.output import Output, conclude
from pertinent.cli.read import items, kind_given
from pertinent.cli.records import file_items
from pertinent.cli.settings import read_pairs
from pertinent.errors import SettingError
from pertinent.inputs.base import Input
from pertinent.learned.base import learned
from pertinent.learned.fit import fit as fit_explainer
from pertinent.learned.fit import setting_owner
from pertinent.outputs import percent
from pertinent.setting_texts import read_settings
from pertinent.training.run_folder import RECORD

ENOUGH = 20
"""With fewer held-out inputs what is measured on them says little."""

_PLACEHOLDERS = {"text": ["some text"], "image": ["--image", "FILE"], "table": ["--row", "JSON"]}
"""What to explain, in the command that is suggested."""


def fit(args: Namespace) -> int:
    """Fit an explainer, and print how well it does and how to use it."""
    output = Output(Namespace(quiet=args.quiet))
    args.model = args.model or DEFAULTS[kind_given(args) or "text"]
    own = load_model(args.model, args.device, args.dtype) if is_own(args.model) else None
    settings = _settings(args)  # after a module of the user's own is imported: it may register the method
    found = _items(args, kind_read(args.model, own))
    model = own or load_model(args.model, args.device, args.dtype)
    prepared = [_prepared(Run(model), item, args.features) for item in found]
    pairs = list(zip(found, prepared, strict=True))
    usable = [item for item, each in pairs if isinstance(each, Input)]
    kind = next((each.kind for each in prepared if isinstance(each, Input)), None)
    unusable = [(item.where, str(each)) for item, each in pairs if isinstance(each, Exception)]
    if kind is None:
        return conclude(0, unusable)
    finished = (Path(args.out) / RECORD).is_file()
    fitted = fit_explainer(
        model,
        [item.raw for item in usable],
        args.method,
        labels=None if args.label_column is None else [item.label for item in usable],
        teacher=args.teacher,
        teacher_explanations=args.teacher_explanations,
        classes=args.classes,
        removal=args.removal,
        features=args.features,
        scale=args.scale,
        validation_fraction=args.validation_fraction,
        epochs=args.epochs,
        batch_size=args.batch_size,
        learning_rate=args.learning_rate,
        patience=args.patience,
        precision=args.precision,
        seed=args.seed,
        out=args.out,
        progress=False if args.quiet else None,
        **settings,
    )
    for line in _report(fitted.network.card, finished=finished):
        output.show(line)
    output.show(f"Saved: {Path(args.out).resolve()}")
    output.show(f"Next: {_next(args, kind)}")
    return conclude(len(usable), unusable)


def _settings(args: Namespace) -> dict[str, Any]:
    """The settings of the method and of what it learns from, as the types that they declare."""
    texts, explainer = read_pairs([args.method], args.set)[args.method], learned.get(args.method)
    owners = {name: setting_owner(explainer, args.teacher, name) for name in texts}
    return {name: read_settings(owners[name], {name: text})[name] for name, text in texts.items()}


def _items(args: Namespace, kind: str | None) -> list[Item]:
    """The inputs given, with their labels if a column of the file has them."""
    if args.label_column is None:
        return items(args, kind)
    if args.file is None or kind_given(args) is not None:
        raise SettingError("--label-column names a column of --file: give all inputs by --file.")
    columns = Columns(kind, args.column, args.pair_column, args.label_column, args.id_column)
    return file_items(args.file, columns, args.limit)


def _report(card: Mapping[str, Any], *, finished: bool) -> list[str]:
    """What was learned from how much, and how well."""
    begin = "Was fitted before" if finished else "Fitted"
    n_dev = card["dev_examples"]
    examples = _count(card["examples"], "input")
    steps = _count(card["trees"], "tree") if "trees" in card else _count(card["steps"], "step")
    lines = [
        f"{begin}: {card['method']}, on {examples} in {steps}.",
        _measured(card, _count(n_dev, "held-out input")),
    ]
    if "dev_random" in card and card["dev_random"] >= card.get("dev_faithfulness", card.get("dev_quality")):
        lines.append("That says nothing: as many random features do as well.")
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
    words = ["pertinent", "explain", *_PLACEHOLDERS[kind], "--method", args.out]
    options = {
        "model": DEFAULTS[kind],
        "dtype": "float32",
        "features": None,
        "removal": None,
        "scale": "natural",
    }
    for name, default in options.items():
        if getattr(args, name) != default:
            words += [f"--{name}", getattr(args, name)]
    return shlex.join(words)


def _prepared(run: Run, item: Item, features: str | None) -> Input | Exception:
    """The input of an item, or the error for which there is none."""
    try:
        return run.prepare(item.error or item.raw, features)
    except Exception as error:  # noqa: BLE001  told to the user, the other items go on
        return error
