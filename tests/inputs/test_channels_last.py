"""A function gets images in the order of axes in which they were given."""

from __future__ import annotations

import numpy as np
import pytest

import pertinent

IMAGE = np.random.default_rng(0).random((8, 10, 3)).astype(np.float32)


def redness(images):
    """Reads (rows, height, width, 3)."""
    assert images.shape[1:] == (8, 10, 3)
    p = images[..., 0].mean(axis=(1, 2))
    return np.stack([1 - p, p], axis=1)


@pytest.mark.parametrize("removal", ["mean", "blur", "constant", "uniform-noise"])
def test_channels_last_stay_last(removal):
    model = pertinent.wrap(redness)
    e = pertinent.explain(model, IMAGE, "leave-one-out", features="patches:4", removal=removal)
    assert e.input.pixels.shape == (3, 8, 10)
    assert e.heatmap().shape == (8, 10)
    first = pertinent.wrap(lambda images: redness(np.moveaxis(images, 1, -1)))
    same = pertinent.explain(
        first, np.moveaxis(IMAGE, -1, 0), "leave-one-out", features="patches:4", removal=removal
    )
    np.testing.assert_allclose(e.scores, same.scores, atol=1e-6)


def test_channels_last_are_saved_and_measured_again(tmp_path):
    model = pertinent.wrap(redness)
    found = pertinent.explain(model, [IMAGE], "leave-one-out", features="patches:4")
    found.save(tmp_path / "e.parquet")
    again = pertinent.read(tmp_path / "e.parquet")
    now, then = (pertinent.evaluate(model, es).rows for es in (found, again))
    assert now == then


def test_a_module_always_gets_channels_first():
    import torch

    module = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    model = pertinent.wrap(module, output="logit")
    e = pertinent.explain(model, IMAGE, "leave-one-out", features="patches:4")
    assert not e.input.channels_last
