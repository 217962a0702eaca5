"""A small classifier of wines and a regressor of diabetes, fitted in moments whenever they are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array
from pertinent.models.estimator import EstimatorModel

PATIENT_COLUMNS = (
    "age",
    "sex",
    "body mass index",
    "blood pressure",
    "total cholesterol",
    "low-density lipoproteins",
    "high-density lipoproteins",
    "cholesterol ratio",
    "log triglycerides",
    "blood sugar",
)
_SEED = 0
_BACKGROUND = 100


def table_model() -> EstimatorModel:
    """A scaled logistic regression on scikit-learn's wine data, with 100 training rows as background."""
    linear = optional("sklearn.linear_model")
    scaler = optional("sklearn.preprocessing").StandardScaler()
    estimator = optional("sklearn.pipeline").make_pipeline(scaler, linear.LogisticRegression())
    return _fitted(estimator, _wines(), classes=[f"cultivar {i + 1}" for i in range(3)])


def diabetes_model() -> EstimatorModel:
    """Boosted trees on scikit-learn's diabetes data, with 100 training rows as background.

    Its value is the progression one year after the measurements, on a scale from 25 to 346.
    """
    estimator = optional("sklearn.ensemble").GradientBoostingRegressor(random_state=_SEED)
    return _fitted(estimator, _patients(), names=["progression"], unit="points")


def example_row() -> dict[str, float]:
    """A wine that the model was not fitted on, by column."""
    return _wines().example


def example_patient() -> dict[str, float]:
    """A patient that the model was not fitted on, by column."""
    return _patients().example


@dataclass(frozen=True)
class _Data:
    """A data set that comes with scikit-learn, shuffled and split."""

    columns: tuple[str, ...]
    rows: Array
    targets: Array
    test_rows: Array
    test_targets: Array

    @classmethod
    def of(cls, found: Any, columns: tuple[str, ...]) -> _Data:
        """Three quarters of the rows to fit on, the others to test with."""
        order = np.random.default_rng(_SEED).permutation(len(found.data))
        train, test = order[: len(order) * 3 // 4], order[len(order) * 3 // 4 :]
        return cls(columns, found.data[train], found.target[train], found.data[test], found.target[test])

    @property
    def example(self) -> dict[str, float]:
        """The first of the rows to test with, by column."""
        return dict(zip(self.columns, self.test_rows[0].tolist(), strict=True))


def _wines() -> _Data:
    found = optional("sklearn.datasets").load_wine()
    return _Data.of(found, tuple(found.feature_names))


def _patients() -> _Data:
    return _Data.of(optional("sklearn.datasets").load_diabetes(scaled=False), PATIENT_COLUMNS)


def _fitted(estimator: Any, data: _Data, **options: Any) -> EstimatorModel:
    estimator.fit(data.rows, data.targets)
    background = data.rows[:_BACKGROUND]
    return EstimatorModel(estimator, kind="table", columns=data.columns, background=background, **options)
