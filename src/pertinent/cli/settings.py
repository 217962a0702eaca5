"""Methods and metrics with the settings that the command line names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from pertinent.errors import SettingError, unknown
from pertinent.explainers.base import Explainer, explainers, learned
from pertinent.explainers.search.local import LocalSearch
from pertinent.metric.base import Metric, metrics
from pertinent.registry import with_settings
from pertinent.setting_texts import read_settings

_SIZES = ("k=", "sizes=", "sparsities=")
"""Settings of a metric that say how many features it looks at."""


def make_methods(names: Sequence[str], pairs: Iterable[str]) -> list[Explainer]:
    """Methods by name or folder, with settings.

    Each of `pairs` is ``setting=value``, or ``method.setting=value`` among several.
    """
    settings = read_pairs(names, pairs)
    return [_made(name, settings[name]) for name in names]


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


def _made(name: str, settings: Mapping[str, str]) -> Explainer:
    """A registered method, else the explainer in a folder of that name."""
    if Path(name).is_dir() and name not in explainers:
        from pertinent.learned.fit_run import load_explainer

        fitted = load_explainer(name)
        return with_settings(fitted, read_settings(type(fitted), settings))
    if name not in explainers and name in learned:
        raise SettingError(
            f"{name!r} has to learn first: pertinent fit --method {name} --out FOLDER, then --method FOLDER."
        )
    if Path(name).name != name:
        raise SettingError(
            f"There is no folder {name!r}: name a method, or a folder that `pertinent fit` wrote."
        )
    read = read_settings(explainers.get(name), settings)
    if issubclass(explainers.get(name), LocalSearch) and isinstance(start := read.get("start"), str):
        read["start"] = start if start in explainers else _made(start, {})
    return explainers.make(name, read)


def make_metrics(names: Sequence[str], sparsities: tuple[float, ...] | None) -> list[Metric]:
    """Metrics by name, which may have settings; those with sparsities get the user's, unless set apart."""
    made = []
    for name in names:
        metric = metrics.parse(name)
        looks = any(f.name == "sparsities" for f in fields(metric))
        own = any(pair.startswith(_SIZES) for pair in name.partition(":")[2].split(","))
        change = sparsities and looks and not own
        made.append(with_settings(metric, {"sparsities": sparsities}) if change else metric)
    return made
