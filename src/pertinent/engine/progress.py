"""Progress of a run: a progress bar, log lines, or a user callback."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress:
    """Numbers of inputs that are done, failed and in total, and number of evaluations."""

    done: int
    failed: int
    total: int | None
    evaluations: int

    def __str__(self) -> str:
        return f"{self.evaluations:,} masks, {self.failed} failed"


Callback = Callable[[Progress], None]

PATIENCE = 1.0
"""Seconds before the bar is shown, so short work shows none."""

LOG_EVERY = 30.0
"""Seconds between two log lines if there is no terminal for a bar."""


@contextmanager
def progress_callback(progress: Callback | bool | None, title: str) -> Iterator[Callback]:
    """Yield the user's callback, or one that updates a bar (terminals, notebooks) or writes to a log."""
    if callable(progress):
        yield progress
    elif progress or (progress is None and ("ipykernel" in sys.modules or sys.stderr.isatty())):
        with _bar(title) as callback:
            yield callback
    elif progress is None:
        yield _log_lines(title)
    else:
        yield lambda _: None


def _log_lines(title: str) -> Callback:
    """Return a callback that logs a line every half minute, with the time left at the current pace."""
    start = last_time = time.monotonic()
    last_done = 0

    def log(progress: Progress) -> None:
        nonlocal last_time, last_done
        now = time.monotonic()
        if now - last_time < LOG_EVERY:
            return
        from tqdm import tqdm

        done, total, elapsed = progress.done, progress.total, now - start
        rate = (done - last_done) / max(1e-9, now - last_time) or None
        options = {"ncols": 0, "prefix": title, "unit": "input", "postfix": str(progress)}
        logger.info("%s", tqdm.format_meter(done, total, elapsed, rate=rate, **options))
        last_time, last_done = now, done

    return log


@contextmanager
def _bar(title: str) -> Iterator[Callback]:
    from tqdm.auto import tqdm  # a dependency of transformers

    bar: Any = None

    def show(progress: Progress) -> None:
        nonlocal bar
        if bar is None:
            options = {"unit": "input", "leave": False, "mininterval": 0.2, "miniters": 0, "delay": PATIENCE}
            bar = tqdm(total=progress.total, desc=title, **options)
        bar.set_postfix_str(str(progress), refresh=False)
        bar.update(progress.done - bar.n)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()
