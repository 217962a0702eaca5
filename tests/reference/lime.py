"""The regression of the lime package, by scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.metrics import pairwise_distances


def distances(masks: np.ndarray) -> np.ndarray:
    """Return the cosine distance of each mask to the first, times 100."""
    z = masks.astype(float)
    return pairwise_distances(z, z[:1], metric="cosine").ravel() * 100


def kernel(distance: np.ndarray, width: float = 25.0) -> np.ndarray:
    return np.sqrt(np.exp(-(distance**2) / width**2))


def fit(masks: np.ndarray, values: np.ndarray, width: float = 25.0, alpha: float = 1.0) -> np.ndarray:
    """Return the coefficients (classes, features)."""
    weight = kernel(distances(masks), width)
    return np.array(
        [Ridge(alpha=alpha).fit(masks, column, sample_weight=weight).coef_ for column in values.T]
    )
