"""Devices and dtypes, by torch's own names or as torch's own objects."""

from __future__ import annotations

import torch

from pertinent.errors import SettingError, unknown

DTYPES = ("float32", "bfloat16", "float16", "float64")


def device_of(device: str | torch.device) -> torch.device:
    """The device, after a check that it is there.

    >>> device_of("cpu")
    device(type='cpu')
    """
    try:
        found = torch.device(device)
        there = found.type != "meta" and torch.empty(1, device=found).numel() == 1
    except (RuntimeError, AssertionError, TypeError, ValueError, NotImplementedError):
        there = False
    if not there:
        raise SettingError(
            f"`device` must be one that torch finds here, {' or '.join(devices())}, but got {str(device)!r}."
        )
    return found


def devices() -> list[str]:
    """The devices that torch finds here."""
    found = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    return [*found, "mps"] if torch.backends.mps.is_available() else found


def dtype_of(dtype: str | torch.dtype) -> torch.dtype:
    """The floating-point dtype of that name.

    >>> dtype_of("bfloat16")
    torch.bfloat16
    """
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise unknown("dtype", name, DTYPES)
    found = getattr(torch, name)
    assert isinstance(found, torch.dtype)
    return found
