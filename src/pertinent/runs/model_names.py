"""Models by name: embedded ones, folders, and objects in a module of the user's own."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from pertinent.errors import FileError, ModelError, SettingError, unknown
from pertinent.explainers.base import learned_methods
from pertinent.files import folder_exists
from pertinent.inputs.base import Input
from pertinent.inputs.modality import modality_named
from pertinent.models.base import Answer, Model
from pertinent.models.function import split_any
from pertinent.models.wrap import wrap
from pertinent.removals.base import Rows

_OWN = re.compile(r"([^\W\d]\w*(?:\.\w+)*):([^\W\d]\w*(?:\.\w+)*)")
"""``package.module:name``"""


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
        return wrap(load_own(name, "--model"))
    if name in NAMES:
        return load(name, device=device, dtype=dtype, long_texts=long_texts)
    if not folder_exists(Path(name)):
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
    from pertinent.finetuning.run_folder import RECORD

    try:
        card = read_json(folder / RECORD)
    except FileError:
        return False
    return isinstance(card, dict) and card.get("method") in learned_methods


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


def kind_named(name: str) -> str | None:
    """The kind of input that a model reads, known before it is loaded; ``None`` for one of the user's own."""
    from pertinent.models.embedded.load import KINDS, find_head

    if is_own(name):
        return None
    if name in KINDS:
        return KINDS[name]
    return find_head(name).kind


class NamedModel(Model):
    """A model that the workers of a cluster load by its name, and this process does not load.

    Parameters
    ----------
    name
        As for `load_model`. A folder and a module must be there on every worker.
    device, dtype, long_texts
        As for `load_model`.
    """

    def __init__(
        self, name: str, device: str = "cpu", dtype: str = "float32", long_texts: str = "truncate"
    ) -> None:
        is_folder = not is_own(name) and folder_exists(Path(name))
        self.name = str(Path(name).resolve()) if is_folder else name
        self.options = (device, dtype, long_texts)
        self.kind = kind_named(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: loaded by the workers of a cluster>"

    def load(self) -> Model:
        """Load the model, in a worker."""
        return load_model(self.name, *self.options)

    def split(self, raw: Any) -> Iterable[Any] | None:
        """The inputs in `raw`, if it holds several."""
        return split_any(raw) if self.kind is None else modality_named(self.kind).split(raw)

    def identity(self) -> NoReturn:
        """Raise an error: the weights are elsewhere."""
        self._refuse()

    def prepare(self, raw: Any, features: str | None = None) -> Input:
        """Raise an error: the tokenizer is elsewhere."""
        self._refuse()

    def default_removal(self, input: Input) -> str:
        """Raise an error: the model is elsewhere."""
        self._refuse()

    def submit(self, rows: Sequence[Rows]) -> Answer:
        """Raise an error: the model is elsewhere."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ModelError(
            f"The model {self.name!r} is loaded by the workers of a cluster alone, but is needed here: load "
            "and wrap it, and give that in place of its name."
        )
