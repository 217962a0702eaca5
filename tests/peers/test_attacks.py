"""Attack radii of the same network and images, by this package and by foolbox at equal passes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import pertinent

with warnings.catch_warnings():
    # foolbox imports scipy's filters by a name that scipy will drop.
    warnings.simplefilter("ignore", DeprecationWarning)
    import foolbox

IMAGES = 40


class Counted(torch.nn.Module):
    """A network that counts the passes made through it, forwards and backwards."""

    def __init__(self, network):
        super().__init__()
        self.network, self.passes = network, 0

    def forward(self, batch):
        self.passes += len(batch)
        scores = self.network(batch)
        if scores.requires_grad:
            scores.register_hook(self.count)
        return scores

    def count(self, gradient):
        self.passes += len(gradient)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Use one thread, because the network is too small for several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def counted(one_thread):
    """Return a convolutional network trained on digits of 8 × 8 pixels, and unseen images."""
    torch.manual_seed(0)
    rows, truth = load_digits(return_X_y=True)
    images, truth = torch.tensor(rows / 16).float().reshape(-1, 1, 8, 8), torch.tensor(truth)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(512, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    for _ in range(6):
        for batch in torch.randperm(1400).split(64):
            loss = torch.nn.functional.cross_entropy(network(images[batch]), truth[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    network.eval()
    accuracy = (network(images[1400:]).argmax(dim=1) == truth[1400:]).float().mean()
    assert accuracy > 0.85
    return Counted(network).eval(), images[1400 : 1400 + IMAGES]


def ours(counted, norm, **options):
    """Return radii, and the number of passes."""
    module, images = counted
    model = pertinent.wrap(module, kind="image", output="logit")
    module.passes = 0
    found = pertinent.attack_radius(
        model, [image.numpy() for image in images], features="pixels", norm=norm, progress=False, **options
    )
    predictions = len(images)
    assert module.passes == sum(int(one.passes.sum()) for one in found) + predictions
    return np.array([one.radii[0] for one in found]), module.passes


def theirs(counted, norm, attack, epsilon=None):
    """Return radii, infinite for failed attacks, and the number of passes."""
    module, images = counted
    labels = module.network(images).argmax(dim=1)
    module.passes = 0
    bounded = foolbox.PyTorchModel(module, bounds=(0, 1))
    _, perturbed, succeeded = attack(bounded, images, labels, epsilons=epsilon)
    change = (perturbed - images).flatten(1)
    radii = change.norm(dim=1) if norm == "l2" else change.abs().amax(dim=1)
    return torch.where(succeeded, radii, torch.inf).detach().numpy(), module.passes


@pytest.mark.parametrize("steps", [10, 20])
@pytest.mark.parametrize(
    ("norm", "attack"), [("l2", "DDNAttack"), ("l2", "L2FMNAttack"), ("linf", "LInfFMNAttack")]
)
def test_radii_are_no_larger_than_those_of_minimum_norm_attacks(counted, norm, attack, steps):
    own, passes = ours(counted, norm, steps=steps)
    n = round(passes / IMAGES / 2)
    peer, made = theirs(counted, norm, getattr(foolbox.attacks, attack)(steps=n))
    assert made >= passes
    both = np.isfinite(peer)
    assert np.isfinite(own).all()
    assert own[both].mean() <= peer[both].mean()
    assert np.mean(own <= 1.01 * peer) >= 0.9  # each row within one percent


@pytest.mark.parametrize(
    ("norm", "attack", "balls"),
    [
        ("l2", "L2BasicIterativeAttack", np.linspace(0.1, 1.2, 12)),
        ("l2", "L2ProjectedGradientDescentAttack", np.linspace(0.1, 1.2, 12)),
        ("linf", "LinfProjectedGradientDescentAttack", np.linspace(0.01, 0.2, 12)),
    ],
)
def test_radii_are_no_larger_than_those_of_descent_in_balls(counted, norm, attack, balls):
    """Compare with the smallest ball in which descent of 10 steps succeeds, with several times the passes."""
    own, passes = ours(counted, norm)
    descent = getattr(foolbox.attacks, attack)(rel_stepsize=0.25, steps=10, random_start=False)
    runs = [theirs(counted, norm, descent, float(ball)) for ball in balls]
    peer = np.min([radii for radii, _ in runs], axis=0)
    assert sum(made for _, made in runs) > 5 * passes
    found = np.isfinite(peer)
    assert own[found].mean() <= peer[found].mean()
    assert np.mean(own <= 1.01 * peer) >= 0.9
