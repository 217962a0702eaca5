"""The request: what is wanted of every input, in a form that can be saved and compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pertinent.digests import digest
from pertinent.errors import SettingError, require
from pertinent.explainers.base import DEFAULT_SPARSITIES, Explainer, explainers
from pertinent.metric.base import Metric
from pertinent.metric.base import metrics as registered_metrics
from pertinent.registry import settings_of
from pertinent.removal.base import Removal, removals

DEFAULT_METHOD = "kernel-shap"
_DIGEST = "digest"


@dataclass(frozen=True)
class Request:
    """How to explain: by which method, with which removal, for which target, and what to measure.

    Attributes
    ----------
    method
        The explainer, settings and all.
    removal
        How features are removed; ``None`` for what suits the model.
    target
        The column to explain, by number or name; ``None`` for what the output explains by default.
    sparsities, budget, features, seed
        As in `explain`.
    metrics
        What is measured of each explanation as soon as it is there.
    """

    method: Explainer
    removal: Removal | None = None
    target: int | str | None = None
    sparsities: tuple[float, ...] = DEFAULT_SPARSITIES
    budget: int | None = None
    features: str | None = None
    seed: int = 0
    metrics: tuple[Metric, ...] = ()

    @classmethod
    def of(
        cls,
        method: str | Explainer = DEFAULT_METHOD,
        settings: Mapping[str, Any] | None = None,
        *,
        removal: str | Removal | None = None,
        target: int | str | None = None,
        sparsity: float | Sequence[float] = DEFAULT_SPARSITIES,
        budget: int | None = None,
        features: str | None = None,
        seed: int = 0,
        metrics: str | Metric | Sequence[str | Metric] = (),
    ) -> Request:
        """A request in the words of a user, checked.

        >>> Request.of("lime", {"samples": 50}, sparsity=0.1).to_dict()["settings"]
        {'samples': 50}
        """
        if budget is not None:
            require(budget >= 1, "budget", "at least 1", budget)
        return cls(
            make_explainer(method, settings),
            make_removal(removal),
            target,
            check_sparsities(sparsity),
            budget,
            features,
            seed,
            make_metrics(metrics),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts; of what a file cannot hold, its digest."""
        return {
            "method": self.method.name,
            "settings": _plain_settings(self.method),
            "removal": None if self.removal is None else _described(self.removal),
            "target": self.target,
            "sparsities": list(self.sparsities),
            "budget": self.budget,
            "features": self.features,
            "seed": self.seed,
            "metrics": [_described(metric) for metric in self.metrics],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Request:
        """The inverse of `to_dict`, where everything could be saved."""
        rest = {key: plain[key] for key in ("target", "budget", "features", "seed")}
        removal = plain["removal"]
        return cls(
            method=explainers.make(plain["method"], _settings(plain)),
            removal=None if removal is None else removals.make(removal["name"], _settings(removal)),
            sparsities=tuple(plain["sparsities"]),
            metrics=tuple(registered_metrics.make(m["name"], _settings(m)) for m in plain["metrics"]),
            **rest,
        )

    @property
    def fingerprint(self) -> bytes:
        """A digest of everything that is wanted."""
        return digest(json.dumps(self.to_dict(), sort_keys=True))


def make_explainer(method: str | Explainer, settings: Mapping[str, Any] | None = None) -> Explainer:
    """An explainer by name and settings, or the instance itself."""
    if isinstance(method, Explainer):
        require(not settings, "settings", "set on the instance when a method instance is given", settings)
        return method
    return explainers.make(method, settings)


def make_removal(removal: str | Removal | None) -> Removal | None:
    """A removal by name, perhaps with settings as in ``"background:rows=100"``, or the instance itself."""
    return removals.parse(removal) if isinstance(removal, str) else removal


def make_metrics(metrics: str | Metric | Sequence[str | Metric]) -> tuple[Metric, ...]:
    """Metrics by name, or the instances themselves."""
    several = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    return tuple(registered_metrics.make(m) if isinstance(m, str) else m for m in several)


def check_sparsities(sparsity: float | Sequence[float]) -> tuple[float, ...]:
    """One sparsity or several, checked."""
    sparsities = (sparsity,) if isinstance(sparsity, int | float) else tuple(sparsity)
    require(len(sparsities) > 0, "sparsity", "at least one share", sparsity)
    for share in sparsities:
        require(0 < share <= 1, "sparsity", "above 0 and at most 1", share)
    return sparsities


def _described(thing: Any) -> dict[str, Any]:
    return {"name": thing.name, "settings": _plain_settings(thing)}


def _plain_settings(thing: Any) -> dict[str, Any]:
    """Settings that differ from their defaults; those that JSON does not know by their digest."""
    return {name: _plain(value) for name, value in settings_of(thing).items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return {_DIGEST: digest(value).hex()}


def _settings(plain: Mapping[str, Any]) -> dict[str, Any]:
    settings = {}
    for name, value in plain["settings"].items():
        if isinstance(value, dict) and _DIGEST in value:
            raise SettingError(f"The setting `{name}` was not saved with the request, only its digest.")
        settings[name] = tuple(value) if isinstance(value, list) else value
    return settings
