"""MAGNEx: a sufficient set of features, learned by REINFORCE from the answers of any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import TYPE_CHECKING, Any, Literal

from pertinent.config.serialization import PlainData, expect
from pertinent.config.settings import Count, ProperShare
from pertinent.errors import SettingError, require
from pertinent.explainers.base import Steps, Task
from pertinent.learners import selection
from pertinent.learners.base import LearnedExplainer, Tensor, TrainingTargets, learned
from pertinent.learners.selection import THRESHOLD, Layouts, ScoringNetwork, SelectionLearner
from pertinent.learners.subsets import log_probability, uniform_like

if TYPE_CHECKING:
    from pertinent.learners.networks.joint_networks import SelectionBatch
    from pertinent.results.explanation import Explanation

DECAY = 0.95
"""Weight of the previous value in the moving average."""

ROUNDING = 1e-6


@dataclass(frozen=True)
class MAGNExLearner(SelectionLearner):
    r"""Trains an explainer E that predicts each feature's probability of being kept, by REINFORCE (Eqn. 11).

    .. math:: \nabla_\theta J = \mathbb{E}_{\tau \sim \pi_\theta}
        [\nabla_\theta \log P(\tau | i; \theta) \, (q(\tau) - b)]

    Parameters
    ----------
    least_sufficiency
        v of Eqn. 6: among masks with a larger sufficiency, those that remove more features are better.
    baseline
        b: ``"moving-average"`` for the average of q over earlier steps, as in the paper; or
        ``"leave-one-out"`` for the mean over the input's other masks (Kool et al. 2019).
    samples
        Number of masks per input in a step. More masks with a smaller `batch_size` give a gradient with lower
        variance for the same number of evaluations.
    initial_probability
        Initial probability of keeping a feature; large enough for most masks to preserve the model's answer.
    """

    spec = replace(SelectionLearner.spec, outputs=("class", "label", "overlap"))
    measure = "quality"
    n_memory = 2
    least_sufficiency: ProperShare = 0.95
    baseline: Literal["leave-one-out", "moving-average"] = "leave-one-out"
    samples: Count = 4
    initial_probability: ProperShare = 0.9

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        require(self.k is None, "k", "None for magnex, which learns how many features to select", self.k)
        if self.baseline == "leave-one-out":
            require(self.samples > 1, "samples", "at least 2 for a leave-one-out baseline", self.samples)

    def networks(self) -> Layouts:
        """Return E, applied to the model's hidden states if it has them (Fig. 2)."""
        return {"explainer": ScoringNetwork(hidden=True)}

    def targets(self, explanation: Explanation, columns: Sequence[int], label: Any) -> TrainingTargets:
        """Return the answer to the whole input; a plain value must be an overlap."""
        if explanation.output.kind == "value":
            _check_overlap(explanation.prediction.values)
        return super().targets(explanation, columns, label)

    def compute_loss(self, batch: SelectionBatch) -> Tensor:
        """Return the negative of Eqn. 11: draw masks, evaluate the model on them, and rate each mask."""
        logits = logits_of(batch.scores("explainer"), self.initial_probability)[:, None]
        real = batch.real[:, None]
        drawn = uniform_like(logits.expand(-1, self.samples, -1))
        kept = (drawn < logits.sigmoid()) & real  # the policy of Eqn. 8
        answers = batch.ask(kept)
        quality = self.quality(answers, kept, real, batch.predictions[:, None].expand_as(answers))
        advantage = quality - self._baseline(quality, batch.memory)
        return -(advantage * log_probability(logits, kept, real)).mean()

    def selected(self, scores: Tensor, real: Tensor, predictions: Tensor) -> Tensor:
        """Return the features selected by Eqn. 3, with ε = 1/2."""
        return (logits_of(scores, self.initial_probability) > log(THRESHOLD / (1 - THRESHOLD))) & real

    def quality(self, answers: Tensor, kept: Tensor, real: Tensor, predictions: Tensor) -> Tensor:
        """Return the quality q of Eqn. 6: a mask's sufficiency, plus its sparsity if it is sufficient."""
        su, sp = sufficiency(answers, predictions), share_removed(kept, real)
        return su + sp * (su > self.least_sufficiency)

    def described(
        self, answers: Tensor, kept: Tensor, real: Tensor, predictions: Tensor
    ) -> dict[str, Tensor]:
        """Return the two terms of the quality."""
        su, sp = sufficiency(answers, predictions), share_removed(kept, real)
        return {"sufficiency": su, "share_removed": sp}

    def doubt(self, described: Mapping[str, float]) -> str | None:
        """Return a warning if the explainer removes no feature from any validation input."""
        if described.get("dev_share_removed", 1.0) > 0:
            return None
        return (
            "The explainer keeps every feature: it has not learned to remove any. Fit it with more `epochs`, "
            "more `samples`, or, if the model needs many features, a larger `initial_probability`."
        )

    def _baseline(self, quality: Tensor, memory: Tensor) -> Tensor:
        """Return the baseline b of Eqn. 11, which is independent of the mask it is subtracted for."""
        if self.baseline == "leave-one-out":
            return (quality.sum(1, keepdim=True) - quality) / (self.samples - 1)
        total, weight = memory.tolist()
        memory[0] = DECAY * total + (1 - DECAY) * quality.mean()
        memory[1] = DECAY * weight + (1 - DECAY)
        return quality.new_tensor(total / weight if weight else 0.0)


