"""Local adaption: a prediction and a mean over a few permutations, combined by how precise each is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pertinent.array_types import Floats
from pertinent.learned.base import TrainingTargets

SPREAD_OF_PREDICTION, SPREAD_OF_MEAN = 1.0, 0.5
"""How far an input's own variances may be from those of others, as standard deviations of their logarithms.

Chosen on 18 fits to texts, wines and products of columns. If the two are too much alike, it is not noticed
that a prediction is poor: the mean is blamed.
"""

_STEPS_OF_PREDICTION = np.linspace(-6, 6, 49)[:, None]
_STEPS_OF_MEAN = np.linspace(-3, 3, 25)[None]


def combined(
    prediction: Floats, mean: Floats, errors: Floats, of_prediction: Floats, of_mean: Floats
) -> tuple[Floats, Floats]:
    r"""The scores (columns, features) between a prediction and a mean, and their standard errors.

    Both sum to the same. On other inputs their errors have the variances `of_prediction` and `of_mean`
    (columns,). This input's own, a and s, are not known, but how far the two are apart tells of their sum:

    .. math:: p(a, s \mid \phi, \bar\phi) \propto p(a)\, p(s)\, (a + s)^{-(d - 1) / 2}
        \exp\Bigl(-\sum_i \frac{(\bar\phi_i - \phi_i)^2}{2 (a + s)}\Bigr)

    with log-normal priors. The mean has the weight :math:`a / (a + s)`, averaged over this: where a
    prediction is poor the mean counts, however good other predictions were.
    """
    found = [_of_column(*each) for each in zip(prediction, mean, errors, of_prediction, of_mean, strict=True)]
    return np.array([scores for scores, _ in found]), np.array([errors for _, errors in found])


def _of_column(
    prediction: Floats, mean: Floats, errors: Floats, of_prediction: float, of_mean: float
) -> tuple[Floats, Floats]:
    """The same for one column."""
    if of_mean <= 0:
        return mean, np.nan_to_num(errors)
    a, s = of_prediction * np.exp(_STEPS_OF_PREDICTION), of_mean * np.exp(_STEPS_OF_MEAN)
    apart = (mean - prediction) ** 2
    log = -((_STEPS_OF_PREDICTION / SPREAD_OF_PREDICTION) ** 2 + (_STEPS_OF_MEAN / SPREAD_OF_MEAN) ** 2)
    log = log - (len(mean) - 1) * np.log(a + s) - apart.sum() / (a + s)
    posterior = np.exp((log - log.max()) / 2)
    posterior /= posterior.sum()
    weight = a / (a + s)
    trust = float((posterior * weight).sum())
    unsure = float((posterior * (weight - trust) ** 2).sum())
    squares = np.where(np.isnan(errors), of_mean, errors**2)
    variance = trust**2 * squares + (1 - trust) ** 2 * (posterior * a).sum() + unsure * apart
    return trust * mean + (1 - trust) * prediction, np.sqrt(variance)


def error_variances(
    targets: Sequence[TrainingTargets], predicted: Sequence[Floats], *, robust: bool = False
) -> Floats:
    """The mean squared error of predicted scores (columns,), less that of the teacher's scores.

    A `robust` one is the median over inputs: a network may know nothing of a few inputs, whose errors would
    hide how good it is otherwise.
    """
    squares = [(mine - own["scores"]) ** 2 for mine, own in zip(predicted, targets, strict=True)]
    by_input = np.array([own.mean(axis=1) for own in squares])
    raw = np.median(by_input, axis=0) if robust else by_input.mean(axis=0)
    noise = np.mean([own["variances"].mean(axis=1) for own in targets], axis=0)
    # Never less than a tenth: the difference of two uncertain numbers may come out near zero by chance.
    return np.asarray(np.maximum(raw - noise, raw / 10))
