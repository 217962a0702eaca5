"""Images and table rows are cut into features, and bad ones are refused."""

import numpy as np
import pytest

from pertinent.errors import FileError, InputError, SettingError
from pertinent.inputs.background import Background
from pertinent.inputs.image import image_input
from pertinent.inputs.table import Columns, table_input


@pytest.mark.parametrize(("features", "count"), [("pixels", 48), ("patches:4", 4), ("patches:3", 6)])
def test_every_pixel_has_one_feature(features, count):
    given = image_input(np.zeros((3, 6, 8)), features)
    assert given.n_features == count
    assert np.unique(given.labels).tolist() == list(range(count))


def test_superpixels_follow_the_picture():
    picture = np.zeros((3, 20, 20))
    picture[:, :, 10:] = 1.0
    given = image_input(picture, "superpixels:4")
    assert 2 <= given.n_features <= 8
    assert not set(given.labels[:, :9].ravel()) & set(given.labels[:, 11:].ravel())


def test_another_number_of_superpixels_is_said():
    flat = np.zeros((3, 20, 20))
    many, nearly = image_input(flat[:, :6], "superpixels:90"), image_input(flat, "superpixels:50")
    assert many.n_features == 120
    assert many.notes == (f"SLIC made {many.n_features} superpixels of this image, not 90",)
    assert nearly.n_features == 49
    assert nearly.notes == ()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (50410.0, "50,410"),
        (50410, "50,410"),
        (np.int64(1234567), "1,234,567"),
        (1234567.8, "1,234,568"),
        (2024, "2024"),
        (2024.0, "2024"),
        (-98765.4, "-98,765"),
        (3.14159, "3.142"),
        (0.00001234, "1.234e-05"),
        (True, "True"),
        (float("nan"), "missing"),
        (1e20, "1e+20"),
    ],
)
def test_values_are_written_as_people_write_them(value, shown):
    assert table_input({"a": value, "b": "text"}).value_texts()[0] == shown


def test_images_may_be_files_or_pictures(tmp_path):
    from PIL import Image

    picture = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
    picture.save(tmp_path / "x.png")
    assert image_input(tmp_path / "x.png", "pixels").pixels.shape == (3, 4, 4)
    np.testing.assert_allclose(image_input(picture).pixels, image_input(tmp_path / "x.png").pixels)


def test_bad_images(tmp_path):
    with pytest.raises(InputError, match="shape"):
        image_input(np.zeros((2, 3, 4, 5)))
    with pytest.raises(InputError, match="NaN"):
        image_input(np.full((1, 2, 2), np.nan))
    with pytest.raises(InputError, match="dtype"):
        image_input(np.full((1, 2, 2), "x"))
    with pytest.raises(FileError, match="no image file"):
        image_input(tmp_path / "missing.png")
    (tmp_path / "half.png").write_bytes(b"\x89PNG\r\n\x1a\n half")
    with pytest.raises(FileError, match="cannot be read"):
        image_input(tmp_path / "half.png")
    with pytest.raises(SettingError, match="patches"):
        image_input(np.zeros((1, 4, 4)), "patchs")
    with pytest.raises(SettingError, match="integer"):
        image_input(np.zeros((1, 4, 4)), "patches:x")


def test_columns_and_groups():
    columns = Columns(("age", "red", "blue", "size"), {"colour": ["red", "blue"]})
    given = table_input([30, 0, 1, 2.5], columns)
    assert given.features == ("age", "colour", "size")
    assert given.columns == ((0,), (1, 2), (3,))
    assert given.value_texts() == ("30", "blue=1", "2.5")


def test_bad_rows():
    with pytest.raises(InputError, match="2 values, but the table has 3"):
        table_input([1, 2], Columns(("a", "b", "c")))
    with pytest.raises(InputError, match="lacks the columns"):
        table_input({"a": 1}, Columns(("a", "b")))
    with pytest.raises(SettingError, match="Did you mean 'blue'"):
        table_input([1, 2], Columns(("red", "blue"), {"colour": ["red", "bleu"]}))


def test_background_centres():
    mixed = Background([[1, "x"], [2, "y"], [6, "y"]])
    assert mixed.centre("mean").tolist() == [3.0, "y"]
    assert mixed.centre("median").tolist() == [2, "y"]
    with pytest.raises(InputError, match="rows × columns"):
        Background([1, 2, 3])
