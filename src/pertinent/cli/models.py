"""From ``--model`` to a model."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from pertinent.errors import SettingError, unknown
from pertinent.models.base import Model

DEFAULTS = {"text": "sentiment", "image": "digits", "table": "table"}
"""The model for a kind of input when none is named."""


def kind_read(name: str) -> str:
    """What kind of input the model reads."""
    return {"digits": "image", "table": "table"}.get(name, "text")


def load_model(args: Namespace) -> Model:
    """An embedded model, or the transformer in a folder."""
    from pertinent.models.embedded import NAMES, load, load_transformer

    place = {"device": args.device, "dtype": args.dtype}
    if kind_read(args.model) == "text":
        _silence_transformers()
    if args.model in NAMES:
        return load(args.model, **place)
    if not Path(args.model).is_dir():
        raise SettingError(
            f"{unknown('model', args.model, NAMES)} A folder with a transformers model will do, too."
        )
    return load_transformer(args.model, **place)


def _silence_transformers() -> None:
    """No bar for the loading of a small model."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
