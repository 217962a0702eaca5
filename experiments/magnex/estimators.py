"""Estimators of the gradient: their variance, and what is learned with the same number of evaluations.

The black box is the embedded model of digits (64 pixels), which any machine can evaluate often.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import pertinent
from experiments.shared.stages import Run
from pertinent.learners.methods.magnex import MAGNExLearner, logits_of
from pertinent.learners.networks.joint_networks import SelectionBatch
from pertinent.learners.training_context import ModelAnswers
from pertinent.removals.base import removals

ESTIMATORS: dict[str, dict[str, Any]] = {
    "moving average, 1 mask (paper)": {"baseline": "moving-average", "samples": 1},
    "moving average, 4 masks": {"baseline": "moving-average", "samples": 4},
    "leave one out, 4 masks": {"baseline": "leave-one-out", "samples": 4},
    "leave one out, 16 masks": {"baseline": "leave-one-out", "samples": 16},
}
OPPOSITE = {"antithetic, 4 masks": 4, "antithetic, 16 masks": 16}
"""Not in the library, because their variance is larger than that of leave one out."""
EVALUATIONS = 128
"""Evaluations in each step."""
OPTIONS: dict[str, Any] = {"removal": "constant", "features": "pixels", "progress": False}
EPSILON = 1e-6


class Antithetic(MAGNExLearner):
    """Learner with masks in opposite pairs, each of which is the baseline of the other (Dong et al. 2020)."""

    def compute_loss(self, batch: SelectionBatch) -> Any:
        """Return the loss, in which features that both masks of a pair treat alike do not count."""
        real = batch.real[:, None]
        logits = logits_of(batch.scores("explainer"), self.initial_probability)[:, None]
        uniform = torch.rand(len(logits), self.samples // 2, logits.shape[2])
        kept = (torch.cat([uniform, 1 - uniform], dim=1) < logits.sigmoid()) & real
        answers = batch.ask(kept)
        quality = self.quality(answers, kept, real, batch.predictions[:, None].expand_as(answers))
        (one, other), (tau, opposite) = quality.chunk(2, dim=1), kept.float().chunk(2, dim=1)
        gained = 0.5 * (one - other)[..., None] * (tau - opposite) * logits.detach().abs().sigmoid()
        return -(gained * logits).sum(-1).mean()


class FixedBatch(SelectionBatch):
    """Batch whose probabilities are free parameters, for which the gradient is computed."""

    def __init__(
        self,
        model_answers: ModelAnswers,
        inputs: list[Any],
        predictions: Any,
        logits: torch.Tensor,
        baseline: float,
    ) -> None:
        self._model_answers, self._inputs, self._logits = model_answers, inputs, logits
        self.real = torch.ones(logits.shape, dtype=torch.bool)
        self.predictions = predictions
        self.memory = torch.tensor([baseline, 1.0])

    def scores(self, network: str) -> torch.Tensor:
        """Return scores from which the learner computes the fixed probabilities."""
        del network
        return (self._logits - logits_of(torch.zeros(1), MAGNExLearner.initial_probability))[:, None]

    def approximate(self, network: str, kept: torch.Tensor) -> torch.Tensor:
        """Raise an error: there is no approximator."""
        raise NotImplementedError

    def ask(self, kept: torch.Tensor) -> torch.Tensor:
        """Return the model's answers to masks."""
        return self._model_answers.ask_tensor(self._inputs, kept)


def variance(model: Any, fitted: Any, raw: list[Any], learner: MAGNExLearner, repeats: int) -> float:
    """Return the summed variance of the gradient at the logits, for one evaluation of each input."""
    explanations = pertinent.explain(model, raw, fitted, **OPTIONS)
    p = torch.tensor(np.array([e.scores for e in explanations])).clamp(EPSILON, 1 - EPSILON).float()
    inputs = [model.prepare(each, "pixels") for each in raw]
    predictions = torch.tensor(np.array([e.prediction.values for e in explanations])).float()
    model_answers = ModelAnswers(model, removals.make("constant"), 0)
    first = FixedBatch(model_answers, inputs, predictions, p.logit(), 0.0)
    kept = torch.rand(len(raw), 32, p.shape[1]) < p[:, None]
    whole = predictions[:, None].expand(-1, 32, -1)
    mean = float(learner.quality(first.ask(kept), kept, first.real[:, None], whole).mean())
    gradients = []
    for _ in range(repeats):
        logits = p.logit().requires_grad_()
        learner.compute_loss(FixedBatch(model_answers, inputs, predictions, logits, mean)).backward()
        assert logits.grad is not None
        gradients.append(logits.grad * len(raw))
    return float(torch.stack(gradients).var(0).sum(1).mean()) * learner.samples


def read_digits() -> tuple[list[Any], list[Any]]:
    """Return images to learn from and to test on."""
    from sklearn.datasets import load_digits

    order = np.random.default_rng(0).permutation(1797)
    pixels = (load_digits().images[order, None] / 16).astype(np.float32)
    return list(pixels[:-300]), list(pixels[-300:])


def measure_estimators(
    run: Run, *, steps: int, seeds: int, n_train: int, n_test: int, repeats: int, n_inputs: int
) -> Iterator[dict[str, Any]]:
    """Measure the variance of gradients early and late in a fit, then fit with each estimator."""
    torch.set_num_threads(1)
    model, (train, test) = pertinent.load("digits"), read_digits()
    result: dict[str, Any] = {"quality": {}, "history": {}, "variance": {}}
    learners = {name: MAGNExLearner(**settings) for name, settings in ESTIMATORS.items()}
    learners |= {name: Antithetic(samples=n) for name, n in OPPOSITE.items()}
    few: dict[str, Any] = {"epochs": 1, "batch_size": 32, "patience": None, "samples": 4}
    early = pertinent.fit(model, train[: min(400, n_train)], "magnex", **few, **OPTIONS)
    late = pertinent.fit(model, train[:n_train], "magnex", **few | {"epochs": 8}, **OPTIONS)
    for when, fitted in (("early", early), ("late", late)):
        torch.manual_seed(0)
        result["variance"][when] = {
            name: variance(model, fitted, test[:n_inputs], learner, repeats)
            for name, learner in learners.items()
        }
        print(when, result["variance"][when], flush=True)
    for name, settings in ESTIMATORS.items():
        qualities, histories = [], []
        batch_size = EVALUATIONS // settings["samples"]
        epochs = max(1, round(steps * batch_size / (0.9 * n_train)))
        options = settings | {"epochs": epochs, "batch_size": batch_size, "patience": None}
        for seed in range(seeds):
            fitted = pertinent.fit(model, train[:n_train], "magnex", seed=seed, **options, **OPTIONS)
            card: Any = fitted.network.card
            histories.append([each["eval_quality"] for each in card["history"] if "eval_quality" in each])
            qualities.append(quality(model, fitted, test[:n_test]))
        result["quality"][name], result["history"][name] = qualities, histories
        print(name, np.round(qualities, 3), flush=True)
        yield result


def quality(model: Any, fitted: Any, test: list[Any]) -> float:
    """Return the mean quality of selections: sufficiency, and sparsity where it is large enough."""
    explanations = pertinent.explain(model, test, fitted, **OPTIONS)
    metrics = ["sufficiency-of-selected", "share-removed"]
    rows = pertinent.evaluate(model, explanations, metrics, progress=False).rows
    su, sp = (np.array([row.value for row in rows if row.metric == metric]) for metric in metrics)
    return float(np.mean(su + sp * (su > MAGNExLearner.least_sufficiency)))
