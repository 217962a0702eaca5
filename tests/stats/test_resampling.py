"""The block bootstrap compared with a plain loop, on data with a known mean, and on little data."""

import numpy as np
import pytest

from pertinent.errors import InputError, SettingError
from pertinent.stats import Difference, bootstrap, paired_difference
from pertinent.stats.resampling import _counts, resampled_means


def two_way(rng, seeds, inputs, *, seed_sd=1.0, input_sd=1.0, noise_sd=1.0):
    """Return values with an effect of each seed, an effect of each input, and noise; the mean is 0."""
    effects = seed_sd * rng.normal(size=(seeds, 1)) + input_sd * rng.normal(size=(1, inputs))
    return effects + noise_sd * rng.normal(size=(seeds, inputs))


def by_hand(values, seed_counts, input_counts):
    """Repeat every seed and input as often as drawn, and return the mean."""
    means = []
    for s, n in zip(seed_counts, input_counts, strict=True):
        drawn = np.repeat(np.repeat(values, s, axis=0), n, axis=1).ravel()
        known = [v for v in drawn.tolist() if v == v]
        means.append(sum(known) / len(known) if known else np.nan)
    return means


@pytest.mark.parametrize("missing", [0, 5, 11])
@pytest.mark.parametrize("shape", [(3, 4), (1, 6), (5, 1)])
def test_resampled_means_are_those_of_a_plain_loop(shape, missing):
    rng = np.random.default_rng(0)
    values = rng.normal(size=shape)
    values.ravel()[rng.permutation(values.size)[: min(missing, values.size - 1)]] = np.nan
    counts = _counts(rng, 60, shape[0]), _counts(rng, 60, shape[1])
    np.testing.assert_allclose(resampled_means(values, *counts), by_hand(values, *counts), atol=1e-12)


def test_counts_are_those_of_draws_with_replacement():
    counts = _counts(np.random.default_rng(0), 20_000, 5)
    assert (counts.sum(axis=1) == 5).all()
    np.testing.assert_allclose(counts.mean(axis=0), 1, atol=0.03)
    expected = np.eye(5) - 1 / 5  # the covariance of multinomial counts of 5 draws
    np.testing.assert_allclose(np.cov(counts.T), expected, atol=0.04)


def test_the_interval_has_the_width_of_both_variances():
    rng = np.random.default_rng(1)
    values = two_way(rng, 40, 300, seed_sd=1.0, input_sd=2.0, noise_sd=0.1)
    found = bootstrap(values, resamples=8000)
    sd = np.sqrt(values.mean(axis=1).var() / 40 + values.mean(axis=0).var() / 300)
    assert found.mean == pytest.approx(values.mean())
    assert found.high - found.low == pytest.approx(2 * 1.96 * sd, rel=0.05)
    of_inputs = bootstrap(values.mean(axis=0), resamples=2000)
    assert of_inputs.high - of_inputs.low < 0.75 * 2 * 1.96 * sd


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(2)
    intervals = [bootstrap(two_way(rng, 30, 60), resamples=300, seed=i) for i in range(300)]
    assert 0.91 < np.mean([i.low <= 0 <= i.high for i in intervals]) < 0.98


def test_p_values_are_uniform_where_there_is_no_difference():
    rng = np.random.default_rng(3)
    p = []
    for i in range(500):
        both = two_way(rng, 1, 60)  # what is hard about an input is hard for both methods
        a, b = both + rng.normal(size=both.shape), both + rng.normal(size=both.shape)
        p.append(paired_difference(a, b, resamples=500, seed=i).p_value)
    for share in (0.05, 0.25, 0.5, 0.75):
        assert np.mean(np.array(p) < share) == pytest.approx(
            share, abs=4 * np.sqrt(share * (1 - share) / 500)
        )


@pytest.mark.parametrize("sign", [1, -1])
def test_p_values_are_small_where_there_is_one(sign):
    rng = np.random.default_rng(4)
    b = two_way(rng, 8, 100, seed_sd=3, input_sd=3)
    a = b + sign * 0.5 + 0.3 * rng.normal(size=b.shape)
    found = paired_difference(a, b, resamples=4000)
    assert found.p_value == pytest.approx(2 / 4001)
    assert found.low < sign * 0.5 < found.high
    assert found.mean == pytest.approx((a - b).mean())
    alone = [bootstrap(v, resamples=1000) for v in (a, b)]
    assert max(i.low for i in alone) < min(i.high for i in alone)  # only pairing shows it


@pytest.mark.parametrize("shift", [-0.4, -0.1, 0.0, 0.2])
def test_p_values_and_bounds_are_as_defined(shift):
    d = np.sort(np.random.default_rng(5).normal(shift, 1, size=25))
    found = paired_difference(d, np.zeros(25), resamples=999, level=0.9, seed=8)
    rng = np.random.default_rng(8)
    means = by_hand(d[None], _counts(rng, 999, 1), _counts(rng, 999, 25))
    below, above = sum(m <= 0 for m in means), sum(m >= 0 for m in means)
    assert found.p_value == min(1, 2 * (1 + min(below, above)) / 1000)
    np.testing.assert_allclose([found.low, found.high], np.quantile(means, [0.05, 0.95]), atol=1e-12)
    other = paired_difference(np.zeros(25), d, resamples=999, seed=8)
    assert other.mean == pytest.approx(-found.mean)
    assert other.p_value == pytest.approx(found.p_value, abs=0.08)


