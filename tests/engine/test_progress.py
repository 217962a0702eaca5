"""The time left follows recent work, and the bar shows it."""

from __future__ import annotations

import logging
import time

import pytest

import pertinent
import pertinent.engine.progress as module
from pertinent.engine.progress import Progress, TimeLeft, progress_callback


def test_the_time_left_follows_recent_work():
    left = TimeLeft()
    for second in range(100):  # one each second at first
        left.observe(float(second), second)
    assert left.seconds(199) == 100
    for second in range(100, 140):  # then ten times as slow
        left.observe(float(second), 99 + (second - 99) // 10)
    assert 900 < left.seconds(199) < 1100


def test_nothing_is_known_before_something_is_done():
    left = TimeLeft()
    left.observe(0.0, 0)
    left.observe(5.0, 0)
    assert left.seconds(10) is None


def test_little_is_kept_however_often_it_is_told():
    left = TimeLeft()
    for step in range(100_000):
        left.observe(step / 1000, step)
    assert len(left._seen) <= module.RECENT * 10 + 2


def test_the_bar_tells_the_time_left(monkeypatch, capsys):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    with progress_callback(True, "lime") as tell:
        for done in range(4):
            tell(Progress(done, 0, 10, 100 * done))
            time.sleep(0.25)
    said = capsys.readouterr().err
    assert "left" in said
    assert "300 masks, 0 failed" in said


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.mark.parametrize(("total", "remaining"), [(100, ", 4:30 left"), (None, "")])
def test_a_log_gets_a_line_every_half_minute(clock, caplog, total, remaining):
    caplog.set_level(logging.INFO, module.__name__)
    of = " of 100" if total else ""
    with progress_callback(None, "lime") as tell:
        for done in range(21):
            clock.now = 3.0 * done
            tell(Progress(done, 1, total, 1000 * done))
    first, second = [record.message for record in caplog.records]
    assert first == f"lime: 10{of} inputs in 0:30{remaining}, 10,000 masks, 1 failed"
    assert second.startswith(f"lime: 20{of} inputs in 1:00")


def test_short_runs_and_quiet_ones_log_nothing(clock, caplog):
    caplog.set_level(logging.INFO, module.__name__)
    pertinent.explain(lambda rows: [[0.5, 0.5] for _ in rows], ["so good"] * 3, "leave-one-out")
    with progress_callback(False, "lime") as tell:
        clock.now = 100.0
        tell(Progress(1, 0, 2, 10))
    assert not caplog.records


@pytest.mark.parametrize(("flags", "n_lines"), [([], 1), (["--quiet"], 0)])
def test_the_command_line_shows_these_lines(monkeypatch, capsys, flags, n_lines):
    from pertinent.cli import main

    monkeypatch.setattr(module, "LOG_EVERY", 0.0)
    assert main(["explain", "so good", "--method", "leave-one-out", *flags]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "masks" in line]
    assert len(said) >= n_lines
    assert bool(said) == bool(n_lines)
    assert not logging.getLogger(module.__name__).level
