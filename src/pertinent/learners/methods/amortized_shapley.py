"""Amortized Shapley values: a network trained on the Shapley values of other inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from pertinent.array_types import Floats
from pertinent.config.serialization import PlainData
from pertinent.config.settings import Range
from pertinent.errors import InputError, SettingError
from pertinent.explainers.base import Finding, Steps, Task
from pertinent.explainers.shapley.shapley_sampling import SHARED, ShapleySampling
from pertinent.learners.base import LearnedExplainer, LearnerSpec, Tensor, TrainingTargets, learned
from pertinent.learners.score_arrays import normalize_scores, root_mean_square, squeeze_columns
from pertinent.learners.score_learner import ScoreLearner
from pertinent.stats import student_factor

if TYPE_CHECKING:
    from pertinent.learners.network_trainer import TrainingExamples
    from pertinent.learners.training_context import TrainingContext
    from pertinent.results.explanation import Explanation

RANK_WEIGHT = 0.3
"""Weight of the pairwise loss relative to the mean squared error; 1 makes the values less accurate."""

MOST_DISTANCES = 64
"""Number of distances at which features are compared; comparing all pairs would exceed the memory."""

FEW = (1, 2)
"""Numbers of permutations for which errors are measured: one, and one with its reverse."""

TRIED = 100
"""Number of inputs on which these errors are measured."""

SHAPLEY = ("exact-shapley", "kernel-shap", "shapley", "shapley-sampling", "tree-shap")
"""Teachers whose scores are Shapley values."""

SPREAD_OF_PREDICTION, SPREAD_OF_MEAN = 1.0, 0.5
"""Prior standard deviations of an input's log variances, relative to those of other inputs.

Chosen on 18 fits to texts, wines and products of columns. If the two are too similar, a poor prediction is
mistaken for a poor mean.
"""

_STEPS_OF_PREDICTION = np.linspace(-6, 6, 49)[:, None]
_STEPS_OF_MEAN = np.linspace(-3, 3, 25)[None]


@dataclass(frozen=True)
class AmortizedShapleyLearner(ScoreLearner):
    """Minimises the mean squared error of the teacher's values for all real features (Sec. 5).

    Parameters
    ----------
    loss
        ``"mse"``, or ``"rank"`` to add RankNet's pairwise logistic loss (Burges et al. 2005), which depends
        only on the order of the features.
    """

    spec = LearnerSpec("shapley-sampling", {"samples": 25}, any_teacher=True)
    measure = "spearman"
    loss: Literal["mse", "rank"] = "mse"

    def targets(self, explanation: Explanation, columns: Sequence[int], label: Any) -> TrainingTargets:
        """Return the teacher's values and their variances, which are 0 if the teacher does not sample."""
        scores, errors = explanation.scores[None], explanation.standard_errors
        errors = None if errors is None else errors[None]
        if len(columns) > 1:
            if explanation.class_scores is None:
                raise SettingError(
                    f"`classes` must be 'predicted', because the teacher {explanation.method} scores only "
                    "one class."
                )
            scores, errors = explanation.class_scores, explanation.class_standard_errors
        squares = np.zeros_like(scores) if errors is None else np.nan_to_num(errors**2)
        return {"scores": scores, "variances": squares / _inflation(explanation) ** 2}

    def deviation(self, targets: Sequence[TrainingTargets]) -> Floats:
        """Return the root mean square of the values."""
        return root_mean_square([target["scores"] for target in targets])

    def compute_loss(
        self, scores: Tensor, targets: Mapping[str, Tensor], real: Tensor, deviation: Tensor
    ) -> Tensor:
        """Return the loss, averaged over all features and columns."""
        errors = (scores - targets["scores"]) / deviation[:, None] * real[:, None]
        mse = errors.square().sum() / (real.sum() * len(deviation))
        if self.loss == "mse":
            return mse
        return mse + RANK_WEIGHT * pairwise_loss(scores / deviation[:, None], targets["scores"], real)

    def train(self, context: TrainingContext) -> tuple[Any, dict[str, Any]]:
        """Train, and add the error variances of predictions and permutations to the card."""
        scorer, card = super().train(context)
        examples = context.examples(self.targets)
        validation = context.split(examples)[1]
        predicted = context.predict(scorer, validation.inputs)
        totals = [target["scores"].sum(axis=1) for target in validation.targets]
        adjusted = list(map(normalize_scores, predicted, totals))
        card["error_variances"] = error_variances(validation.targets, adjusted, robust=True).tolist()
        card["sampling_variances"] = self._sampling_variances(context, examples)
        return scorer, card

    def _sampling_variances(self, context: TrainingContext, examples: TrainingExamples) -> list[list[float]]:
        """Return the error variances (columns,) of means over each small number of permutations."""
        some = examples.pick(context.shuffled(len(examples))[:TRIED])
        another_seed = (context.seed + 1) % 2**63  # the teacher's draws would look too accurate
        samplers = [ShapleySampling(samples=m) for m in FEW]
        sampled = context.fit.explain(some.inputs, samplers, another_seed)
        if sampled.failures:
            raise sampled.failures[0].error or InputError(str(sampled.failures[0]))
        scores = [self.targets(e, context.columns(e), None)["scores"] for e in sampled]
        by_number = [scores[i :: len(FEW)] for i in range(len(FEW))]
        return [error_variances(some.targets, sampled).tolist() for sampled in by_number]


