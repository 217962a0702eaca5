"""A module gets the same numbers for an array of bytes, a PIL image and a file, and notes name the scale."""

import numpy as np
import pytest
import torch
from PIL import Image

import pertinent
from pertinent.inputs.image import unit_pixels

PHOTO = np.random.default_rng(0).integers(0, 256, (16, 12, 3), dtype=np.uint8)
SCALED = "bytes from 0 to 255 were scaled to numbers from 0 to 1"


def wrapped():
    """A classifier whose decision depends on the scale."""
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 4, 3), torch.nn.Tanh(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
    return pertinent.wrap(torch.nn.Sequential(*layers, torch.nn.Linear(4, 3)))


def forms(tmp_path):
    Image.fromarray(PHOTO).save(tmp_path / "x.png")
    first = np.moveaxis(PHOTO, -1, 0).copy()
    arrays = [PHOTO, first, torch.from_numpy(PHOTO), torch.from_numpy(first)]
    return arrays, [Image.fromarray(PHOTO), str(tmp_path / "x.png"), PHOTO / 255]


def test_bytes_are_read_like_a_picture(tmp_path):
    model = wrapped()
    arrays, others = forms(tmp_path)
    explained = [pertinent.explain(model, raw, "leave-one-out") for raw in [*arrays, *others]]
    for e in explained:
        np.testing.assert_allclose(e.prediction.values, explained[-1].prediction.values, atol=1e-6)
        np.testing.assert_allclose(e.scores, explained[-1].scores, atol=1e-6)
    assert [e.notes for e in explained] == [(SCALED,)] * len(arrays) + [()] * len(others)


def test_the_note_is_saved(tmp_path):
    pertinent.explain(wrapped(), [PHOTO, PHOTO], "leave-one-out", out=tmp_path / "e.parquet")
    assert [e.notes for e in pertinent.read(tmp_path / "e.parquet")] == [(SCALED,)] * 2


def test_background_images_are_scaled_too():
    network = wrapped().module
    model = pertinent.wrap(network, background=[PHOTO, PHOTO[::-1]])
    e = pertinent.explain(model, PHOTO, "leave-one-out", removal="background")
    other = pertinent.wrap(network, background=[PHOTO / 255, PHOTO[::-1] / 255])
    expected = pertinent.explain(other, PHOTO / 255, "leave-one-out", removal="background")
    np.testing.assert_allclose(e.scores, expected.scores, atol=1e-6)


@pytest.mark.parametrize("convert", [np.int64, np.uint16])
def test_other_whole_numbers_keep_their_values(convert):
    pixels, notes = unit_pixels(PHOTO.astype(convert))
    assert pixels.max() == 255 and len(notes) == 1 and np.dtype(convert).name in notes[0]


def test_floats_keep_their_values():
    pixels, notes = unit_pixels(255.0 * np.ones((3, 4, 4)))
    assert (pixels == 255).all() and notes == ()


def test_a_function_gets_the_array_as_it_is():
    def share(images):
        bright = images.mean(axis=(1, 2, 3)) / 255
        return np.stack([1 - bright, bright], axis=1)

    e = pertinent.explain(pertinent.wrap(share), PHOTO, "leave-one-out")
    assert e.prediction.values[1] == pytest.approx(PHOTO.mean() / 255) and e.notes == ()


def test_digits_of_another_size():
    model = pertinent.load("digits")
    digit = np.zeros((16, 16), dtype=np.uint8)
    digit[2:14, 7:9] = 255
    bytes_, floats, picture = (model.prepare(raw) for raw in (digit, digit / 255, Image.fromarray(digit)))
    np.testing.assert_allclose(bytes_.pixels, floats.pixels, atol=1e-6)
    np.testing.assert_allclose(bytes_.pixels, picture.pixels, atol=1e-6)
    assert SCALED in bytes_.notes and SCALED not in floats.notes
