"""Small models that come with the package, so that a first explanation needs nothing else."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from pertinent.errors import unknown
from pertinent.models.base import Model

NAMES = ("sentiment", "topics", "digits", "table")


def load(name: str) -> Model:
    """An embedded model, wrapped.

    ``"sentiment"`` and ``"topics"`` are small transformers in the package; ``"digits"`` (an image
    classifier) and ``"table"`` are made on first use in seconds and kept in the cache folder.
    """
    if name not in NAMES:
        raise unknown("embedded model", name, NAMES)
    if name == "digits":
        from pertinent.models.digits import digits_model

        return digits_model()
    if name == "table":
        from pertinent.models.wine import table_model

        return table_model()
    return load_transformer(Path(str(resources.files("pertinent"))) / "assets" / name)


def load_transformer(folder: str | Path, **options: Any) -> Model:
    """A sequence classifier and its tokenizer from a folder in transformers' format."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from pertinent.models.wrap import wrap

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
    return wrap((model, tokenizer), **options)