def test_the_order_of_inputs_and_seeds_does_not_matter():
    rng = np.random.default_rng(6)
    a, b = two_way(rng, 4, 30), two_way(rng, 4, 30)
    a[1, 3] = b[2, 5] = np.nan
    rows, columns = rng.permutation(4), rng.permutation(30)
    assert bootstrap(a, resamples=500) == bootstrap(a[rows][:, columns], resamples=500)
    assert paired_difference(a, b, resamples=500) == paired_difference(
        a[rows][:, columns], b[rows][:, columns], resamples=500
    )
    assert bootstrap(a, resamples=500) != bootstrap(a, resamples=500, seed=1)


def test_one_seed_is_no_block():
    values = np.random.default_rng(7).normal(size=50)
    assert bootstrap(values, resamples=300) == bootstrap(values[None], resamples=300)


def test_one_input_with_several_seeds_still_varies():
    found = bootstrap(np.random.default_rng(8).normal(size=(30, 1)), resamples=500)
    assert found.n == 1
    assert found.low < found.mean < found.high


@pytest.mark.parametrize(("values", "n"), [([2.0], 1), ([], 0), ([np.nan, np.nan], 0), ([2.0, np.nan], 1)])
def test_of_too_little(values, n):
    found = paired_difference(np.array(values), np.zeros(len(values)))
    assert found.n == n
    assert np.isnan([found.low, found.high, found.p_value]).all()
    assert (found.mean == 2.0) if n else np.isnan(found.mean)
    assert str(found) == (("2.000") if n else "nan")


def test_all_equal():
    same = paired_difference(np.ones((3, 9)), np.ones((3, 9)), resamples=100)
    assert same == Difference(0.0, 0.0, 0.0, 9, 1.0)
    shifted = paired_difference(np.ones((3, 9)), np.zeros((3, 9)), resamples=100)
    assert shifted == Difference(1.0, 1.0, 1.0, 9, 2 / 101)
    assert str(shifted) == "1.000 [1.000, 1.000] (p = 0.020)"


@pytest.mark.parametrize("n", [2, 20, 60])
def test_where_all_are_right_some_may_yet_be_wrong(n):
    stats = pytest.importorskip("scipy.stats")
    for hits in (0, n):
        exact = stats.binomtest(hits, n).proportion_ci(0.9, method="exact")
        found = bootstrap(np.full((3, n), hits / n), within=(0, 1), level=0.9, resamples=100)
        assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    wider = bootstrap(np.full(n, 2.0), within=(-2, 2), resamples=100)
    assert wider.high == 2.0
    assert 2 - wider.low == pytest.approx(4 * (1 - 0.025 ** (1 / n)))


@pytest.mark.parametrize("seeds", [1, 5])
def test_more_failures_never_raise_the_lower_bound(seeds):
    lows, highs = [], []
    for failures in range(20):
        values = np.ones((seeds, 60))
        values.ravel()[:failures] = 0.0
        lows.append(bootstrap(values, within=(0, 1), resamples=5000).low)
        highs.append(bootstrap(1 - values, within=(0, 1), resamples=5000).high)
    assert (np.diff(lows) <= 0).all() and lows[0] > lows[-1]
    np.testing.assert_allclose(highs, 1 - np.array(lows), atol=0.02)  # the chance of resamples


def test_elsewhere_the_range_changes_nothing():
    for some in (np.r_[np.ones(10), np.zeros(15), 0.5 * np.ones(10)], np.linspace(0.01, 0.999, 40)):
        assert bootstrap(some, within=(0, 1), resamples=500) == bootstrap(some, resamples=500)
    assert np.isnan(bootstrap(np.ones(1), within=(0, 1)).low)
    rounded = np.full(20, 1 - 1e-16)
    assert bootstrap(rounded, within=(0, 1), resamples=100).low < 0.9


def test_missing_values_are_left_out_in_pairs():
    a = np.array([[1.0, np.nan, 5.0, 2.0], [2.0, 4.0, np.nan, np.nan]])
    b = np.array([[0.0, 1.0, np.nan, np.nan], [0.0, 1.0, 7.0, 1.0]])
    found = paired_difference(a, b, resamples=200)
    assert found.mean == pytest.approx(np.mean([1, 2, 3]))
    assert found.n == 2


def test_many_resamples_take_little_memory():
    import tracemalloc

    values = np.random.default_rng(9).normal(size=(10, 500))
    tracemalloc.start()
    bootstrap(values, resamples=20_000)
    assert tracemalloc.get_traced_memory()[1] < 150e6
    tracemalloc.stop()


def test_what_cannot_be_resampled():
    with pytest.raises(InputError, match="same shape"):
        paired_difference(np.ones(3), np.ones(4))
    with pytest.raises(InputError, match=r"\(seeds, inputs\)"):
        bootstrap(np.ones((2, 2, 2)))
    with pytest.raises(InputError, match="finite"):
        bootstrap(np.array([1.0, np.inf]))
    with pytest.raises(SettingError, match="`level`"):
        bootstrap(np.ones(3), level=95)
    with pytest.raises(SettingError, match="`resamples`"):
        bootstrap(np.ones(3), resamples=0)
