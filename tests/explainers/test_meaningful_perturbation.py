"""Meaningful perturbation on models with known answers."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.errors import BudgetError, SettingError
from pertinent.explainers.robustness.meaningful_perturbation import LEVELS, neighbours, roughness_gradient


def roughness(mask, power):
    """Return Σ |m(u) − m(v)|^β over neighbouring pixels, one by one."""
    total = 0.0
    height, width = mask.shape
    for row in range(height):
        for column in range(width):
            if column + 1 < width:
                total += abs(mask[row, column] - mask[row, column + 1]) ** power
            if row + 1 < height:
                total += abs(mask[row, column] - mask[row + 1, column]) ** power
    return total


def logistic(weights, bias=0.0):
    module = torch.nn.Linear(len(weights), 2)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([weights, [0.0] * len(weights)]))
        module.bias.copy_(torch.tensor([bias, 0.0]))
    return module


def explain(model, raw, **options):
    return pertinent.explain(model, raw, "meaningful-perturbation", progress=False, **options)


def test_features_with_weight_are_deleted_and_the_others_kept():
    model = pertinent.wrap(logistic([6.0, 0.0, 6.0, 0.0, 0.0, 0.0]), kind="table", output="logit")
    e = explain(model, np.ones(6), removal="constant")
    assert e.target == 0
    np.testing.assert_allclose(e.scores, [1, 0, 1, 0, 0, 0], atol=0.02)


def test_features_that_speak_against_the_target_are_kept():
    model = pertinent.wrap(logistic([4.0, -3.0, 2.0]), kind="table", output="logit")
    e = explain(model, np.ones(3), removal="constant")
    np.testing.assert_allclose(e.scores, [1, 0, 1], atol=0.02)


def test_the_mask_is_where_the_formula_is_least():
    """Compare with the minimum of λ₁ (1 − m) + σ(w m + b) on a fine grid, for one feature."""
    weight, bias, cost = 8.0, -3.0, 0.5
    model = pertinent.wrap(logistic([weight], bias), kind="table", output="logit")
    e = explain(model, np.ones(1), removal="constant", deletion_weight=cost, learning_rate=0.01)
    m = np.linspace(0, 1, 100_001)
    loss = cost * (1 - m) + 1 / (1 + np.exp(-(weight * m + bias)))
    assert 0 < loss.argmin() < len(m) - 1
    assert 1 - e.scores[0] == pytest.approx(m[loss.argmin()], abs=2e-3)


def test_what_costs_more_than_it_destroys_is_kept():
    model = pertinent.wrap(logistic([3.0, 0.05]), kind="table", output="logit")
    e = explain(model, np.ones(2), removal="constant")
    np.testing.assert_allclose(e.scores, [1, 0], atol=0.02)
    free = explain(model, np.ones(2), removal="constant", deletion_weight=0.0)
    np.testing.assert_allclose(free.scores, [1, 1], atol=0.02)


def test_a_saturated_prediction_is_destroyed():
    """Check a model without gradient at the whole input, where the descent does not start."""
    model = pertinent.wrap(logistic([60.0, 0.0, 60.0], -20.0), kind="table", output="logit")
    e = explain(model, np.ones(3), removal="constant")
    assert e.prediction.values[0] == pytest.approx(1.0, abs=1e-12)
    assert e.scores[[0, 2]].min() > 0.5
    assert e.scores[1] < 0.02


def test_roughness_against_a_hand_computation():
    mask = np.array([[1.0, 0.5], [0.25, 0.0]])
    assert roughness(mask, 3.0) == pytest.approx(0.5**3 + 0.25**3 + 0.75**3 + 0.5**3)
    found = roughness_gradient(mask.ravel(), neighbours(np.arange(4).reshape(2, 2)), 3.0)
    expected = [0.5**2 + 0.75**2, -(0.5**2) + 0.5**2, -(0.75**2) + 0.25**2, -(0.5**2) - 0.25**2]
    np.testing.assert_allclose(found, 3 * np.array(expected))


@pytest.mark.parametrize("power", [2.0, 3.0])
def test_roughness_gradient_against_finite_differences(power):
    mask = np.random.default_rng(0).random((4, 5))
    found = roughness_gradient(mask.ravel(), neighbours(np.arange(20).reshape(4, 5)), power)
    for i in range(20):
        step = np.zeros(20)
        step[i] = 1e-6
        up, down = (roughness(mask + sign * step.reshape(4, 5), power) for sign in (1, -1))
        assert found[i] == pytest.approx((up - down) / 2e-6, abs=1e-7)


def test_patches_touch_as_pixels_do():
    pixels = np.arange(6).reshape(2, 3)
    patches = pixels.repeat(4, axis=0).repeat(4, axis=1)
    np.testing.assert_array_equal(neighbours(patches), neighbours(pixels))


def test_smooth_masks_of_images():
    class Two(torch.nn.Module):
        def forward(self, x):
            own = 8 * (x[:, 0, 2, 2] + x[:, 0, 2, 3]) - 4
            return torch.stack([own, torch.zeros_like(own)], dim=1)

    model, image = pertinent.wrap(Two(), kind="image", output="logit"), np.ones((1, 6, 6))
    rough, smooth = (
        explain(model, image, features="pixels", removal="constant", smoothness_weight=weight).heatmap()
        for weight in (0.0, 8.0)
    )
    decisive = np.zeros((6, 6))
    decisive[2, 2:4] = 1
    np.testing.assert_allclose(rough * (1 - decisive), 0, atol=0.02)
    assert roughness(smooth, 3.0) < roughness(rough, 3.0)
    assert set(np.argsort(-smooth.ravel())[:2]) == {14, 15}


@pytest.mark.parametrize("removal", ["attention-mask", "mask-token", "zero-vector"])
def test_texts(removal):
    model = pertinent.load("sentiment")
    e = explain(model, "the plot is slow but wonderful", removal=removal, steps=60)
    deleted = {name: score for name, score in e.top(6) if score > 0.02}
    assert set(deleted) == {"but", "wonderful"}
    assert min(deleted.values()) > 0.5


def test_a_plain_value_is_lowered():
    module = torch.nn.Linear(3, 1)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[5.0, -2.0, 0.0]]))
        module.bias.zero_()
    model = pertinent.wrap(module, kind="table", output="value")
    np.testing.assert_allclose(explain(model, np.ones(3), removal="constant").scores, [1, 0, 0], atol=0.02)


def test_cost_and_seed():
    model = pertinent.wrap(logistic([2.0, 1.0, -1.0]), kind="table", output="logit")
    first, again = (explain(model, np.ones(3), removal="constant", steps=40, seed=s) for s in (0, 1))
    np.testing.assert_array_equal(first.scores, again.scores)
    assert first.evaluations == first.cost.budget == 2 * (40 + len(LEVELS))
    with pytest.raises(BudgetError, match="at least 100"):
        explain(model, np.ones(3), removal="constant", steps=40, budget=99)
    with pytest.raises(SettingError, match="`smoothness_power` must be at least 1"):
        explain(model, np.ones(3), smoothness_power=0.5)
    with pytest.raises(SettingError, match="scale"):
        explain(model, np.ones(3), removal="constant", scale="logit")