@learned.register("magnex")
@dataclass(frozen=True)
class MAGNEx(LearnedExplainer):
    """The probability :math:`s_j` that a feature belongs to a sufficient set (Eqn. 1).

    Created by `fit` for any model, using only the model's answers. Features above 0.5 are selected (Eqn. 3):
    their number is `details["selected"]`, and the share of unselected features is what the paper calls
    sparsity.

    Parameters
    ----------
    network
        The fitted network.

    Note
    ----
    Sufficiency (Eqn. 7) is at most 1, even if the model is more certain with fewer features. Unlike in the
    paper, the default baseline is the mean over the input's other masks, which reduces the variance of the
    gradient.
    """

    learner = MAGNExLearner
    paper = "MAGNEx, Eqns. 1–11"
    summary = "the probability that a feature belongs to a sufficient set, by REINFORCE"
    traits = replace(LearnedExplainer.traits, meaning="magnitude")

    @classmethod
    def check_card(cls, card: PlainData) -> None:
        """Raise an `InputError` unless the card has the initial probability, on which scores depend."""
        initial = PlainData(card.mapping("settings"), "settings").number("initial_probability")
        expect(0 < initial < 1, "initial_probability", "above 0 and below 1", initial)

    def explain(self, task: Task) -> Steps:
        """Predict the probabilities, relative to the initial probability."""
        finding = yield from super().explain(task)
        initial = self.network.card["settings"]["initial_probability"]
        return selection.finding(selection.probability(logits_of(finding.scores, initial)))


def logits_of(scores: Any, initial: float) -> Any:
    """Return the logits (rows, width) of scores (rows, 1, width); a score of zero means `initial`."""
    return (scores if scores.ndim == 1 else scores[:, 0]) + log(initial / (1 - initial))


def sufficiency(answers: Tensor, predictions: Tensor) -> Tensor:
    """Return the sufficiency su of Eqn. 7 (at most 1) of answers (…, columns); for overlaps, the overlap."""
    predicted = predictions.argmax(-1, keepdim=True)
    lost = predictions.gather(-1, predicted) - answers.gather(-1, predicted)
    return (1 - lost[..., 0]).clamp(max=1.0)


def share_removed(kept: Tensor, real: Tensor) -> Tensor:
    """Return the sparsity sp of Eqn. 5: the share of real features that a mask (…, width) removes."""
    return 1 - kept.sum(-1) / real.sum(-1)


def _check_overlap(prediction: Any) -> None:
    """Raise a `SettingError` unless the answer can be an overlap with the answer to the whole input."""
    if len(prediction) != 1 or abs(prediction[0] - 1) > ROUNDING:
        raise SettingError(
            "magnex explains probabilities, or an overlap that is 1 for the whole input: choose "
            "amortized-shapley or fastshap for a regressor."
        )
