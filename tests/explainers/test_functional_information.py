"""Functional information compared with closed forms, and with plain torch at the same noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests import tiny

import pertinent
from pertinent.config.fingerprints import generator
from pertinent.errors import BudgetError, SettingError

W, B, X = np.array([1.0, -2.0, 0.5, 0.0]), 0.3, np.array([0.7, 0.2, -1.0, 3.0])
SPREAD = np.array([2.0, 0.5, 1.0, 4.0])
BACKGROUND = np.concatenate([X + SPREAD, X - SPREAD]).reshape(2, 4)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def draws(input, shape, n, seed=0):
    """Return the noise of the first n samples."""
    return np.stack(
        [
            generator(seed, "noise", input.fingerprint, i).standard_normal(shape, dtype=np.float32)
            for i in range(n)
        ]
    )


@pytest.fixture(scope="module")
def logistic():
    """Return p(x) = σ(w·x + b) for class 1, with ∂p/∂x = p (1 − p) w."""
    module = torch.nn.Linear(4, 2)
    with torch.no_grad():
        module.weight.copy_(torch.tensor(np.stack([0 * W, W])))
        module.bias.copy_(torch.tensor([0.0, B]))
    return module


@pytest.mark.parametrize("target", [0, 1])
def test_the_closed_form_of_a_logistic_model(logistic, target):
    """Integrate E[p (1 − p)²] over the normal number w·z."""
    model = pertinent.wrap(logistic, kind="table", output="logit", background=BACKGROUND)
    e = pertinent.explain(
        model, X, method="functional-information", target=target, samples=4000, noise=0.5, seed=3
    )
    sigma = 0.5 * SPREAD
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    p = sigmoid(X @ W + B + np.sqrt(((sigma * W) ** 2).sum()) * nodes)
    of_target, other = (p, 1 - p) if target else (1 - p, p)
    expected = (weights @ (of_target * other**2)) / weights.sum() * (sigma * W) ** 2
    assert (np.abs(e.scores - expected) <= 4 * e.standard_errors).all()
    np.testing.assert_allclose(e.scores, expected, rtol=0.06, atol=0)
    assert e.evaluations == e.cost.budget == 8000


def test_a_row_without_a_background_has_units_of_one_and_groups_add_up(logistic):
    model = pertinent.wrap(
        logistic, kind="table", output="logit", columns=list("abcd"), groups={"bc": ["b", "c"]}
    )
    e = pertinent.explain(model, X, method="functional-information", target=1, samples=5, noise=0.3, seed=2)
    z = X + 0.3 * draws(e.input, 4, 5, seed=2)
    p = sigmoid(z @ W + B)[:, None]
    each = 0.09 * p * (1 - p) ** 2 * W**2
    by_feature = np.stack([each[:, 0], each[:, 1] + each[:, 2], each[:, 3]], axis=1)
    np.testing.assert_allclose(e.scores, by_feature.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(e.standard_errors, by_feature.std(axis=0, ddof=1) / np.sqrt(5), rtol=1e-3)


def test_an_image_is_as_plain_torch_says():
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(48, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    )
    image = np.random.default_rng(0).random((3, 4, 4)).astype(np.float32)
    model = pertinent.wrap(module, kind="image")
    e = pertinent.explain(
        model, image, method="functional-information", features="patches:2", target=2, samples=6
    )
    sigma = 0.387 * image.std()
    total = np.zeros((3, 4, 4))
    for noise in draws(e.input, (3, 4, 4), 6):
        z = torch.tensor(image + sigma * noise, requires_grad=True)
        p = module(z[None]).softmax(dim=1)[0, 2]
        p.backward()
        total += sigma**2 * z.grad.numpy() ** 2 / p.item() / 6
    expected = total.reshape(3, 2, 2, 2, 2).sum(axis=(0, 2, 4)).ravel()
    np.testing.assert_allclose(e.scores, expected, rtol=1e-4)


def test_texts_are_as_plain_torch_says_whatever_their_company():
    network, tokenizer = tiny.pair("bert", initializer_range=0.06)
    model = pertinent.wrap((network, tokenizer))
    texts = ["w1 w2 w3", "w4 w5 w6 w7 w8 w9 a", "w7"]
    found = pertinent.explain(model, texts, method="functional-information", samples=4, seed=5)
    for text, e in zip(texts, found, strict=True):
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        words = network.get_input_embeddings()(ids).detach()[0]
        sigma = 0.387 * float(words.std(correction=0))
        total = np.zeros(len(words))
        for noise in draws(e.input, tuple(words.shape), 4, seed=5):
            z = (words + sigma * torch.tensor(noise)).requires_grad_()
            p = network(inputs_embeds=z[None]).logits.softmax(dim=1)[0, e.target]
            (gradient,) = torch.autograd.grad(p, z)
            total += sigma**2 * (gradient.numpy() ** 2).sum(axis=1) / p.item() / 4
        np.testing.assert_allclose(e.scores, total[1:-1], rtol=2e-3)
        alone = pertinent.explain(model, text, method="functional-information", samples=4, seed=5)
        np.testing.assert_allclose(alone.scores, e.scores, rtol=1e-4)


def test_it_shares_batches_with_gradients_without_noise():
    model = pertinent.wrap(tiny.pair("bert", initializer_range=0.06))
    methods = ["gradient", "functional-information", "integrated-gradients"]
    both = pertinent.compare(model, ["w1 w2 w3 w4"], methods, "insertion", budget=200)
    for method, e in zip(methods, both.explanations, strict=True):
        alone = pertinent.explain(model, "w1 w2 w3 w4", method=method, budget=200)
        np.testing.assert_allclose(e.scores, alone.scores, atol=1e-6)


def test_a_plain_value_counts_by_its_square():
    """Check 4 σ² w² for f = w·x of either sign."""
    module = torch.nn.Linear(4, 1, bias=False)
    with torch.no_grad():
        module.weight.copy_(torch.tensor(W[None]))
    model = pertinent.wrap(module, kind="table", output="value")
    e = pertinent.explain(model, -X, method="functional-information", samples=3, noise=0.1)
    np.testing.assert_allclose(e.scores, 0.04 * W**2, rtol=1e-5)


def test_an_answer_that_is_certain_has_no_information():
    module = torch.nn.Linear(4, 2)
    with torch.no_grad():
        module.weight.copy_(torch.tensor(np.stack([0 * W, W])))
        module.bias.copy_(torch.tensor([0.0, 500.0]))
    model = pertinent.wrap(module, kind="table", output="logit")
    e = pertinent.explain(model, X, method="functional-information", target=0, samples=3)
    np.testing.assert_array_equal(e.scores, 0)


def test_settings_are_checked(logistic):
    model = pertinent.wrap(logistic, kind="table", output="logit")
    with pytest.raises(SettingError, match="`noise` must be above 0"):
        pertinent.explain(model, X, method="functional-information", noise=0)
    with pytest.raises(BudgetError, match="at least 200"):
        pertinent.explain(model, X, method="functional-information", budget=199)
