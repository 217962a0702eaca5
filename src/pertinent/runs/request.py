"""The request: how to explain every input, in a form that can be saved and compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from inspect import signature
from typing import Any, TypeAlias, TypeVar

import numpy as np

from pertinent.config.fingerprints import digest
from pertinent.config.registry import Registry
from pertinent.config.serialization import PlainData
from pertinent.config.settings import Count, Seed, Share, changed_settings, checked, replace_settings
from pertinent.config.settings_parser import split_settings
from pertinent.errors import InputError, SettingError, require
from pertinent.explainers.base import DEFAULT_SPARSITIES, Explainer, explainers, learned_methods
from pertinent.explainers.early_stopping import EarlyStopping
from pertinent.inputs.modality import modality_named
from pertinent.metrics.base import Metric
from pertinent.metrics.base import metrics as registered_metrics
from pertinent.outputs import Output, Scale
from pertinent.removals.base import Removal, removals

T = TypeVar("T")


_DIGEST = "digest"


@dataclass(frozen=True)
class Request:
    """How to explain: the method, the removal, the target, and the metrics to measure.

    Attributes
    ----------
    method
        The explainer with its settings.
    removal
        How features are removed; None for the removal that suits the model.
    target
        Column to explain, by index or name, or a tuple with one per input; None for the output's default.
    features
        Kind of features, as in `explain`.
    sparsities, budget, scale, seed
        As in `explain`.
    early_stopping
        Rule by which the method may stop before its budget is spent.
    metrics
        Metrics to measure each explanation with.
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
    early_stopping: EarlyStopping | None = None

    @classmethod
    @checked
    def from_method(
        cls,
        method: str | Explainer,
        settings: Mapping[str, Any] | None = None,
        *,
        removal: str | Removal | None = None,
        target: Any = None,
        sparsity: Share | Sequence[Share] | None = None,
        budget: Count | None = None,
        features: Any = None,
        seed: Seed = 0,
        metrics: str | Metric | Sequence[str | Metric] | None = None,
        scale: Scale = "natural",
        early_stopping: str | EarlyStopping | None = None,
    ) -> Request:
        """Create and check a request from arguments of `explain`.

        >>> Request.from_method("lime", {"samples": 50}, sparsity=0.1).to_dict()["settings"]
        {'samples': 50}
        """
        explainer = make_explainer(method, settings)
        check_scale(scale, explainer)
        if features is None:
            features = explainer.traits.fitted_features
        stopping = EarlyStopping.from_setting(early_stopping)
        if stopping is not None:
            _check_stops_early(explainer)
        return cls(
            explainer,
            make_removal(removal),
            tuple(target) if isinstance(target, list) or getattr(target, "ndim", 0) == 1 else target,
            _sparsities(sparsity),
            budget,
            check_features(features),
            seed,
            make_metrics(metrics),
            scale,
            stopping,
        )

    @classmethod
    def from_keywords(cls, method: str | Explainer | Request, words: Mapping[str, Any]) -> Request:
        """Create a request from a method and the keyword arguments of a public function.

        Arguments of `from_method` belong to the request, the rest are settings of the method. If `method` is
        a request, it is returned, and no other arguments are allowed.
        """
        changed = {name: value for name, value in words.items() if not _is_default(name, value)}
        if not isinstance(method, Request):
            settings = {name: value for name, value in changed.items() if name not in WORDS}
            options = {name: value for name, value in changed.items() if name in WORDS}
            return cls.from_method(method, settings, **options)
        for name in changed:
            raise SettingError(
                f"`{name}` cannot be combined with a request: omit it, or change the request with "
                "dataclasses.replace."
            )
        return method

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dicts; other objects are represented by a digest.

        A fitted method that was saved is represented by its folder and digest.
        """
        stopping = self.early_stopping
        return {
            "method": self.method.name,
            **_plain_method(self.method),
            "removal": None if self.removal is None else _plain_named(self.removal),
            "target": _plain(self.target),
            "sparsities": list(self.sparsities),
            "budget": self.budget,
            "features": _plain(self.features),
            "seed": self.seed,
            "metrics": [_plain_named(metric) for metric in self.metrics],
            "scale": self.scale,
            "early_stopping": None if stopping is None else asdict(stopping),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Request:
        """Create a request from the output of `to_dict`.

        Raise an `InputError` or a `SettingError` if the data is damaged or contains the digest of an object.
        """
        data = PlainData(plain, "request")
        removal = data.value("removal")
        return cls.from_method(
            _method_of(data),
            removal=None if removal is None else _make_named(removals, removal, "removal"),
            target=_restore("target", data.value("target")),
            sparsity=data.value("sparsities", tuple[Share, ...]),
            budget=data.value("budget", Count | None),
            features=_restore("features", data.value("features")),
            seed=data.value("seed", Seed),
            metrics=[_make_named(registered_metrics, m, "metric") for m in data.value("metrics", list[Any])],
            scale=data.value("scale", Scale),
            early_stopping=data.value("early_stopping", EarlyStopping | None),
        )

    @property
    def fingerprint(self) -> bytes:
        """Return a digest of the request."""
        return digest(json.dumps(self.to_dict(), sort_keys=True))

    def target_of(self, index: int) -> Any:
        """Return the target of an input, by index or name, or None for the default."""
        return _entry(self.target, index, "target") if isinstance(self.target, tuple) else self.target


Method: TypeAlias = str | Explainer | Request


def default_method(kind: str | None) -> str:
    """Return the name of the default method for a kind of input; ``None`` means text."""
    return modality_named(kind or "text").default_method


"""The argument `method` of public functions: a name, an explainer, or a complete request."""

WORDS = {
    name: parameter.default
    for name, parameter in signature(Request.from_method).parameters.items()
    if name not in ("method", "settings")
}
"""Keyword arguments that belong to a request, except the method and its settings, with defaults."""


def make_explainer(method: str | Explainer, settings: Mapping[str, Any] | None = None) -> Explainer:
    """Create an explainer from a name such as ``"lime:samples=50"`` or an instance, with settings changed."""
    if isinstance(method, str):
        name, _ = split_settings(method, "method")
        if name not in explainers and name in learned_methods:
            raise SettingError(f"{name!r} must be fitted first: pertinent.fit(model, inputs, {name!r}).")
        method = explainers.parse(method)
    return replace_settings(method, settings, also_known=tuple(WORDS)) if settings else method


def check_scale(scale: Scale, explainer: Explainer, output: Output | None = None) -> None:
    """Raise a `SettingError` unless the method and the model's output support the scale."""
    scales = " or ".join(map(repr, explainer.traits.scales))
    require(scale in explainer.traits.scales, "scale", f"{scales} for {explainer.name}", scale)
    if output is not None and output.kind == "value":
        must = "'natural' for a model with plain values, which have no probabilities"
        if output.scales != ("natural",):
            must = f"{' or '.join(map(repr, output.scales))} for {output.plural}"
        require(scale in output.scales, "scale", must, scale)


