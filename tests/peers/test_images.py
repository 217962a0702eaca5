"""Images explained by captum with the same settings: the same scores."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import GradientShap

import pertinent


class Probabilities(torch.nn.Module):
    """A network that answers with probabilities."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        return self.network(images).softmax(dim=1)


@pytest.fixture(scope="module")
def network():
    """A small convolutional network for images of 3 × 9 × 12 pixels."""
    torch.manual_seed(0)
    found = torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(6, 5, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(5 * 5 * 6, 4),
    ).eval()
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.mul_(2)
    return found


def images(n, seed=0):
    return np.random.default_rng(seed).random((n, 3, 9, 12)).astype(np.float32)


def test_expected_gradients_and_gradient_shap(network):
    """From the same background images, within the standard errors of both."""
    x, background = images(1)[0], images(8, seed=1)
    model = pertinent.wrap(network, background=background)
    ours = pertinent.explain(model, x, "expected-gradients", samples=2000, target=2, features="pixels")
    torch.manual_seed(0)
    theirs = GradientShap(Probabilities(network)).attribute(
        torch.tensor(x[None]), torch.tensor(background), n_samples=4000, stdevs=0.0, target=2
    )
    apart = (ours.scores - theirs[0].sum(dim=0).detach().numpy().ravel()) / ours.standard_errors
    assert np.abs(apart).max() < 5
    assert 0.2 < np.sqrt((apart**2).mean()) < 1.5
    noise = pertinent.explain(
        pertinent.wrap(network, kind="image"),
        x,
        "expected-gradients",
        samples=2000,
        target=2,
        features="pixels",
    )
    assert np.abs((noise.scores - ours.scores) / ours.standard_errors).max() > 10
