"""Shared fixtures: tests run offline, quietly, and on one thread so that timing noise stays out."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest


@pytest.fixture(autouse=True)
def _own_cache_folder(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PERTINENT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
