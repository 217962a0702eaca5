"""Torch devices and dtypes by name, and running on them: transfers, timing, trimming of memory."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch.nn.attention import SDPBackend

from pertinent.array_types import Array
from pertinent.errors import ModelError, SettingError, unknown
from pertinent.models.base import Answer, Model, answer_now

# No cuDNN attention: it builds a new plan for every batch shape, and batch shapes vary.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]

DTYPES = ("float32", "bfloat16", "float16", "float64")

GROWTH = 1 / 32
"""Relative growth of the process that triggers a trim; frequent trims cause page faults."""


class MemoryTrimmer:
    """Returns freed memory to the system when the process has grown, if the C library supports it.

    Batch shapes vary, so memory freed by one batch may not fit the next, and the process would keep growing.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None) if sys.platform == "linux" else None
        self._trim = getattr(library, "malloc_trim", None)
        self._reference = 0

    def trim(self) -> None:
        """Return freed memory if the process has grown; called before each batch.

        Growth is relative to the size of the process after the first batch since the last trim.
        """
        if self._trim is None:
            return
        size = resident_memory()
        self._reference = self._reference or size
        if size > self._reference * (1 + GROWTH):
            self._trim(0)
            self._reference = 0


def resident_memory() -> int:
    """Return the resident memory of this process in bytes (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


HEAP = MemoryTrimmer()


def parse_device(device: str | torch.device) -> torch.device:
    """Return the device with this name; raise an error if torch lacks it or it has no free memory.

    >>> parse_device("cpu")
    device(type='cpu')
    """
    try:
        parsed = torch.device(device)
        is_usable = parsed.type != "meta" and torch.empty(1, device=parsed).numel() == 1
    except (RuntimeError, AssertionError, TypeError, ValueError, NotImplementedError) as error:
        if Model.is_out_of_memory(error):
            raise ModelError(
                f"The device {str(device)!r} is out of memory: stop other processes that use it, or choose "
                "a different `device`."
            ) from error
        is_usable = False
    if not is_usable:
        available = " or ".join(available_devices())
        raise SettingError(
            f"`device` must be one of the available devices ({available}), but got {str(device)!r}."
        )
    return parsed


def available_devices() -> list[str]:
    """Return the names of the available devices."""
    names = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    return [*names, "mps"] if torch.backends.mps.is_available() else names


def parse_dtype(dtype: str | torch.dtype) -> torch.dtype:
    """Return the floating-point dtype with this name.

    >>> parse_dtype("bfloat16")
    torch.bfloat16
    """
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise unknown("dtype", name, DTYPES)
    parsed: torch.dtype = getattr(torch, name)
    return parsed


def device_and_dtype(module: torch.nn.Module) -> tuple[torch.device, torch.dtype]:
    """Return the device and floating-point dtype of a module."""
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return torch.device("cpu"), torch.float32


def send(array: Array, device: torch.device) -> torch.Tensor:
    """Copy an array to the device, through pinned memory so that CUDA does not synchronise.

    MPS has no float64, so it gets float32 instead.
    """
    if device.type == "mps" and array.dtype == np.float64:
        array = array.astype(np.float32)
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def send_floats(array: Array, device: torch.device) -> torch.Tensor:
    """Copy an array to the device as float32."""
    return send(array.astype(np.float32), device)


def run(device: torch.device, forward: Callable[[], torch.Tensor], *, gradients: bool = False) -> Answer:
    """Run `forward`, which may need `gradients`; on CUDA, return before it has finished."""
    with torch.no_grad() if gradients else torch.inference_mode():
        if device.type != "cuda":
            HEAP.trim()
            return answer_now(lambda: np.asarray(forward().float().cpu()))
        start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        start.record(torch.cuda.current_stream(device))
        outputs = forward().float()
        on_host = torch.empty(outputs.shape, dtype=outputs.dtype, pin_memory=True)
        on_host.copy_(outputs, non_blocking=True)
        end.record(torch.cuda.current_stream(device))

    def wait() -> Array:
        end.synchronize()
        return on_host.numpy()

    return Answer(wait, lambda: start.elapsed_time(end) / 1000, end.query)


def disable_onednn(device: torch.device, dtype: torch.dtype) -> AbstractContextManager[None]:
    """Disable oneDNN for float32 on the CPU: it caches a plan per batch shape, and batch shapes vary.

    For float32, torch is as fast without it.
    """
    if device.type != "cpu" or dtype != torch.float32 or not torch.backends.mkldnn.enabled:
        return nullcontext()
    return torch.backends.mkldnn.flags(enabled=False, allow_tf32=None)


def in_full_precision() -> AbstractContextManager[None]:
    """Compute matrix products in full float32 precision."""
    precision = torch.get_float32_matmul_precision()
    return nullcontext() if precision == "highest" else _raise_precision(precision)


@contextmanager
def _raise_precision(before: str) -> Iterator[None]:
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
