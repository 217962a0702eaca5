"""Importance of features over many explanations: mean magnitudes with intervals, by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array, Floats
from pertinent.config.serialization import NOT_FINITE, Index, decode_fields, encode
from pertinent.config.settings import checked
from pertinent.errors import SettingError, require, unknown
from pertinent.inputs.modality import modality_named
from pertinent.printable import replace_surrogates
from pertinent.results.base import Result
from pertinent.stats import bootstrap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pertinent.results.explanation import Explanation

_RESAMPLES = 2000
_GROUPS = ("target", "class", "method")


@dataclass(frozen=True)
class FeatureImportance:
    """Importance of one feature in a group of explanations.

    Attributes
    ----------
    feature, group
        Names of the feature (for texts, a lower-case word) and of the group (empty if there is only one).
    mean, low, high
        Mean magnitude of the score over all explanations of the group, counting 0 for those without the
        feature, and the bounds of its 95% interval.
    effect
        Mean signed score; NaN if the scores are for several classes.
    n
        Number of explanations in the group that have the feature.
    """

    feature: str
    group: str
    mean: float
    low: Annotated[float, NOT_FINITE]
    high: Annotated[float, NOT_FINITE]
    effect: Annotated[float, NOT_FINITE]
    n: Index


@dataclass(frozen=True)
class FeatureScores:
    """Scores of one feature in all explanations that have it.

    Attributes
    ----------
    scores, groups
        Score in each explanation, and the group of the explanation.
    positions
        Rank of the feature's value among all its values, from 0 to 1; NaN if the values have no order.
    """

    scores: tuple[float, ...]
    groups: tuple[str, ...]
    positions: tuple[Annotated[float, NOT_FINITE], ...]


@dataclass(frozen=True)
class Importance(Result):
    """Importance of features over many explanations, in descending order.

    Attributes
    ----------
    rows
        A `FeatureImportance` for each of the most important features and each group.
    sizes
        Number of explanations in each group.
    scored
        Scores of each of the most important features.
    n_features
        Number of all features.
    targets
        Class, label or value that each group's scores are for; ``None`` if they are signed and for several,
        empty if they are unsigned or the model has only one value.
    """

    kind = "importance"

    rows: tuple[FeatureImportance, ...]
    sizes: Mapping[str, Index]
    scored: Mapping[str, FeatureScores]
    n_features: Index
    targets: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def is_signed(self) -> bool:
        """Return whether each group's scores are for one class, so their signs are comparable."""
        return None not in self.targets.values()

    @property
    def features(self) -> list[str]:
        """Return the most important features, in descending order."""
        return list(self.scored)

    @property
    def groups(self) -> list[str]:
        """Return the groups, in order."""
        return list(self.sizes)

    def rows_for(self, feature: str) -> list[FeatureImportance]:
        """Return the rows of a feature, one for each group."""
        return [row for row in self.rows if row.feature == feature]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dicts."""
        plain: dict[str, Any] = encode(self)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Importance:
        """Create the result from the output of `to_dict`; an `InputError` names an invalid field."""
        return cls(**decode_fields(cls, plain))

    def to_dataframe(self) -> Any:
        """Return a pandas frame with one row per feature and group."""
        rows = [{name: replace_surrogates(value) for name, value in vars(row).items()} for row in self.rows]
        return optional("pandas").DataFrame(rows)

    @checked
    def plot(self, kind: Literal["bars", "beeswarm"] = "bars") -> Figure:
        """Return a matplotlib figure: bars with intervals, or a beeswarm of the scores of all inputs.

        In a beeswarm, each point is the score of a feature in one input, coloured by the feature's value from
        low to high, if values have an order. Each group has a panel. A beeswarm requires scores for a single
        class.
        """
        if kind == "beeswarm":
            self.check_signed()
        return super().plot(kind)

    def check_signed(self) -> None:
        """Raise a `SettingError` if a group's scores are for several classes."""
        if not self.is_signed:
            mixed = ", ".join(repr(name) for name, target in self.targets.items() if target is None)
            raise SettingError(
                f"`kind` must be 'bars' because the groups {mixed} have signed scores for several classes. "
                'For a beeswarm, use importance("class") or importance("target"), or explain one class with '
                "`target`."
            )

    def __repr__(self) -> str:
        best = ", ".join(repr(name) for name in self.features[:3])
        return f"<Importance over {sum(self.sizes.values())} explanations: {best}>"


