"""Approximators that learn from random features: gradients of each network by hand."""

import math

import numpy as np
import pytest
import torch

from pertinent.learners.methods.invase import INVASELearner
from pertinent.learners.methods.l2x import L2XLearner
from pertinent.learners.methods.vibi import VIBILearner, divergence_from_uniform
from pertinent.learners.networks.joint_networks import SelectionBatch
from pertinent.learners.subsets import (
    approximation_loss,
    cross_entropy,
    one_hot,
    random_subset,
    relaxed_subset,
)

REAL = torch.tensor([[True, True, True, False], [True, True, True, True]])
PREDICTIONS = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])


class Weighed(SelectionBatch):
    """A batch whose approximators are trainable weights (features, classes)."""

    def __init__(self, logits):
        self.real, self.predictions, self.memory = REAL, PREDICTIONS, torch.zeros(0)
        self.logits = logits
        generator = torch.Generator().manual_seed(3)
        names = ("approximator", "predictor", "baseline")
        self.weights = {n: torch.randn(4, 3, generator=generator).requires_grad_() for n in names}
        self.approximated = []

    def scores(self, network):
        return self.logits

    def approximate(self, network, kept):
        self.approximated.append((network, kept.detach()))
        return (kept @ self.weights[network]).tanh()

    def ask(self, kept):
        raise AssertionError("the model is asked about whole inputs alone")


@pytest.fixture
def logits():
    return torch.tensor([[[0.1, 1.0, -0.5, 7.0]], [[0.4, 0.3, 0.2, 0.1]]], requires_grad=True)


@pytest.mark.parametrize("learner", [L2XLearner(k=2), VIBILearner(k=2, beta=0.3)])
def test_each_network_has_the_gradient_of_its_own_loss(learner, logits):
    told = Weighed(logits)
    weights = told.weights["approximator"]
    torch.manual_seed(0)
    loss = learner.compute_loss(told)
    of_selector, of_approximator = torch.autograd.grad(loss, [logits, weights])
    (_, selected), (_, random) = told.approximated

    torch.manual_seed(0)
    kept = relaxed_subset(logits[:, 0], REAL, torch.tensor([2, 2]), learner.temperature)
    torch.testing.assert_close(kept.detach(), selected)
    wanted, beside = PREDICTIONS, 0.0
    if isinstance(learner, VIBILearner):
        wanted, beside = one_hot(PREDICTIONS), 0.3 * 2 * divergence_from_uniform(logits[:, 0], REAL).mean()
    of_kept = cross_entropy(wanted, (kept @ weights.detach()).tanh()).mean()
    of_random = cross_entropy(wanted, (random @ weights).tanh()).mean()
    torch.testing.assert_close(of_selector, torch.autograd.grad(of_kept + beside, logits)[0])
    torch.testing.assert_close(of_approximator, torch.autograd.grad(of_random, weights)[0])
    torch.testing.assert_close(loss, of_random + beside)
    assert of_selector.abs().max() > 0.01
    assert of_selector[0, 0, 3] == 0


def test_with_selected_features_both_learn_from_them(logits):
    told = Weighed(logits)
    weights = told.weights["approximator"]
    loss = approximation_loss(told, logits[:, 0].sigmoid() * REAL, PREDICTIONS, "selected")
    by_hand = cross_entropy(PREDICTIONS, ((logits[:, 0].sigmoid() * REAL) @ weights).tanh()).mean()
    torch.testing.assert_close(loss, by_hand)
    for mine, own in zip(
        torch.autograd.grad(loss, [logits, weights]),
        torch.autograd.grad(by_hand, [logits, weights]),
        strict=True,
    ):
        torch.testing.assert_close(mine, own)


def test_the_predictor_of_invase_learns_from_random_features_and_judges_selected_ones(logits):
    told = Weighed(logits)
    torch.manual_seed(0)
    loss = INVASELearner(penalty=0.7).compute_loss(told)
    of_selector, of_predictor = torch.autograd.grad(loss, [logits, told.weights["predictor"]])
    kept = dict(zip(["baseline", "selected", "random"], [k for _, k in told.approximated], strict=True))
    decided, weights = one_hot(PREDICTIONS), told.weights
    assert torch.equal(kept["baseline"], REAL.float())

    of_random = cross_entropy(decided, (kept["random"] @ weights["predictor"]).tanh()).mean()
    torch.testing.assert_close(of_predictor, torch.autograd.grad(of_random, weights["predictor"])[0])
    by_hand = torch.zeros(2, 1, 4)
    for row, n in enumerate((3, 4)):
        judged, baseline = (
            cross_entropy(decided[row], (kept[name][row] @ weights[network]).tanh())
            for name, network in (("selected", "predictor"), ("baseline", "baseline"))
        )
        for i in range(n):
            p = 1 / (1 + math.exp(-logits[row, 0, i].item()))
            by_hand[row, 0, i] = (judged - baseline).item() * (kept["selected"][row, i] - p)
            by_hand[row, 0, i] += 0.7 * p * (1 - p) / n
    torch.testing.assert_close(of_selector, by_hand / 2)


def test_random_features_are_of_every_number():
    real = REAL.repeat(20000, 1)
    torch.manual_seed(0)
    kept = random_subset(real)
    assert (kept[~real] == 0).all()
    numbers = kept[1::2].sum(1).long()
    np.testing.assert_allclose(torch.bincount(numbers) / 20000, 1 / 5, atol=0.015)
    few = kept[1::2][numbers == 2]
    np.testing.assert_allclose(few.mean(0), 1 / 2, atol=0.03)  # no feature is kept more often than another


def test_few_features_are_kept_as_often_as_most():
    torch.manual_seed(0)
    real = torch.ones(4000, 100, dtype=torch.bool)
    uniform = random_subset(real).mean(-1)
    few = random_subset(real, mostly_few=True).mean(-1)
    # The median share is a half, or the geometric mean of 1/100 and 1.
    np.testing.assert_allclose(uniform.median(), 0.5, atol=0.03)
    np.testing.assert_allclose(few.median(), 0.1, atol=0.015)
    np.testing.assert_allclose((few > 0.5).float().mean(), math.log(2) / math.log(100), atol=0.02)
