"""Evaluating a module without a trace: afterwards the module and torch's settings are as they were."""

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
"""Number of multiplications, a few milliseconds of work, that justify one more thread; with less, threads
mostly wait for each other, which takes long on a busy machine."""


class _Turns:
    """A lock that many threads share, or that one thread holds exclusively.

    A thread that shares the lock may ask for it exclusively: it gives up its shares meanwhile, so that two
    such threads never wait for each other. While a thread waits, no further thread may share the lock.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._own = local()
        self._alone: int | None = None
        self._sharing = self._waiting = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Share the lock: no other thread changes anything meanwhile."""
        held = getattr(self._own, "held", 0)
        if self._alone == get_ident():
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: held or (self._alone is None and not self._waiting))
            self._sharing += 1
            self._own.held = held + 1
        try:
            yield
        finally:
            with self._changed:
                self._sharing -= 1
                self._own.held = held
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock exclusively, in order to change something."""
        if self._alone == get_ident():
            yield
            return
        held = getattr(self._own, "held", 0)
        with self._changed:
            self._sharing -= held
            self._waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._alone is None and not self._sharing)
            self._waiting -= 1
            self._alone = get_ident()
        try:
            yield
        finally:
            with self._changed:
                self._alone = None
                self._sharing += held
                self._changed.notify_all()


_TURNS = _Turns()
alone = _TURNS.alone
"""Must be entered while a module or torch's settings, which apply to all threads, are changed for a while."""


@contextmanager
def evaluating(
    module: torch.nn.Module,
    work: float = math.inf,
    setting: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[None]:
    """Evaluate `module` in eval mode. Threads wait for each other only where something must be changed.

    Parameters
    ----------
    work
        The approximate number of multiplications, which decides how many threads torch uses.
    setting
        A function whose context changes one of torch's settings, or is a `nullcontext` if it need not.
    """
    with ExitStack() as stack:
        stack.enter_context(_TURNS.shared())  # so that no thread has anything changed while we look
        changes = [_eval_mode(module), _attention_kernels(), setting()]
        changes = [change for change in changes if not isinstance(change, nullcontext)]
        if changes:
            stack.enter_context(alone())
        for change in changes:
            stack.enter_context(change)
        if work < WORK_PER_THREAD * torch.get_num_threads():
            stack.enter_context(_openmp().limit(limits=max(1, int(work / WORK_PER_THREAD))))
        yield


@contextmanager
def without_new_hooks(module: torch.nn.Module) -> Iterator[None]:
    """Remove forward hooks that a call leaves behind, as for hidden states: a model keeps none of ours."""
    parts = [part for part in _parts(module) if part is not None]
    with alone():
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
    """Allow only kernels that suit batches of varying shape; a `nullcontext` if that is so already."""
    kernels: Any = torch.backends.cuda
    plain = kernels.flash_sdp_enabled() and kernels.mem_efficient_sdp_enabled() and kernels.math_sdp_enabled()
    cudnn = torch.cuda.is_initialized() and kernels.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    return nullcontext() if plain and not cudnn else sdpa_kernel(ATTENTION)


def _eval_mode(module: torch.nn.Module) -> AbstractContextManager[None]:
    """Switch every part of the module to eval mode; a `nullcontext` if all parts are in it."""
    training = [part for part in _parts(module) if part is not None and part.training]
    return _switched(training) if training else nullcontext()


@contextmanager
def _switched(training: list[torch.nn.Module]) -> Iterator[None]:
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
    """Number of parameters that take part in matrix products (embeddings excluded); infinity if not known."""
    weights = [
        weight
        for part in module.modules()
        if not isinstance(part, torch.nn.Embedding)
        for weight in part.parameters(recurse=False)
    ]
    return math.inf if any(map(is_lazy, weights)) else sum(weight.numel() for weight in weights)
