"""Progress is shown through one callback, which only the engine calls."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """How far a run is: the number of inputs that are done, failed and in total, and of evaluations."""

    done: int
    failed: int
    total: int | None
    evaluations: int


Callback = Callable[[Progress], None]

PATIENCE = 1.0
"""Seconds before a bar is shown: short work needs none."""

RECENT = 30.0
"""Seconds of work from which the time left is estimated: inputs differ, and so does a machine's load."""

_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


class TimeLeft:
    """The seconds that a run still needs, at the pace of its recent work.

    >>> left = TimeLeft()
    >>> for second, done in enumerate([0, 1, 2, 12, 22, 32]):
    ...     left.observe(15.0 * second, done)
    >>> left.seconds(total=92)
    90.0
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def observe(self, now: float, done: int) -> None:
        """Note that `done` inputs were done at the time `now` in seconds."""
        if len(self._seen) > 1 and now - self._seen[-2][0] < RECENT / 100:
            self._seen.pop()
        self._seen.append((now, done))
        while len(self._seen) > 2 and self._seen[1][0] <= now - RECENT:
            self._seen.popleft()

    def seconds(self, total: int) -> float | None:
        """The seconds left until `total` inputs are done; ``None`` as long as none is."""
        (start, before), (now, done) = self._seen[0], self._seen[-1]
        return None if done == before else (total - done) * (now - start) / (done - before)


@contextmanager
def progress_callback(progress: Callback | bool | None, what: str) -> Iterator[Callback]:
    """The callback to use: the user's own, a bar on terminals and in notebooks, or none."""
    if callable(progress):
        yield progress
    elif progress or (progress is None and ("ipykernel" in sys.modules or sys.stderr.isatty())):
        with _bar(what) as callback:
            yield callback
    else:
        yield lambda _: None


@contextmanager
def _bar(what: str) -> Iterator[Callback]:
    from tqdm.auto import tqdm  # a dependency of transformers

    bar: Any = None
    start = time.monotonic()
    left = TimeLeft()
    left.observe(start, 0)

    def show(now: Progress) -> None:
        nonlocal bar
        left.observe(time.monotonic(), now.done)
        if bar is None and time.monotonic() - start > PATIENCE:
            form = {} if now.total is None else {"bar_format": _FORMAT}
            bar = tqdm(
                total=now.total, desc=what, unit="input", leave=False, mininterval=0.2, miniters=0, **form
            )
        if bar is not None:
            seconds = None if now.total is None else left.seconds(now.total)
            remaining = "" if seconds is None else f"{tqdm.format_interval(seconds)} left, "
            said = f"{remaining}{now.evaluations:,} masks, {now.failed} failed"
            bar.set_postfix_str(said, refresh=False)
            bar.update(now.done - bar.n)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()
