"""Occlusion and Grad-CAM on models with known answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pertinent
from pertinent.errors import BudgetError, InputError, ModelError, SettingError

WEIGHTS = np.random.default_rng(0).normal(size=(6, 8))


def model():
    """Return a regressor that is linear in the pixels."""
    return pertinent.wrap(lambda x: (x[:, 0] * WEIGHTS).sum(axis=(1, 2)), kind="image", output="value")


def explain(features, **settings):
    options = {"method": "occlusion", "features": features, "removal": "constant"}
    return pertinent.explain(model(), np.ones((1, 6, 8)), **{**options, **settings})


def test_a_pixel_gets_the_mean_of_the_windows_over_it():
    found = explain("pixels", window=3, stride=2).heatmap()
    drops, counts = np.zeros((6, 8)), np.zeros((6, 8))
    for r in (0, 2, 4):
        for c in (0, 2, 4, 6):
            inside = np.s_[r : r + 3, c : c + 3]
            drops[inside] += WEIGHTS[inside].sum()
            counts[inside] += 1
    np.testing.assert_allclose(found, drops / counts, atol=1e-6)


def test_a_patch_is_covered_if_half_of_it_is():
    """Cover patches of 2 × 2 pixels by windows of 4 × 4."""
    found = explain("patches:2", window=4, stride=2)
    blocks = WEIGHTS.reshape(3, 2, 4, 2).sum(axis=(1, 3))
    drops, counts = np.zeros((3, 4)), np.zeros((3, 4))
    for r in range(2):
        for c in range(3):
            drops[r : r + 2, c : c + 2] += blocks[r : r + 2, c : c + 2].sum()
            counts[r : r + 2, c : c + 2] += 1
    np.testing.assert_allclose(found.scores, (drops / counts).ravel(), atol=1e-6)
    assert found.evaluations == 7


def test_what_no_window_covers_is_removed_alone():
    segments = np.zeros((6, 8), dtype=int)
    segments[:2, :2] = 1
    found = explain(segments, window=2, stride=2)
    expected = [WEIGHTS[segments == 0].sum(), WEIGHTS[segments == 1].sum()]
    np.testing.assert_allclose(found.scores, expected, atol=1e-6)


def test_words_are_covered_with_their_neighbours():
    def function(texts):
        return [[0.1 * ("c" in text.split()), 1 - 0.1 * ("c" in text.split())] for text in texts]

    e = pertinent.explain(pertinent.wrap(function), "a b c d e", "occlusion", target=0, window=2, stride=1)
    np.testing.assert_allclose(e.scores, [0, 0.05, 0.1, 0.05, 0], atol=1e-9)
    one = pertinent.explain(pertinent.wrap(function), "a b c d e", "occlusion", target=0, window=1)
    np.testing.assert_allclose(one.scores, [0, 0, 0.1, 0, 0], atol=1e-9)


def test_the_window_moves_further_where_the_budget_is_small():
    assert explain("pixels", window=4).evaluations == 1 + 2 * 3
    assert explain("pixels", window=4, budget=5).evaluations == 1 + 2 * 2
    assert explain("pixels", budget=2).evaluations == 2
    with pytest.raises(BudgetError, match="at least 7 for occlusion with a window of 4 and a stride of 2"):
        explain("pixels", window=4, stride=2, budget=5)


def test_grad_cam_needs_maps():
    x = np.zeros((1, 6, 8), dtype=np.float32)
    flat = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 2))
    with pytest.raises(ModelError, match="needs a torch module with two-dimensional convolutions"):
        pertinent.explain(pertinent.wrap(flat, kind="image", output="logit"), x, "grad-cam")
    with pytest.raises(ModelError, match="two-dimensional convolutions"):
        pertinent.explain(model(), x, "grad-cam")
    with pytest.raises(ModelError, match=r"returns maps \(rows, channels, height, width\)"):
        pertinent.explain(pertinent.wrap(flat, kind="image", output="logit"), x, "grad-cam", layer="1")
    with pytest.raises(SettingError, match="Unknown layer of the module '2'"):
        pertinent.explain(pertinent.wrap(flat, kind="image", output="logit"), x, "grad-cam", layer="2")
    rows = pertinent.wrap(torch.nn.Linear(3, 2), kind="table", output="logit")
    with pytest.raises(InputError, match="Grad-CAM only explains images, but the input is a table"):
        pertinent.explain(rows, np.zeros(3), "grad-cam")


@pytest.mark.parametrize(
    ("name", "ours"),
    [("saliency", "gradient"), ("Saliency", "gradient"), ("gradient-shap", "expected-gradients")],
)
def test_other_names_lead_to_ours(name, ours):
    with pytest.raises(SettingError, match=rf"Unknown method '{name}'\. Did you mean '{ours}'\?"):
        pertinent.explain(model(), np.zeros((1, 6, 8)), name)
