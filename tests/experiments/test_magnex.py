"""Numbers of `experiments/magnex` on cases with a known answer."""

import numpy as np
import pytest
import torch

from tests.miniature import scripts


@pytest.fixture
def load():
    with scripts("experiments/magnex") as found:
        yield found


def test_exact_match_and_f1_of_answers(load):
    own = load("models")
    assert own._words("The Eiffel-Tower, in a city") == ["eiffeltower", "in", "city"]
    assert own._f1(["big", "red", "dog"], ["red", "dog"]) == pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert own._f1(["a", "a"], ["a"]) == pytest.approx(2 / 3)
    assert own._f1([], []) == 1.0 and own._f1([], ["a"]) == 0.0


def test_top_features(load):
    top = load("stages").top
    assert np.flatnonzero(top(np.array([0.1, 0.9, 0.5, 0.9]), 2)).tolist() == [1, 3]
    assert not top(np.array([1.0, 2.0]), 0).any()


def test_the_chosen_setting(load):
    """Of those that are sufficient enough the sparsest, else the most sufficient; first all are tried."""
    own = load("stages")
    names = [fit.setting for fit in own.GRID["forest"]]

    def found(*rows):
        return {
            n: dict(zip(own.METRICS, ([a], [b]), strict=True)) for n, (a, b) in zip(names, rows, strict=False)
        }

    fits = own.GRID["forest"]
    assert own.choose("forest", found((1.0, 0.5), (0.99, 0.7), (0.8, 0.9))) == fits[1]
    assert own.choose("forest", found((0.9, 0.5), (0.95, 0.1), (0.8, 0.9))) == fits[1]
    assert own.choose("forest", found((0.9, 0.5), (0.95, 0.1))) is None


def test_antithetic_masks_estimate_the_gradient(load):
    """Of a quality that is linear in the masks the gradient is known: w p (1 − p)."""
    own = load("estimators")
    w, p = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.3, 0.6, 0.9])

    class Linear(own.Antithetic):
        def quality(self, answers, kept, real, predictions):
            return answers

    class Batch(own.Fixed):
        def ask(self, kept):
            return (kept.float() * w).sum(-1)

    torch.manual_seed(0)
    logits = p.logit().repeat(4000, 1).requires_grad_()
    batch = Batch(None, [], torch.zeros(4000), logits, 0.0)
    learner = Linear(samples=4)
    learner.compute_loss(batch).backward()
    # The loss is a mean over inputs and pairs; each pair has its own estimate.
    found = -logits.grad.sum(0)
    assert found.tolist() == pytest.approx((w * p * (1 - p)).tolist(), abs=0.03)