def _check_stops_early(explainer: Explainer) -> None:
    """Raise a `SettingError` unless the method can stop before its budget is spent."""
    if not explainer.traits.stops_early:
        *names, last = (name for name, cls in explainers.all().items() if cls.traits.stops_early)
        raise SettingError(
            f"`early_stopping` must be None for {explainer.name}, which cannot stop early: choose "
            f"{', '.join(names)} or {last}."
        )


def make_removal(removal: str | Removal | None) -> Removal | None:
    """Create a removal from a name, optionally with settings; an instance is returned unchanged."""
    return removals.parse(removal) if isinstance(removal, str) else removal


def make_metrics(metrics: str | Metric | Sequence[str | Metric] | None) -> tuple[Metric, ...]:
    """Create metrics from names, optionally with settings; instances are returned unchanged."""
    several = [metrics] if isinstance(metrics, str | Metric) else list(metrics or ())
    made = tuple(registered_metrics.parse(m) if isinstance(m, str) else m for m in several)
    for number, metric in enumerate(made):
        if metric in made[:number]:
            raise SettingError(f"{metric.name} is listed twice with the same settings: list it once.")
    return made


def with_same_features(requests: Sequence[Request]) -> list[Request]:
    """Return the requests with the features that their fitted explainers were fitted to."""
    fitted = [request.features for request in requests if request.method.traits.fitted_features is not None]
    names = sorted({features for features in fitted if isinstance(features, str)})
    if len(names) > 1:
        raise SettingError(
            f"The explainers were fitted to different features ({', '.join(names)}): compare them "
            "separately, or set `features`."
        )
    return [replace(request, features=names[0]) for request in requests] if names else list(requests)


