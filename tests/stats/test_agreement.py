"""Krippendorff's alpha compared with published examples, a plain reference, and simulated people."""

from itertools import permutations

import numpy as np
import pytest

from pertinent.errors import InputError
from pertinent.stats import alpha_interval, krippendorff_alpha

NAN = np.nan

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", examples A, B and C.
BINARY = np.array([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]], dtype=float)
LETTERS = np.array([[ord(each) for each in row] for row in ("aabbdcccedda", "babbbccceddd")], dtype=float)
FOUR = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)


@pytest.mark.parametrize(
    ("values", "level", "published"),
    [
        (BINARY, "nominal", 0.095),
        (LETTERS, "nominal", 0.692),
        (FOUR, "nominal", 0.743),
        (FOUR, "ordinal", 0.815),
    ],
)
def test_published_worked_examples(values, level, published):
    assert krippendorff_alpha(values, level) == pytest.approx(published, abs=5e-4)


def reference(values, level):
    """Return alpha by its definition: pairs of answers within units, and all pairs that can be formed."""
    units = [[v for v in column if not np.isnan(v)] for column in values.T]
    units = [unit for unit in units if len(unit) > 1]
    every = [v for unit in units for v in unit]

    def apart(a, b):
        if level == "nominal":
            return float(a != b)
        low, high = min(a, b), max(a, b)
        between = sum(low <= v <= high for v in every)
        return (between - (every.count(low) + every.count(high)) / 2) ** 2

    observed = sum(sum(apart(a, b) for a, b in permutations(u, 2)) / (len(u) - 1) for u in units) / len(every)
    expected = sum(apart(a, b) for a, b in permutations(every, 2)) / (len(every) * (len(every) - 1))
    return 1 - observed / expected


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_it_is_the_definition(level):
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.integers(1, 5, (4, 9)).astype(float)
        values[rng.random(values.shape) < 0.3] = NAN
        assert krippendorff_alpha(values, level) == pytest.approx(reference(values, level), abs=1e-12)


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_who_agrees_has_1_and_who_guesses_has_0(level):
    rng = np.random.default_rng(1)
    same = np.tile(rng.integers(1, 6, 50), (6, 1)).astype(float)
    assert krippendorff_alpha(same, level) == pytest.approx(1)
    guessed = alpha_interval(rng.integers(1, 6, (6, 400)).astype(float), level)
    assert abs(guessed.mean) < 0.03
    assert guessed.low < 0 < guessed.high


def test_the_interval_covers_what_many_units_give():
    rng = np.random.default_rng(2)

    def drawn(n):
        truth = rng.integers(0, 3, n)
        return np.where(rng.random((5, n)) < 0.7, truth, rng.integers(0, 3, (5, n))).astype(float)

    truth = krippendorff_alpha(drawn(100_000))
    found = [alpha_interval(drawn(60), resamples=400) for _ in range(200)]
    covered = np.mean([each.low <= truth <= each.high for each in found])
    assert 0.9 <= covered <= 0.99


def test_units_of_a_group_are_drawn_together():
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2, (3, 40)).astype(float)
    repeated = np.repeat(values, 5, axis=1)  # five times the same says no more than once
    alone, grouped = alpha_interval(values), alpha_interval(repeated, groups=np.repeat(np.arange(40), 5))
    assert grouped.high - grouped.low == pytest.approx(alone.high - alone.low, rel=0.1)
    naive = alpha_interval(repeated)
    assert naive.high - naive.low < 0.6 * (grouped.high - grouped.low)


def test_the_order_of_people_and_units_does_not_matter():
    found = alpha_interval(FOUR, "ordinal")
    assert alpha_interval(FOUR[::-1, ::-1], "ordinal") == found


def test_where_there_is_nothing_to_compare():
    assert np.isnan(krippendorff_alpha(np.array([[1.0, NAN], [NAN, 2.0]])))
    assert np.isnan(krippendorff_alpha(np.ones((3, 4))))
    assert np.isnan(krippendorff_alpha(np.full((2, 2), NAN)))
    assert np.isnan(alpha_interval(np.array([[1.0], [2.0]])).low)
    with pytest.raises(InputError, match=r"\(people, units\)"):
        krippendorff_alpha(np.ones(3))
