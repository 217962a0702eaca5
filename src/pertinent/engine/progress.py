"""Progress is shown through one callback, which only the engine calls."""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

logger = logging.getLogger(__name__)


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

LOG_EVERY = 30.0
"""Seconds between two lines in a log, where there is no terminal to show a bar."""

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
    """The callback to use: the user's own, a bar on terminals and in notebooks, lines in a log, or none."""
    if callable(progress):
        yield progress
    elif progress or (progress is None and ("ipykernel" in sys.modules or sys.stderr.isatty())):
        with _bar(what) as callback:
            yield callback
    elif progress is None:
        yield _log_lines(what)
    else:
        yield lambda _: None


def _log_lines(what: str) -> Callback:
    """A callback that logs a line every half minute, for the logs of a batch job."""
    start = said = time.monotonic()
    left = TimeLeft()
    left.observe(start, 0)

    def log(now: Progress) -> None:
        nonlocal said
        time_now = time.monotonic()
        left.observe(time_now, now.done)
        if time_now - said < LOG_EVERY:
            return
        said = time_now
        of = "" if now.total is None else f" of {now.total:,}"
        seconds = None if now.total is None else left.seconds(now.total)
        facts = [f"{now.done:,}{of} inputs in {duration(time_now - start)}"]
        facts += [] if seconds is None else [f"{duration(seconds)} left"]
        logger.info("%s: %s, %s masks, %s failed", what, ", ".join(facts), f"{now.evaluations:,}", now.failed)

    return log


def duration(seconds: float) -> str:
    """As ``1:02:03`` or ``2:03``.

    >>> duration(123.4), duration(3723)
    ('2:03', '1:02:03')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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
