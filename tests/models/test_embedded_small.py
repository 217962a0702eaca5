"""The embedded classifiers of digits and table rows."""

import json

import numpy as np
import pytest
import torch

from pertinent.api.explain import explain
from pertinent.errors import FileError, ModelError, SettingError
from pertinent.models.embedded import digits, tables
from pertinent.models.embedded.load import ASSETS, load, load_transformer


def test_digits_are_classified():
    model, data = load("digits"), digits.digits_data()
    with torch.inference_mode():
        predicted = model.module(torch.from_numpy(data.test_rows)).argmax(1).numpy()
    card = json.loads((ASSETS / "digits" / "card.json").read_text())
    assert (predicted == data.test_targets).mean() == card["accuracy"] >= 0.96
    assert set(map(bytes, data.rows)).isdisjoint(map(bytes, data.test_rows))


def test_loading_digits_leaves_the_random_state_of_torch_unchanged():
    torch.manual_seed(123)
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    load("digits")
    assert torch.equal(state, torch.random.get_rng_state())
    assert threads == torch.get_num_threads()


def test_example_digit_is_explained():
    example = digits.example_digit()
    assert example.shape == (1, 8, 8)
    assert 0 <= example.min() < example.max() <= 1
    found = explain(load("digits"), example, "leave-one-out")
    assert found.target_name == str(digits.digits_data().test_targets[digits._EXAMPLE])
    assert found.prediction.values.max() > 0.9
    assert not found.notes


def test_images_of_other_sizes_are_averaged_with_a_note():
    large = np.repeat(np.repeat(digits.example_digit(), 4, axis=1), 4, axis=2)
    found = explain(load("digits"), [np.concatenate([large] * 3), large[:, :30]], "leave-one-out")
    same = explain(load("digits"), digits.example_digit(), "leave-one-out")
    assert np.allclose(found[0].scores, same.scores, atol=1e-5)
    assert "3 × 32 × 32" in found[0].notes[0]
    assert not found.failures


def test_wines_are_classified():
    model, data = load("table"), tables.wine_data()
    assert (model.function(data.test_rows).argmax(1) == data.test_targets).mean() > 0.9
    assert len(model.background.values) == 100
    assert model.columns.names == data.columns
    assert not {tuple(row) for row in data.rows} & {tuple(row) for row in data.test_rows}


def test_example_row_is_explained():
    found = explain(load("table"), tables.example_row(), "kernel-shap")
    assert found.removal == "background"
    assert found.target == tables.wine_data().test_targets[0]
    assert "alcohol" in found.features


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"device": "cuda"}, "`device`"),
        ({"dtype": "float8"}, "dtype"),
        ({"device": "tpu"}, "device"),
    ],
)
@pytest.mark.parametrize("name", ["digits", "table"])
def test_device_and_dtype_are_checked(name, settings, message):
    if torch.cuda.is_available() and settings == {"device": "cuda"} and name == "digits":
        pytest.skip("there is a CUDA device")
    with pytest.raises(SettingError, match=message):
        load(name, **settings)


def test_folders_without_a_model_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"config\.json"):
        load_transformer(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_transformer(tmp_path)
