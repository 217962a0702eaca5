"""Optional dependencies, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pertinent.errors import MissingExtra

_EXTRA = {
    "accelerate": "train",
    "captum": "peers",
    "lime": "peers",
    "matplotlib": "plots",
    "nltk": "nltk",
    "pandas": "tables",
    "PIL": "images",
    "pyarrow": "tables",
    "shap": "trees",
    "skimage": "images",
    "sklearn": "tables",
}


def optional(module: str) -> Any:
    """Import `module`, or raise an error that names the extra to install."""
    package = module.split(".", maxsplit=1)[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != package:
            raise
        extra = _EXTRA[package]
        raise MissingExtra(
            f"This needs {package!r}, which is not installed: pip install 'pertinent[{extra}]'."
        ) from error
