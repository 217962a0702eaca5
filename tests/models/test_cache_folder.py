"""The cache folder belongs to the user alone, or it is not used."""

import logging
import os

import pytest

from pertinent.models.embedded import digits


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PERTINENT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def trainings(monkeypatch):
    """How often the model was trained; training itself is skipped."""
    count = []
    monkeypatch.setattr(digits, "_train", lambda _: count.append(1) or {"recipe": digits.RECIPE})
    return count


def test_it_is_made_for_the_user_alone(folder):
    assert digits.own_cache_folder() == folder
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_where_others_may_write_nothing_is_read_or_kept(folder, trainings, caplog, mode):
    digits.digits_model()
    folder.chmod(mode)
    kept = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    with caplog.at_level(logging.WARNING, "pertinent"):
        digits.digits_model()
    assert len(trainings) == 2
    assert f"others may write to '{folder}'" in caplog.text
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == kept


def test_a_folder_of_somebody_else_is_not_used(folder, trainings, caplog, monkeypatch):
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    digits.digits_model()
    assert "belongs to another user" in caplog.text
    assert not list(folder.iterdir())


def test_links_out_of_it_are_not_followed(folder, trainings, tmp_path, caplog):
    digits.digits_model()
    for name in ("digits.json", "digits.safetensors"):
        (folder / name).rename(tmp_path / name)
        (folder / name).symlink_to(tmp_path / name)
    before = (tmp_path / "digits.safetensors").stat().st_mtime_ns
    digits.digits_model()
    assert len(trainings) == 2
    assert "damaged" in caplog.text
    assert not (folder / "digits.json").is_symlink()
    assert (tmp_path / "digits.safetensors").stat().st_mtime_ns == before