@learned.register("amortized-shapley")
@dataclass(frozen=True)
class AmortizedShapley(LearnedExplainer):
    r"""Shapley values predicted by a network, :math:`\phi_{AM}(i, \hat y) = W e_i + b` (Sec. 5).

    Created by `fit`. One forward pass explains an input, and the scores are deterministic. With `refine`,
    permutations of the actual features are added to the prediction (Sec. 5.1).

    Parameters
    ----------
    network
        The fitted network.
    normalize
        Shift all scores equally so that they sum to :math:`v(N) - v(\emptyset)`, which costs two evaluations.
        A refined explanation is always normalized, except with Alg. 1.
    refine
        Number of permutations for local adaption.
    combine
        ``"precision"`` weights the prediction and the mean over the permutations by their precisions,
        estimated from other inputs and from the distance between the two. ``"paper"`` is Alg. 1 to the
        letter.

    Note
    ----
    Alg. 1 starts the sum over m permutations with the prediction and divides it by m, which gives
    :math:`\phi_{AM} / m` plus the mean over the permutations, so its scores are too large. Both settings are
    biased by the prediction at any finite m; the bias vanishes as m grows.
    """

    learner = AmortizedShapleyLearner
    paper = "Yang et al. 2023, Sec. 5 and Alg. 1"
    summary = "Shapley values predicted by a network trained on those of other inputs"
    normalize: bool = False
    refine: Annotated[int, Range(at_least=0, at_most=10**9)] = 0
    combine: Literal["precision", "paper"] = "precision"

    @classmethod
    def check_card(cls, card: PlainData) -> None:
        """Raise an `InputError` if the card lacks the error variances needed for local adaption."""
        n_columns = len(card.floats("error_variances", None))
        card.floats("sampling_variances", len(FEW), n_columns)

    def refined(
        self, permutations: int, *, combine: Literal["precision", "paper"] = "precision"
    ) -> AmortizedShapley:
        """Return this explainer with local adaption by this number of permutations."""
        return replace(self, refine=permutations, combine=combine)

    def evaluations(self, n_features: int) -> int:
        """Return 1 for the network, plus the masks of the permutations or of the normalization."""
        if self.refine:
            return 1 + (self._sampling.evaluations(n_features) or 0)
        return 3 if self.normalize else 1

    def explain(self, task: Task) -> Steps:
        """Predict, then normalize or adapt to the input if the settings request it."""
        learned_from = self.network.card["learned_from"]["method"]
        if (self.refine or self.normalize) and learned_from not in SHAPLEY:
            raise SettingError(
                "`refine` and `normalize` must be off, because this explainer was trained on "
                f"{learned_from}, whose scores are not Shapley values."
            )
        scores = yield from self.predict(task)
        if not self.refine and not self.normalize:
            return Finding(squeeze_columns(scores))
        if not self.refine:
            return (yield from self.normalize_scores(task, scores))
        sampled = yield from self._sampling.explain(task)
        assert sampled.scores is not None and sampled.standard_errors is not None
        columns = self.columns(task)
        scores, errors = self.adapt(scores, sampled.scores[columns], sampled.standard_errors[columns])
        if errors is None:
            return Finding(squeeze_columns(scores))
        return Finding(squeeze_columns(scores), squeeze_columns(errors), base_values=sampled.base_values)

    def adapt(self, prediction: Floats, mean: Floats, errors: Floats) -> tuple[Floats, Floats | None]:
        """Combine a prediction with the mean over `refine` permutations, both (columns, features).

        Return the scores, and their standard errors except for Alg. 1. `errors` are the standard errors of
        the mean, NaN if unknown.
        """
        if self.combine == "paper":
            return prediction / self.refine + mean, None  # Alg. 1
        return combine_estimates(
            normalize_scores(prediction, mean.sum(axis=1)), mean, errors, *self._variances()
        )

    @property
    def _sampling(self) -> ShapleySampling:
        return ShapleySampling(samples=self.refine, antithetic=self.combine != "paper")

    def _variances(self) -> tuple[Floats, Floats]:
        """Return the error variances (columns,) of predictions and permutation means on other inputs.

        Permutations come in pairs of an order and its reverse, plus one unpaired if their number is odd.
        """
        of_one, of_pair = np.array(self.network.card["sampling_variances"])
        pairs, odd = divmod(self.refine, 2)
        of_mean = (pairs * 4 * of_pair + odd * of_one) / self.refine**2
        return np.array(self.network.card["error_variances"]), of_mean


