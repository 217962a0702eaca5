"""The request: what is wanted of every input, in a form that can be saved and compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from pertinent.api.scale import check_scale
from pertinent.digests import digest
from pertinent.errors import InputError, SettingError, require
from pertinent.explainers.base import DEFAULT_SPARSITIES, Explainer, explainers
from pertinent.explainers.early_stopping import EarlyStopping
from pertinent.learned.base import LearnedExplainer, learned
from pertinent.metric.base import Metric, metric_labels
from pertinent.metric.base import metrics as registered_metrics
from pertinent.outputs import Scale
from pertinent.registry import settings_of, with_settings
from pertinent.removal.base import Removal, removals
from pertinent.settings import Count, ProperShare, Seed, Share, checked

DEFAULT_METHOD = "shapley"

Until: TypeAlias = Literal["stable"]
"""When a method may stop before its budget is spent."""

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
        The column to explain, by number or name, or a tuple with one for each input; ``None`` for what
        the output explains by default.
    features
        What a feature is; a tuple has one entry for each input.
    sparsities, budget, scale, seed
        As in `explain`.
    until
        When a method may stop before its budget is spent.
    metrics
        What is measured of each explanation as soon as it is there.
    """

    method: Explainer
    removal: Removal | None = None
    target: Any = None
    sparsities: tuple[float, ...] = DEFAULT_SPARSITIES
    budget: int | None = None
    features: Any = None
    seed: int = 0
    metrics: tuple[Metric, ...] = ()
    scale: Scale = "natural"
    until: EarlyStopping | None = None

    @classmethod
    @checked
    def of(
        cls,
        method: str | Explainer = DEFAULT_METHOD,
        settings: Mapping[str, Any] | None = None,
        *,
        removal: str | Removal | None = None,
        target: Any = None,
        sparsity: Share | Sequence[Share] | None = None,
        budget: Count | None = None,
        features: Any = None,
        seed: Seed = 0,
        metrics: str | Metric | Sequence[str | Metric] = (),
        scale: Scale = "natural",
        until: Until | None = None,
        top: Count = 5,
        confidence: ProperShare = 0.95,
    ) -> Request:
        """A request in the words of a user, checked.

        >>> Request.of("lime", {"samples": 50}, sparsity=0.1).to_dict()["settings"]
        {'samples': 50}
        """
        explainer = make_explainer(method, settings)
        check_scale(scale, explainer)
        if features is None and isinstance(explainer, LearnedExplainer):
            features = explainer.fitted_features
        if until is not None:
            _check_stops(explainer)
        return cls(
            explainer,
            make_removal(removal),
            tuple(target) if _is_for_each(target) else target,
            _sparsities(sparsity),
            budget,
            _tuples(features),
            seed,
            make_metrics(metrics),
            scale,
            None if until is None else EarlyStopping(top, confidence),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts; of what a file cannot hold, its digest."""
        until = {} if self.until is None else {"until": asdict(self.until)}
        return {
            "method": self.method.name,
            "settings": _plain_settings(self.method),
            "removal": None if self.removal is None else _described(self.removal),
            "target": _plain(self.target),
            "sparsities": list(self.sparsities),
            "budget": self.budget,
            "features": _plain(self.features),
            "seed": self.seed,
            "metrics": [_described(metric) for metric in self.metrics],
            "scale": self.scale,
            **until,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Request:
        """The inverse of `to_dict`, where everything could be saved."""
        rest = {"budget": plain["budget"], "seed": plain["seed"], "scale": plain.get("scale", "natural")}
        rest |= {key: _kept(key, plain[key]) for key in ("target", "features")}
        removal = plain["removal"]
        return cls(
            method=explainers.make(plain["method"], _settings(plain)),
            removal=None if removal is None else removals.make(removal["name"], _settings(removal)),
            sparsities=tuple(plain["sparsities"]),
            metrics=tuple(registered_metrics.make(m["name"], _settings(m)) for m in plain["metrics"]),
            until=EarlyStopping(**plain["until"]) if "until" in plain else None,
            **rest,
        )

    @property
    def fingerprint(self) -> bytes:
        """A digest of everything that is wanted."""
        return digest(json.dumps(self.to_dict(), sort_keys=True))


def make_explainer(method: str | Explainer, settings: Mapping[str, Any] | None = None) -> Explainer:
    """An explainer by name and settings, or the instance itself."""
    if isinstance(method, Explainer):
        return with_settings(method, settings) if settings else method
    if method not in explainers and method in learned:
        raise SettingError(f"{method!r} has to learn first: pertinent.fit(model, inputs, {method!r}).")
    return explainers.make(method, settings)


def _check_stops(explainer: Explainer) -> None:
    """Raise a `SettingError` unless the method can stop before its budget is spent."""
    if not explainer.stops_early:
        able = " or ".join(name for name, cls in explainers.all().items() if cls.stops_early)
        raise SettingError(
            f"`until` must be left out for {explainer.name}, which cannot stop early: choose {able}."
        )


def make_removal(removal: str | Removal | None) -> Removal | None:
    """A removal by name, perhaps with settings as in ``"background:rows=20"``, or the instance itself."""
    return removals.parse(removal) if isinstance(removal, str) else removal


def make_metrics(metrics: str | Metric | Sequence[str | Metric]) -> tuple[Metric, ...]:
    """Metrics by name, or the instances themselves."""
    several = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    made = tuple(registered_metrics.parse(m) if isinstance(m, str) else m for m in several)
    for name, n in Counter(metric_labels(made)).items():
        if n > 1:
            raise SettingError(f"{name} is named {n} times with the same settings: name it once.")
    return made


def with_same_features(requests: Sequence[Request]) -> list[Request]:
    """The requests of methods that are compared: all with the features that a fitted one was fitted to."""
    fitted = [request.features for request in requests if isinstance(request.method, LearnedExplainer)]
    cut = sorted({each for each in fitted if isinstance(each, str)})
    if len(cut) > 1:
        raise SettingError(
            f"The explainers were fitted to different features ({', '.join(cut)}): compare them apart, or "
            "say which with `features`."
        )
    return [replace(request, features=cut[0]) for request in requests] if cut else list(requests)


def for_each(features: Any, *, one: bool) -> Any:
    """Features as a request holds them: the same of all inputs, or a tuple with an entry for each."""
    if features is None or isinstance(features, str) or getattr(features, "ndim", 0) == 2:
        return features
    if not isinstance(features, Sequence | np.ndarray):
        raise SettingError(f"`features` must be a name, segments or spans, but got {features!r}.")
    return (features,) if one else tuple(features)


def of_input(value: Any, index: int) -> Any:
    """What a request wants of one input: the same of all, or an entry of a tuple with one for each."""
    if not isinstance(value, tuple):
        return value
    if index >= len(value):
        raise InputError(f"There is no target or features for input {index}: {len(value)} were given.")
    return value[index]


def _tuples(value: Any) -> Any:
    """Lists as tuples, also inside."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def _is_for_each(target: Any) -> bool:
    return isinstance(target, list | tuple) or getattr(target, "ndim", 0) == 1


def _sparsities(sparsity: float | Sequence[float] | None) -> tuple[float, ...]:
    """One sparsity, several, or those of the paper."""
    if sparsity is None:
        return DEFAULT_SPARSITIES
    sparsities = (sparsity,) if isinstance(sparsity, float) else tuple(sparsity)
    require(len(sparsities) > 0, "sparsity", "at least one share", sparsity)
    return sparsities


def _described(thing: Any) -> dict[str, Any]:
    return {"name": thing.name, "settings": _plain_settings(thing)}


def _plain_settings(thing: Any) -> dict[str, Any]:
    """Settings that differ from their defaults; those that JSON does not know by their digest."""
    return {name: _plain(value) for name, value in settings_of(thing).items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return {_DIGEST: digest(value).hex()}


def _settings(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _kept(name, value) for name, value in plain["settings"].items()}


def _kept(name: str, value: Any) -> Any:
    """A value that `_plain` made plain, unless only its digest was kept."""
    if isinstance(value, dict) and _DIGEST in value:
        raise SettingError(f"The setting `{name}` was not saved with the request, only its digest.")
    return tuple(_kept(name, each) for each in value) if isinstance(value, list) else value
