"""Import of optional dependencies."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pertinent.errors import MissingExtra

_EXTRAS = {
    "cluster": ("ray",),
    "app": ("fastapi", "uvicorn"),
    "endpoint": ("httpx",),
    "gguf": ("gguf",),
    "images": ("PIL", "skimage"),
    "nltk": ("nltk",),
    "peers": ("captum", "lime"),
    "plots": ("matplotlib",),
    "tables": ("pandas", "pyarrow", "sklearn"),
    "train": ("accelerate",),
    "shap": ("shap",),
    "shapiq": ("shapiq",),
}
"""Packages that each extra installs."""


def optional(module: str, extra: str | None = None) -> Any:
    """Import and return `module`, or raise a `MissingExtra` that names the extra to install."""
    package = module.split(".", maxsplit=1)[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != package:
            raise
        extra = extra or next(extra for extra, packages in _EXTRAS.items() if package in packages)
        raise MissingExtra(
            f"This needs {package!r}, which is not installed: pip install 'pertinent[{extra}]'."
        ) from error
