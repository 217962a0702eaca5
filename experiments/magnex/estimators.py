"""How the gradient is estimated: how much it varies, and what is learned by as many evaluations.

    python experiments/magnex/estimators.py --results RESULTS

The black box is the embedded model of digits (64 pixels), which any machine can ask often.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

import pertinent
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
"""Not in the library: they vary more than leave one out."""
EVALUATIONS = 128
"""In each step."""
OPTIONS: dict[str, Any] = {"removal": "constant", "features": "pixels", "progress": False}
EPSILON = 1e-6


class Antithetic(MAGNExLearner):
    """Masks in opposite pairs, each of which is the baseline of the other (Dong et al. 2020)."""

    def compute_loss(self, batch: SelectionBatch) -> Any:
        """Features that both masks of a pair treat alike have no part in the gradient."""
        real = batch.real[:, None]
        logits = logits_of(batch.scores("explainer"), self.initial_probability)[:, None]
        uniform = torch.rand(len(logits), self.samples // 2, logits.shape[2])
        kept = (torch.cat([uniform, 1 - uniform], dim=1) < logits.sigmoid()) & real
        answers = batch.ask(kept)
        quality = self.quality(answers, kept, real, batch.predictions[:, None].expand_as(answers))
        (one, other), (tau, opposite) = quality.chunk(2, dim=1), kept.float().chunk(2, dim=1)
        gained = 0.5 * (one - other)[..., None] * (tau - opposite) * logits.detach().abs().sigmoid()
        return -(gained * logits).sum(-1).mean()


class Fixed(SelectionBatch):
    """A batch whose probabilities are free parameters, so that the gradient at them can be looked at."""

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
        """So that their sigmoid is the probability."""
        del network
        return (self._logits - logits_of(torch.zeros(1), MAGNExLearner.initial_probability))[:, None]

    def approximate(self, network: str, kept: torch.Tensor) -> torch.Tensor:
        """There is no such network."""
        raise NotImplementedError

    def ask(self, kept: torch.Tensor) -> torch.Tensor:
        """Through the engine."""
        return self._model_answers.ask_tensor(self._inputs, kept)


def variance(model: Any, fitted: Any, raw: list[Any], learner: MAGNExLearner, repeats: int) -> float:
    """The summed variance of the gradient at the logits, for one evaluation of each input."""
    found = pertinent.explain(model, raw, fitted, **OPTIONS)
    p = torch.tensor(np.array([e.scores for e in found])).clamp(EPSILON, 1 - EPSILON).float()
    inputs = [model.prepare(each, "pixels") for each in raw]
    predictions = torch.tensor(np.array([e.prediction.values for e in found])).float()
    model_answers = ModelAnswers(model, removals.make("constant"), 0)
    first = Fixed(model_answers, inputs, predictions, p.logit(), 0.0)
    kept = torch.rand(len(raw), 32, p.shape[1]) < p[:, None]
    whole = predictions[:, None].expand(-1, 32, -1)
    mean = float(learner.quality(first.ask(kept), kept, first.real[:, None], whole).mean())
    gradients = []
    for _ in range(repeats):
        logits = p.logit().requires_grad_()
        learner.compute_loss(Fixed(model_answers, inputs, predictions, logits, mean)).backward()  # type: ignore[no-untyped-call]
        assert logits.grad is not None
        gradients.append(logits.grad * len(raw))
    return float(torch.stack(gradients).var(0).sum(1).mean()) * learner.samples


def main() -> None:
    """Look at the gradients early and late in a fit, then fit with each estimator."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--train", type=int, default=1000)
    parser.add_argument("--test", type=int, default=200, help="test inputs whose selection is measured")
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--inputs", type=int, default=50, help="test inputs whose gradient is looked at")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = pertinent.load("digits")
    order = np.random.default_rng(0).permutation(1797)
    pixels = (load_digits().images[order, None] / 16).astype(np.float32)
    train, test = list(pixels[:-300]), list(pixels[-300:])
    result: dict[str, Any] = {"quality": {}, "history": {}, "variance": {}}
    learners = {name: MAGNExLearner(**settings) for name, settings in ESTIMATORS.items()}
    learners |= {name: Antithetic(samples=n) for name, n in OPPOSITE.items()}
    few = {"epochs": 1, "batch_size": 32, "patience": None, "samples": 4}
    early = pertinent.fit(model, train[: min(400, arguments.train)], "magnex", **few, **OPTIONS)
    late = pertinent.fit(model, train[: arguments.train], "magnex", **few | {"epochs": 8}, **OPTIONS)
    for when, fitted in (("early", early), ("late", late)):
        torch.manual_seed(0)
        result["variance"][when] = {
            name: variance(model, fitted, test[: arguments.inputs], learner, arguments.repeats)
            for name, learner in learners.items()
        }
        print(when, result["variance"][when], flush=True)
    for name, settings in ESTIMATORS.items():
        qualities, histories = [], []
        batch_size = EVALUATIONS // settings["samples"]
        epochs = max(1, round(arguments.steps * batch_size / (0.9 * arguments.train)))
        for seed in range(arguments.seeds):
            fitted = pertinent.fit(
                model,
                train[: arguments.train],
                "magnex",
                epochs=epochs,
                batch_size=batch_size,
                patience=None,
                seed=seed,
                **settings,
                **OPTIONS,
            )
            card: Any = fitted.network.card
            histories.append([each["eval_quality"] for each in card["history"] if "eval_quality" in each])
            found = pertinent.explain(model, test[: arguments.test], fitted, **OPTIONS)
            metrics = ["sufficiency-of-selected", "share-removed"]
            rows = pertinent.evaluate(model, found, metrics, progress=False).rows
            su, sp = (np.array([row.value for row in rows if row.metric == metric]) for metric in metrics)
            qualities.append(float(np.mean(su + sp * (su > MAGNExLearner.least_sufficiency))))
        result["quality"][name], result["history"][name] = qualities, histories
        print(name, np.round(qualities, 3), flush=True)
        arguments.results.mkdir(parents=True, exist_ok=True)
        (arguments.results / "estimators.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
