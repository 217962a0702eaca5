"""FastSHAP: Shapley values from a network trained on the model's answers to random coalitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from pertinent.array_types import Floats, Masks
from pertinent.asks import Values
from pertinent.config.fingerprints import generator
from pertinent.config.serialization import PlainData
from pertinent.config.settings import Range
from pertinent.errors import SettingError
from pertinent.explainers.base import Explainer, Finding, Steps, Task, Traits
from pertinent.explainers.shapley.kernel_shap import draw_coalitions
from pertinent.learners.base import LearnedExplainer, LearnerSpec, Tensor, TrainingTargets, learned
from pertinent.learners.score_arrays import normalize_scores, root_mean_square, squeeze_columns
from pertinent.learners.score_learner import ScoreLearner
from pertinent.masks import full_mask

if TYPE_CHECKING:
    from pertinent.learners.network_trainer import TrainingBatch
    from pertinent.learners.training_context import TrainingContext
    from pertinent.results.explanation import Explanation


@dataclass(frozen=True)
class CoalitionValues(Explainer):
    """The model's answers to coalitions drawn from the Shapley kernel, in pairs of a mask and its complement.

    The answers are in the finding's details; its scores divide the gain equally. Sizes are enumerated
    exhaustively while the samples allow; the other coalitions are a weighted sample.

    Parameters
    ----------
    samples
        Number of masks in addition to the empty and the full one.
    surrogate
        Evaluate the model only on the whole input: fastshap then trains a surrogate, which is evaluated on
        the coalitions.
    """

    name = "coalition-values"
    paper = "Jethani et al. 2021, Eqn. 5"
    summary = "answers to random coalitions, for fastshap to learn from"
    traits = Traits(columnwise=False)
    samples: Annotated[int, Range(at_least=2)] = 32
    surrogate: bool = False

    def evaluations(self, n_features: int) -> int:
        """Return the number of samples plus 2 for the empty and full mask; with a surrogate, only 1."""
        return 1 if self.surrogate else int(min(self.samples + 2, 2**n_features))

    def explain(self, task: Task) -> Steps:
        """Evaluate the coalitions."""
        d = task.n_features
        if self.surrogate:
            whole = yield Values(full_mask(d))
            return Finding(np.zeros((whole.shape[1], d)), details={"whole": whole[0].tolist()})
        ends = yield from task.ask_empty_and_full()
        masks, weight = self.draw(d, task.rng)
        values = (yield Values(masks)) if len(masks) else np.zeros((0, ends.shape[1]))
        gain = (ends[1] - ends[0])[:, None]
        details = coalition_details(masks, weight, values, ends)
        return Finding(np.repeat(gain / d, d, axis=1), base_values=ends[0], details=details)

    def draw(self, d: int, rng: np.random.Generator) -> tuple[Masks, Floats]:
        """Return coalitions (n, d) and weights (n,) that sum to 1; a single feature has no coalitions."""
        if d == 1:
            return np.zeros((0, 1), np.bool_), np.zeros(0)
        drawn = draw_coalitions(d, self.samples // 2, rng)
        return np.concatenate([drawn.pairs, ~drawn.pairs]), np.tile(drawn.weight, 2) / 2


@dataclass(frozen=True)
class FastShapLearner(ScoreLearner):
    r"""Minimises the weighted squared error, whose minimum is at the Shapley values (Eqn. 5).

    .. math:: \mathbb{E}_{x} \mathbb{E}_{y} \mathbb{E}_{S \sim p}
        \Bigl(v_{x,y}(S) - v_{x,y}(\emptyset) - \sum_{i \in S} \phi_i(x, y; \theta)\Bigr)^2

    with scores that are first normalized to sum to the gain of all features (Eqn. 6).

    Parameters
    ----------
    fresh
        Draw new coalitions in every step and evaluate the model on them, as in the paper: each epoch then
        costs as many evaluations as the teacher. Otherwise the teacher's coalitions are used in all epochs. A
        surrogate replaces the model at no cost in evaluations.
    """

    spec = LearnerSpec(CoalitionValues())
    fresh: bool = False

    def targets(self, explanation: Explanation, columns: Sequence[int], label: Any) -> TrainingTargets:
        """Return coalitions (n, d), their weights (n,) and their gains over the empty mask (n, columns)."""
        details = explanation.details
        if not {"masks", "weights", "values", "ends"} <= details.keys():
            raise SettingError(
                "`teacher_explanations` must come from an earlier fit of fastshap "
                f"({CoalitionValues.name}), but are from {explanation.method}."
            )
        ends = np.array(details["ends"])[:, list(columns)]
        values = np.array(details["values"]).reshape(len(details["masks"]), len(explanation.classes))
        return {
            "masks": _unpack(details["masks"], len(explanation.features)),
            "weights": np.array(details["weights"]),
            "gains": values[:, list(columns)] - ends[0],
            "total": ends[1] - ends[0],
            "empty": ends[0],
            "columns": np.array(columns),
        }

    def train(self, context: TrainingContext) -> tuple[Any, dict[str, Any]]:
        """Train the network, and first a surrogate if the teacher evaluated no coalitions."""
        teacher = _teacher(context)
        if not teacher.surrogate:
            return super().train(context)
        from pertinent.learners.surrogate import train_surrogate

        surrogate, description = train_surrogate(context)
        drawn = [
            teacher.draw(input.n_features, generator(context.seed, "coalitions", input.fingerprint))
            for input in context.inputs
        ]
        answers = surrogate.ask(context.inputs, [masks for masks, _ in drawn], context.fit.request.scale)
        explanations = []
        for e, (masks, weights), values in zip(context.explanations, drawn, answers, strict=True):
            if "whole" not in e.details:
                raise SettingError(
                    f"`teacher_explanations` must be from {CoalitionValues.name} with surrogate=True, but "
                    f"are from {e.method} with different settings."
                )
            ends = np.array([description["base_values"], e.details["whole"]])
            explanations.append(replace(e, details=coalition_details(masks, weights, values, ends)))
        scorer, card = super().train(replace(context, explanations=explanations, surrogate=surrogate))
        return scorer, {**card, "surrogate": description}

    def step_targets(self, batch: TrainingBatch, context: TrainingContext) -> Mapping[str, Tensor]:
        """Return the teacher's coalitions; if `fresh`, new coalitions with the model's answers."""
        if not self.fresh:
            return batch.targets
        import torch

        from pertinent.learners.network_trainer import stack_padded

        teacher = _teacher(context)
        rng = np.random.default_rng(int(torch.randint(2**62, ())))  # the trainer restores torch's generator
        drawn = [teacher.draw(input.n_features, rng) for input in batch.inputs]
        masks, weights = zip(*drawn, strict=True)
        answers = (context.surrogate or context.answers).ask(batch.inputs, masks, context.fit.request.scale)
        fixed = (batch.targets[name].cpu().numpy() for name in ("columns", "empty"))
        gains = [
            values[:, columns.astype(int)] - empty
            for values, columns, empty in zip(answers, *fixed, strict=True)
        ]
        arrays = {
            "masks": stack_padded(masks),
            "weights": stack_padded(weights),
            "gains": stack_padded(gains),
        }
        device = batch.real.device
        new = {name: torch.from_numpy(a.astype(np.float32)).to(device) for name, a in arrays.items()}
        return {**batch.targets, **new}

    def deviation(self, targets: Sequence[TrainingTargets]) -> Floats:
        """Return the root mean square of the coalitions' gains, divided by √d."""
        n_features = np.mean([target["masks"].shape[1] for target in targets])
        gains = [np.concatenate([target["gains"], target["total"][None]]).T for target in targets]
        return np.asarray(root_mean_square(gains) / np.sqrt(n_features))

    def compute_loss(
        self, scores: Tensor, targets: Mapping[str, Tensor], real: Tensor, deviation: Tensor
    ) -> Tensor:
        """Return the kernel-weighted squared error, averaged over inputs and columns."""
        gap = targets["total"] - scores.sum(-1)
        scores = scores + (gap / real.sum(-1, keepdim=True))[..., None] * real[:, None]  # Eqn. 6
        explained = targets["masks"] @ scores.transpose(1, 2)
        errors = (targets["gains"] - explained) / deviation
        return (targets["weights"][..., None] * errors.square()).sum(1).mean()


