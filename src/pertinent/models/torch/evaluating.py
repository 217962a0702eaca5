"""Evaluating a module without a trace: afterwards the module and torch's settings are as they were."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import RLock

import torch
from threadpoolctl import ThreadpoolController
from torch.nn.attention import sdpa_kernel
from torch.nn.parameter import is_lazy

from pertinent.models.torch.devices import ATTENTION

WORK_PER_THREAD = 2**28
"""Multiplications for which another thread is worth it, a few milliseconds; else the threads of a small
model mostly wait for each other, on a busy machine for long."""

_LOCK = RLock()
"""Held by the one thread that evaluates: torch's settings hold for all threads, and a module's mode too."""


@contextmanager
def evaluating(module: torch.nn.Module, work: float = math.inf) -> Iterator[None]:
    """Evaluate `module` in eval mode, one thread of the process at a time.

    `work` is about how many multiplications are to be made, which decides how many threads torch uses.
    """
    with ExitStack() as stack:
        stack.enter_context(_LOCK)
        stack.enter_context(_eval_mode(module))
        stack.enter_context(sdpa_kernel(ATTENTION))
        if work < WORK_PER_THREAD * torch.get_num_threads():
            stack.enter_context(_openmp().limit(limits=max(1, int(work / WORK_PER_THREAD))))
        yield


@contextmanager
def _eval_mode(module: torch.nn.Module) -> Iterator[None]:
    """Eval mode in every part of the module that is in training mode."""
    training = [part for part in _parts(module) if part is not None and part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _parts(module: torch.nn.Module) -> list[torch.nn.Module | None]:
    """The module and all modules in it; four times as fast as ``module.modules()``."""
    parts: list[torch.nn.Module | None] = [module]
    for part in parts:
        if part is not None and part._modules:  # noqa: SLF001
            parts.extend(part._modules.values())  # noqa: SLF001
    return parts


@cache
def _openmp() -> ThreadpoolController:
    """The pool of torch's threads; its limit holds for the calling thread alone."""
    return ThreadpoolController().select(user_api="openmp")


def n_weights(module: torch.nn.Module) -> float:
    """How many weights are multiplied with: all but those that are looked up; infinity if not known yet."""
    weights = [
        weight
        for part in module.modules()
        if not isinstance(part, torch.nn.Embedding)
        for weight in part.parameters(recurse=False)
    ]
    return math.inf if any(map(is_lazy, weights)) else sum(weight.numel() for weight in weights)
