"""The digits and table models: good enough, kept, and made again when what was kept is damaged."""

import json
import logging

import numpy as np
import pytest
import torch

from pertinent.api.explain import explain
from pertinent.errors import FileError, ModelError, SettingError
from pertinent.models.embedded import digits, tables
from pertinent.models.embedded.load import load, load_transformer


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A cache folder that holds a trained model."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERTINENT_CACHE", str(folder))
        digits.digits_model()
    return folder


@pytest.fixture
def cache(kept, tmp_path, monkeypatch):
    """A copy of it that a test may damage."""
    for file in kept.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setenv("PERTINENT_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def trainings(monkeypatch):
    """How often the model was trained; training itself is skipped."""
    count = []
    card = {"recipe": digits.RECIPE}
    monkeypatch.setattr(digits, "_train", lambda network: count.append(1) or dict(card))
    return count


def test_digits_are_told_apart(cache):
    model = load("digits")
    data = digits._data()
    with torch.inference_mode():
        guessed = model.module(torch.from_numpy(data.test_rows)).argmax(1).numpy()
    assert (guessed == data.test_targets).mean() == model.card["test_accuracy"] >= 0.96
    assert set(map(bytes, data.rows)).isdisjoint(map(bytes, data.test_rows))


def test_training_is_repeatable_and_leaves_torch_alone(cache, tmp_path_factory, monkeypatch):
    first = load("digits").module.state_dict()
    torch.manual_seed(123)
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    monkeypatch.setenv("PERTINENT_CACHE", str(tmp_path_factory.mktemp("other")))
    second = load("digits").module.state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert torch.equal(state, torch.random.get_rng_state())
    assert threads == torch.get_num_threads()


def test_kept_model_is_used(cache, trainings):
    assert load("digits").card["test_accuracy"] > 0.9
    assert not trainings
    assert sorted(file.name for file in cache.iterdir()) == ["digits.json", "digits.safetensors"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "not json", "card without digest", "other weights"])
def test_damaged_model_is_made_again(cache, trainings, caplog, damage):
    weights, card = cache / "digits.safetensors", cache / "digits.json"
    data = weights.read_bytes()
    if damage == "cut":
        weights.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        weights.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "not json":
        card.write_text('{"recipe": ')
    elif damage == "card without digest":
        card.write_text(json.dumps({"recipe": digits.RECIPE}))
    else:
        other = digits.tensor_bytes({"weight": torch.zeros(1)})
        weights.write_bytes(other)
        sha256 = digits.hashlib.sha256(other).hexdigest()
        card.write_text(json.dumps({"recipe": digits.RECIPE, "sha256": sha256}))
    with caplog.at_level(logging.WARNING, "pertinent"):
        load("digits")
    assert "damaged" in caplog.text
    assert trainings == [1]
    load("digits")
    assert trainings == [1]


def test_another_recipe_is_not_used(cache, trainings, caplog):
    card = json.loads((cache / "digits.json").read_text())
    (cache / "digits.json").write_text(json.dumps(card | {"recipe": 0}))
    load("digits")
    assert trainings == [1]
    assert not caplog.text


def test_works_where_nothing_can_be_kept(tmp_path, trainings, caplog, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PERTINENT_CACHE", str(tmp_path / "file" / "cache"))
    assert load("digits").classes[3] == "3"
    assert "The cache folder is not used" in caplog.text


def test_example_digit_is_explained(cache):
    example = digits.example_digit()
    assert example.shape == (1, 8, 8)
    assert 0 <= example.min() < example.max() <= 1
    found = explain(load("digits"), example, "leave-one-out")
    assert found.target_name == str(digits._data().test_targets[digits._EXAMPLE])
    assert found.prediction.values.max() > 0.9
    assert not found.notes


def test_rows_of_other_sizes_are_averaged_and_it_is_said(cache):
    large = np.repeat(np.repeat(digits.example_digit(), 4, axis=1), 4, axis=2)
    found = explain(load("digits"), [np.concatenate([large] * 3), large[:, :30]], "leave-one-out")
    same = explain(load("digits"), digits.example_digit(), "leave-one-out")
    assert np.allclose(found[0].scores, same.scores, atol=1e-5)
    assert "3 × 32 × 32" in found[0].notes[0]
    assert not found.failures


def test_wines_are_told_apart():
    model, data = load("table"), tables._wines()
    assert (model.function(data.test_rows).argmax(1) == data.test_targets).mean() > 0.9
    assert len(model.background.values) == 100
    assert model.columns.names == data.columns
    assert not {tuple(row) for row in data.rows} & {tuple(row) for row in data.test_rows}


def test_example_row_is_explained():
    found = explain(load("table"), tables.example_row(), "kernel-shap")
    assert found.removal == "background"
    assert found.target == tables._wines().test_targets[0]
    assert "alcohol" in found.features


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"device": "cuda"}, "CUDA|cpu"), ({"dtype": "float8"}, "dtype"), ({"device": "tpu"}, "device")],
)
@pytest.mark.parametrize("name", ["digits", "table"])
def test_device_and_dtype_are_checked(cache, name, settings, message):
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


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("PERTINENT_CACHE", str(tmp_path / "own"))
    assert digits.cache_folder() == tmp_path / "own"
    monkeypatch.delenv("PERTINENT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert digits.cache_folder() == tmp_path / "pertinent"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert digits.cache_folder().is_relative_to(tmp_path)
