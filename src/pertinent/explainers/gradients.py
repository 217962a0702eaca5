"""Gradient methods: at the input, along a path to it, and at random points around it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.asks import ActivationMaps, Asking, Gradients, PathGradients
from pertinent.config.settings import Count, Positive
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits, explainers
from pertinent.removals.base import Removal

AT_THE_INPUT: Floats = np.ones(1)

CHUNK = 50
"""Largest number of points per question, so that a single input does not fill the queue."""

_NOISE = (
    "The baselines are uniform noise because the model has no background: pass `background` to `wrap`, such "
    "as a sample of the training data."
)


@dataclass(frozen=True)
class GradientExplainer(Explainer):
    """Base class of methods that need a model with gradients: a transformer or a torch module."""

    traits = Traits(min_budget=2, asks=(PathGradients,))

    def evaluations(self, _: int) -> int | None:
        """Return 2: one forward and one backward pass."""
        return 2


@explainers.register("gradient")
@dataclass(frozen=True)
class Gradient(GradientExplainer):
    """The gradient ∂p/∂x, reduced over a feature's token embeddings, pixels or columns.

    Parameters
    ----------
    reduce
        ``"sum"``, as in Hase et al., or ``"length"``, the L2 norm.

    Note
    ----
    If the model normalises its embeddings first, as BERT does, adding a constant to an embedding has no
    effect. The sum is then zero up to rounding and carries no information.
    """

    paper = "Simonyan et al. 2013, Eqn. 3; Hase et al. 2021, Sec. 6.1 (2)"
    traits = replace(GradientExplainer.traits, deterministic=True)
    summary = "the gradient of the target's probability, summed over each feature"
    also_called = ("saliency", "saliency-map", "vanilla-gradient")
    reduce: Literal["sum", "length"] = "sum"

    def explain(self, task: Task) -> Steps:
        """Request the gradient."""
        times: Literal["nothing", "itself"] = "nothing" if self.reduce == "sum" else "itself"
        answer = yield PathGradients(AT_THE_INPUT, task.target, times=times)
        return Finding(scores=answer.gradients[0])


@explainers.register("smoothgrad")
@dataclass(frozen=True)
class SmoothGrad(GradientExplainer):
    r"""The gradient averaged over noisy copies of the input, summed over each feature.

    .. math:: \mathbb{E}_{\varepsilon \sim N(0, \sigma^2)}
        \left[ \frac{\partial p(x + \varepsilon)}{\partial x} \right]

    Parameters
    ----------
    samples
        Number of noisy copies; each costs a forward and a backward pass. Smilkov et al. use 50.
    noise
        σ as a share of the standard deviation of the image's values, of the text's word embeddings, or of the
        column in the background (without a background, of 1).

    Note
    ----
    Smilkov et al. express σ relative to the range of the image, and recommend 10% to 20%: about half the
    standard deviation.
    """

    paper = "Smilkov et al. 2017"
    traits = replace(GradientExplainer.traits, standard_errors=True)
    summary = "the gradient, averaged over noisy copies of the input"
    also_called = ("noise-tunnel",)
    samples: Count = 50
    noise: Positive = 0.5

    def evaluations(self, _: int) -> int:
        """Return two evaluations per sample."""
        return 2 * self.samples

    def explain(self, task: Task) -> Steps:
        """Request gradients at random points around the input and average them."""
        return _mean((yield from _ask_around(task, self.samples, self.noise, "nothing")).gradients)


@explainers.register("grad-cam")
@dataclass(frozen=True)
class GradCam(GradientExplainer):
    r"""The regions where a convolution's activation maps support the class.

    .. math:: \mathrm{ReLU} \Bigl( \sum_k \alpha_k A^k \Bigr), \quad
        \alpha_k = \operatorname{mean}_{ij} \frac{\partial y}{\partial A^k_{ij}}

    with the maps A of a layer and the pre-softmax class score y. The result is resized to the image by
    bilinear interpolation and averaged over the pixels of each feature.

    Parameters
    ----------
    layer
        Name of the layer, as in ``module.named_modules()``; by default the last convolution.
    """

    paper = "Selvaraju et al. 2017, Eqns. 1 and 2"
    traits = replace(
        GradientExplainer.traits,
        meaning="magnitude",
        scales=("natural",),
        asks=(ActivationMaps,),
        deterministic=True,
    )
    summary = "the class evidence in a convolution's activation maps; images, torch modules"
    layer: str | None = None

    def explain(self, task: Task) -> Steps:
        """Request the activation maps."""
        return Finding(scores=(yield ActivationMaps(task.target, self.layer)).gradients[0])


@explainers.register("gradient-x-input")
@dataclass(frozen=True)
class GradientTimesInput(GradientExplainer):
    """The gradient times the input, x · ∂p/∂x, summed over each feature."""

    paper = "Shrikumar et al. 2016, Sec. 3"
    traits = replace(GradientExplainer.traits, deterministic=True)
    summary = "the gradient times the input, summed over each feature"

    def explain(self, task: Task) -> Steps:
        """Request the gradient."""
        answer = yield PathGradients(AT_THE_INPUT, task.target, times="input")
        return Finding(scores=answer.gradients[0])


@explainers.register("integrated-gradients")
@dataclass(frozen=True)
class IntegratedGradients(GradientExplainer):
    r"""The gradient integrated along the straight line from a baseline x′ to the input.

    .. math:: (x - x') \int_0^1 \frac{\partial p(x' + \alpha (x - x'))}{\partial x} \, d\alpha

    by Gauss–Legendre quadrature. The scores sum to p(x) − p(x′) (completeness), and the error shrinks with
    more points. The target stays the same along the whole line.

    Parameters
    ----------
    points
        Number of points on the line; by default half the budget, since each costs a forward and a backward
        pass.
    baseline
        A removal, by name or instance, applied to all features; or an array. By default the mask token's
        embedding for every removable token, and zero for images and table rows.
    """

    paper = "Sundararajan et al. 2017, Eqn. 1; Hase et al. 2021, Sec. 6.1 (3)"
    traits = replace(GradientExplainer.traits, deterministic=True)
    summary = "the gradient along the line from a baseline to the input"
    points: Count | None = None
    baseline: str | Removal | np.ndarray | None = None

    def evaluations(self, _: int) -> int | None:
        """Return two evaluations per point."""
        return None if self.points is None else 2 * self.points

    def explain(self, task: Task) -> Steps:
        """Request gradients along the line and integrate them."""
        shares, weights = _gauss_legendre(self.points or task.budget // 2)
        scores = np.zeros(task.n_features)
        for chunk in _chunks(len(shares)):
            answer = yield PathGradients(shares[chunk], task.target, self.baseline)
            scores += weights[chunk] @ answer.gradients
        return Finding(scores=scores)


@explainers.register("expected-gradients")
@dataclass(frozen=True)
class ExpectedGradients(GradientExplainer):
    r"""Integrated gradients in expectation over baselines and points.

    .. math:: \mathbb{E}_{x' \sim D,\, \alpha \sim U(0, 1)}
        \left[ (x - x') \frac{\partial p(x' + \alpha (x - x'))}{\partial x} \right]

    The scores sum to p(x) − E p(x′) in expectation. The α are stratified: one is drawn from each equal
    stratum.

    Parameters
    ----------
    samples
        Number of (baseline, point) pairs; by default half the budget.
    baseline
        A random removal: by default ``"random-token"`` for texts, ``"background"`` for table rows and images.
        Without background images it is ``"uniform-noise"``, with a warning: noise does not resemble images,
        so the scores say little about what distinguishes images.
    """

    paper = "Erion et al. 2021, Eqn. 3"
    traits = replace(GradientExplainer.traits, standard_errors=True)
    summary = "integrated gradients, expected over random baselines"
    also_called = ("gradient-shap", "gradientshap")
    samples: Count | None = None
    baseline: str | Removal | np.ndarray | None = "drawn"

    def evaluations(self, _: int) -> int | None:
        """Return two evaluations per sample."""
        return None if self.samples is None else 2 * self.samples

    def explain(self, task: Task) -> Steps:
        """Request gradients at random points on lines from random baselines and average them."""
        n = self.samples or task.budget // 2
        shares = (task.rng.permutation(n) + task.rng.random(n)) / n
        gradients = []
        for chunk in _chunks(n):
            answer = yield PathGradients(shares[chunk], task.target, self.baseline, draws=chunk)
            gradients.append(answer.gradients)
        is_drawn = isinstance(self.baseline, str) and self.baseline == "drawn"
        is_noise = is_drawn and task.model.drawn_baseline == "uniform-noise"
        return replace(_mean(np.concatenate(gradients)), warnings=(_NOISE,) if is_noise else ())


@explainers.register("functional-information")
@dataclass(frozen=True)
class FunctionalInformation(GradientExplainer):
    r"""The share of each feature in the functional Fisher information.

    Around the input, z ~ N(x, Σ), the functional entropy of the target's probability p is at most half its
    functional Fisher information (a log-Sobolev inequality). With a diagonal Σ this is a sum over the numbers
    z_j, and therefore over features S: the embedding of a token, the values of a patch, or columns:

    .. math:: I_S = \mathbb{E}_z \left[ \frac{1}{p(z)}
        \sum_{j \in S} \sigma_j^2 \left( \frac{\partial p(z)}{\partial z_j} \right)^2 \right]

    Scores are never negative: they measure how much a feature matters, not in which direction.

    Parameters
    ----------
    samples
        Number of draws of z; each costs a forward and a backward pass. Vo et al. 2023 use 50 to 200.
    noise
        σ_j as a share of the standard deviation of the text's word embeddings, of the image's values, or of
        the column in the background (without a background, of 1).

    Note
    ----
    By default σ² is about 0.15 of the variance, as in the authors' code. That code sums the derivatives of a
    token's embedding or a pixel's channels before squaring; here the squares are summed. A plain value may be
    negative and then has no functional entropy, so p is its square, and the information is 4 times the mean
    of the squared derivatives.
    """

    paper = "Gat et al. 2022"
    traits = replace(GradientExplainer.traits, meaning="magnitude", scales=("natural",), standard_errors=True)
    summary = "the functional Fisher information of each feature around the input"
    samples: Count = 100
    noise: Positive = 0.387

    def evaluations(self, _: int) -> int:
        """Return two evaluations per sample."""
        return 2 * self.samples

    def explain(self, task: Task) -> Steps:
        """Request gradients at random points around the input and average the information."""
        answer = yield from _ask_around(task, self.samples, self.noise, "itself")
        return _mean(_information(answer, task))


def _chunks(n: int) -> list[Ints]:
    """Return the indices of n points, one array per question."""
    return [np.arange(first, min(first + CHUNK, n)) for first in range(0, n, CHUNK)]


def _ask_around(
    task: Task, samples: int, noise: float, times: Literal["nothing", "itself"]
) -> Asking[Gradients]:
    """Request gradients at points drawn around the input (samples, …)."""
    answers: list[Gradients] = []
    for chunk in _chunks(samples):
        ask = PathGradients(np.ones(len(chunk)), task.target, times=times, draws=chunk, noise=noise)
        answers.append((yield ask))
    values = np.concatenate([answer.values for answer in answers])
    return Gradients(values, np.concatenate([answer.gradients for answer in answers]))


def _mean(samples: Floats) -> Finding:
    """Return the mean over samples (samples, features) and its standard error."""
    n = len(samples)
    errors = samples.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(samples.shape[1], np.nan)
    return Finding(scores=samples.mean(axis=0), standard_errors=errors)


def _information(answer: Gradients, task: Task) -> Floats:
    """Return the squared gradient along the noise, divided by the value (draws, features); 0 if it is 0."""
    squares = answer.gradients**2
    if task.output.kind == "value":
        return np.asarray(4 * squares)
    p = answer.values[:, [task.target]]
    return np.divide(squares, p, out=np.zeros_like(squares), where=p > 0)


@lru_cache
def _gauss_legendre(n: int) -> tuple[Floats, Floats]:
    """Return the points in (0, 1) and the weights of Gauss–Legendre quadrature."""
    points, weights = np.polynomial.legendre.leggauss(n)
    return (points + 1) / 2, weights / 2
