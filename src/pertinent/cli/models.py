"""From ``--model`` to a model."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from pertinent.errors import FileError, ModelError, SettingError, unknown
from pertinent.models.base import Model

DEFAULTS = {"text": "sentiment", "image": "digits", "table": "table"}
"""The default model for each kind of input."""

_OWN = re.compile(r"([^\W\d]\w*(?:\.\w+)*):([^\W\d]\w*(?:\.\w+)*)")
"""``package.module:name``"""


def is_own(name: str) -> bool:
    """Whether the user names a model in a module of their own."""
    return _OWN.fullmatch(name) is not None


def kind_read(name: str, model: Model | None = None) -> str | None:
    """What kind of input a model reads; ``None`` where a model of the user's own does not say."""
    if model is None:
        from pertinent.models.embedded.load import reads_images

        folder = "image" if reads_images(name) else "text"
        return {"digits": "image", "table": "table", "diabetes": "table"}.get(name, folder)
    return model.kind


def load_model(name: str, device: str = "cpu", dtype: str = "float32") -> Model:
    """An embedded model, the transformer in a folder, or a model in a module of the user's own."""
    from pertinent.models.embedded.load import NAMES, load, load_transformer

    if is_own(name):
        if (device, dtype) != ("cpu", "float32"):
            raise SettingError(f"{name!r} says itself where it runs: leave out --device and --dtype.")
        return _own_model(name)
    if name in NAMES:
        return load(name, device=device, dtype=dtype)
    if not Path(name).is_dir():
        raise SettingError(
            f"{unknown('model', name, NAMES)} A folder with a transformers model also works, and "
            "package.module:name for a model of your own."
        )
    if _is_explainer(Path(name)):
        raise SettingError(
            f"{name!r} holds an explainer, not a model: name it with --method, and with --model the model "
            "that it was fitted to."
        )
    return load_transformer(name, device=device, dtype=dtype)


def _is_explainer(folder: Path) -> bool:
    """Whether `fit` wrote a folder, by the method in its card."""
    from pertinent.explainers.base import learned
    from pertinent.files import read_json
    from pertinent.training.run_folder import RECORD

    try:
        card = read_json(folder / RECORD)
    except FileError:
        return False
    return isinstance(card, dict) and card.get("method") in learned


def _own_model(name: str) -> Model:
    """Import a module from the current folder or the installed packages, and wrap what it names."""
    from pertinent.models.wrap import wrap

    module_name, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # and left there: the model may import more when it is called
    found = _imported(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            public = [known for known in vars(found) if not known.startswith("_")]
            raise SettingError(f"{unknown(f'name in {module_name}', part, public)} (--model {name})")
        found = getattr(found, part)
    return wrap(found)


def _imported(module_name: str) -> Any:
    try:
        return import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise SettingError(
                f"There is no module {error.name!r}, neither in this folder nor among the installed packages."
            ) from error
        raise ModelError(f"{module_name!r} cannot be imported: {error}.") from error
    except (Exception, SystemExit) as error:
        raise ModelError(f"{module_name!r} cannot be imported: {type(error).__name__}: {error}") from error
