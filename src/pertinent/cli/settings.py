"""Settings of methods, metrics and removals, from text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from pertinent.errors import SettingError, unknown
from pertinent.explainers.base import Explainer, explainers
from pertinent.metric.base import Metric, metrics
from pertinent.registry import Registry
from pertinent.removal.base import Removal, removals


def make_methods(names: Sequence[str], pairs: Iterable[str]) -> list[Explainer]:
    """Methods by name; each of `pairs` is ``setting=value``, or ``method.setting=value`` among several."""
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
    return [explainers.make(name, _typed(explainers, name, settings[name])) for name in names]


def make_metrics(names: Sequence[str], sparsities: tuple[float, ...] | None) -> list[Metric]:
    """Metrics by name; those with sparsities get the user's."""
    made = []
    for name in names:
        cls = metrics.all().get(name)
        looks = cls is not None and any(f.name == "sparsities" for f in fields(cls))
        made.append(metrics.make(name, {"sparsities": sparsities} if looks and sparsities else {}))
    return made


def make_removal(text: str) -> Removal:
    """A removal as ``name``, or ``name:setting=value,setting=value``."""
    name, _, rest = text.partition(":")
    settings = {}
    for pair in filter(None, rest.split(",")):
        setting, equals, value = pair.partition("=")
        if not equals or not setting:
            raise SettingError(
                f"A removal's settings must be like uniform-noise:samples=5, but got {text!r}."
            )
        settings[setting] = value
    return removals.make(name, _typed(removals, name, settings))


def _typed(registry: Registry[Any], name: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """The settings, converted to the types that the class declares; the registry rejects unknown ones."""
    cls = registry.all().get(name)
    hints = _hints(cls) if cls is not None else {}
    return {name: _read(name, text, hints.get(name, str)) for name, text in settings.items()}


def _hints(cls: Any) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except NameError:  # a type that is not imported at run time: use the type of the default
        return {f.name: str if f.default is None else type(f.default) for f in fields(cls)}


def _read(name: str, text: str, hint: Any) -> Any:
    if get_origin(hint) is tuple:
        return tuple(_read(name, part, get_args(hint)[0]) for part in text.split(","))
    kinds = get_args(hint) or (hint,)
    if NoneType in kinds and text.lower() == "none":
        return None
    wanted = {bool: "true or false", int: "a whole number", float: "a number"}
    for kind in wanted:
        if kind in kinds:
            try:
                return _flag(text) if kind is bool else kind(text)
            except ValueError:
                continue
    missed = [what for kind, what in wanted.items() if kind in kinds]
    if missed:
        raise SettingError(f"`{name}` must be {' or '.join(missed)}, but got {text!r}.")
    return text


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"
