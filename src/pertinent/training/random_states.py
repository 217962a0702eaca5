"""The random states of Python, numpy and torch, which transformers' trainer seeds for the whole process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def kept_random_states() -> Iterator[None]:
    """Afterwards they are as they were."""
    own, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  what transformers seeds
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(own)
            np.random.set_state(of_numpy)  # noqa: NPY002
