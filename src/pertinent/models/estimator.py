"""Any fitted scikit-learn estimator, or one with the same interface, such as xgboost's and lightgbm's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from pertinent.array_types import Array
from pertinent.asks import Question, TreeValues
from pertinent.config.settings import checked
from pertinent.errors import ModelError
from pertinent.inputs.rows import Frame
from pertinent.models.base import Handlers
from pertinent.models.function import FunctionModel
from pertinent.models.trees.read_trees import NO_TREES, has_trees
from pertinent.models.trees.tree_shapley import Trees, tree_values, unwrap_pipeline


class EstimatorModel(FunctionModel):
    """A fitted classifier, multi-label classifier, regressor or pipeline, over table rows or texts.

    An estimator that was fitted on a data frame is called with data frames with the same columns, and
    with the dtypes of the background if that is a frame, too.
    """

    handlers: ClassVar[Handlers] = {**FunctionModel.handlers, TreeValues: tree_values}

    @checked
    def __init__(
        self, estimator: Any, *, classes: Sequence[Any] = (), output: str | None = None, **options: Any
    ) -> None:
        names = feature_names(estimator)
        if names is not None:
            options.setdefault("columns", names)
        if hasattr(estimator, "n_features_in_"):
            options.setdefault("kind", "table")
        output = output or natural_output(estimator)
        if output != "value":
            classes = classes or _class_names(estimator)
        self.estimator = estimator
        self.trees: dict[bytes, Trees] = {}
        function = estimator.predict if output == "value" else estimator.predict_proba
        super().__init__(function, classes=classes, output=output, **options)
        self.wrapped = estimator
        if names is None and hasattr(estimator, "n_features_in_"):
            self.frame = None  # it was fitted on arrays
        elif names is not None and self.frame is None:
            self.frame = Frame(tuple(names))

    def identity(self) -> object:
        """The fitted estimator, what its answers mean, and the columns it reads."""
        return self.estimator, self.output.to_dict(), self.columns, self.frame

    def refusal(self, kind: type[Question]) -> str:
        """An estimator without trees answers nothing about them."""
        own = unwrap_pipeline(self.estimator)[1]
        if kind is TreeValues and not has_trees(own):
            return NO_TREES.format(type(own).__name__)
        return super().refusal(kind)

    def forget(self) -> None:
        """Forget the trees, too, which were read from the fitted estimator."""
        super().forget()
        self.trees.clear()

    def _evaluate(self, batch: Any) -> Array:
        answer = self.function(batch)
        return _of_each_label(answer) if isinstance(answer, list) else np.asarray(answer)


def feature_names(estimator: Any) -> list[str] | None:
    """The names of the columns that an estimator was fitted on, if they had any."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:  # lightgbm before version 4.6, which also has names of its own for an array's columns
        names = getattr(estimator, "feature_name_", None)
        names = None if names == [f"Column_{i}" for i in range(len(names or ()))] else names
    return None if names is None else [str(name) for name in names]


def natural_output(estimator: Any) -> str:
    """What a fitted estimator answers with: ``"value"``, ``"label-probability"`` or ``"probability"``."""
    if not hasattr(estimator, "predict_proba"):
        return "value"
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    binarizer = getattr(last, "_label_binarizer", None)
    several = (
        getattr(last, "multilabel_", False)
        or isinstance(getattr(last, "classes_", None), list)
        or getattr(binarizer, "y_type_", "") == "multilabel-indicator"
    )
    return "label-probability" if several else "probability"


def _class_names(estimator: Any) -> list[str]:
    classes = estimator.classes_
    if isinstance(classes, list):
        return [f"label {i}" for i in range(len(classes))]
    return [str(name) for name in classes]


def _of_each_label(answer: Sequence[Array]) -> Array:
    """The probability that each label is true, if an estimator returns one array per label."""
    if any(label.ndim != 2 or label.shape[1] != 2 for label in answer):
        raise ModelError(
            "The estimator answers several questions at once, one of them with more than two classes: "
            "wrap a function that answers one of them."
        )
    return np.stack([label[:, 1] for label in answer], axis=1)
