"""What names on the command line stand for: models, methods, and objects in a module of the user's own."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args

import pertinent
from pertinent.errors import FileError, ModelError, SettingError, unknown
from pertinent.explainers.base import Explainer, explainers, learned
from pertinent.models.base import Model
from pertinent.registry import with_settings
from pertinent.setting_texts import read_settings, split_settings
from pertinent.settings import settings_types

DEFAULTS = {"text": "sentiment", "image": "digits", "table": "table"}
"""The default model for each kind of input."""

_OWN = re.compile(r"([^\W\d]\w*(?:\.\w+)*):([^\W\d]\w*(?:\.\w+)*)")
"""``package.module:name``"""


@dataclass(frozen=True)
class GivenModel:
    """The flags that name the model.

    Attributes
    ----------
    model
        sentiment, topics, digits, table, diabetes; a folder with a transformers classifier of texts
        or images, or a language model; or package.module:name, a model or function in a module of your own,
        which is imported (sentiment for texts, digits for images, table for rows).
    device
        Where it runs: cpu, cuda, cuda:1, mps ….
    dtype
        Its precision: float32, bfloat16, float16, float64.
    long_texts
        What a transformer does with a text that is longer than it reads at once: truncate, or windows, which
        overlap and whose mean is the answer (windows:64 share 64 tokens with the next).
    """

    model: Annotated[str, "NAME|FOLDER|MODULE:NAME"] = ""
    device: str = "cpu"
    dtype: str = "float32"
    long_texts: Annotated[str, "truncate|windows"] = "truncate"

    def load(self) -> Model:
        """Load the model."""
        return load_model(self.model, self.device, self.dtype, self.long_texts)

    @property
    def kind(self) -> str:
        """The kind of input that a model which is not loaded yet reads; not for one of the user's own."""
        from pertinent.models.embedded.load import reads_images

        folder = "image" if reads_images(self.model) else "text"
        return {"digits": "image", "table": "table", "diabetes": "table"}.get(self.model, folder)


def is_own(name: str) -> bool:
    """Whether the user names an object in a module of their own."""
    return _OWN.fullmatch(name) is not None


def load_model(name: str, device: str = "cpu", dtype: str = "float32", long_texts: str = "truncate") -> Model:
    """An embedded model, the transformer in a folder, or a model in a module of the user's own."""
    from pertinent.models.embedded.load import NAMES, load, load_transformer

    if is_own(name):
        if (device, dtype, long_texts) != ("cpu", "float32", "truncate"):
            flags = "--device, --dtype and --long-texts"
            raise SettingError(f"{name!r} says itself where it runs and what it reads: leave out {flags}.")
        return pertinent.wrap(load_own(name, "--model"))
    if name in NAMES:
        return load(name, device=device, dtype=dtype, long_texts=long_texts)
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
    options = {} if long_texts == "truncate" else {"long_texts": long_texts}
    return load_transformer(name, device=device, dtype=dtype, **options)


def _is_explainer(folder: Path) -> bool:
    """Whether `fit` wrote a folder, by the method in its card."""
    from pertinent.files import read_json
    from pertinent.training.run_folder import RECORD

    try:
        card = read_json(folder / RECORD)
    except FileError:
        return False
    return isinstance(card, dict) and card.get("method") in learned


def load_own(name: str, flag: str = "--embed") -> Any:
    """Import a module from the current folder or the installed packages, and return what is named in it."""
    module_name, _, attribute = name.partition(":")
    if not is_own(name):
        raise SettingError(f"{flag} must be package.module:name, but got {name!r}.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # and left there: what is imported may import more when it is called
    found = _imported(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            public = [known for known in vars(found) if not known.startswith("_")]
            raise SettingError(f"{unknown(f'name in {module_name}', part, public)} ({flag} {name})")
        found = getattr(found, part)
    return found


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


def load_methods(names: Sequence[str], pairs: Iterable[str]) -> list[Explainer]:
    """Methods by name or folder, each perhaps with settings as in ``lime:samples=300``.

    Each of `pairs` is ``setting=value``, or ``method.setting=value`` among several methods.
    """
    settings = read_pairs(names, pairs)
    return [_method(name, settings[name]) for name in names]


def read_pairs(names: Sequence[str], pairs: Iterable[str]) -> dict[str, dict[str, str]]:
    """The settings of each method, as text."""
    settings: dict[str, dict[str, str]] = {name: {} for name in names}
    for pair in pairs:
        left, equals, value = pair.partition("=")
        if not equals or not left:
            raise SettingError(f"--set must be SETTING=VALUE, such as samples=25, but got {pair!r}.")
        method, dot, setting = left.rpartition(".")
        if not dot and len(names) == 1:
            method = names[0]
        elif not dot:
            raise SettingError(f"--set must name the method too, such as {names[0]}.{pair}.")
        if method not in settings:
            raise unknown("method in --set", method, names)
        settings[method][setting] = value
    return settings


def _method(text: str, settings: Mapping[str, str]) -> Explainer:
    """A registered method, else the explainer in a folder of that name."""
    name, own = split_settings(text, "method")
    settings = own | dict(settings)
    if Path(name).is_dir() and name not in explainers:
        fitted = pertinent.load_explainer(name)
        return with_settings(fitted, read_settings(type(fitted), settings))
    if name not in explainers and name in learned:
        fit = f"pertinent fit --method {name} --out FOLDER, then --method FOLDER"
        raise SettingError(f"{name!r} has to learn first: {fit}.")
    if Path(name).name != name:
        raise SettingError(f"There is no folder {name!r}: name a method, or what `pertinent fit` wrote.")
    cls = explainers.get(name)
    types, read = settings_types(cls), read_settings(cls, settings)
    for setting, value in read.items():
        # A setting may be another method, and that the folder of a fitted one.
        if Explainer in get_args(types.get(setting)) and value not in explainers:
            read[setting] = _method(value, {})
    return explainers.make(name, read)
