"""From ``--model`` to a model."""

from __future__ import annotations

from pathlib import Path

from pertinent.errors import SettingError, unknown
from pertinent.models.base import Model

DEFAULTS = {"text": "sentiment", "image": "digits", "table": "table"}
"""The default model for each kind of input."""


def kind_read(name: str) -> str:
    """What kind of input the model reads."""
    return {"digits": "image", "table": "table", "diabetes": "table"}.get(name, "text")


def load_model(name: str, device: str = "cpu", dtype: str = "float32") -> Model:
    """An embedded model, or the transformer in a folder."""
    from pertinent.models.embedded.load import NAMES, load, load_transformer

    if name in NAMES:
        return load(name, device=device, dtype=dtype)
    if not Path(name).is_dir():
        raise SettingError(f"{unknown('model', name, NAMES)} A folder with a transformers model also works.")
    return load_transformer(name, device=device, dtype=dtype)
