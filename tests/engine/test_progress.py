"""Progress is shown by a bar or lines in a log, with the time left."""

from __future__ import annotations

import logging
import time

import pytest

import pertinent
import pertinent.engine.progress as module
from pertinent.engine.progress import Progress, progress_callback


def test_the_bar_shows_the_time_left(monkeypatch, capsys):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    with progress_callback(True, "lime") as update:
        for done in range(4):
            update(Progress(done, 0, 10, 100 * done))
            time.sleep(0.25)
    shown = capsys.readouterr().err
    assert "3/10 [00:00<00:0" in shown
    assert "300 masks, 0 failed" in shown


def test_short_runs_show_no_bar(capsys):
    with progress_callback(True, "lime") as update:
        for done in range(4):
            update(Progress(done, 0, 10, 100 * done))
    assert "lime" not in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("total", "shown"),
    [(100, "10% 10/100 [00:30<04:30,  3.00s/input, "), (None, "10input [00:30,  3.00s/input, ")],
)
def test_a_log_gets_a_line_every_half_minute(clock, caplog, total, shown):
    caplog.set_level(logging.INFO, module.__name__)
    with progress_callback(None, "lime") as update:
        for done in range(21):
            clock.now = 3.0 * done
            update(Progress(done, 1, total, 1000 * done))
    first, second = [record.message for record in caplog.records]
    assert first.startswith("lime: ") and first.endswith(f"{shown}10,000 masks, 1 failed]")
    assert "20,000 masks" in second


def test_the_time_left_in_a_log_follows_recent_work(clock, caplog):
    caplog.set_level(logging.INFO, module.__name__)
    with progress_callback(None, "lime") as update:
        for done in (0, 30, 33):  # ten times as slow in the second half minute
            update(Progress(done, 0, 63, done))
            clock.now += 30.0
    assert "<00:33" in caplog.records[0].message
    assert "<05:00" in caplog.records[1].message


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
