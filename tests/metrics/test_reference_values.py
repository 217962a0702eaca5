"""Insertion and deletion of an image by reference value (Hsieh et al. 2021, App. H), compared with loops."""

import numpy as np
import pytest
import torch
from torch import nn

import pertinent
from pertinent.errors import SettingError
from pertinent.metrics.ablation import Deletion, Insertion

VALUES = (0.0, 0.25, 0.5, 0.75, 1.0)
SIDE, PATCH = 8, 2
IMAGES = np.random.default_rng(0).random((3, 1, SIDE, SIDE)).astype(np.float32)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    made = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    with torch.no_grad():
        made[-1].weight.mul_(20)
    return made.eval()


def plain_area(network, e, filler, *, insert, steps):
    """Compute one patch, step and call at a time; `filler` returns the values of removed pixels by step."""
    across = SIDE // PATCH
    d = across**2
    order = sorted(range(d), key=lambda i: (-e.scores[i], i))
    counts = sorted({round(d * n / steps) for n in range(steps + 1)})
    points = []
    for count in counts:
        kept = set(order[:count]) if insert else set(order[count:])
        image = filler(kept).copy()
        for patch in kept:
            top, left = PATCH * (patch // across), PATCH * (patch % across)
            image[:, top : top + PATCH, left : left + PATCH] = e.input.pixels[
                :, top : top + PATCH, left : left + PATCH
            ]
        with torch.no_grad():
            logits = network(torch.from_numpy(image[None].astype(np.float32)))[0].double().numpy()
        points.append(np.exp(logits[e.target]) / np.exp(logits).sum())
    widths = np.diff(counts) / d
    return float(sum(w * (a + b) / 2 for w, a, b in zip(widths, points[:-1], points[1:], strict=True)))


@pytest.mark.parametrize("value", VALUES)
def test_constant_values(network, value):
    model = pertinent.wrap(network, kind="image", output="logit")
    es = pertinent.explain(model, IMAGES, "leave-one-out", removal="constant", features=f"patches:{PATCH}")
    found = pertinent.evaluate(
        model, es, [Insertion(steps=5), Deletion(steps=5)], removal=f"constant:value={value}"
    )
    for e in found.explanations:
        filler = np.full(IMAGES[0].shape, value)
        for name, insert in (("insertion", True), ("deletion", False)):
            plain = plain_area(network, e, lambda kept, f=filler: f, insert=insert, steps=5)
            assert e.measures[name][None] == pytest.approx(plain, abs=1e-5)


def test_the_value_matters_and_the_explanation_stays(network):
    model = pertinent.wrap(network, kind="image", output="logit")
    es = pertinent.explain(model, IMAGES, "leave-one-out", removal="constant", features=f"patches:{PATCH}")
    areas = []
    for value in VALUES:
        found = pertinent.evaluate(model, es, "deletion", removal=f"constant:value={value}")
        areas.append(found.mean("leave-one-out", "deletion"))
        np.testing.assert_array_equal(found.explanations[0].scores, es[0].scores)
    assert len({round(area, 6) for area in areas}) == len(VALUES)


def test_uniform_noise_from_0_to_1(network):
    """Check that the draws of each mask are those of the removal, in range, and depend on the seed."""
    from pertinent.removals import UniformNoise

    model = pertinent.wrap(network, kind="image", output="logit")
    es = pertinent.explain(model, IMAGES, "leave-one-out", removal="constant", features=f"patches:{PATCH}")
    noise = UniformNoise(low=0.0, high=1.0)
    removal = "uniform-noise:low=0,high=1"
    found = pertinent.evaluate(model, es, [Insertion(steps=5), Deletion(steps=5)], removal=removal, seed=3)
    for e in found.explanations:

        def filler(kept, input=e.input):
            mask = np.isin(np.arange(len(input.features)), list(kept))
            image = noise(input, mask[None], 3)[0]
            assert 0 <= image.min() <= image.max() <= 1
            return image

        for name, insert in (("insertion", True), ("deletion", False)):
            plain = plain_area(network, e, filler, insert=insert, steps=5)
            assert e.measures[name][None] == pytest.approx(plain, abs=1e-5)
    other = pertinent.evaluate(model, es, [Insertion(steps=5)], removal=removal, seed=4)
    assert other.mean("leave-one-out", "insertion") != found.mean("leave-one-out", "insertion")


@pytest.mark.parametrize("value", ["nan", "inf", "white"])
def test_no_number(value):
    model = pertinent.wrap(lambda images: [[0.5, 0.5] for _ in images], kind="image")
    es = pertinent.explain(model, IMAGES[0], "leave-one-out", removal="constant")
    with pytest.raises(SettingError, match="value"):
        pertinent.evaluate(model, es, "deletion", removal=f"constant:value={value}")
