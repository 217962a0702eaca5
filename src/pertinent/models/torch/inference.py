"""Evaluation of a module without lasting changes to the module or to torch's settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from threading import Condition, get_ident, local
from typing import Any

import torch
from threadpoolctl import ThreadpoolController
from torch.nn.attention import sdpa_kernel
from torch.nn.parameter import is_lazy

from pertinent.models.torch.devices import ATTENTION

WORK_PER_THREAD = 2**28
"""Number of multiplications (a few milliseconds of work) that justifies one more thread.

With less work, threads mostly wait for each other, which is slow on a busy machine.
"""


class _SharedLock:
    """A lock that many threads can share, or one thread can hold exclusively.

    A thread that shares the lock may request it exclusively. It releases its shares while it waits, so two
    such threads do not deadlock. While a thread waits, no other thread can share the lock.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._thread = local()
        self._owner: int | None = None
        self._n_shares = self._n_waiting = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Share the lock; no thread can hold it exclusively meanwhile."""
        held = getattr(self._thread, "held", 0)
        if self._owner == get_ident():
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: held or (self._owner is None and not self._n_waiting))
            self._n_shares += 1
            self._thread.held = held + 1
        try:
            yield
        finally:
            with self._changed:
                self._n_shares -= 1
                self._thread.held = held
                self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock exclusively."""
        if self._owner == get_ident():
            yield
            return
        held = getattr(self._thread, "held", 0)
        with self._changed:
            self._n_shares -= held
            self._n_waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._owner is None and not self._n_shares)
            self._n_waiting -= 1
            self._owner = get_ident()
        try:
            yield
        finally:
            with self._changed:
                self._owner = None
                self._n_shares += held
                self._changed.notify_all()


_LOCK = _SharedLock()
exclusive = _LOCK.exclusive
"""Context for changing a module, or a torch setting that applies to all threads."""


@contextmanager
def evaluating(
    module: torch.nn.Module,
    work: float = math.inf,
    setting: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[None]:
    """Evaluate `module` in eval mode. Threads wait for each other only if something must be changed.

    Parameters
    ----------
    work
        Approximate number of multiplications, which determines the number of torch threads.
    setting
        Function that returns a context with a torch setting, or a `nullcontext` if it is already set.
    """
    with ExitStack() as stack:
        stack.enter_context(_LOCK.shared())  # no other thread can change anything during the checks
        changes = [_eval_mode(module), _attention_kernels(), setting()]
        changes = [change for change in changes if not isinstance(change, nullcontext)]
        if changes:
            stack.enter_context(exclusive())
        for change in changes:
            stack.enter_context(change)
        if work < WORK_PER_THREAD * torch.get_num_threads():
            stack.enter_context(_openmp().limit(limits=max(1, int(work / WORK_PER_THREAD))))
        yield


@contextmanager
def without_new_hooks(module: torch.nn.Module) -> Iterator[None]:
    """Remove forward hooks and attributes added by calls of transformers, such as for hidden states."""
    parts = _submodules(module)
    with exclusive():
        before = [(set(part._forward_hooks), set(part.__dict__)) for part in parts]  # noqa: SLF001
        try:
            yield
        finally:
            for part, (hooks, attributes) in zip(parts, before, strict=True):
                for hook in set(part._forward_hooks) - hooks:  # noqa: SLF001
                    del part._forward_hooks[hook]  # noqa: SLF001
                for name in set(part.__dict__) - attributes:
                    delattr(part, name)


def _attention_kernels() -> AbstractContextManager[None]:
    """Allow only kernels that handle varying batch shapes; a `nullcontext` if no others are enabled."""
    kernels: Any = torch.backends.cuda
    enabled = (
        kernels.flash_sdp_enabled() and kernels.mem_efficient_sdp_enabled() and kernels.math_sdp_enabled()
    )
    cudnn = torch.cuda.is_initialized() and kernels.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    return nullcontext() if enabled and not cudnn else sdpa_kernel(ATTENTION)


def _eval_mode(module: torch.nn.Module) -> AbstractContextManager[None]:
    """Switch all submodules to eval mode; a `nullcontext` if they already are."""
    training = [part for part in _submodules(module) if part.training]
    return _switched_to_eval(training) if training else nullcontext()


@contextmanager
def _switched_to_eval(training: list[torch.nn.Module]) -> Iterator[None]:
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _submodules(module: torch.nn.Module) -> list[torch.nn.Module]:
    """Return the module and all its submodules; four times as fast as ``module.modules()``."""
    parts = [module]
    for part in parts:  # grows
        parts += [child for child in part._modules.values() if child is not None]  # noqa: SLF001
    return parts


@cache
def _openmp() -> ThreadpoolController:
    """Return torch's thread pool; its limit applies only to the calling thread."""
    return ThreadpoolController().select(user_api="openmp")


def n_weights(module: torch.nn.Module) -> float:
    """Return the number of parameters in matrix products (without embeddings); infinity if unknown."""
    weights = [
        weight
        for part in module.modules()
        if not isinstance(part, torch.nn.Embedding)
        for weight in part.parameters(recurse=False)
    ]
    return math.inf if any(map(is_lazy, weights)) else sum(weight.numel() for weight in weights)