def _inflation(explanation: Explanation) -> float:
    """Return the factor by which shapley-sampling inflated its standard errors for few draws."""
    samples = explanation.settings.get("samples")
    if explanation.method != ShapleySampling.name or samples is None:
        return 1.0
    draws = samples // (2 if explanation.settings.get("antithetic", True) else 1)
    return student_factor(SHARED + draws - 1) if draws > 1 else 1.0


def pairwise_loss(scores: Tensor, target: Tensor, real: Tensor) -> Tensor:
    r"""Return the mean of :math:`\log(1 + e^{-(s_i - s_j)})` over pairs (i, j) where i should score higher.

    Each feature is compared with those at up to `MOST_DISTANCES` distances.
    """
    furthest = real.shape[1] - 1
    total, count = 0.0 * scores.sum(), 0.0
    for k in np.linspace(1, furthest, min(furthest, MOST_DISTANCES), dtype=int).tolist():
        order = (target[..., k:] - target[..., :-k]).sign() * (real[:, k:] & real[:, :-k])[:, None]
        gap = order * (scores[..., :-k] - scores[..., k:])
        total = total + (gap.logaddexp(0 * gap) * order.abs()).sum()
        count = count + order.abs().sum()
    return total / (count + (count == 0))


def combine_estimates(
    prediction: Floats, mean: Floats, errors: Floats, of_prediction: Floats, of_mean: Floats
) -> tuple[Floats, Floats]:
    r"""Return scores (columns, features) between a prediction and a mean, and their standard errors.

    Both have the same sum. On other inputs their errors have the variances `of_prediction` and `of_mean`
    (columns,). The variances for this input, a and s, are unknown, but the distance between the two depends
    on their sum:

    .. math:: p(a, s \mid \phi, \bar\phi) \propto p(a)\, p(s)\, (a + s)^{-(d - 1) / 2}
        \exp\Bigl(-\sum_i \frac{(\bar\phi_i - \phi_i)^2}{2 (a + s)}\Bigr)

    with log-normal priors. The weight of the mean is the posterior expectation of :math:`a / (a + s)`: after
    a poor prediction the mean has a large weight, even if predictions for other inputs were good.
    """
    columns = list(map(_combine_column, prediction, mean, errors, of_prediction, of_mean))
    return np.array([scores for scores, _ in columns]), np.array([errors for _, errors in columns])


def _combine_column(
    prediction: Floats, mean: Floats, errors: Floats, of_prediction: float, of_mean: float
) -> tuple[Floats, Floats]:
    """Return `combined` for one column."""
    if of_mean <= 0:
        return mean, np.nan_to_num(errors)
    a, s = of_prediction * np.exp(_STEPS_OF_PREDICTION), of_mean * np.exp(_STEPS_OF_MEAN)
    squares = (mean - prediction) ** 2
    log = -((_STEPS_OF_PREDICTION / SPREAD_OF_PREDICTION) ** 2 + (_STEPS_OF_MEAN / SPREAD_OF_MEAN) ** 2)
    log = log - (len(mean) - 1) * np.log(a + s) - squares.sum() / (a + s)
    posterior = np.exp((log - log.max()) / 2)
    posterior /= posterior.sum()
    weight = a / (a + s)
    w = float((posterior * weight).sum())
    w_variance = float((posterior * (weight - w) ** 2).sum())
    mean_variance = np.where(np.isnan(errors), of_mean, errors**2)
    variance = w**2 * mean_variance + (1 - w) ** 2 * (posterior * a).sum() + w_variance * squares
    return w * mean + (1 - w) * prediction, np.sqrt(variance)


def error_variances(
    targets: Sequence[TrainingTargets], predicted: Sequence[Floats], *, robust: bool = False
) -> Floats:
    """Return the mean squared error of predicted scores (columns,), minus the teacher's error variance.

    If `robust`, the median over inputs is used, because the errors of a few failed predictions would dominate
    the mean.
    """
    pairs = zip(predicted, targets, strict=True)
    by_input = np.array([((scores - target["scores"]) ** 2).mean(axis=1) for scores, target in pairs])
    raw = np.median(by_input, axis=0) if robust else by_input.mean(axis=0)
    noise = np.mean([target["variances"].mean(axis=1) for target in targets], axis=0)
    # At least a tenth, because the difference of two uncertain numbers may be near zero by chance.
    return np.asarray(np.maximum(raw - noise, raw / 10))