@learned.register("fastshap")
@dataclass(frozen=True)
class FastShap(LearnedExplainer):
    r"""Shapley values predicted by a network fitted to the model's answers to coalitions.

    Created by `fit`. All scores are shifted equally to sum to :math:`v(N) - v(\emptyset)` (Eqn. 6), in
    training and afterwards, which costs two evaluations.

    Parameters
    ----------
    network
        The fitted network.

    Note
    ----
    By default the model is evaluated once on a fixed set of coalitions of each input. The paper draws new
    ones in every step (``fresh=True``) and evaluates a surrogate instead of the model (``surrogate=True``): a
    network trained to predict the model's answer to the whole input from some of its features. Its values are
    those of another game, :math:`\mathbb{E}[f(x) \mid x_S]`, in which the removal has no effect; scores then
    sum to the model's answer minus the surrogate's mean answer to no features. The surrogate is a copy of a
    transformer or a small network, and is discarded after training.
    """

    learner = FastShapLearner
    paper = "Jethani et al. 2021, Eqn. 5 and 6"
    summary = "Shapley values predicted by a network trained on answers to random coalitions"

    @classmethod
    def check_card(cls, card: PlainData) -> None:
        """Raise an `InputError` if the card describes a surrogate without base values."""
        if "surrogate" in card:
            PlainData(card.mapping("surrogate"), "surrogate").floats("base_values", None)

    @property
    def _base_values(self) -> Floats | None:
        """Return the surrogate's mean answer (columns,) to no features; ``None`` without a surrogate."""
        description = self.network.card.get("surrogate")
        return None if description is None else np.array(description["base_values"])

    def evaluations(self, n_features: int) -> int:
        """Return 1 for the network, 1 for the full mask, and without a surrogate 1 for the empty mask."""
        return 3 if self._base_values is None else 2

    def explain(self, task: Task) -> Steps:
        """Predict and normalize."""
        scores, base_values = (yield from self.predict(task)), self._base_values
        if base_values is None:
            return (yield from self.normalize_scores(task, scores))
        whole = yield Values(full_mask(task.n_features))
        columns = self.columns(task)
        total = whole[0, columns] - base_values[columns]
        return Finding(squeeze_columns(normalize_scores(scores, total)), base_values=base_values)


def coalition_details(masks: Masks, weights: Floats, values: Floats, ends: Floats) -> dict[str, Any]:
    """Return coalitions, weights and answers, and the answers to the empty and the full mask."""
    return {
        "masks": [np.packbits(mask).tobytes().hex() for mask in masks],
        "weights": weights.tolist(),
        "values": values.tolist(),
        "ends": ends.tolist(),
    }


def _teacher(context: TrainingContext) -> CoalitionValues:
    teacher = context.fit.request.method
    assert isinstance(teacher, CoalitionValues)
    return teacher


def _unpack(texts: Sequence[str], d: int) -> Masks:
    """Return masks (n, d) from their hexadecimal digits."""
    rows = [np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8), count=d) for text in texts]
    return np.array(rows, dtype=np.bool_).reshape(len(texts), d)
