"""What an explainer found: for one input, for several, and for several classes of one input."""

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
from pertinent.results.attack_results import not_attacked
from pertinent.results.base import Result, ResultSequence, check_suffix, display
from pertinent.results.explanation_files import read_explanations, write_rows
from pertinent.results.failures import failures_from_plain
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
    """Why a model made its decision about one input.

    Attributes
    ----------
    input
        The input and its features.
    index
        The position of the input among those that were explained, from 0.
    id
        The user's name for the input, if there is one.
    request
        The method, the removal and their settings, the sparsities, the scale of the scores, and the seed.
    prediction
        The model's output for the whole input, the names of its columns, and what its numbers mean.
    target
        The column explained.
    scores
        The score of each feature for the target, (features,).
    meaning
        What the scores say of features: their signed ``"effect"`` on the target; the ``"magnitude"`` by which
        they matter; the ``"membership"``, the share of sparsities at which they were chosen; or how much an
        ``"attack"`` on the prediction needs them.
    standard_errors
        The standard error of each score, where the method samples.
    class_scores, class_standard_errors
        The same for every column, (columns, features), where the method computes them.
    base_values
        For each column, the value that the scores are added to for the prediction, if they add up to it.
    interactions, interaction_standard_errors
        How each two features act together on the target, beyond what each does by itself, and the standard
        errors, where the method values pairs: symmetric (features, features), with zeros on the diagonal.
    chosen
        The best set of features for each sparsity, where the method searches.
    details
        What else the method reports, such as the precision and coverage of anchors.
    cost
        The evaluations, the budget and the seconds that the explanation took.
    measures
        The values of each metric by sparsity.
    better
        For each measure, whether ``"lower"`` or ``"higher"`` is better.
    warnings
        Reasons not to trust the explanation, such as a removal that is out of distribution for the model.
    annotations
        The features that people marked, as passed to `evaluate`; they are not saved.
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
        """Return the settings of the method that differ from their defaults."""
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
        """Return what the model's numbers mean."""
        return self.prediction.output

    @property
    def evaluations(self) -> int:
        """Return the number of evaluations that the explanation took."""
        return self.cost.evaluations

    @property
    def features(self) -> tuple[str, ...]:
        """The name of each feature."""
        return self.input.features

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of the input, such as truncation."""
        truncation = self.input.truncation
        notes = self.input.notes if truncation is None else (str(truncation), *self.input.notes)
        untouched = self.input.missing_features() if self.meaning == "attack" else []
        return (*notes, not_attacked(untouched)) if untouched else notes

    @property
    def target_name(self) -> str:
        """The name of the class, label or value explained."""
        return self.classes[self.target]

    @property
    def ranking(self) -> Ints:
        """Feature numbers, the most important first; equal scores in the order of the input.

        Features that support a class come first; for a plain value, those that change it most, up or down.
        """
        size = self.output.importance(self.scores)
        return np.argsort(-size, kind="stable")

    @property
    def pertinence(self) -> Ints | None:
        """For each feature, where the method attacks images or table rows: is it present or absent?

        1 if it is present and must go for the prediction to change (pertinent positive), −1 if it is absent
        and would have to come (pertinent negative), 0 if the attack does not need it.
        """
        found = self.details.get("pertinence")
        if not isinstance(found, list) or len(found) != len(self.features):
            return None
        return np.array(found, dtype=np.int64) if all(each in (-1, 0, 1) for each in found) else None

    @checked
    def top(self, k: Count = 5) -> list[tuple[str, float]]:
        """The k most important features with their scores."""
        return [(self.features[i], float(self.scores[i])) for i in self.ranking[:k]]

    @checked
    def top_pairs(self, n: Count = 5) -> list[Pair]:
        """The n strongest pairs of features, with the value of their interaction and its standard error."""
        return [pairs.pair(self, i, j) for i, j in pairs.strongest_pairs(self, n).tolist()]

    @checked
    def top_triples(self, n: Count = 5) -> list[Triple]:
        """The n strongest triples of features, where they were valued (``order=3``)."""
        return list(pairs.strongest_triples(self, n).values())

    @checked
    def mask(self, sparsity: Share) -> Masks:
        """The important features at a sparsity: the set a search chose, else the top ceil(s·d)."""
        if sparsity in self.chosen:
            return self.chosen[sparsity]
        mask = np.zeros(len(self.features), dtype=np.bool_)
        mask[self.ranking[: n_kept(sparsity, len(self.features))]] = True
        return mask

    def for_class(self, target: int | str) -> Explanation:
        """The same explanation for another class, where the method scored all classes at once."""
        column = column_index(target, self.classes, self.output.kind)
        if self.class_scores is None:
            what = self.output.kind
            raise SettingError(
                f"{self.method} explains one {what} at a time: explain again with target=, or choose a "
                "method that scores all, such as shapley, lime or a fitted aim."
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
        """The same explanation for several classes side by side, where the method scored all classes at once.

        By default for the five most likely classes and the target.
        """
        columns = [column_index(each, self.classes, self.output.kind) for each in classes]
        return ByClass([self.for_class(c) for c in dict.fromkeys(columns or most_likely(self))])

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dicts; the fields of groups stand among the others."""
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
        """Make an explanation from what `to_dict` returned.

        Its fields fit each other: it can be shown, converted and measured. An `InputError` names the field
        that does not.
        """
        data = PlainData(plain, "explanation")
        features, classes = data.texts("features"), data.texts("classes")
        n_columns = len(classes)
        fields = decode_fields(cls, plain, features=len(features), columns=n_columns)
        values = data.floats("prediction", n_columns)
        found = cls(
            request=RequestRecord(**decode_fields(RequestRecord, plain)),
            input=input_from_dict(data.mapping("input"), features),
            prediction=Prediction(values, classes, _output(data.value("output"))),
            cost=Cost(**decode_fields(Cost, plain)),
            **fields,
        )
        expect(found.target < n_columns, "target", f"from 0 to {n_columns - 1}", found.target)
        expect(bool(np.isfinite(values).all()), "prediction", "finite", values.tolist())
        expect(not np.isinf(found.scores).any(), "scores", "finite", "infinity")
        sparsities = found.request.sparsities
        expect(len(sparsities) > 0, "sparsities", "at least one", sparsities)
        for name in ("standard_errors", "class_standard_errors", "interaction_standard_errors"):
            errors = getattr(found, name)
            expect(errors is None or not (errors < 0).any(), name, "at least 0", errors)
        return found

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per feature."""
        return exports.dataframe([self])

    def pairs_to_dataframe(self) -> Any:
        """A pandas frame with one row per pair of features, the strongest first."""
        return pairs.dataframe(self)

    def to_shapiq(self) -> Any:
        """`shapiq.InteractionValues` of the features and their pairs, for shapiq's plots."""
        return pairs.shapiq_values(self)

    def to_shap(self) -> Any:
        """A `shap.Explanation`, for shap's plots: waterfall, bar, text, image …

        Where the method has no base value, it is the prediction minus the sum of the scores, so that
        a waterfall ends at the prediction. Of an image each pixel and channel has its share of the
        score of its feature.
        """
        return exports.shap_explanation(self)

    def heatmap(self) -> Floats:
        """The score of each pixel of an image (height, width)."""
        return self.input.heatmap(self.scores)

    def save(self, path: str | Path) -> None:
        """Write a ``.parquet`` or ``.json`` file that `pertinent.read` reads back, or a ``.csv`` file."""
        Explanations([self]).save(path)

    @classmethod
    def read(cls, path: str | Path) -> Explanation:
        """Read the first explanation of a file."""
        return Explanations.read(path)[0]

    @checked
    def plot(
        self, top: Count | None = 20, *, colours: str | None = None, opacity: Share | None = None
    ) -> Figure:
        """A matplotlib figure: bars for texts and rows, a heat map for images.

        `top` is how many of the strongest features have a bar; ``None`` shows all. A heat map has the colours
        of a matplotlib colour map such as ``"RdBu_r"``, by default blue to orange. It shows the outlines of
        the image; with an `opacity` of 0 to 1 it is laid over the image.
        """
        return super().plot(top, colours=colours, opacity=opacity)

    @checked
    def plot_interactions(
        self, kind: Literal["arcs", "heat map", "network"] | None = None, top: Count = 20
    ) -> Figure:
        """A matplotlib figure of the features that act together, where the method values pairs.

        `kind` is ``"arcs"`` over the words of a text, a ``"heat map"`` or a ``"network"``; by default arcs
        for texts, a heat map for images, and a heat map beside a network for table rows. `top` is how many
        pairs are drawn as arcs or lines, and of how many features a heat map or a network is, at most 20.
        """
        figure: Figure = display(self, "interactions", kind, top)
        return figure

    @checked
    def plot_waterfall(self, top: Count = 10) -> Figure:
        """A matplotlib figure of how the scores lead from the base value to the prediction.

        For methods whose scores add up to it, such as Shapley values. `top` is how many features have a bar
        of their own; the others share one.
        """
        figure: Figure = display(self, "waterfall", top)
        return figure

    def __repr__(self) -> str:
        best = ", ".join(f"{name!r} {score:+.3f}" for name, score in self.top(3))
        return f"<Explanation of {self.target_name!r} by {visible(self.method)}: {best}>"


