"""A small wine classifier and a diabetes regressor, fitted when they are loaded."""

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
    """Return a logistic regression on scikit-learn's wine data, with 100 training rows as background."""
    linear = optional("sklearn.linear_model")
    scaler = optional("sklearn.preprocessing").StandardScaler()
    estimator = optional("sklearn.pipeline").make_pipeline(scaler, linear.LogisticRegression())
    return _fit(estimator, wine_data(), classes=[f"cultivar {i + 1}" for i in range(3)])


def diabetes_model() -> EstimatorModel:
    """Return boosted trees on scikit-learn's diabetes data, with 100 training rows as background.

    The value is the progression of the disease one year after the measurements, from 25 to 346 points.
    """
    estimator = optional("sklearn.ensemble").GradientBoostingRegressor(random_state=_SEED)
    return _fit(estimator, diabetes_data(), names=["progression"], unit="points")


def example_row() -> dict[str, float]:
    """Return a wine from the test data, by column."""
    return wine_data().example


def example_patient() -> dict[str, float]:
    """Return a patient from the test data, by column."""
    return diabetes_data().example


@dataclass(frozen=True)
class SplitData:
    """A scikit-learn data set, split at random into training and test data."""

    columns: tuple[str, ...]
    rows: Array
    targets: Array
    test_rows: Array
    test_targets: Array

    @classmethod
    def from_rows(cls, rows: Array, targets: Array, n_train: int, columns: tuple[str, ...] = ()) -> SplitData:
        """Shuffle the rows and split them after the first `n_train`."""
        train, test = np.split(np.random.default_rng(_SEED).permutation(len(rows)), [n_train])
        return cls(columns, rows[train], targets[train], rows[test], targets[test])

    @property
    def example(self) -> dict[str, float]:
        """Return the first row of the test data, by column."""
        return dict(zip(self.columns, self.test_rows[0].tolist(), strict=True))


def wine_data() -> SplitData:
    """Return scikit-learn's wine data."""
    data = optional("sklearn.datasets").load_wine()
    return SplitData.from_rows(data.data, data.target, len(data.data) * 3 // 4, tuple(data.feature_names))


def diabetes_data() -> SplitData:
    """Return scikit-learn's diabetes data, in the original units."""
    data = optional("sklearn.datasets").load_diabetes(scaled=False)
    return SplitData.from_rows(data.data, data.target, len(data.data) * 3 // 4, PATIENT_COLUMNS)


def _fit(estimator: Any, data: SplitData, **options: Any) -> EstimatorModel:
    estimator.fit(data.rows, data.targets)
    background = data.rows[:_BACKGROUND]
    return EstimatorModel(estimator, kind="table", columns=data.columns, background=background, **options)
