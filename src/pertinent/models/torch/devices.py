"""Running torch on its devices: transfers, timing, and no synchronisation before it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np
import torch
from torch.nn.attention import SDPBackend

from pertinent.array_types import Array
from pertinent.models.base import Answer, immediately
from pertinent.models.torch.heap_trimming import Heap

# No cuDNN attention: it builds a new plan for every batch shape, and our shapes vary.
ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]

HEAP = Heap()


def placed(module: torch.nn.Module) -> tuple[torch.device, torch.dtype]:
    """The device and dtype of a module."""
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return torch.device("cpu"), torch.float32


def send(array: Array, device: torch.device) -> torch.Tensor:
    """Copy an array to the device, through pinned memory so that CUDA need not synchronise.

    MPS has no float64: there it becomes float32.
    """
    if device.type == "mps" and array.dtype == np.float64:
        array = array.astype(np.float32)
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def run(device: torch.device, forward: Callable[[], torch.Tensor], *, gradients: bool = False) -> Answer:
    """Run `forward`, which may need `gradients`; on CUDA, return before it has finished."""
    with torch.no_grad() if gradients else torch.inference_mode():
        if device.type != "cuda":
            HEAP.give_back()
            return immediately(lambda: np.asarray(forward().float().cpu()))
        start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        start.record(torch.cuda.current_stream(device))
        outputs = forward().float()
        here = torch.empty(outputs.shape, dtype=outputs.dtype, pin_memory=True)
        here.copy_(outputs, non_blocking=True)
        end.record(torch.cuda.current_stream(device))

    def wait() -> Array:
        end.synchronize()
        return here.numpy()

    return Answer(wait, lambda: start.elapsed_time(end) / 1000, end.query)


def disable_onednn(device: torch.device, dtype: torch.dtype) -> AbstractContextManager[None]:
    """Disable oneDNN on the CPU: it keeps a plan for every batch shape, and our shapes vary.

    Only for float32, which torch computes as fast without it.
    """
    if device.type != "cpu" or dtype != torch.float32 or not torch.backends.mkldnn.enabled:
        return nullcontext()
    return torch.backends.mkldnn.flags(enabled=False, allow_tf32=None)


def in_full_precision() -> AbstractContextManager[None]:
    """Full float32 precision in matrix products, whatever the user's setting."""
    allowed = torch.get_float32_matmul_precision()
    return nullcontext() if allowed == "highest" else _set_precision(allowed)


@contextmanager
def _set_precision(allowed: str) -> Iterator[None]:
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(allowed)
