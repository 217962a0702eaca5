"""The folder of a fitted explainer: damaged or mixed files are refused."""

import json
import random
import shutil

import numpy as np
import pytest

import pertinent
from pertinent.errors import FileError, PertinentError

ROWS = np.random.default_rng(0).normal(size=(30, 4))
FILES = ["model.safetensors", "config.json", "pertinent.json"]


def three_classes(rows):
    e = np.exp(np.stack([rows[:, 0], rows[:, 1] - rows[:, 2], rows[:, 3]], axis=1))
    return e / e.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(three_classes, kind="table", background=ROWS)


@pytest.fixture(scope="module")
def folders(model, tmp_path_factory):
    """Return explainers of one method for the predicted class and for all, and one of another method."""
    folder = tmp_path_factory.mktemp("fitted")
    words = {"epochs": 2, "progress": False}
    pertinent.fit(model, ROWS, "fastshap", classes="all", **words).save(folder / "all")
    pertinent.fit(model, ROWS, "fastshap", classes="predicted", **words).save(folder / "predicted")
    pertinent.fit(model, ROWS, "cxplain", **words).save(folder / "cxplain")
    return folder


def scores(model, folder):
    return pertinent.explain(model, ROWS[0], pertinent.load_explainer(folder), progress=False).scores


def test_a_flipped_bit_never_changes_scores(model, folders, tmp_path):
    good, draw, refused = scores(model, folders / "all"), random.Random(0), 0
    sizes = {name: (folders / "all" / name).stat().st_size for name in FILES}
    for _ in range(60):
        folder = tmp_path / "flipped"
        shutil.copytree(folders / "all", folder, dirs_exist_ok=True)
        name = draw.choice(FILES)
        data = bytearray((folder / name).read_bytes())
        data[draw.randrange(sizes[name])] ^= 1 << draw.randrange(8)
        (folder / name).write_bytes(data)
        try:
            np.testing.assert_array_equal(scores(model, folder), good)
        except PertinentError:
            refused += 1
    assert refused > 40


def test_files_without_a_digest_are_refused(folders, tmp_path):
    shutil.copytree(folders / "all", tmp_path / "undigested")
    card = json.loads((folders / "all" / "pertinent.json").read_text())
    del card["digest"]
    (tmp_path / "undigested" / "pertinent.json").write_text(json.dumps(card))
    with pytest.raises(FileError, match="damaged"):
        pertinent.load_explainer(tmp_path / "undigested")


@pytest.mark.parametrize("other", ["predicted", "cxplain"])
@pytest.mark.parametrize("files", [["model.safetensors", "config.json"], ["model.safetensors"]])
def test_files_of_two_explainers_are_refused(folders, tmp_path, other, files):
    shutil.copytree(folders / "all", tmp_path / "mixed")
    for name in files:
        shutil.copy(folders / other / name, tmp_path / "mixed" / name)
    with pytest.raises(FileError, match="damaged or mixes files of different explainers"):
        pertinent.load_explainer(tmp_path / "mixed")
