"""Models by name: embedded models, folders, and objects in a user's module."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from pertinent.errors import FileError, ModelError, SettingError, unknown
from pertinent.explainers.base import learned_methods
from pertinent.files import folder_exists
from pertinent.inputs.modality import modality_named
from pertinent.models.base import Model
from pertinent.models.function import split_any
from pertinent.models.gguf import is_gguf
from pertinent.models.wrap import wrap

_OWN = re.compile(r"([^\W\d]\w*(?:\.\w+)*):([^\W\d]\w*(?:\.\w+)*)")
"""``package.module:name``"""


_ENDPOINT = re.compile(r"(https?://[^#\s]+)#(\S+)")
"""``https://host/v1#model``"""


def load_or_wrap(model: Any) -> Model:
    """Return the model for the argument `model` of a public function: a name, or what `wrap` accepts."""
    if isinstance(model, str):
        return load_model(model)
    return model.load() if isinstance(model, NamedModel) else wrap(model)


def is_endpoint(name: str) -> bool:
    """Return whether a name is the address of an endpoint."""
    return name.startswith(("http://", "https://"))


def is_own(name: str) -> bool:
    """Return whether a name refers to an object in a user's module."""
    return _OWN.fullmatch(name) is not None


def load_model(name: str, device: str = "cpu", dtype: str = "float32", long_texts: str = "truncate") -> Model:
    """Load an embedded model, one from a folder, file, endpoint, or user's module."""
    from pertinent.models.embedded.load import NAMES, OPTIONAL, load, load_transformer

    if is_own(name):
        if (device, dtype, long_texts) != ("cpu", "float32", "truncate"):
            flags = "--device, --dtype and --long-texts"
            raise SettingError(f"{name!r} is configured in its module: omit {flags}.")
        return wrap(load_own(name, "--model"))
    if name in NAMES or name in OPTIONAL:
        return load(name, device=device, dtype=dtype, long_texts=long_texts)
    if is_endpoint(name):
        from pertinent.models.endpoint import wrap_endpoint

        found = _ENDPOINT.fullmatch(name)
        if found is None:
            raise SettingError(
                "A model at an endpoint must be ADDRESS#NAME, such as http://localhost:11434#llama3.2, got "
                f"{name!r}."
            )
        return wrap_endpoint(found[1], model=found[2])
    if is_gguf(name):
        return wrap(name, device=device, dtype=dtype)
    if not folder_exists(Path(name)):
        raise SettingError(
            f"{unknown('model', name, (*NAMES, *OPTIONAL))} The name of a folder with a transformers model, "
            "a .gguf file, ADDRESS#NAME of a model at an endpoint, and package.module:name for your own "
            "model are also accepted."
        )
    if _is_explainer(Path(name)):
        raise SettingError(
            f"{name!r} contains an explainer, not a model: pass it with --method, and with --model the model "
            "that it was fitted to."
        )
    options = {} if long_texts == "truncate" else {"long_texts": long_texts}
    return load_transformer(name, device=device, dtype=dtype, **options)


def _is_explainer(folder: Path) -> bool:
    """Return whether a folder was written by `fit`, based on the method in its card."""
    from pertinent.files import read_json
    from pertinent.finetuning.run_folder import RECORD

    try:
        card = read_json(folder / RECORD)
    except FileError:
        return False
    return isinstance(card, dict) and card.get("method") in learned_methods


def load_own(name: str, flag: str = "--embed") -> Any:
    """Return an object from a module in the current folder or an installed package."""
    module_name, _, attribute = name.partition(":")
    if not is_own(name):
        raise SettingError(f"{flag} must be package.module:name, but got {name!r}.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # not removed, because the module may import others later
    target = _import(module_name)
    for part in attribute.split("."):
        if not hasattr(target, part):
            public = [name for name in vars(target) if not name.startswith("_")]
            raise SettingError(f"{unknown(f'name in {module_name}', part, public)} ({flag} {name})")
        target = getattr(target, part)
    return target


def _import(module_name: str) -> Any:
    try:
        return import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise SettingError(
                f"There is no module {error.name!r} in this folder or among the installed packages."
            ) from error
        raise ModelError(f"{module_name!r} cannot be imported: {error}.") from error
    except (Exception, SystemExit) as error:
        raise ModelError(f"{module_name!r} cannot be imported: {type(error).__name__}: {error}") from error


def kind_named(name: str) -> str | None:
    """Return the kind of input of a model before it is loaded; None for a model in a user's module."""
    from pertinent.models.embedded.load import KINDS, OPTIONAL, find_head

    if is_own(name):
        return None
    kinds = KINDS | OPTIONAL
    if name in kinds or is_gguf(name) or is_endpoint(name):
        return kinds.get(name, "prompt")
    return find_head(name).kind


class NamedModel(Model):
    """A model loaded by name where it is used: in this process, or by the workers of a cluster.

    Parameters
    ----------
    name
        As for `load_model`. On a cluster, every worker must have the folder or module.
    device, dtype, long_texts
        As for `load_model`.
    """

    def __init__(
        self, name: str, device: str = "cpu", dtype: str = "float32", long_texts: str = "truncate"
    ) -> None:
        self.name = name
        self.options = (device, dtype, long_texts)
        self.kind = kind_named(name)
        self._loaded: Model | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a worker: no loaded model, and the absolute path of a folder."""
        is_path = is_gguf(self.name) or (not is_own(self.name) and folder_exists(Path(self.name)))
        name = str(Path(self.name).resolve()) if is_path else self.name
        return {**vars(self), "name": name, "_loaded": None}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: not loaded>"

    def load(self) -> Model:
        """Return the model, which is loaded once per process."""
        if self._loaded is None:
            self._loaded = load_model(self.name, *self.options)
        return self._loaded

    def split(self, raw: Any) -> Iterable[Any] | None:
        """Return the inputs in a collection, or None if `raw` is a single input."""
        return split_any(raw) if self.kind is None else modality_named(self.kind).split(raw)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ModelError(
            f"The model {self.name!r} is loaded only by the workers of a cluster but is needed in this "
            "process: load and wrap it, and pass the wrapped model instead of its name."
        )

    identity = prepare = default_removal = submit = _refuse
