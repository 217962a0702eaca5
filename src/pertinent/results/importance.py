"""Which features matter over many inputs: the mean size of their scores, with intervals, by group."""

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
    """How much one feature matters in a group of explanations.

    Attributes
    ----------
    feature, group
        The name of the feature (of a text, a word in lower case), and of the group; empty if there is one.
    mean, low, high
        The mean size of its score (that is, without sign) over all explanations of the group, those without
        the feature counting as 0, and the bounds of its 95% interval.
    effect
        The mean of its score, with its sign; NaN if the scores are for several classes.
    n
        The number of explanations of the group that have the feature.
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
    """The scores of one feature in all explanations that have it, and where its values lie.

    A score belongs to the group of the same position. A position is the rank of the feature's value among all
    its values, from 0 to 1; NaN if the values have no order.
    """

    scores: tuple[float, ...]
    groups: tuple[str, ...]
    positions: tuple[Annotated[float, NOT_FINITE], ...]


@dataclass(frozen=True)
class Importance(Result):
    """Which features matter over many inputs, the most important first.

    Attributes
    ----------
    rows
        A `FeatureImportance` for each feature shown and each group.
    sizes
        The number of explanations in each group.
    scored
        For each feature shown, its scores.
    n_features
        How many features there are in all.
    targets
        The class, label or value that the scores of each group are for; ``None`` if they are signed and for
        several, empty if they have no sign or the model has only one value.
    """

    kind = "importance"

    rows: tuple[FeatureImportance, ...]
    sizes: Mapping[str, Index]
    scored: Mapping[str, FeatureScores]
    n_features: Index
    targets: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def is_signed(self) -> bool:
        """Return whether the scores of each group are for one class, so that their signs can be compared."""
        return None not in self.targets.values()

    @property
    def features(self) -> list[str]:
        """The features shown, the most important first."""
        return list(self.scored)

    @property
    def groups(self) -> list[str]:
        """The groups, in their order."""
        return list(self.sizes)

    def rows_for(self, feature: str) -> list[FeatureImportance]:
        """The rows of a feature, one for each group."""
        return [row for row in self.rows if row.feature == feature]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts."""
        plain: dict[str, Any] = encode(self)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Importance:
        """The inverse of `to_dict`; an `InputError` says what it cannot be made of."""
        return cls(**decode_fields(cls, plain))

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per feature and group."""
        rows = [{name: replace_surrogates(value) for name, value in vars(row).items()} for row in self.rows]
        return optional("pandas").DataFrame(rows)

    @checked
    def plot(self, kind: Literal["bars", "beeswarm"] = "bars") -> Figure:
        """A matplotlib figure: bars with intervals, or a beeswarm of the scores of every input.

        In a beeswarm each point is the score of a feature in one input; where values have an order, as in a
        column of numbers, it is coloured by the value, low to high. Groups have a panel each. A beeswarm of
        scores for several classes is refused.
        """
        if kind == "beeswarm":
            self.check_signed()
        return super().plot(kind)

    def check_signed(self) -> None:
        """Raise a `SettingError` if the scores of a group are for several classes."""
        if not self.is_signed:
            mixed = ", ".join(repr(name) for name, target in self.targets.items() if target is None)
            raise SettingError(
                f"`kind` must be 'bars' because the groups {mixed} have signed scores for several classes. "
                'For a beeswarm use importance("class") or importance("target"), or explain one class with '
                "target=."
            )

    def __repr__(self) -> str:
        best = ", ".join(repr(name) for name in self.features[:3])
        return f"<Importance over {sum(self.sizes.values())} explanations: {best}>"


def importance_of(
    explanations: Sequence[Explanation], groups: str | Sequence[Any] | None, top: int
) -> Importance:
    """The `top` features by the mean size of their scores, in each of the groups."""
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
            f"The explanations are by several methods ({', '.join(methods)}), whose scores differ: choose "
            "those of one, or groups='method'."
        )
    scores: defaultdict[str, dict[int, float]] = defaultdict(dict)
    values: defaultdict[str, dict[int, Any]] = defaultdict(dict)
    for k, e in enumerate(explanations):
        own = e.input.feature_values() if e.input.shown() is not None else None
        for i, feature in enumerate(_feature_names(e)):
            scores[feature][k] = scores[feature].get(k, 0.0) + float(np.nan_to_num(e.scores[i]))
            if own is not None:
                values[feature][k] = own[i]
    shown = sorted(scores, key=lambda name: -sum(map(abs, scores[name].values())))[:top]
    members = {name: [k for k, own in enumerate(names) if own == name] for name in dict.fromkeys(names)}
    targets = {group: _target_of([explanations[k] for k in own]) for group, own in members.items()}
    rows = [_row(name, group, own, scores[name]) for name in shown for group, own in members.items()]
    return Importance(
        tuple(row if targets[row.group] is not None else replace(row, effect=np.nan) for row in rows),
        {group: len(own) for group, own in members.items()},
        {name: _scored(scores[name], values[name], names) for name in shown},
        len(scores),
        targets,
    )


def for_one_class(explanations: Sequence[Explanation]) -> Sequence[Explanation]:
    """Return signed explanations of both classes of a binary classifier as those of the second class.

    Others are returned unchanged.
    """
    if _target_of(explanations) is not None:
        return explanations
    positive = [_for_positive_class(e) for e in explanations]
    return explanations if None in positive else [e for e in positive if e is not None]


def _target_of(explanations: Sequence[Explanation]) -> str | None:
    """Return the class that signed scores are for; ``None`` for several, empty if it does not matter."""
    names = {e.target_name for e in explanations if e.meaning == "effect" and len(e.classes) > 1}
    return None if len(names) > 1 else next(iter(names), "")


def _for_positive_class(e: Explanation) -> Explanation | None:
    """Return the explanation of the second of two classes; ``None`` if that is not known.

    Its scores are the negative of those of the first class where probabilities or log-odds are explained.
    Without base values, the natural scale may be that of gradients, which follow log-probabilities.
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
    return [str(each) for each in groups]


def _feature_names(e: Explanation) -> list[str]:
    """The names of features that are the same thing in every input; of a text the words in lower case."""
    if modality_named(e.input.kind).aligned:
        return list(e.features)
    return [" ".join(name.casefold().split()) for name in e.features]


def _row(name: str, group: str, members: Sequence[int], scores: Mapping[int, float]) -> FeatureImportance:
    found = np.array([scores.get(k, 0.0) for k in members])
    interval = bootstrap(np.abs(found), resamples=_RESAMPLES)
    n = sum(k in scores for k in members)
    return FeatureImportance(name, group, interval.mean, interval.low, interval.high, float(found.mean()), n)


def _scored(scores: Mapping[int, float], values: Mapping[int, Any], names: Sequence[str]) -> FeatureScores:
    positions = _positions(np.array([values.get(k) for k in scores], dtype=object))
    return FeatureScores(tuple(scores.values()), tuple(names[k] for k in scores), tuple(positions.tolist()))


def _positions(values: Array) -> Floats:
    """The rank of each number among all, from 0 to 1; NaN where there is none."""
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        return np.full(len(values), np.nan)
    known = np.unique(numbers[np.isfinite(numbers)])
    found = np.searchsorted(known, numbers) / max(1, len(known) - 1)
    return np.where(np.isfinite(numbers), found, np.nan)
