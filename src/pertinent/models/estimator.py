"""Model of a fitted estimator with scikit-learn's interface, including xgboost and lightgbm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from pertinent._optional import optional
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
    """A fitted classifier, multi-label classifier, regressor or pipeline over table rows or texts.

    An estimator that was fitted on a data frame is called with data frames with the same columns, and with
    the background's dtypes if the background is a frame too.
    """

    handlers: ClassVar[Handlers] = {**FunctionModel.handlers, TreeValues: tree_values}

    @checked
    def __init__(
        self, estimator: Any, *, classes: Sequence[Any] = (), output: str | None = None, **options: Any
    ) -> None:
        names = fitted_columns(estimator)
        if names is not None:
            options.setdefault("columns", names)
        if hasattr(estimator, "n_features_in_"):
            options.setdefault("kind", "table")
        output = output or infer_output(estimator)
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
        """Return the fitted estimator, the meaning of its answers, and the columns it reads."""
        return self.estimator, self.output.to_dict(), self.columns, self.frame

    def refusal(self, kind: type[Question]) -> str:
        """Return why the estimator cannot answer; questions about trees need trees."""
        estimator = unwrap_pipeline(self.estimator)[1]
        if kind is TreeValues and not has_trees(estimator):
            return NO_TREES.format(type(estimator).__name__)
        return super().refusal(kind)

    def forget(self) -> None:
        """Discard the fingerprint and the trees read from the estimator."""
        super().forget()
        self.trees.clear()

    def _evaluate(self, batch: Any) -> Array:
        answer = self.function(batch)
        return _stack_labels(answer) if isinstance(answer, list) else np.asarray(answer)


def fitted_columns(estimator: Any) -> list[str] | None:
    """Return the names of the columns that an estimator was fitted on, if they had names."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:  # lightgbm before version 4.6, which also names the columns of an array
        names = getattr(estimator, "feature_name_", None)
        names = None if names == [f"Column_{i}" for i in range(len(names or ()))] else names
    return None if names is None else [str(name) for name in names]


def infer_output(estimator: Any) -> str:
    """Return the estimator's output: ``"value"``, ``"label-probability"`` or ``"probability"``."""
    if not hasattr(estimator, "predict_proba"):
        return "value"
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    binarizer = getattr(last, "_label_binarizer", None)
    has_labels = (
        getattr(last, "multilabel_", False)
        or isinstance(getattr(last, "classes_", None), list)
        or getattr(binarizer, "y_type_", "") == "multilabel-indicator"
    )
    return "label-probability" if has_labels else "probability"


def check_estimator(estimator: Any) -> None:
    """Raise a `ModelError` unless an estimator is fitted and, if a classifier, returns probabilities."""
    name, has_probabilities = type(estimator).__name__, hasattr(estimator, "predict_proba")
    is_regressor = not has_probabilities
    if hasattr(estimator, "__sklearn_tags__") or hasattr(estimator, "_estimator_type"):
        is_regressor = bool(optional("sklearn.base").is_regressor(estimator))
    if not is_regressor and not has_probabilities:
        raise ModelError(
            f"{name} has no predict_proba and therefore no class probabilities; wrap it in "
            "sklearn.calibration.CalibratedClassifierCV, or pass a function."
        )
    is_fitted = is_regressor or hasattr(estimator, "classes_")
    if is_regressor and hasattr(estimator, "__sklearn_tags__"):
        try:
            optional("sklearn.utils.validation").check_is_fitted(estimator)
        except optional("sklearn.exceptions").NotFittedError:
            is_fitted = False
    if not is_fitted:
        raise ModelError(f"The {name} is not fitted: call fit() first.")


def _class_names(estimator: Any) -> list[str]:
    classes = estimator.classes_
    if isinstance(classes, list):
        return [f"label {i}" for i in range(len(classes))]
    return [str(name) for name in classes]


def _stack_labels(answer: Sequence[Array]) -> Array:
    """Return the probability that each label is true, from an answer with one array per label."""
    if any(label.ndim != 2 or label.shape[1] != 2 for label in answer):
        raise ModelError(
            "The estimator is a multi-output classifier with an output of more than two classes: wrap a "
            "function that returns a single output."
        )
    return np.stack([label[:, 1] for label in answer], axis=1)
