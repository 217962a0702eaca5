"""A small classifier of wines by their chemistry, fitted in milliseconds whenever it is loaded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent._optional import optional
from pertinent.array_types import Array, Ints
from pertinent.models.estimator import EstimatorModel

_SEED = 0
_BACKGROUND = 100
_EXAMPLE = 0


def table_model() -> EstimatorModel:
    """A scaled logistic regression on scikit-learn's wine data, with 100 training rows as background."""
    data = _data()
    linear = optional("sklearn.linear_model")
    scaler = optional("sklearn.preprocessing").StandardScaler()
    estimator = optional("sklearn.pipeline").make_pipeline(scaler, linear.LogisticRegression())
    estimator.fit(data.rows, data.labels)
    return EstimatorModel(
        estimator,
        kind="table",
        classes=[f"cultivar {i + 1}" for i in range(3)],
        columns=data.columns,
        background=data.rows[:_BACKGROUND],
    )


def example_row() -> dict[str, float]:
    """A wine that the model was not fitted on, by column."""
    data = _data()
    return dict(zip(data.columns, data.test_rows[_EXAMPLE].tolist(), strict=True))


@dataclass(frozen=True)
class _Wines:
    """The wines that come with scikit-learn, shuffled and split."""

    columns: tuple[str, ...]
    rows: Array
    labels: Ints
    test_rows: Array
    test_labels: Ints


def _data() -> _Wines:
    found = optional("sklearn.datasets").load_wine()
    order = np.random.default_rng(_SEED).permutation(len(found.data))
    train, test = order[: len(order) * 3 // 4], order[len(order) * 3 // 4 :]
    return _Wines(
        tuple(found.feature_names),
        found.data[train],
        found.target[train],
        found.data[test],
        found.target[test],
    )
