"""The request: what is wanted of every input, in a form that can be saved and compared."""

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
from pertinent.metrics.base import Metric
from pertinent.metrics.base import metrics as registered_metrics
from pertinent.outputs import Output, Scale
from pertinent.removals.base import Removal, removals

T = TypeVar("T")

DEFAULT_METHOD = "shapley"

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
        What a feature is, as in `explain`.
    sparsities, budget, scale, seed
        As in `explain`.
    early_stopping
        When the method may stop before its budget is spent.
    metrics
        What is measured of each explanation as soon as it is made.
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
        method: str | Explainer = DEFAULT_METHOD,
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
        """Make a request from the words of `explain`, and check them.

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
        """Make a request from a method and the keyword arguments of a verb.

        Those that `of` knows are words of the request; the others are settings of the method. A request
        that is given instead of a method is taken as it is, without any words.
        """
        given = {name: value for name, value in words.items() if not _is_default(name, value)}
        if isinstance(method, Request):
            for name in given:
                raise SettingError(
                    f"`{name}` belongs into the request: leave it out beside one, or "
                    f"change the request with dataclasses.replace."
                )
            return method
        settings = {name: value for name, value in given.items() if name not in WORDS}
        return cls.from_method(
            method, settings, **{name: given[name] for name in given.keys() - settings.keys()}
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts; of what a file cannot hold, its digest.

        A fitted method is there as its folder and digest, if it has been saved.
        """
        stopping = self.early_stopping
        return {
            "method": self.method.name,
            **_plain_method(self.method),
            "removal": None if self.removal is None else _described(self.removal),
            "target": _plain(self.target),
            "sparsities": list(self.sparsities),
            "budget": self.budget,
            "features": _plain(self.features),
            "seed": self.seed,
            "metrics": [_described(metric) for metric in self.metrics],
            "scale": self.scale,
            "early_stopping": None if stopping is None else asdict(stopping),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Request:
        """Make a request from what `to_dict` returned, where everything could be saved.

        An `InputError` or `SettingError` says what a request cannot be made of.
        """
        data = PlainData(plain, "request")
        removal = data.value("removal")
        return cls.from_method(
            _method_of(data),
            removal=None if removal is None else _made(removals, removal, "removal"),
            target=_kept("target", data.value("target")),
            sparsity=data.value("sparsities", tuple[Share, ...]),
            budget=data.value("budget", Count | None),
            features=_kept("features", data.value("features")),
            seed=data.value("seed", Seed),
            metrics=[_made(registered_metrics, each, "metric") for each in data.value("metrics", list[Any])],
            scale=data.value("scale", Scale),
            early_stopping=data.value("early_stopping", EarlyStopping | None),
        )

    @property
    def fingerprint(self) -> bytes:
        """A digest of the whole request."""
        return digest(json.dumps(self.to_dict(), sort_keys=True))

    def target_of(self, index: int) -> Any:
        """The target of one input, by number or name, or ``None``."""
        return _entry(self.target, index, "target") if isinstance(self.target, tuple) else self.target


Method: TypeAlias = str | Explainer | Request
"""What the verbs take as a method: its name, an explainer, or a whole request."""

WORDS = {
    name: parameter.default
    for name, parameter in signature(Request.from_method).parameters.items()
    if name not in ("method", "settings")
}
"""The keyword arguments of a verb that belong to its request, beside the method and its settings, and their
default values."""


def make_explainer(method: str | Explainer, settings: Mapping[str, Any] | None = None) -> Explainer:
    """An explainer by name, perhaps with settings as in ``"lime:samples=50"``, or like an instance."""
    if isinstance(method, str):
        name, _ = split_settings(method, "method")
        if name not in explainers and name in learned_methods:
            raise SettingError(f"{name!r} must be fitted first: pertinent.fit(model, inputs, {name!r}).")
        method = explainers.parse(method)
    return replace_settings(method, settings, also_known=tuple(WORDS)) if settings else method


def check_scale(scale: Scale, explainer: Explainer, output: Output | None = None) -> None:
    """Raise a `SettingError` unless the method, and the model's output if it is known, have the scale."""
    known = " or ".join(map(repr, explainer.traits.scales))
    require(scale in explainer.traits.scales, "scale", f"{known} for {explainer.name}", scale)
    if output is not None and output.kind == "value":
        must = "'natural' for a model of plain values, which have no probabilities"
        if output.scales != ("natural",):
            must = f"{' or '.join(map(repr, output.scales))} for {output.plural}"
        require(scale in output.scales, "scale", must, scale)


def _check_stops_early(explainer: Explainer) -> None:
    """Raise a `SettingError` unless the method can stop before its budget is spent."""
    if not explainer.traits.stops_early:
        *others, last = (name for name, cls in explainers.all().items() if cls.traits.stops_early)
        able = f"{', '.join(others)} or {last}"
        raise SettingError(
            f"`early_stopping` must be left out for {explainer.name}, which cannot stop early: choose {able}."
        )


def make_removal(removal: str | Removal | None) -> Removal | None:
    """A removal by name, perhaps with settings as in ``"background:rows=20"``, or the instance itself."""
    return removals.parse(removal) if isinstance(removal, str) else removal


def make_metrics(metrics: str | Metric | Sequence[str | Metric] | None) -> tuple[Metric, ...]:
    """Make metrics from names, perhaps with settings; instances are returned unchanged."""
    several = [metrics] if isinstance(metrics, str | Metric) else list(metrics or ())
    made = tuple(registered_metrics.parse(m) if isinstance(m, str) else m for m in several)
    for place, metric in enumerate(made):
        if metric in made[:place]:
            raise SettingError(f"{metric.name} is named twice with the same settings: name it once.")
    return made


def with_same_features(requests: Sequence[Request]) -> list[Request]:
    """The requests of methods that are compared: all with the features that a fitted one was fitted to."""
    fitted = [request.features for request in requests if request.method.traits.fitted_features is not None]
    cut = sorted({each for each in fitted if isinstance(each, str)})
    if len(cut) > 1:
        raise SettingError(
            f"The explainers were fitted to different features ({', '.join(cut)}): compare them apart, or "
            "say which with `features`."
        )
    return [replace(request, features=cut[0]) for request in requests] if cut else list(requests)


def features_of(features: Any, index: int, *, one: bool) -> Any:
    """The `features` of one input: those shared by all, those of the only input, or an entry of a list."""
    shared = features is None or isinstance(features, str) or _is_segments(features)
    return features if shared or one else _entry(check_features(features), index, "features")


def _entry(values: Sequence[Any], index: int, what: str) -> Any:
    """The value for one input, from a sequence with one value for each."""
    if index >= len(values):
        raise InputError(f"There is no entry of `{what}` for input {index}: {len(values)} were given.")
    return values[index]


def _is_default(name: str, value: Any) -> bool:
    """Whether a keyword argument has the value that `Request.from_method` assumes without it."""
    if name not in WORDS:
        return False
    default = WORDS[name]
    return value is default or (isinstance(value, str | int | tuple) and bool(value == default))


def check_features(features: Any) -> Any:
    """Features as a request holds them: a name, an array, or tuples in place of lists."""
    if features is None or isinstance(features, str):
        return features
    is_several = isinstance(features, Sequence | np.ndarray) and getattr(features, "ndim", 1) > 0
    require(is_several, "features", "a name, segments or spans", features)
    return features if _is_segments(features) else _tuples(tuple(features))


def _is_segments(features: Any) -> bool:
    return getattr(features, "ndim", 0) == 2


def _tuples(value: Any) -> Any:
    """Lists as tuples, also inside."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


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
    return {name: _plain(value) for name, value in changed_settings(thing).items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return {_DIGEST: digest(value).hex()}


def _plain_method(method: Explainer) -> dict[str, Any]:
    """The settings of a method, and where it lies if it was fitted and saved."""
    settings, folder = _plain_settings(method), getattr(method, "folder", None)
    if folder is None:
        return {"settings": settings}
    del settings["network"]
    return {"settings": settings, "fitted": {"folder": str(folder.resolve()), "digest": method.digest}}  # type: ignore[attr-defined]


def _method_of(data: PlainData) -> Explainer:
    """The method that `_plain_method` described; a fitted one is loaded, and must be the same as it was."""
    name, settings = data.text("method"), _settings(data)
    if "fitted" not in data:
        return explainers.make(name, settings)
    saved = PlainData(data.mapping("fitted"), "fitted")
    fitted: Explainer = learned_methods.get(name).load(saved.text("folder"), digest=saved.text("digest"))
    return replace_settings(fitted, settings)


def _made(registry: Registry[T], plain: Any, what: str) -> T:
    """The removal or metric that `_described` described."""
    data = PlainData(plain, what)
    return registry.make(data.text("name"), _settings(data))


def _settings(data: PlainData) -> dict[str, Any]:
    return {name: _kept(name, value) for name, value in data.mapping("settings").items()}


def _kept(name: str, value: Any) -> Any:
    """The inverse of `_plain`; an error if only the digest of a value was saved."""
    if isinstance(value, dict) and _DIGEST in value:
        raise SettingError(f"The setting `{name}` was not saved with the request, only its digest.")
    return tuple(_kept(name, each) for each in value) if isinstance(value, list) else value
