"""Student's paired t-test compared with scipy, and between the methods of an evaluation."""

import numpy as np
import pytest
from scipy import stats

import pertinent
from pertinent.errors import InputError, SettingError
from pertinent.stats import paired_t
from pertinent.stats.student import student_tails


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 30, 99, 1000, 10**5])
def test_tails_of_student(freedom):
    for t in (0.0, 1e-6, 0.1, 0.7, 1.0, 1.96, 3.0, 8.0, 30.0, -2.5):
        assert student_tails(t, freedom) == pytest.approx(
            2 * stats.t.sf(abs(t), freedom), rel=1e-7, abs=1e-300
        )


@pytest.mark.parametrize("n", [2, 3, 10, 100])
def test_it_is_the_test_of_scipy(n):
    rng = np.random.default_rng(n)
    a = rng.normal(size=n)
    b = a + 0.3 + rng.normal(size=n)
    for level in (0.95, 0.5):
        found, expected = paired_t(a, b, level=level), stats.ttest_rel(a, b)
        bounds = expected.confidence_interval(level)
        assert found.mean == pytest.approx((a - b).mean())
        assert found.p_value == pytest.approx(expected.pvalue)
        assert (found.low, found.high) == pytest.approx((bounds.low, bounds.high))
        assert found.n == n


def test_missing_values_and_seeds():
    a = np.array([[1.0, 2.0, 4.0, np.nan], [3.0, 2.0, 5.0, np.nan]])
    b = np.array([[0.0, 0.0, 0.0, 1.0], [0.0, np.nan, 0.0, 1.0]])
    found = paired_t(a, b)
    expected = stats.ttest_1samp([2.0, 2.0, 4.5], 0)
    assert (found.mean, found.n) == (pytest.approx(8.5 / 3), 3)
    assert found.p_value == pytest.approx(expected.pvalue)


def test_where_there_is_no_spread():
    same = paired_t(np.arange(5.0), np.arange(5.0))
    assert (same.mean, same.p_value) == (0.0, 1.0)
    always = paired_t(np.arange(5.0) + 1, np.arange(5.0))
    assert (always.low, always.high, always.p_value) == (1.0, 1.0, 0.0)
    one = paired_t(np.array([1.0]), np.array([0.5]))
    assert (one.mean, one.n) == (0.5, 1)
    assert np.isnan([one.low, one.p_value]).all()
    assert paired_t(np.array([np.nan]), np.array([1.0])).n == 0
    with pytest.raises(InputError, match="same shape"):
        paired_t(np.ones(2), np.ones(3))


def test_between_methods_of_an_evaluation():
    def interacting(rows):
        rows = np.asarray(rows, dtype=float)
        p = 1 / (1 + np.exp(-(rows * np.roll(rows, 1, axis=1)).sum(axis=1)))
        return np.stack([1 - p, p], axis=1)

    rows = np.random.default_rng(0).normal(size=(25, 8))
    model = pertinent.wrap(interacting, kind="table")
    found = pertinent.compare(
        model, rows, ["leave-one-out", "random"], "comprehensiveness", removal="constant"
    )
    values = {
        method: [
            np.mean(list(e.measures["comprehensiveness"].values()))
            for e in found.explanations
            if e.method == method
        ]
        for method in found.methods
    }
    expected = stats.ttest_rel(values["random"], values["leave-one-out"])
    ((method, other, metric, t),) = found.differences(test="t")
    assert (method, other, metric) == ("random", "leave-one-out", "comprehensiveness")
    assert (t.p_value, t.n) == (pytest.approx(expected.pvalue), 25)
    ((_, _, _, bootstrapped),) = found.differences("leave-one-out")
    assert bootstrapped.mean == pytest.approx(t.mean)
    assert bootstrapped.low == pytest.approx(t.low, abs=0.3 * (t.high - t.low))
    assert bootstrapped == found.difference("random", "leave-one-out", "comprehensiveness")
    with pytest.raises(SettingError, match="Unknown test 'wilcoxon'"):
        found.difference("random", "leave-one-out", "comprehensiveness", test="wilcoxon")