def most_likely(e: Explanation) -> list[int]:
    """The five most likely columns and the target, the most likely first; of plain values the first."""
    order = np.arange(len(e.classes))
    if e.output.kind != "value":
        order = np.argsort(-e.prediction.values, kind="stable")
    return [i for place, i in enumerate(order.tolist()) if place < _MOST_LIKELY or i == e.target]


class Explanations(ResultSequence[Explanation]):
    """Explanations of several inputs, in their order; `failures` lists which are missing and why."""

    kind = "explanations"
    suffixes = (".parquet", ".json", ".csv")

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<{len(self)} explanations{failed}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts."""
        return {"explanations": [e.to_dict() for e in self], "failures": encode(self.failures)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; an `InputError` says what explanations cannot be made of."""
        data = PlainData(plain, "explanations")
        every = [Explanation.from_dict(each) for each in data.value("explanations", list[Any])]
        return cls(every, failures_from_plain(data.value("failures")))

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per explanation and feature."""
        return exports.dataframe(self)

    def to_shap(self) -> Any:
        """A `shap.Explanation` of all of them, for shap's plots: beeswarm, bar, text, image …

        Table rows give a matrix (explanations, features), texts an array of arrays. Rows of both classes of a
        binary classifier have the scores of the second class, so that their signs can be compared.
        """
        return exports.shap_explanations(self)

    @checked
    def importance(self, groups: str | Sequence[Any] | None = None, *, top: Count = 20) -> Importance:
        """Which features matter over all of them: the mean size of their scores, with intervals.

        `groups` compares cohorts: ``"target"`` for the class explained, ``"method"``, or a name for each
        explanation; ``"class"`` compares the scores that each explanation has for every class, where the
        method scores all. Of texts, features are words in lower case; all occurrences in a text count
        together.
        `top` is how many features are kept.

        Signed scores are summarized for one class: where the explanations are for both classes of a binary
        classifier, for the second one. Without `groups`, other classes have a group each.
        """
        return importance_of(self, groups, top)

    @checked
    def plot(
        self, top: Count | None = 5, *, colours: str | None = None, opacity: Share | None = None
    ) -> Figure:
        """A matplotlib figure of the first ten: texts and rows one below the other, images in a grid.

        In the grid the heat maps of all methods stand beside the image. The parameters are those of
        `Explanation.plot`.
        """
        return super().plot(top, colours=colours, opacity=opacity)

    @checked
    def save(self, path: str | Path) -> None:
        """Write a ``.parquet`` or ``.json`` file that `pertinent.read` reads back, or a ``.csv`` file."""
        check_suffix(Path(path), self.suffixes)
        if Path(path).suffix.lower() == ".parquet":
            write_rows(Path(path), (e.to_dict() for e in self), self.failures)
        else:
            super().save(path)

    @classmethod
    @checked
    def read(cls, path: str | Path) -> Self:
        """Read saved explanations, or those that an unfinished run has completed so far.

        If a run with ``out="run.parquet"`` is still running or was killed, its journal beside that file
        is read.
        """
        if Path(path).suffix.lower() == ".json":
            return super().read(path)
        return cls(*read_explanations(Path(path), Explanation.from_dict))


class ByClass(Explanations):
    """One explanation for several classes, labels or values: an `Explanation` for each of them.

    It is shown side by side, on one colour scale, with the chosen set of each class underlined.
    """

    @property
    def sparsity(self) -> float:
        """The smallest sparsity of the explanation, at which the sets are chosen."""
        return min(self[0].request.sparsities)

    @property
    def sets(self) -> list[Masks]:
        """The chosen set of each class: its top ceil(s·d) features at the smallest sparsity."""
        return [e.mask(self.sparsity) for e in self]

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per class and feature."""
        frame = super().to_dataframe()
        frame[f"chosen at {self.sparsity:g}"] = np.concatenate(self.sets)
        return frame

    @checked
    def plot(
        self, top: Count | None = None, *, colours: str | None = None, opacity: Share | None = None
    ) -> Figure:
        """A matplotlib figure with a panel for each class: bars for texts and rows, heat maps for images.

        `top` is how many features have a bar: by default 5, of a row 20. `colours` and `opacity` are those of
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
