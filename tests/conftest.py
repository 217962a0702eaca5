"""Shared fixtures: tests run offline, quietly, and on one thread so that timing noise stays out."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest


@pytest.fixture(scope="module")
def one_thread():
    """Torch computes on one thread, on which small networks are fastest."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
