"""The time left follows recent work, and the bar shows it."""

from __future__ import annotations

import time

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
