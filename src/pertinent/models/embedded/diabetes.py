"""A small regressor of how far diabetes has progressed, fitted in a moment whenever it is loaded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array, Floats
from pertinent.models.estimator import EstimatorModel

COLUMNS = (
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
_EXAMPLE = 0


def diabetes_model() -> EstimatorModel:
    """Boosted trees on scikit-learn's diabetes data, with 100 training rows as background.

    Its value is the progression one year after the measurements, on a scale from 25 to 346.
    """
    data = _data()
    estimator = optional("sklearn.ensemble").GradientBoostingRegressor(random_state=_SEED)
    estimator.fit(data.rows, data.progressions)
    return EstimatorModel(
        estimator,
        kind="table",
        names=["progression"],
        unit="points",
        columns=COLUMNS,
        background=data.rows[:_BACKGROUND],
    )


def example_patient() -> dict[str, float]:
    """A patient that the model was not fitted on, by column."""
    return dict(zip(COLUMNS, _data().test_rows[_EXAMPLE].tolist(), strict=True))


@dataclass(frozen=True)
class _Patients:
    """The patients that come with scikit-learn, shuffled and split."""

    rows: Array
    progressions: Floats
    test_rows: Array
    test_progressions: Floats


def _data() -> _Patients:
    found = optional("sklearn.datasets").load_diabetes(scaled=False)
    order = np.random.default_rng(_SEED).permutation(len(found.data))
    train, test = order[: len(order) * 3 // 4], order[len(order) * 3 // 4 :]
    return _Patients(found.data[train], found.target[train], found.data[test], found.target[test])
