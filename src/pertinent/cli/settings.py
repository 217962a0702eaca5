"""Methods and metrics with the settings that the command line names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from pertinent.errors import SettingError, unknown
from pertinent.explainers.base import Explainer, explainers
from pertinent.metric.base import Metric, metrics


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
    return [explainers.make_from_text(name, settings[name]) for name in names]


def make_metrics(names: Sequence[str], sparsities: tuple[float, ...] | None) -> list[Metric]:
    """Metrics by name; those with sparsities get the user's."""
    made = []
    for name in names:
        cls = metrics.all().get(name)
        looks = cls is not None and any(f.name == "sparsities" for f in fields(cls))
        made.append(metrics.make(name, {"sparsities": sparsities} if looks and sparsities else {}))
    return made