def importance_of(
    explanations: Sequence[Explanation], groups: str | Sequence[Any] | None, top: int
) -> Importance:
    """Compute the importance of the `top` features by mean magnitude in each group."""
    require(len(explanations) > 0, "explanations", "at least one", 0)
    if groups == "class":
        explanations = [e.for_class(column) for e in explanations for column in range(len(e.classes))]
    elif groups != "target":
        explanations = for_one_class(explanations)
        if groups is None and _target_of(explanations) is None:
            groups = "target"
    names = _group_names(explanations, groups)
    methods = dict.fromkeys(e.method for e in explanations)
    if len(methods) > 1 and groups != "method":
        raise SettingError(
            f"The explanations are by several methods ({', '.join(methods)}), whose scores cannot be "
            "combined: select one method, or set groups='method'."
        )
    scores: defaultdict[str, dict[int, float]] = defaultdict(dict)
    values: defaultdict[str, dict[int, Any]] = defaultdict(dict)
    for k, e in enumerate(explanations):
        feature_values = e.input.feature_values() if e.input.value_texts() is not None else None
        for i, feature in enumerate(_feature_names(e)):
            scores[feature][k] = scores[feature].get(k, 0.0) + float(np.nan_to_num(e.scores[i]))
            if feature_values is not None:
                values[feature][k] = feature_values[i]
    strongest = sorted(scores, key=lambda name: -sum(map(abs, scores[name].values())))[:top]
    members: dict[str, list[int]] = {}
    for k, group in enumerate(names):
        members.setdefault(group, []).append(k)
    targets = {group: _target_of([explanations[k] for k in ks]) for group, ks in members.items()}
    rows = [_row(name, group, ks, scores[name]) for name in strongest for group, ks in members.items()]
    return Importance(
        tuple(row if targets[row.group] is not None else replace(row, effect=np.nan) for row in rows),
        {group: len(ks) for group, ks in members.items()},
        {name: _feature_scores(scores[name], values[name], names) for name in strongest},
        len(scores),
        targets,
    )


def for_one_class(explanations: Sequence[Explanation]) -> Sequence[Explanation]:
    """Convert signed explanations of both classes of a binary classifier to the second class.

    Other explanations are returned unchanged.
    """
    if _target_of(explanations) is not None:
        return explanations
    positive = [_for_positive_class(e) for e in explanations]
    return explanations if None in positive else [e for e in positive if e is not None]


def _target_of(explanations: Sequence[Explanation]) -> str | None:
    """Return the class of signed scores; ``None`` for several, empty if the scores have no class."""
    names = {e.target_name for e in explanations if e.meaning == "effect" and len(e.classes) > 1}
    return None if len(names) > 1 else next(iter(names), "")


def _for_positive_class(e: Explanation) -> Explanation | None:
    """Return the explanation of the second of two classes; ``None`` if it is unknown.

    Scores of probabilities and log-odds change their sign. Without base values, the natural scale may be that
    of gradients, which are taken of log-probabilities.
    """
    if e.output.kind != "class" or len(e.classes) != 2:
        return None
    if e.target == 1:
        return e
    if e.class_scores is not None:
        return e.for_class(1)
    is_exact = e.request.scale == "logit" or (e.request.scale == "natural" and e.base_values is not None)
    return replace(e, target=1, scores=-e.scores) if is_exact else None


def _group_names(explanations: Sequence[Explanation], groups: str | Sequence[Any] | None) -> list[str]:
    if groups is None:
        return [""] * len(explanations)
    if isinstance(groups, str):
        if groups not in _GROUPS:
            raise unknown("groups", groups, _GROUPS)
        return [e.method if groups == "method" else e.target_name for e in explanations]
    n = len(explanations)
    require(len(groups) == n, "groups", f"as many names as the {n} explanations", len(groups))
    return [str(group) for group in groups]


def _feature_names(e: Explanation) -> list[str]:
    """Return names that identify features across inputs; for texts the lower-case words."""
    if modality_named(e.input.kind).aligned:
        return list(e.features)
    return [" ".join(name.casefold().split()) for name in e.features]


def _row(name: str, group: str, members: Sequence[int], scores: Mapping[int, float]) -> FeatureImportance:
    values = np.array([scores.get(k, 0.0) for k in members])
    i = bootstrap(np.abs(values), resamples=_RESAMPLES)
    n = sum(k in scores for k in members)
    return FeatureImportance(name, group, i.mean, i.low, i.high, float(values.mean()), n)


def _feature_scores(
    scores: Mapping[int, float], values: Mapping[int, Any], names: Sequence[str]
) -> FeatureScores:
    positions = _positions(np.array([values.get(k) for k in scores], dtype=object))
    return FeatureScores(tuple(scores.values()), tuple(names[k] for k in scores), tuple(positions.tolist()))


def _positions(values: Array) -> Floats:
    """Return the rank of each number among all numbers, from 0 to 1; NaN for other values."""
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        return np.full(len(values), np.nan)
    distinct = np.unique(numbers[np.isfinite(numbers)])
    ranks = np.searchsorted(distinct, numbers) / max(1, len(distinct) - 1)
    return np.where(np.isfinite(numbers), ranks, np.nan)
