"""One callback shows progress; only the engine calls it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """How far a run is: inputs done and failed, of how many, at how many masks asked."""

    done: int
    failed: int
    total: int | None
    evaluations: int


Callback = Callable[[Progress], None]

PATIENCE = 1.0
"""Seconds before a bar is shown: short work needs none."""


@contextmanager
def progress_callback(progress: Callback | bool | None, what: str) -> Iterator[Callback]:
    """The callback to use: the user's own, a bar on terminals and in notebooks, or none."""
    if callable(progress):
        yield progress
    elif progress is False or (progress is None and not _someone_watches()):
        yield lambda _: None
    else:
        with _bar(what) as callback:
            yield callback


def _someone_watches() -> bool:
    return "ipykernel" in sys.modules or sys.stderr.isatty()


@contextmanager
def _bar(what: str) -> Iterator[Callback]:
    from tqdm.auto import tqdm  # a dependency of transformers

    bar: Any = None
    start = time.monotonic()

    def show(now: Progress) -> None:
        nonlocal bar
        if bar is None and time.monotonic() - start > PATIENCE:
            bar = tqdm(total=now.total, desc=what, unit="input", leave=False, mininterval=0.2, miniters=0)
        if bar is not None:
            bar.set_postfix_str(f"{now.evaluations:,} masks, {now.failed} failed", refresh=False)
            bar.update(now.done - bar.n)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()
