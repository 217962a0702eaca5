"""The Bayesian regression compared with a plain version, and its prior from the gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pertinent
from pertinent import Prompt
from pertinent.asks import PathGradients
from pertinent.engine.engine import Engine
from pertinent.engine.job import Job
from pertinent.errors import BudgetError, PertinentError
from pertinent.explainers.bayesian_regression import DEVIATION, FLOOR, NOISES, BayesianRegression, fit
from pertinent.models.gradients import token_gradients
from pertinent.removals.base import removals
from pertinent.testing.games import RecordedGame, play


def plain(masks, y, sizes):
    """Compute the posterior of each candidate noise with dense matrices, and average them."""
    sizes = sizes / np.sqrt(np.mean(sizes**2))
    covariance = np.outer(sizes, sizes) + DEVIATION**2 * np.diag(FLOOR + (1 - FLOOR) * sizes)
    n = len(y)
    centre = np.linalg.svd(np.ones((1, n)))[2][1:]  # an orthonormal basis of what an intercept leaves
    x, y = centre @ masks, centre @ y
    means, variances, likelihoods = [], [], []
    for noise in NOISES:
        marginal = x @ covariance @ x.T + noise**2 * np.eye(n - 1)
        inverse = np.linalg.inv(marginal)
        squares = y @ inverse @ y
        means.append(covariance @ x.T @ inverse @ y)
        posterior = covariance - covariance @ x.T @ inverse @ x @ covariance
        variances.append(np.diag(posterior) * squares / (n - 1))
        likelihoods.append(-0.5 * np.linalg.slogdet(marginal)[1] - (n - 1) / 2 * np.log(squares))
    weights = np.exp(np.array(likelihoods) - max(likelihoods))
    weights /= weights.sum()
    mean = weights @ means
    variance = weights @ (variances + (means - mean) ** 2)
    return mean, np.sqrt(variance)


@pytest.mark.parametrize(("n", "d"), [(40, 8), (6, 9)])
def test_the_posterior_is_that_of_the_plain_version(n, d):
    rng = np.random.default_rng(n)
    masks = rng.random((n, d)) < 0.5
    y = masks @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n)
    sizes = rng.random(d) + 0.1
    found = fit(masks, y[:, None], sizes)
    mean, deviation = plain(masks, y, sizes)
    np.testing.assert_allclose(found.mean[:, 0], mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.deviation[:, 0], deviation, rtol=1e-6)


def test_columns_are_fitted_separately_and_scale_with_the_answers():
    rng = np.random.default_rng(1)
    masks = rng.random((30, 10)) < 0.5
    values = masks @ rng.standard_normal((10, 3)) + rng.standard_normal((30, 3))
    together = fit(masks, values, np.ones(10))
    for column in range(3):
        alone = fit(masks, 1000 * values[:, [column]], np.ones(10))
        np.testing.assert_allclose(1000 * together.mean[:, [column]], alone.mean, rtol=1e-9)
        np.testing.assert_allclose(1000 * together.deviation[:, [column]], alone.deviation, rtol=1e-9)


def test_standard_errors_cover_effects_drawn_from_the_prior():
    inside = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        sizes = rng.gamma(2.0, size=12)
        sizes /= np.sqrt(np.mean(sizes**2))
        spread = DEVIATION * np.sqrt(FLOOR + (1 - FLOOR) * sizes)
        effects = 5 * (sizes * rng.standard_normal() + spread * rng.standard_normal(12))
        masks = rng.random((20, 12)) < 0.5
        y = masks @ effects + 5 * 0.2 * rng.standard_normal(20)
        found = fit(masks, y[:, None], sizes)
        inside.append(np.abs(found.mean[:, 0] - effects) <= 1.96 * found.deviation[:, 0])
    assert 0.92 <= np.mean(inside) <= 0.98


def test_constant_answers_and_features_without_a_gradient():
    masks = np.random.default_rng(0).random((10, 4)) < 0.5
    found = fit(masks, np.full((10, 1), 3.0), np.zeros(4))
    np.testing.assert_allclose(found.mean, 0.0, atol=1e-9)
    assert np.isfinite(found.deviation).all()


def test_coefficients_of_an_additive_game_are_recovered():
    weights = np.array([5.0, -3.0, 2.0, 0.0, 0.0, 1.0])
    game = RecordedGame(6, lambda masks: (masks @ weights)[:, None])
    finding = play(BayesianRegression(prior="uniform"), game, budget=60)
    np.testing.assert_allclose(finding.scores[0], weights, atol=0.05)
    assert game.distinct <= 60


def test_the_gradient_is_the_prior_of_a_language_model():
    model = pertinent.load("recall")
    sources = ["Omar lives in Oslo.", "It rains today.", "Nora lives in Rome.", "Pia keeps the lamp."]
    prompt = Prompt("Where does Nora live? Answer:", sources=sources, answer=" in Rome")
    e = pertinent.explain(model, prompt, "bayesian-regression", budget=18)
    assert e.top(1)[0][0] == "Nora lives in Rome."
    assert 2 < e.evaluations <= 18
    assert (e.request.scale, e.details["prior"]) == ("logit", "gradient")
    with pytest.raises(BudgetError, match="at least 6"):
        pertinent.explain(model, prompt, "bayesian-regression", budget=5)


def test_a_black_box_has_a_uniform_prior():
    def classify(texts):
        return [[0.9, 0.1] if "bad" in text else [0.2, 0.8] for text in texts]

    e = pertinent.explain(classify, "a bad film with good music", "bayesian-regression", budget=20)
    assert e.details["prior"] == "uniform" and e.top(1)[0][0] == "bad"
    with pytest.raises(PertinentError, match="gradients"):
        pertinent.explain(classify, "a bad film", "bayesian-regression:prior=gradient", budget=20)


@pytest.mark.parametrize("trouble", ["memory", "infinite"])
def test_without_a_usable_gradient_the_prior_is_uniform(monkeypatch, trouble):
    model = pertinent.load("recall")
    prompt = Prompt("Who keeps the map?", sources=["Ann keeps the key.", "Bob keeps the map."], answer="Bob")

    def no_memory(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    def infinite(values, condition):
        return torch.full_like(values, torch.inf)

    if trouble == "memory":
        monkeypatch.setattr(token_gradients, "pad_texts", no_memory)
    else:
        monkeypatch.setattr(token_gradients.base, "root_where", infinite)
    e = pertinent.explain(model, prompt, "bayesian-regression", budget=12)
    assert e.details["prior"] == "uniform" and e.top(1)[0][0] == "Bob keeps the map."
    assert any("gradient cannot be computed" in warning for warning in e.warnings)
    assert e.evaluations <= 12
    with pytest.raises(PertinentError):
        pertinent.explain(model, prompt, "bayesian-regression:prior=gradient", budget=12)


def test_an_answer_that_is_certain():
    """Its log-likelihood is 0 in floating point, so the slope of its log-odds is huge."""
    model = pertinent.load("recall")
    with torch.no_grad():
        model.model.model.norm.weight.mul_(30)
    model.forget()
    prompt = Prompt("Who keeps the map?", sources=["Ann keeps the key.", "Bob keeps the map."], answer="Bob")
    e = pertinent.explain(model, prompt, "bayesian-regression")
    assert e.prediction.values[0] == 0 and e.top(1)[0][0] == "Bob keeps the map."
    assert np.isfinite(e.scores).all() and np.isfinite(e.standard_errors).all()


def test_the_default_number_of_masks():
    method = BayesianRegression(prior="uniform")
    assert [method.evaluations(d) for d in (2, 13, 600)] == [32, 52, 1000]


def test_sizes_are_norms_summed_over_the_tokens_of_a_feature():
    model = pertinent.load("sentiment")
    input = model.prepare("An incomprehensibly zyzzyvian film, but charming")
    found = {}

    def ask(times):
        found[times] = (yield PathGradients(np.ones(1), 1, times=times)).gradients[0]

    for times in ("norm", "itself"):
        list(Engine(model).run([Job(0, input, removals.make("attention-mask"), ask(times))], 1))
    point = model.module.get_input_embeddings()(torch.tensor(input.tokens.ids[None])).detach()
    point.requires_grad_()
    logits = model.module(inputs_embeds=point).logits
    (gradient,) = torch.autograd.grad(logits.softmax(-1)[0, 1], point)
    norms = gradient[0].norm(dim=-1).double().numpy()
    of_features = [norms[input.tokens.feature == i] for i in range(input.n_features)]
    assert max(map(len, of_features)) > 1
    np.testing.assert_allclose(found["norm"], [each.sum() for each in of_features], rtol=1e-4)
    np.testing.assert_allclose(found["itself"], [np.sqrt((each**2).sum()) for each in of_features], rtol=1e-4)
