"""Explanations of one input, of several inputs, and of several classes of one input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.config.serialization import (
    NOT_FINITE,
    Index,
    PlainData,
    Shape,
    decode_fields,
    encode,
    expect,
    is_plain,
)
from pertinent.config.settings import Count, Share, checked
from pertinent.errors import InputError, SettingError
from pertinent.explainers.base import ScoreMeaning, n_kept
from pertinent.inputs.base import Input
from pertinent.inputs.modality import input_from_dict
from pertinent.outputs import NAMES, Output, column_index, output_named
from pertinent.printable import visible
from pertinent.results import exports
from pertinent.results import interactions as pairs
from pertinent.results.attack_results import unattacked_note
from pertinent.results.base import Result, ResultSequence, check_suffix, display
from pertinent.results.explanation_files import read_explanations, write_rows
from pertinent.results.importance import Importance, importance_of
from pertinent.results.interactions import Pair, Triple
from pertinent.results.records import Cost, Prediction, RequestRecord

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.figure import Figure

_MOST_LIKELY = 5

PerFeature: TypeAlias = Annotated[Floats, Shape("features")]
PerColumn: TypeAlias = Annotated[Floats, Shape("columns")]
PerPair: TypeAlias = Annotated[Floats, Shape("features", "features")]
PerColumnAndFeature: TypeAlias = Annotated[Floats, Shape("columns", "features")]


@dataclass(frozen=True, eq=False)
class Explanation(Result):
    """Explanation of a model's prediction for one input.

    Attributes
    ----------
    input
        The input and its features.
    index
        Index of the input among the explained inputs, from 0.
    id
        Your name for the input, if any.
    request
        The method, the removal and their settings, the sparsities, the scale of the scores, and the seed.
    prediction
        Model output for the whole input, with column names and the meaning of the numbers.
    target
        The explained column.
    scores
        Score of each feature for the target (features,).
    meaning
        Meaning of the scores: ``"effect"``, the signed effect of a feature on the target; ``"magnitude"``,
        its importance; ``"membership"``, the share of sparsities at which it was chosen; or ``"attack"``, how
        much an attack on the prediction relies on it.
    standard_errors
        Standard error of each score, if the method samples.
    class_scores, class_standard_errors
        The same for every column (columns, features), if the method computes them.
    base_values
        For each column, the base value that together with the scores sums to the prediction, if any.
    interactions, interaction_standard_errors
        Joint effect of each pair of features on the target beyond their single effects, and its standard
        error, if the method computes pairs: symmetric (features, features), with zeros on the diagonal.
    chosen
        Best set of features for each sparsity, if the method searches.
    details
        Additional results of the method, such as the precision and coverage of anchors.
    cost
        Evaluations, budget and seconds that the explanation took.
    measures
        Values of each metric by sparsity.
    better
        For each measure, whether ``"lower"`` or ``"higher"`` is better.
    warnings
        Reasons to distrust the explanation, such as a removal that is out of distribution for the model.
    annotations
        The features marked by human annotators, as passed to `evaluate`; not saved.
    """

    kind = "explanation"

    request: RequestRecord = field(compare=False)
    input: Input = field(compare=False)
    prediction: Prediction = field(compare=False)
    target: Index
    scores: PerFeature
    meaning: ScoreMeaning = "effect"
    index: Index = 0
    id: str | None = None
    standard_errors: PerFeature | None = None
    class_scores: PerColumnAndFeature | None = None
    class_standard_errors: PerColumnAndFeature | None = None
    base_values: PerColumn | None = None
    interactions: PerPair | None = None
    interaction_standard_errors: PerPair | None = None
    chosen: Mapping[Share, Annotated[Masks, Shape("features")]] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost, compare=False)
    measures: Mapping[str, Mapping[Share | None, Annotated[float, NOT_FINITE]]] = field(default_factory=dict)
    better: Mapping[str, Literal["lower", "higher"]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    annotations: Any = field(default=None, compare=False)

    @property
    def method(self) -> str:
        """Return the name of the method."""
        return self.request.method

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the method's settings that differ from their defaults."""
        return self.request.settings

    @property
    def removal(self) -> str:
        """Return the name of the removal."""
        return self.request.removal

    @property
    def seed(self) -> int:
        """Return the seed."""
        return self.request.seed

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the name of each column: a class, a label or a value."""
        return self.prediction.classes

    @property
    def output(self) -> Output:
        """Return the meaning of the model's numbers."""
        return self.prediction.output

    @property
    def evaluations(self) -> int:
        """Return the number of evaluations used by the explanation."""
        return self.cost.evaluations

    @property
    def features(self) -> tuple[str, ...]:
        """Return the name of each feature."""
        return self.input.features

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes on the input, for example on truncation or on what is held fixed."""
        truncation = self.input.truncation
        notes = self.input.notes if truncation is None else (str(truncation), *self.input.notes)
        untouched = self.input.missing_features() if self.meaning == "attack" else []
        untouched_notes = (unattacked_note(untouched),) if untouched else ()
        return (*notes, *untouched_notes, *self.input.remarks)

    @property
    def target_name(self) -> str:
        """Return the name of the explained class, label or value."""
        return self.classes[self.target]

    @property
    def ranking(self) -> Ints:
        """Return the feature indices by descending importance; ties are in input order.

        For a class, the importance is the score; for a plain value, the magnitude of the score.
        """
        size = self.output.importance(self.scores)
        return np.argsort(-size, kind="stable")

    @property
    def pertinence(self) -> Ints | None:
        """Return whether each feature is a pertinent positive or negative; ``None`` for other methods.

        1 if the feature is present and removing it changes the prediction (pertinent positive), −1 if it is
        absent and adding it changes the prediction (pertinent negative), 0 if the attack does not need it.
        """
        signs = self.details.get("pertinence")
        if not isinstance(signs, list) or len(signs) != len(self.features):
            return None
        return np.array(signs, dtype=np.int64) if all(sign in (-1, 0, 1) for sign in signs) else None

    @checked
    def top(self, k: Count = 5) -> list[tuple[str, float]]:
        """Return the k most important features with their scores."""
        return [(self.features[i], float(self.scores[i])) for i in self.ranking[:k]]

    @checked
    def top_pairs(self, n: Count = 5) -> list[Pair]:
        """Return the n strongest pairs of features with their interactions and standard errors."""
        return [pairs.pair(self, i, j) for i, j in pairs.strongest_pairs(self, n).tolist()]

    @checked
    def top_triples(self, n: Count = 5) -> list[Triple]:
        """Return the n strongest triples of features, if the method computed them (``order=3``)."""
        return list(pairs.strongest_triples(self, n).values())

    @checked
    def mask(self, sparsity: Share) -> Masks:
        """Return the important features at a sparsity: the set chosen by a search, or the top ceil(s·d)."""
        if sparsity in self.chosen:
            return self.chosen[sparsity]
        mask = np.zeros(len(self.features), dtype=np.bool_)
        mask[self.ranking[: n_kept(sparsity, len(self.features))]] = True
        return mask

    def for_class(self, target: int | str) -> Explanation:
        """Return the explanation of another class, if the method scored all classes."""
        column = column_index(target, self.classes, self.output.kind)
        if self.class_scores is None:
            kind = self.output.kind
            raise SettingError(
                f"{self.method} explains one {kind} at a time: call `explain` again with `target`, or "
                "choose a method that scores all, such as shapley, lime or a fitted aim."
            )
        errors = self.class_standard_errors
        return replace(
            self,
            target=column,
            scores=self.class_scores[column],
            standard_errors=None if errors is None else errors[column],
            interactions=self.interactions if column == self.target else None,
            interaction_standard_errors=self.interaction_standard_errors if column == self.target else None,
            chosen={},
            measures={},
            better={},
        )

    def by_class(self, *classes: int | str) -> ByClass:
        """Return the explanations of several classes to show side by side, if the method scored all.

        By default, these are the five most likely classes and the target.
        """
        columns = [column_index(name, self.classes, self.output.kind) for name in classes]
        return ByClass([self.for_class(c) for c in dict.fromkeys(columns or most_likely(self))])

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dicts; fields of nested records are at the top level."""
        return {
            **encode(self.request),
            **encode(self.cost),
            **encode(self),
            "settings": {k: v if is_plain(v) else str(v) for k, v in self.settings.items()},
            "prediction": encode(self.prediction.values),
            "classes": list(self.classes),
            "target_name": self.target_name,
            "features": list(self.features),
            "output": self.output.to_dict(),
            "input": self.input.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Explanation:
        """Create an explanation from the output of `to_dict`; an `InputError` names an invalid field."""
        data = PlainData(plain, "explanation")
        features, classes = data.texts("features"), data.texts("classes")
        n_columns = len(classes)
        fields = decode_fields(cls, plain, features=len(features), columns=n_columns)
        values = data.floats("prediction", n_columns)
        explanation = cls(
            request=RequestRecord(**decode_fields(RequestRecord, plain)),
            input=input_from_dict(data.mapping("input"), features),
            prediction=Prediction(values, classes, _output(data.value("output"))),
            cost=Cost(**decode_fields(Cost, plain)),
            **fields,
        )
        target, sparsities = explanation.target, explanation.request.sparsities
        expect(target < n_columns, "target", f"from 0 to {n_columns - 1}", target)
        expect(bool(np.isfinite(values).all()), "prediction", "finite", values.tolist())
        expect(not np.isinf(explanation.scores).any(), "scores", "finite", "infinity")
        expect(len(sparsities) > 0, "sparsities", "at least one", sparsities)
        for name in ("standard_errors", "class_standard_errors", "interaction_standard_errors"):
            errors = getattr(explanation, name)
            expect(errors is None or not (errors < 0).any(), name, "at least 0", errors)
        return explanation

    def to_dataframe(self) -> Any:
        """Return a pandas frame with one row per feature."""
        return exports.dataframe([self])

    def pairs_to_dataframe(self) -> Any:
        """Return a pandas frame with one row per pair of features, strongest first."""
        return pairs.dataframe(self)

    def to_shapiq(self) -> Any:
        """Return `shapiq.InteractionValues` of the features and pairs, for shapiq's plots."""
        return pairs.shapiq_values(self)

    def to_shap(self) -> Any:
        """Return a `shap.Explanation` for shap, such as waterfall, bar, text and image plots.

        If the method has no base value, it is the prediction minus the sum of the scores, so that a waterfall
        ends at the prediction. The score of an image feature is divided equally among its pixels and
        channels.
        """
        return exports.shap_explanation(self)

    def heatmap(self) -> Floats:
        """Return the score of each pixel of an image (height, width)."""
        return self.input.heatmap(self.scores)

    def save(self, path: str | Path) -> None:
        """Write a ``.parquet`` or ``.json`` file, which `pertinent.read` reads, or a ``.csv`` file."""
        Explanations([self]).save(path)

    @classmethod
    def read(cls, path: str | Path) -> Explanation:
        """Read the first explanation of a file."""
        return Explanations.read(path)[0]

    @checked
    def plot(
        self, top: Count | None = 20, *, colours: str | None = None, opacity: Share | None = None
    ) -> Figure:
        """Return a matplotlib figure: bars for texts and rows, a heat map for images.

        `top` is the number of bars, for the strongest features; ``None`` shows all. `colours` names a
        matplotlib colour map for heat maps, such as ``"RdBu_r"``; the default is blue to orange. Heat maps
        show the image as outlines; with an `opacity` from 0 to 1 they are drawn over the image.
        """
        return super().plot(top, colours=colours, opacity=opacity)

    @checked
    def plot_interactions(
        self, kind: Literal["arcs", "heat map", "network"] | None = None, top: Count = 20
    ) -> Figure:
        """Return a matplotlib figure of feature interactions, if the method computes pairs.

        `kind` is ``"arcs"`` over the words of a text, a ``"heat map"`` or a ``"network"``; by default arcs
        for texts, a heat map for images, and both a heat map and a network for table rows. `top` is the
        number of pairs drawn as arcs or lines, and the number of features in a heat map or network (at most
        20).
        """
        figure: Figure = display(self, "interactions", kind, top)
        return figure

    @checked
    def plot_waterfall(self, top: Count = 10) -> Figure:
        """Return a matplotlib figure of the path from the base value to the prediction.

        It requires a method whose scores sum to the prediction, such as Shapley values. `top` is the number
        of features with a bar; the remaining features share one bar.
        """
        figure: Figure = display(self, "waterfall", top)
        return figure

    def __repr__(self) -> str:
        best = ", ".join(f"{name!r} {score:+.3f}" for name, score in self.top(3))
        return f"<Explanation of {self.target_name!r} by {visible(self.method)}: {best}>"


def most_likely(e: Explanation) -> list[int]:
    """Return the five most likely columns and the target, most likely first; values keep their order."""
    order = np.arange(len(e.classes))
    if e.output.kind != "value":
        order = np.argsort(-e.prediction.values, kind="stable")
    return [i for rank, i in enumerate(order.tolist()) if rank < _MOST_LIKELY or i == e.target]


class Explanations(ResultSequence[Explanation]):
    """Explanations of several inputs, in order; `failures` lists the missing ones with reasons."""

    kind = "explanations"
    suffixes = (".parquet", ".json", ".csv")
    item_class = Explanation

    def to_dataframe(self) -> Any:
        """Return a pandas frame with one row per explanation and feature."""
        return exports.dataframe(self)

    def to_shap(self) -> Any:
        """Return one `shap.Explanation` for shap, such as beeswarm, bar, text and image plots.

        Table rows give a matrix (explanations, features), texts an array of arrays. For a binary classifier,
        all rows have the scores of the second class, so their signs are comparable.
        """
        return exports.shap_explanations(self)

    @checked
    def importance(self, groups: str | Sequence[Any] | None = None, *, top: Count = 20) -> Importance:
        """Compute the importance of features over all explanations: mean magnitudes with intervals.

        `groups` compares groups of explanations: ``"target"`` by the explained class, ``"method"``, or a list
        with the group of each explanation; ``"class"`` compares the scores for every class, if the method
        scores all classes. The features of texts are lower-case words; all occurrences in a text count as one
        feature. `top` is the number of features to keep.

        Signed scores are summarised for one class: for explanations of both classes of a binary classifier,
        the second class. In other cases, without `groups`, each class is a group.
        """
        return importance_of(self, groups, top)

    @checked
    def plot(
        self, top: Count | None = 5, *, colours: str | None = None, opacity: Share | None = None
    ) -> Figure:
        """Return a matplotlib figure of the first ten: texts and rows in a column, images in a grid.

        Each grid row shows the image and the heat maps of all methods. The parameters are as in
        `Explanation.plot`.
        """
        return super().plot(top, colours=colours, opacity=opacity)

    @checked
    def save(self, path: str | Path) -> None:
        """Write a ``.parquet`` or ``.json`` file, which `pertinent.read` reads, or a ``.csv`` file."""
        check_suffix(Path(path), self.suffixes)
        if Path(path).suffix.lower() == ".parquet":
            write_rows(Path(path), (e.to_dict() for e in self), self.failures)
        else:
            super().save(path)

    @classmethod
    @checked
    def read(cls, path: str | Path) -> Self:
        """Read saved explanations, or the finished ones of an interrupted run.

        For an unfinished run with ``out="run.parquet"``, the journal in the same folder is read.
        """
        if Path(path).suffix.lower() == ".json":
            return super().read(path)
        return cls(*read_explanations(Path(path), Explanation.from_dict))


class ByClass(Explanations):
    """Explanations of several classes, labels or values of one input.

    They are shown side by side on one colour scale, with the chosen set of each class underlined.
    """

    @property
    def sparsity(self) -> float:
        """Return the smallest sparsity of the explanation, which determines the sets."""
        return min(self[0].request.sparsities)

    @property
    def sets(self) -> list[Masks]:
        """Return the chosen set of each class: its top ceil(s·d) features at the smallest sparsity."""
        return [e.mask(self.sparsity) for e in self]

    def to_dataframe(self) -> Any:
        """Return a pandas frame with one row per class and feature."""
        frame = super().to_dataframe()
        frame[f"chosen at {self.sparsity:g}"] = np.concatenate(self.sets)
        return frame

    @checked
    def plot(
        self, top: Count | None = None, *, colours: str | None = None, opacity: Share | None = None
    ) -> Figure:
        """Return a matplotlib figure with one panel per class: bars for texts and rows, heat maps for images.

        `top` is the number of bars, by default 5 for texts and 20 for rows. `colours` and `opacity` are as in
        `Explanation.plot`.
        """
        return super().plot(top, colours=colours, opacity=opacity)

    def __repr__(self) -> str:
        names = ", ".join(repr(e.target_name) for e in self)
        return f"<Explanation by {visible(self[0].method)} for {names}>"


def _output(plain: Any) -> Output:
    data = PlainData(plain, "output")
    name = data.text("name", NAMES)
    unit = data.text("unit") if name in ("value", "log-likelihood") else None
    try:
        return output_named(name, unit)
    except SettingError as error:
        raise InputError(str(error)) from error
