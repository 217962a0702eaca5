"""Settings given as text have the types that their class declares."""

from dataclasses import dataclass

import pytest

from pertinent.config.settings import Count, Share
from pertinent.config.settings_parser import read_settings
from pertinent.errors import SettingError
from pertinent.metrics.base import metrics


@dataclass
class Things:
    shares: tuple[Share, ...] | None = None
    sizes: tuple[Count, ...] = (5, 10)
    rate: float | None = None


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("shares", ".1", (0.1,)),
        ("shares", ".1+.2+.5", (0.1, 0.2, 0.5)),
        ("shares", ".1,.2", (0.1, 0.2)),
        ("shares", "1.+.5", (1.0, 0.5)),
        ("shares", "1e-2+1e+0", (0.01, 1.0)),
        ("shares", "none", None),
        ("sizes", "5", (5,)),
        ("sizes", "5+20", (5, 20)),
        ("rate", "1e+5", 1e5),
    ],
)
def test_one_value_or_several(name, text, value):
    assert read_settings(Things, {name: text}) == {name: value}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("shares", ".1+x", "`shares` must be a number, but got 'x'"),
        ("shares", "", "`shares` must be a number, but got ''"),
        ("sizes", "5+.5", "`sizes` must be a whole number, but got '.5'"),
        ("sizes", "none", "`sizes` must be a whole number, but got 'none'"),
    ],
)
def test_what_is_no_number_is_named(name, text, message):
    with pytest.raises(SettingError, match=message.replace("+", r"\+")):
        read_settings(Things, {name: text})


def test_a_metric_with_several_values_among_other_settings():
    found = metrics.parse("robustness-of-irrelevant:shares=.1+.2,norm=linf")
    assert (found.shares, found.norm) == ((0.1, 0.2), "linf")
    assert metrics.parse("robustness-of-irrelevant:shares=.1").shares == (0.1,)
    with pytest.raises(SettingError, match="shares"):
        metrics.parse("robustness-of-irrelevant:shares=.1+2")


@pytest.mark.parametrize("target", ["neg", "1", "2"])
def test_a_class_by_name_or_number(target):
    assert metrics.parse(f"class-faithfulness:target={target},k=3").target == target
    assert metrics.parse("class-faithfulness:target=none").target is None
