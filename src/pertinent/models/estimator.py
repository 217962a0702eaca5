"""Any scikit-learn estimator with `predict_proba`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pertinent._optional import optional
from pertinent.models.function import FunctionModel
from pertinent.removal.base import Rows


class EstimatorModel(FunctionModel):
    """A fitted estimator or pipeline, over table rows or texts.

    One that was fitted on a data frame is given data frames, with the same columns.
    """

    def __init__(self, estimator: Any, *, classes: Sequence[str] = (), **options: Any) -> None:
        names = getattr(estimator, "feature_names_in_", None)
        self._frame = names is not None
        if names is not None:
            options.setdefault("columns", [str(name) for name in names])
        super().__init__(
            estimator.predict_proba,
            classes=classes or [str(name) for name in estimator.classes_],
            **options,
        )

    def _batch(self, rows: Sequence[Rows]) -> Any:
        batch = super()._batch(rows)
        if not self._frame or isinstance(batch, list) or self.columns is None:
            return batch
        return optional("pandas").DataFrame(batch, columns=list(self.columns.names)).infer_objects()
