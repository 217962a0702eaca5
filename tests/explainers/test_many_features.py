"""Texts of thousands of words: a quick answer, or an error that names a better method."""

import numpy as np
import pytest

from pertinent.errors import BudgetError
from pertinent.explainers.lime import Lime, ridge
from pertinent.explainers.shapley.kernel_shap import KernelShap, _inverse
from pertinent.testing.games import RecordedGame, additive, play


def test_kernel_shap_of_a_thousand_features():
    weights = np.random.default_rng(0).normal(size=1000)
    found = play(KernelShap(), additive(weights), budget=2400)
    np.testing.assert_allclose(found.scores[0], weights, atol=1e-6)


def test_kernel_shap_of_too_many_names_a_better_method():
    with pytest.raises(BudgetError, match="Use shapley-sampling"):
        play(KernelShap(), RecordedGame(10_000, lambda masks: masks[:, :1].astype(float)))


def test_the_quick_inverse_is_the_pseudo_inverse():
    rng = np.random.default_rng(0)
    for n in (30, 8, 5):  # of full rank but for the constant, just so, and of less
        design = rng.random((n, 9))
        design -= design.mean(axis=1, keepdims=True)
        gram = design.T @ design
        np.testing.assert_allclose(
            _inverse(gram), np.linalg.pinv(gram, rcond=1e-12, hermitian=True), atol=1e-7
        )


def test_lime_of_ten_thousand_features():
    found = play(Lime(), RecordedGame(10_000, lambda masks: masks[:, 7:8].astype(float)), budget=200)
    assert found.scores[0].argmax() == 7
    assert np.isfinite(found.standard_errors).all()


@pytest.mark.parametrize("alpha", [0.0, 0.3, 5.0])
def test_few_masks_and_many_features_give_the_same_regression(alpha):
    """Compare the regression by the smaller matrix of masks with that of features."""
    rng = np.random.default_rng(1)
    masks, values, weight = rng.random((12, 40)) < 0.5, rng.normal(size=(12, 2)), rng.uniform(0.2, 1, 12)
    share, root = weight / weight.sum(), np.sqrt(weight)[:, None]
    design, response = root * (masks - share @ masks), root * (values - share @ values)
    expected = np.linalg.pinv(design.T @ design + alpha * np.eye(40), rcond=1e-10) @ design.T @ response
    np.testing.assert_allclose(ridge(masks, values, weight, alpha)[0], expected, atol=1e-8)