def features_of(features: Any, index: int, *, one: bool) -> Any:
    """Return the features of an input: those shared by all inputs, or an entry of a list."""
    shared = features is None or isinstance(features, str) or _is_segments(features)
    return features if shared or one else _entry(check_features(features), index, "features")


def _entry(values: Sequence[Any], index: int, what: str) -> Any:
    if index >= len(values):
        raise InputError(
            f"`{what}` must have one entry per input, but has {len(values)}, none for input {index}."
        )
    return values[index]


def _is_default(name: str, value: Any) -> bool:
    """Return whether a keyword argument has the default value of `Request.from_method`."""
    if name not in WORDS:
        return False
    default = WORDS[name]
    return value is default or (isinstance(value, str | int | tuple) and bool(value == default))


def check_features(features: Any) -> Any:
    """Return features in the form that a request stores: a name, an array, or tuples instead of lists."""
    if features is None or isinstance(features, str):
        return features
    is_several = isinstance(features, Sequence | np.ndarray) and getattr(features, "ndim", 1) > 0
    require(is_several, "features", "a name, segments or spans", features)
    return features if _is_segments(features) else _tuples(tuple(features))


def _is_segments(features: Any) -> bool:
    return getattr(features, "ndim", 0) == 2


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def _sparsities(sparsity: float | Sequence[float] | None) -> tuple[float, ...]:
    if sparsity is None:
        return DEFAULT_SPARSITIES
    sparsities = (sparsity,) if isinstance(sparsity, float) else tuple(sparsity)
    require(len(sparsities) > 0, "sparsity", "at least one share", sparsity)
    return sparsities


def _plain_named(thing: Any) -> dict[str, Any]:
    """Return the name and the non-default settings of a removal or metric."""
    return {"name": thing.name, "settings": _plain_settings(thing)}


def _make_named(registry: Registry[T], plain: Any, what: str) -> T:
    """Create the removal or metric described by `_plain_named`."""
    data = PlainData(plain, what)
    return registry.make(data.text("name"), _settings(data))


def _plain_settings(thing: Any) -> dict[str, Any]:
    return {name: _plain(value) for name, value in changed_settings(thing).items()}


def _plain(value: Any) -> Any:
    """Return a value in its JSON form, or its digest."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return {_DIGEST: digest(value).hex()}


def _plain_method(method: Explainer) -> dict[str, Any]:
    """Return the settings of a method, and its folder and digest if it was fitted and saved."""
    settings, folder = _plain_settings(method), getattr(method, "folder", None)
    if folder is None:
        return {"settings": settings}
    del settings["network"]
    return {"settings": settings, "fitted": {"folder": str(folder.resolve()), "digest": method.digest}}  # type: ignore[attr-defined]


def _method_of(data: PlainData) -> Explainer:
    """Return the method described by `_plain_method`; a fitted method is loaded and must be unchanged."""
    name, settings = data.text("method"), _settings(data)
    if "fitted" not in data:
        return explainers.make(name, settings)
    saved = PlainData(data.mapping("fitted"), "fitted")
    fitted: Explainer = learned_methods.get(name).from_folder(
        saved.text("folder"), digest=saved.text("digest")
    )
    return replace_settings(fitted, settings)


def _settings(data: PlainData) -> dict[str, Any]:
    return {name: _restore(name, value) for name, value in data.mapping("settings").items()}


def _restore(name: str, value: Any) -> Any:
    """Return the value represented by `_plain`; raise an error for a digest."""
    if isinstance(value, dict) and _DIGEST in value:
        raise SettingError(f"The setting `{name}` was not saved with the request; only its digest was.")
    return tuple(_restore(name, each) for each in value) if isinstance(value, list) else value
