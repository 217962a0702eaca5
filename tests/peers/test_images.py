"""Images explained by captum with the same settings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import GradientShap, LayerAttribution, LayerGradCam, NoiseTunnel, Saliency
from captum.attr import Occlusion as CaptumOcclusion

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
    """Return a small convolutional network for images of 3 × 9 × 12 pixels."""
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
    """Compare with the same background images, within the standard errors of both."""
    x, background = images(1)[0], images(8, seed=1)
    model = pertinent.wrap(network, background=background, output="logit")
    ours = pertinent.explain(model, x, "expected-gradients", samples=2000, target=2, features="pixels")
    torch.manual_seed(0)
    theirs = GradientShap(Probabilities(network)).attribute(
        torch.tensor(x[None]), torch.tensor(background), n_samples=4000, stdevs=0.0, target=2
    )
    apart = (ours.scores - theirs[0].sum(dim=0).detach().numpy().ravel()) / ours.standard_errors
    assert np.abs(apart).max() < 5
    assert 0.2 < np.sqrt((apart**2).mean()) < 1.5
    noise = pertinent.explain(
        pertinent.wrap(network, kind="image", output="logit"),
        x,
        "expected-gradients",
        samples=2000,
        target=2,
        features="pixels",
    )
    assert np.abs((noise.scores - ours.scores) / ours.standard_errors).max() > 10


@pytest.mark.parametrize(("window", "stride"), [(4, 3), (3, 2), (5, 5), (1, 1)])
def test_occlusion(network, window, stride):
    """Compare with the same windows, including those that extend beyond the edge."""
    x = images(1, seed=2)[0]
    options = {"target": 1, "features": "pixels", "removal": "constant:value=0.3"}
    ours = pertinent.explain(
        pertinent.wrap(network, kind="image", output="logit"),
        x,
        "occlusion",
        window=window,
        stride=stride,
        **options,
    )
    theirs = CaptumOcclusion(Probabilities(network)).attribute(
        torch.tensor(x[None]), (3, window, window), (3, stride, stride), baselines=0.3, target=1
    )
    np.testing.assert_allclose(ours.heatmap(), theirs[0, 0].numpy(), atol=1e-6)
    assert np.abs(ours.scores).max() > 1e-3


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("layer", [None, "0"])
def test_grad_cam(network, layer, in_place):
    """Compare a network in which the next layer overwrites the maps, too."""
    x, target = images(3, seed=3), 3
    for relu in (network[1], network[3]):
        relu.inplace = in_place
    model = pertinent.wrap(network, kind="image", output="logit")
    ours = pertinent.explain(model, x, "grad-cam", layer=layer, target=target, features="pixels")
    for relu in (network[1], network[3]):
        relu.inplace = False
    maps = LayerGradCam(network, network[2 if layer is None else int(layer)]).attribute(
        torch.tensor(x), target=target, relu_attributions=True
    )
    theirs = LayerAttribution.interpolate(maps, x.shape[2:], "bilinear")[:, 0].detach().numpy()
    assert theirs.max() > 1e-3
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.heatmap(), other, atol=1e-7)
        assert mine.meaning == "magnitude"
    patches = pertinent.explain(model, x[0], "grad-cam", layer=layer, target=target, features="patches:3")
    np.testing.assert_allclose(
        patches.scores, theirs[0].reshape(3, 3, 4, 3).mean(axis=(1, 3)).ravel(), atol=1e-7
    )
    assert not any(part._forward_hooks for part in network.modules())


def test_smoothgrad(network):
    x = images(1, seed=4)[0]
    model = pertinent.wrap(network, kind="image", output="logit")
    ours = pertinent.explain(model, x, "smoothgrad", samples=1500, noise=0.8, target=0, features="pixels")
    torch.manual_seed(0)
    theirs = NoiseTunnel(Saliency(Probabilities(network))).attribute(
        torch.tensor(x[None]), nt_samples=3000, stdevs=0.8 * float(x.std()), target=0, abs=False
    )
    apart = (ours.scores - theirs[0].sum(dim=0).detach().numpy().ravel()) / ours.standard_errors
    assert np.abs(apart).max() < 5
    assert 0.5 < np.sqrt((apart**2).mean()) < 1.6
    plain = pertinent.explain(model, x, "gradient", target=0, features="pixels")
    assert np.abs((ours.scores - plain.scores) / ours.standard_errors).max() > 10
