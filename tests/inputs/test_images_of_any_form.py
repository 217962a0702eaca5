"""Images come as files, PIL images and arrays of every form; damaged ones are refused in our own words."""

import io
import struct
import warnings
import zlib

import numpy as np
import pytest
import torch
from PIL import Image, features

import pertinent
from pertinent.errors import FileError, InputError
from pertinent.inputs.image import as_pixels, image_input
from pertinent.inputs.image_files import MOST_PIXELS, read_image

RNG = np.random.default_rng(0)
PHOTO = RNG.integers(0, 256, (12, 16, 3), dtype=np.uint8)
FORMATS = ["PNG", "JPEG", "GIF", "BMP", "TIFF", *(["WEBP"] if features.check("webp") else [])]


def encoded(form, mode="RGB"):
    out = io.BytesIO()
    Image.fromarray(PHOTO).convert(mode).save(out, form)
    return out.getvalue()


def corrupted(data, rng):
    """Bytes changed, cut off, doubled or inserted."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 6)):
        place = int(rng.integers(0, len(data)))
        match int(rng.integers(0, 5)):
            case 0:
                data[place] = int(rng.integers(0, 256))
            case 1:
                data[place : place + 4] = rng.integers(0, 256, 4, dtype=np.uint8).tobytes()
            case 2:
                del data[max(1, place) :]
            case 3:
                data[place:place] = data[place : place + 16]
            case _:
                data[place % 64] = int(rng.choice([0, 1, 127, 128, 255]))
    return bytes(data)


@pytest.mark.parametrize("form", FORMATS)
def test_a_corrupted_file_gives_pixels_or_a_file_error(form, tmp_path):
    rng = np.random.default_rng(7)
    refused = 0
    for mode in ("RGB", "L", *(["P"] if form in ("PNG", "GIF") else [])):
        whole = encoded(form, mode)
        for i in range(80):
            path = tmp_path / f"{mode}{i}"
            path.write_bytes(corrupted(whole, rng))
            try:
                pixels = read_image(path)
            except FileError:
                refused += 1
            else:
                assert pixels.ndim == 3 and np.isfinite(pixels).all() and pixels.size <= 3 * MOST_PIXELS
    assert refused > 10


def test_files_of_no_length_and_of_other_things(tmp_path):
    for content in (b"", b"not an image", b"\x00" * 4096, b"\x89PNG\r\n\x1a\n"):
        (tmp_path / "x.png").write_bytes(content)
        with pytest.raises(FileError, match="cannot be read as an image"):
            read_image(tmp_path / "x.png")
    for missing in (tmp_path, "nowhere.png", "x" * 5000 + ".png", "a\0b.png"):
        with pytest.raises(FileError, match=r"no image file|cannot be read"):
            read_image(missing)


def test_a_small_file_cannot_hold_more_pixels_than_are_read(tmp_path):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    for side in (9_000, 12_000, 60_000):
        header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
        data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100))
        (tmp_path / "bomb.png").write_bytes(data + chunk(b"IEND", b""))
        with pytest.raises(FileError, match="pixels"):
            read_image(tmp_path / "bomb.png")


@pytest.mark.parametrize(
    ("mode", "channels"),
    [("1", 1), ("L", 1), ("LA", 1), ("P", 3), ("PA", 3), ("RGB", 3), ("RGBA", 3), ("CMYK", 3), ("YCbCr", 3)],
)
def test_pil_images_of_every_mode(mode, channels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pixels = as_pixels(Image.fromarray(PHOTO).convert(mode))
    assert pixels.shape == (channels, 12, 16) and pixels.dtype == np.float32
    assert pixels.min() >= 0 and 0.5 < pixels.max() <= 1


def test_pil_images_of_many_bits():
    deep = np.linspace(0, 65535, 192).reshape(12, 16)
    np.testing.assert_allclose(
        as_pixels(Image.fromarray(deep.astype(np.uint16))), deep[None] / 65535, atol=1e-4
    )
    np.testing.assert_allclose(
        as_pixels(Image.fromarray(deep.astype(np.int32))), deep[None] / 65535, atol=1e-4
    )
    np.testing.assert_allclose(as_pixels(Image.fromarray(deep.astype(np.float32))), deep[None])
    with pytest.raises(InputError, match="16 bits"):
        as_pixels(Image.fromarray(-deep.astype(np.int32)))


def test_transparent_parts_are_laid_on_white(tmp_path):
    picture = np.zeros((4, 4, 4), dtype=np.uint8)
    picture[:2, :, 3] = 255
    Image.fromarray(picture).save(tmp_path / "x.png")
    for raw in (Image.fromarray(picture), tmp_path / "x.png"):
        pixels = as_pixels(raw)
        assert pixels.shape == (3, 4, 4)
        assert (pixels[:, :2] == 0).all() and (pixels[:, 2:] == 1).all()


def test_a_photograph_is_read_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(PHOTO).save(tmp_path / "x.png", exif=exif)
    np.testing.assert_allclose(read_image(tmp_path / "x.png"), np.rot90(PHOTO, -1).transpose(2, 0, 1) / 255)


def test_channels_may_come_last():
    first = np.moveaxis(PHOTO, -1, 0)
    for raw in (PHOTO, first, torch.from_numpy(PHOTO), torch.from_numpy(PHOTO).bfloat16()):
        np.testing.assert_allclose(as_pixels(raw), first, atol=1)
    assert as_pixels(np.zeros((8, 6, 1))).shape == (1, 8, 6)
    assert as_pixels(np.zeros((8, 6, 4))).shape == (4, 8, 6)
    assert as_pixels(np.zeros((3, 6, 3))).shape == (3, 6, 3)
    assert as_pixels(np.zeros((16, 6, 5))).shape == (16, 6, 5)
    given = image_input(PHOTO)
    again = image_input(given.raw, given.granularity)
    assert again.features == given.features and again.fingerprint == given.fingerprint


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (np.zeros((3, 0, 4)), "at least one pixel"),
        (np.zeros((0, 0)), "at least one pixel"),
        (np.zeros((0, 4, 4)), "at least one pixel"),
        (Image.new("RGB", (0, 5)), "at least one pixel"),
        (np.zeros((1, 2, 2), dtype=complex), "must hold integers or floats"),
        (np.full((1, 2, 2), None), "must hold integers or floats"),
        (np.full((1, 2, 2), np.nan), "NaN"),
        (np.full((1, 2, 2), 1e300), "too large"),
        ([[1.0], [1.0, 2.0]], "array of numbers"),
        (np.zeros(4), "shape"),
        (object(), "must hold integers or floats"),
    ],
)
def test_images_that_are_refused(raw, reason):
    with pytest.raises(InputError, match=reason):
        image_input(raw)


def test_booleans_are_zeros_and_ones():
    assert as_pixels(np.eye(3, dtype=bool))[0].tolist() == np.eye(3).tolist()


def test_features_say_which_number_is_the_row():
    assert image_input(np.zeros((1, 4, 8)), "patches:4").features == (
        *("patch at row 0, column 0", "patch at row 0, column 4"),
    )
    assert image_input(np.zeros((1, 2, 1)), "pixels").features[1] == "pixel at row 1, column 0"


@pytest.fixture
def paths(tmp_path):
    for name in ("a.png", "b.jpg"):
        Image.fromarray(PHOTO).save(tmp_path / name)
    return [str(tmp_path / "a.png"), str(tmp_path / "b.jpg")]


def bright(images):
    assert images.ndim == 4
    share = np.clip(images.mean(axis=(1, 2, 3)), 0, 1)
    return np.stack([1 - share, share], axis=1)


@pytest.mark.parametrize("pack", [list, tuple, np.array])
def test_strings_that_name_image_files_are_images(pack, paths):
    model = pertinent.wrap(bright)
    one = pertinent.explain(model, paths[0], method="leave-one-out")
    assert one.input.kind == "image"
    several = pertinent.explain(model, pack(paths), method="leave-one-out")
    assert [e.input.kind for e in several] == ["image", "image"]
    assert pertinent.explain(pertinent.wrap(bright, kind="image"), pack(paths), method="random")


def test_other_strings_are_texts(paths):
    seen = []

    def reads(texts):
        seen.extend(texts)
        return [[0.5, 0.5] for _ in texts]

    for text in ("missing.png", "a fine film.png", "x" * 5000 + ".png"):
        assert pertinent.explain(pertinent.wrap(reads), text, method="leave-one-out").input.kind == "text"
    named = pertinent.explain(pertinent.wrap(reads, kind="text"), paths[0], method="leave-one-out")
    assert named.input.kind == "text"


@pytest.mark.parametrize("removal", ["blur", "mean", "constant", "uniform-noise"])
@pytest.mark.parametrize("raw", [PHOTO / 255, Image.fromarray(PHOTO).convert("P"), PHOTO[..., 0] / 255])
def test_every_form_can_be_explained(raw, removal):
    model = pertinent.wrap(bright, kind="image")
    explained = pertinent.explain(model, raw, method="leave-one-out", removal=removal)
    assert np.isfinite(explained.scores).all()
    assert pertinent.evaluate(model, explained).rows
