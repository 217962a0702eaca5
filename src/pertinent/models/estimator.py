"""Any fitted scikit-learn estimator, or one with the same interface, such as xgboost's and lightgbm's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pertinent._optional import optional
from pertinent.errors import ModelError
from pertinent.models.function import FunctionModel
from pertinent.removal.base import Rows
from pertinent.types import Array


class EstimatorModel(FunctionModel):
    """A fitted classifier, multi-label classifier, regressor or pipeline, over table rows or texts.

    An estimator that was fitted on a data frame is called with data frames with the same columns.
    """

    def __init__(
        self, estimator: Any, *, classes: Sequence[str] = (), output: str | None = None, **options: Any
    ) -> None:
        names = getattr(estimator, "feature_names_in_", None)
        self._frame = names is not None
        if names is not None:
            options.setdefault("columns", [str(name) for name in names])
        output = output or natural_output(estimator)
        if output != "value":
            classes = classes or _class_names(estimator)
        self.estimator = estimator
        function = estimator.predict if output == "value" else estimator.predict_proba
        super().__init__(function, classes=classes, output=output, **options)

    def identity(self) -> object:
        """What the estimator learned."""
        return self.estimator, self.output.to_dict(), self.columns

    def _evaluate(self, batch: Any) -> Array:
        answer = self.function(batch)
        if isinstance(answer, list):
            return _of_each_label(answer)
        return np.asarray(answer)

    def _batch(self, rows: Sequence[Rows]) -> Any:
        batch = super()._batch(rows)
        if not self._frame or isinstance(batch, list) or self.columns is None:
            return batch
        return optional("pandas").DataFrame(batch, columns=list(self.columns.names)).infer_objects()


def natural_output(estimator: Any) -> str:
    """What a fitted estimator answers with: ``"value"``, ``"label-probability"`` or ``"probability"``."""
    if not hasattr(estimator, "predict_proba"):
        return "value"
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    binarizer = getattr(last, "_label_binarizer", None)
    several = (
        getattr(last, "multilabel_", False),
        isinstance(getattr(last, "classes_", None), list),
        getattr(binarizer, "y_type_", "") == "multilabel-indicator",
    )
    return "label-probability" if any(several) else "probability"


def _class_names(estimator: Any) -> list[str]:
    classes = estimator.classes_
    if isinstance(classes, list):
        return [f"label {i}" for i in range(len(classes))]
    return [str(name) for name in classes]


def _of_each_label(answer: Sequence[Array]) -> Array:
    """The probability that each label is true, if an estimator returns one array per label."""
    wide = [label.shape for label in answer if label.ndim != 2 or label.shape[1] != 2]
    if wide:
        raise ModelError(
            "The estimator answers several questions at once, one of them with more than two classes: "
            "wrap a function that answers one of them."
        )
    return np.stack([label[:, 1] for label in answer], axis=1)
