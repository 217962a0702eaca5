"""Models and methods by their names on the command line."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

import pertinent
from pertinent.cli.input_flags import InputFlags
from pertinent.config.settings import replace_settings, settings_types
from pertinent.config.settings_parser import read_settings, split_settings
from pertinent.errors import SettingError, unknown
from pertinent.explainers.base import Explainer, explainers, learned_methods
from pertinent.files import folder_exists
from pertinent.models.base import Model
from pertinent.models.embedded.load import KINDS
from pertinent.runs.model_names import NamedModel, is_own, load_own

DEFAULTS = {kind: name for name, kind in reversed(KINDS.items())}
"""Default model for each kind of input: the first embedded model that reads it."""


def model_named(args: Namespace, inputs: InputFlags) -> str:
    """Return the value of ``--model``, or the default model for the inputs."""
    return str(args.model or DEFAULTS["prompt" if inputs.is_prompt else inputs.kind or "text"])


def kind_before_loading(model: NamedModel) -> str | None:
    """Return the kind of input that a model reads.

    A model in a user's module is loaded for this: only the model knows its kind, and the module may register
    methods. The kind of other models is known in advance.
    """
    return model.load().kind if is_own(model.name) else model.kind


@dataclass(frozen=True)
class ModelFlags:
    """Flags that specify the model.

    Attributes
    ----------
    model
        An embedded model (sentiment, topics, recall, digits, table, diabetes), or smollm2 if it is installed;
        a folder with a transformers classifier of texts or images, or a language model; a language model in
        a .gguf file; ADDRESS#NAME of a language model at an endpoint; or package.module:name, a model or
        function in a Python module, which is imported (sentiment for texts, recall for prompts, digits for
        images, table for rows).
    device
        The device: cpu, cuda, cuda:1, mps ….
    dtype
        The precision: float32, bfloat16, float16, float64.
    long_texts
        How a transformer reads a text longer than its maximum: truncate it, or average the output over
        overlapping windows (windows:64 overlap by 64 tokens).
    """

    model: Annotated[str, "NAME|FOLDER|MODULE:NAME"] = ""
    device: str = "cpu"
    dtype: str = "float32"
    long_texts: Annotated[str, "truncate|windows"] = "truncate"

    def load(self) -> Model:
        """Load the model."""
        return self.named().load()

    def named(self) -> NamedModel:
        """Return the model by name; it is loaded where it is used."""
        return NamedModel(self.model, self.device, self.dtype, self.long_texts)


def load_methods(names: Sequence[str], pairs: Iterable[str]) -> list[Explainer]:
    """Load methods by name or folder, each optionally with settings, as in ``lime:samples=300``.

    Each of `pairs` is ``setting=value``, or ``method.setting=value`` for one of several methods.
    """
    settings = read_pairs(names, pairs)
    return [_method(name, settings[name]) for name in names]


def read_pairs(names: Sequence[str], pairs: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the settings of each method as text."""
    settings: dict[str, dict[str, str]] = {name: {} for name in names}
    for pair in pairs:
        left, equals, value = pair.partition("=")
        if not equals or not left:
            raise SettingError(f"--set must be SETTING=VALUE, such as samples=25, but got {pair!r}.")
        method, dot, setting = left.rpartition(".")
        if not dot and len(names) == 1:
            method = names[0]
        elif not dot:
            raise SettingError(f"--set must name the method, such as {names[0]}.{pair}, but got {pair!r}.")
        if method not in settings:
            raise unknown("method in --set", method, names)
        settings[method][setting] = value
    return settings


def _method(text: str, settings: Mapping[str, str]) -> Explainer:
    """Load a registered method, a method in a Python module, or the explainer in a folder."""
    if is_own(text):
        if settings:
            raise SettingError(f"{text!r} is a Python object and takes no settings: omit --set.")
        return pertinent.adapt(load_own(text, "the method"))
    name, own_settings = split_settings(text, "method")
    settings = own_settings | dict(settings)
    if folder_exists(Path(name)) and name not in explainers:
        fitted = pertinent.load_explainer(name)
        return replace_settings(fitted, read_settings(type(fitted), settings))
    if name not in explainers and name in learned_methods:
        fit = f"pertinent fit --method {name} --out FOLDER, then --method FOLDER"
        raise SettingError(f"{name!r} must be fitted first: {fit}.")
    if Path(name).name != name:
        raise SettingError(
            f"There is no folder {name!r}: pass a method, or a folder that `pertinent fit` wrote."
        )
    cls = explainers.get(name)
    types, values = settings_types(cls), read_settings(cls, settings)
    for setting, value in values.items():
        # A setting may be another method, for example the folder of a fitted one.
        if Explainer in get_args(types.get(setting)) and value not in explainers:
            values[setting] = _method(value, {})
    return explainers.make(name, values)
