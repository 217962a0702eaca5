"""Meaningful perturbation: a learned soft mask that destroys the prediction by deleting little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.asks import Asking, Gradients, MaskGradients
from pertinent.config.settings import Count, NotNegative, Positive, Range
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, explainers
from pertinent.explainers.search.gradient_search import AdamW

LEVELS = np.linspace(0, 0.9, 10)
"""Uniform masks considered as the starting mask."""

SUPPRESSED = 0.99
"""Share of full deletion's decrease of the target that the starting mask must reach."""


@explainers.register("meaningful-perturbation")
@dataclass(frozen=True)
class MeaningfulPerturbation(Explainer):
    r"""Fong & Vedaldi's deletion game (their Eqn. 3 and 4).

    Adam learns a mask :math:`m \in [0, 1]^d` that keeps as much as possible while destroying the target's
    probability:

    .. math:: \min_m \frac{\lambda_1}{d} \lVert 1 - m \rVert_1
        + \frac{\lambda_2}{d} \sum_{i \sim j} |m_i - m_j|^\beta + f_c(\Phi(x; m))

    where i ~ j are adjacent features of an image; other inputs have no second term. Φ keeps the share
    :math:`m_i` of each feature and fills in the rest with the removal, or weights the attention to it. The
    score of a feature is :math:`1 - m_i`, its deleted share. For a plain value, f is relative to the value
    for the whole input, so features that raise it are deleted.

    Parameters
    ----------
    deletion_weight
        λ₁, the cost of deleting everything.
    smoothness_weight, smoothness_power
        λ₂ and β; β is at least 1, since otherwise the slope at equal neighbours would be infinite.
    learning_rate, steps
        Step size and number of steps of Adam.

    Note
    ----
    Weights refer to means over features, so they suit any number of features; on the paper's 28 × 28 mask
    they equal its 10⁻⁴ and 10⁻². The mask has the resolution of the features and is not upsampled, the image
    is not jittered, and the removal is that of the request (the paper uses ``"blur"``). The paper starts with
    the smallest centred disc that causes 99% of full deletion's decrease; this implementation works for any
    kind of input and starts with the largest uniform mask that does so.
    """

    paper = "Fong & Vedaldi 2017, Eqn. 3 and 4"
    summary = "how much of each feature must be deleted to destroy the prediction, as a learned soft mask"
    traits = Traits(
        scales=("natural",),
        columnwise=False,
        reads_numbers=True,
        asks=(MaskGradients,),
        meaning="magnitude",
        deterministic=True,
    )
    deletion_weight: NotNegative = 0.08
    smoothness_weight: NotNegative = 8.0
    smoothness_power: Annotated[float, Range(at_least=1)] = 3.0
    learning_rate: Positive = 0.1
    steps: Count = 300

    def evaluations(self, n_features: int) -> int:
        """Return the evaluations of one gradient per candidate starting mask and per step."""
        return 2 * (len(LEVELS) + self.steps)

    def explain(self, task: Task) -> Steps:
        """Run gradient descent from the starting mask."""
        d = task.n_features
        mask = yield from self._start(task)
        step = AdamW(self.learning_rate, d, decay=0.0)
        touching = np.empty((0, 2), dtype=np.int64)
        if task.numbers is not None and task.numbers.owners.ndim == 3:
            touching = neighbours(task.numbers.owners[0])
        for _ in range(self.steps):
            _, gradient = yield from self._ask_remaining(task, mask[None])
            roughness = roughness_gradient(mask, touching, self.smoothness_power)
            penalty = (self.smoothness_weight * roughness - self.deletion_weight) / d
            mask = np.clip(step(mask, gradient[0] + penalty), 0, 1)
        return Finding(1 - mask)

    def _start(self, task: Task) -> Asking[Floats]:
        """Return the largest uniform mask that suppresses the target almost as much as full deletion."""
        values, _ = yield from self._ask_remaining(task, np.repeat(LEVELS[:, None], task.n_features, axis=1))
        whole = _unit(task) * task.prediction[task.target]
        suppressed = values - values[0] <= (1 - SUPPRESSED) * (whole - values[0])
        level = LEVELS[max(np.flatnonzero(suppressed), default=0)]
        return np.full(task.n_features, level)

    def _ask_remaining(self, task: Task, masks: Floats) -> Asking[tuple[Floats, Floats]]:
        """Return the remaining value f of the target and its gradient with respect to each mask."""
        answer: Gradients = yield MaskGradients(masks, task.target)
        values = _unit(task) * answer.values[:, task.target]
        if task.output.kind == "value":
            return values, _unit(task) * answer.gradients
        return values, values[:, None] * answer.gradients  # ∂p = p ∂ log p


def neighbours(labels: Ints) -> Ints:
    """Return the pairs (pairs, 2) of adjacent features of an image (height, width), each pair once."""
    horizontal = np.stack([labels[:, :-1].ravel(), labels[:, 1:].ravel()], axis=1)
    vertical = np.stack([labels[:-1].ravel(), labels[1:].ravel()], axis=1)
    pairs = np.sort(np.concatenate([horizontal, vertical]), axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


def roughness_gradient(mask: Floats, touching: Ints, power: float) -> Floats:
    """Return ∂ Σ |mᵢ − mⱼ|^β / ∂ m, summed over adjacent pairs."""
    first, second = touching.T
    difference = mask[first] - mask[second]
    slope = power * np.sign(difference) * np.abs(difference) ** (power - 1)
    n = len(mask)
    return np.asarray(np.bincount(first, slope, n) - np.bincount(second, slope, n))


def _unit(task: Task) -> float:
    """Return the factor that normalises f: 1 for a probability, 1 / |value of the whole input| otherwise."""
    whole = abs(float(task.prediction[task.target]))
    return 1 / whole if task.output.kind == "value" and whole > 0 else 1.0
