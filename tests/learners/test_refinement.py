"""Local adaption with few validation inputs: never worse than its parts, exact in the limit; rank loss."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch

import pertinent
from pertinent.explainers.shapley.shapley_sampling import ShapleySampling
from pertinent.learners.fitted_network import FittedNetwork
from pertinent.learners.methods.amortized_shapley import (
    AmortizedShapley,
    AmortizedShapleyLearner,
    combine_estimates,
    error_variances,
    pairwise_loss,
)
from pertinent.stats import student_factor

D = 7
TRIPLES = np.array(list(combinations(range(D), 3)))
WEIGHTS = np.random.default_rng(0).normal(size=len(TRIPLES)) / 3
ROWS = np.random.default_rng(1).uniform(0.5, 1.5, size=(400, D))
SAMPLES = (1, 2, 5, 10, 25)


pytestmark = pytest.mark.usefixtures("one_thread")


def products(rows):
    """Return each column, and products of three columns, for which orders and pairs of orders vary."""
    x = np.asarray(rows, dtype=float)
    return x.sum(axis=1) + (x[:, TRIPLES].prod(axis=2)) @ WEIGHTS


def shapley(rows):
    """Return the Shapley values, which share a product equally."""
    shared = rows[:, TRIPLES].prod(axis=2) * WEIGHTS / 3
    member = (TRIPLES[:, :, None] == np.arange(D)).any(axis=1)
    return rows + shared @ member


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(products, kind="table", output="value")


class SamePermutations(ShapleySampling):
    """A method that draws the permutations of local adaption, because draws depend on the name."""

    name = AmortizedShapley.name


NEW = ROWS[380:]


def error(model, method, seeds=20):
    """Return the error over many seeds, because rows of one seed share their permutations."""
    truth = shapley(NEW)
    found = [
        [e.scores for e in pertinent.explain(model, NEW, method, seed=s, progress=False)]
        for s in range(seeds)
    ]
    return np.mean((np.array(found) - truth) ** 2)


@pytest.fixture(scope="module")
def sampled(model):
    return {m: error(model, SamePermutations(samples=m)) for m in SAMPLES}


def test_the_closed_form_is_right(model):
    exact = pertinent.explain(model, NEW[:3], "exact-shapley", progress=False)
    np.testing.assert_allclose([e.scores for e in exact], shapley(NEW[:3]), atol=1e-9)


@pytest.mark.parametrize(("rows", "epochs"), [(20, 100), (60, 100), (200, 100), (60, 1)])
def test_it_is_better_than_either_part_at_every_m(model, sampled, rows, epochs):
    fitted = pertinent.fit(model, ROWS[:rows], epochs=epochs, progress=False)
    assert fitted.network.card["dev_examples"] <= 20
    alone = error(model, replace(fitted, normalize=True), seeds=1)
    for m in SAMPLES:
        assert error(model, fitted.refined(m)) < min(alone, sampled[m]), m
    assert error(model, fitted.refined(400), seeds=1) < sampled[1] / 100


@pytest.mark.parametrize("wrong", [0.1, 10, 100])
def test_what_was_measured_of_the_network_may_be_wrong(model, sampled, wrong):
    fitted = pertinent.fit(model, ROWS[:60], samples=10, progress=False)
    card = dict(fitted.network.card)
    card["error_variances"] = [wrong * value for value in card["error_variances"]]
    misled = AmortizedShapley(FittedNetwork(fitted.network.scorer, card))
    for m in SAMPLES:
        assert error(model, misled.refined(m)) < 1.02 * sampled[m], m


def slow(prediction, mean, of_prediction, of_mean):
    """Return the posterior mean of the weight, integrated on a wide and fine grid."""
    t, u = np.linspace(-9, 9, 1801)[:, None], np.linspace(-6, 6, 1201)[None]
    a, s = of_prediction * np.exp(t), of_mean * np.exp(u)
    prior = np.exp(-(t**2) / 2) * np.exp(-((u / 0.5) ** 2) / 2)
    apart = np.sum((mean - prediction) ** 2)
    likelihood = (a + s) ** (-(len(mean) - 1) / 2) * np.exp(-apart / (2 * (a + s)))
    return np.average(a / (a + s), weights=prior * likelihood)


@pytest.mark.parametrize("distance", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(("of_prediction", "of_mean"), [(0.3, 0.1), (0.1, 0.3), (0.02, 1.0)])
def test_the_weight_is_the_posterior_mean(distance, of_prediction, of_mean):
    prediction, mean = np.array([1.0, 2.0, 3.0]), np.array([1.0 + distance, 2.0, 3.0 - distance])
    unknown = np.full((1, 3), np.nan)
    scores, errors = combine_estimates(prediction[None], mean[None], unknown, [of_prediction], [of_mean])
    weight = slow(prediction, mean, of_prediction, of_mean)
    np.testing.assert_allclose(scores[0], prediction + weight * (mean - prediction), atol=0.01 * distance)
    assert (errors > 0).all()


def test_without_any_error_the_mean_alone_counts():
    prediction, mean = np.array([[1.0, 2.0, 3.0]]), np.array([[2.0, 2.0, 2.0]])
    scores, errors = combine_estimates(prediction, mean, 0 * mean, [1e-9], [0.0])
    np.testing.assert_array_equal(scores, mean)
    np.testing.assert_array_equal(errors, 0)
    near, _ = combine_estimates(prediction, mean, 0 * mean, [0.1], [1e-9])
    np.testing.assert_allclose(near, mean, atol=1e-6)


def test_errors_of_a_few_inputs_do_not_count_for_most():
    lessons = [{"scores": np.zeros((1, 2)), "variances": np.full((1, 2), 0.5)} for _ in range(3)]
    predicted = [np.array([[1.0, 1.0]]), np.array([[3.0, 1.0]]), np.array([[0.0, 30.0]])]  # 1, 5, 450
    assert error_variances(lessons, predicted).tolist() == [456 / 3 - 0.5]
    assert error_variances(lessons, predicted, robust=True).tolist() == [5 - 0.5]
    assert error_variances(lessons, [np.full((1, 2), 0.5)] * 3).tolist() == [0.25 / 10]


def test_standard_errors_of_references_are_not_enlarged(model):
    e = pertinent.explain(model, ROWS[0], "shapley-sampling", samples=8)
    variances = AmortizedShapleyLearner().targets(e, [0], None)["variances"]
    np.testing.assert_allclose(variances[0], (e.standard_errors / student_factor(4)) ** 2)
    exact = pertinent.explain(model, ROWS[0], "exact-shapley")
    np.testing.assert_array_equal(AmortizedShapleyLearner().targets(exact, [0], None)["variances"], 0)


# -- ranks as a loss ---------------------------------------------------------------------------


def slow_pairwise(scores, wanted, real):
    """Return the loss of all pairs, one after the other."""
    losses = []
    for s, w, r in zip(scores, wanted, real, strict=True):
        for i, j in combinations(np.flatnonzero(r), 2):
            for own, right in zip(s, w, strict=True):
                order = np.sign(right[i] - right[j])
                if order:
                    losses.append(np.log1p(np.exp(-order * (own[i] - own[j]))))
    return np.mean(losses)


@pytest.mark.parametrize("d", [6, 7])
def test_the_pairwise_loss_is_the_mean_over_pairs(d):
    rng = np.random.default_rng(0)
    scores, wanted = rng.normal(size=(2, 4, 2, d))
    wanted[0, 0, :3] = 1.0  # ties have no order
    real = np.arange(d) < np.array([[d], [d], [d - 2], [1]])
    tensors = [torch.tensor(each) for each in (scores, wanted, real)]
    np.testing.assert_allclose(float(pairwise_loss(*tensors)), slow_pairwise(scores, wanted, real))
    one = [torch.tensor(each) for each in ([[[2.0, 0.0, 9.0]]], [[[0.0, 1.0, 0.0]]], [[True, True, False]])]
    assert float(pairwise_loss(*one)) == pytest.approx(np.log1p(np.exp(2.0)))
    nothing = torch.zeros(1, 1, 1)
    assert float(pairwise_loss(nothing, nothing, torch.ones(1, 1, dtype=torch.bool))) == 0


def test_rank_adds_pairs_to_the_squares():
    scores = torch.tensor([[[1.0, 3.0]]])
    lesson = {"scores": torch.tensor([[[2.0, 0.0]]])}
    rest = torch.ones(1, 2, dtype=torch.bool), torch.tensor([2.0])
    plain, ranked = (
        AmortizedShapleyLearner(loss=name).compute_loss(scores, lesson, *rest) for name in ("mse", "rank")
    )
    assert float(plain) == pytest.approx((0.25 + 2.25) / 2)
    assert float(ranked - plain) == pytest.approx(0.3 * np.log1p(np.exp(1.0)))


def test_a_fit_by_ranks(model):
    options = {"samples": 4, "epochs": 2, "progress": False}
    plain, ranked = (pertinent.fit(model, ROWS[:20], loss=name, **options) for name in ("mse", "rank"))
    assert ranked.network.card["settings"]["loss"] == "rank"
    assert plain.network.fingerprint != ranked.network.fingerprint
