"""Set sensitivity (Hsieh et al. 2021, Def. J.1)."""

from dataclasses import replace

import numpy as np
import pytest

import pertinent
from pertinent.diagnostics.sensitivity import Ball, _with_sensitivity
from pertinent.errors import InputError, SettingError

ROWS = np.random.default_rng(0).normal(size=(4, 10))
NAME = "set-sensitivity"


def linear(rows):
    rows = np.asarray(rows, dtype=float).reshape(len(rows), -1)
    p = 1 / (1 + np.exp(-rows @ np.linspace(-1, 1, rows.shape[1])))
    return np.stack([1 - p, p], axis=1)


def curved(rows):
    """Return probabilities whose important features depend on the input."""
    rows = np.asarray(rows, dtype=float).reshape(len(rows), -1)
    p = 1 / (1 + np.exp(-np.sin(20 * rows).sum(axis=1)))
    return np.stack([1 - p, p], axis=1)


def table_model(function, **options):
    return pertinent.wrap(function, kind="table", **options)


def test_sensitivity_is_the_largest_lost_share():
    """Compare with neighbours that keep both chosen features, one of them, and none."""
    e = pertinent.explain(table_model(linear), ROWS[0], "leave-one-out", sparsity=0.2)
    masks = ([0, 1], [1, 2], [3, 4])
    of = [_with_chosen(e, chosen) for chosen in masks]
    assert _with_sensitivity(of[0], of[:1]).measures[NAME] == {0.2: 0.0}
    assert _with_sensitivity(of[0], of[:2]).measures[NAME] == {0.2: 0.5}
    assert _with_sensitivity(of[0], of).measures[NAME] == {0.2: 1.0}


def _with_chosen(explanation, members):
    return replace(explanation, chosen={0.2: np.isin(np.arange(10), members)})


def test_sensitivity_equals_that_of_separate_explanations():
    model = table_model(curved)
    options = {"removal": "constant", "sparsity": (0.2, 0.5)}
    result = pertinent.sensitivity(model, ROWS, "leave-one-out", radius=0.05, samples=6, seed=4, **options)
    for e in result.explanations:
        near = Ball(0.05, 6, "linf", 4).sample(e.input, model)
        for sparsity in (0.2, 0.5):
            lost = []
            for y in near:
                assert np.abs(y.values - ROWS[e.index]).max() <= 0.05
                other = pertinent.explain(model, y.values, "leave-one-out", target=e.target, **options)
                mine = set(np.flatnonzero(e.mask(sparsity)))
                lost.append(1 - len(mine & set(np.flatnonzero(other.mask(sparsity)))) / len(mine))
            assert e.measures[NAME][sparsity] == pytest.approx(max(lost))
    assert 0 < result.mean("leave-one-out", NAME) < 1
    assert result.better == {NAME: "lower"}


def test_random_draws_do_not_count_as_sensitivity():
    """Check that nearly equal inputs have the same random masks."""
    methods = ["leave-one-out", "shapley-sampling", "random"]
    options = {"removal": "constant", "budget": 20}
    near = pertinent.sensitivity(table_model(linear), ROWS, methods, radius=1e-4, **options)
    assert [near.mean(method, NAME) for method in methods[:2]] == [0.0, 0.0]
    assert near.mean("random", NAME) > 0.5  # by chance
    far = pertinent.sensitivity(table_model(curved), ROWS, methods, radius=2.0, **options)
    assert far.mean("leave-one-out", NAME) > 0.2


def test_sensitivity_grows_with_samples_and_radius():
    model = table_model(curved)
    few, many = (
        pertinent.sensitivity(model, ROWS, "leave-one-out", radius=0.02, samples=n, removal="constant")
        for n in (1, 30)
    )
    assert few.mean("leave-one-out", NAME) < many.mean("leave-one-out", NAME)
    near, far = (
        pertinent.sensitivity(model, ROWS, "leave-one-out", radius=r, removal="constant") for r in (1e-6, 0.5)
    )
    assert near.mean("leave-one-out", NAME) < far.mean("leave-one-out", NAME)


def test_points_of_balls():
    rng = np.random.default_rng(0)
    square = Ball(0.5, 4000, "linf", 0).steps(rng, 3)
    assert 0.49 < np.abs(square).max() <= 0.5
    round_ = np.linalg.norm(Ball(0.5, 4000, "l2", 0).steps(rng, 3), axis=1)
    assert round_.max() <= 0.5
    assert np.mean(round_ < 0.25) == pytest.approx(1 / 8, abs=0.02)  # the share of the volume


def test_images_stay_in_range_and_keep_their_features():
    model = pertinent.wrap(linear, kind="image")
    image = np.random.default_rng(1).random((8, 8, 1)).astype(np.float32)
    input = model.prepare(image, "patches:2")
    near = Ball(0.3, 5, "linf", 0).sample(input, model)
    for y in near:
        assert y.features == input.features
        assert y.channels_last
        assert y.pixels.dtype == input.pixels.dtype
        assert 0 <= y.pixels.min() < y.pixels.max() <= 1
        assert np.abs(y.pixels - input.pixels).max() <= 0.3 + 1e-6
    assert len({y.fingerprint for y in near} | {input.fingerprint}) == 6
    result = pertinent.sensitivity(model, image, "leave-one-out", features="patches:2", removal="constant")
    assert len(result.explanations) == 1


def test_columns_move_by_their_standard_deviation():
    background = np.random.default_rng(0).normal(size=(500, 10)) * np.logspace(0, 4, 10)
    model = table_model(linear, background=background)
    around = Ball(0.1, 200, "linf", 0).sample(model.prepare(ROWS[0]), model)
    near = np.stack([y.values for y in around])
    np.testing.assert_allclose(np.abs(near - ROWS[0]).max(axis=0), 0.1 * background.std(axis=0), rtol=0.05)


def test_invalid_inputs_and_settings():
    words = pertinent.wrap(lambda texts: [[0.9, 0.1] for _ in texts])
    with pytest.raises(InputError, match="must be images or numeric table rows"):
        pertinent.sensitivity(words, ["not bad"], "leave-one-out")
    for options, message in (
        ({"radius": 0}, "`radius` must be above 0, but got 0"),
        ({"samples": 0}, "`samples` must be at least 1, but got 0"),
        ({"norm": "l1"}, "Unknown norm 'l1'"),
        ({"methods": []}, "`methods` must be at least one"),
    ):
        with pytest.raises(SettingError, match=message):
            pertinent.sensitivity(table_model(linear), ROWS, **{"methods": "leave-one-out"} | options)


def test_a_failure_of_a_neighbour_is_recorded():
    def refusing(rows):
        rows = np.asarray(rows, dtype=float)
        if ((rows[:, 0] > 5) & (rows[:, 0] != 6)).any():
            raise ValueError("not nearby")
        return linear(rows)

    rows = ROWS.copy()
    rows[1, 0] = 6
    result = pertinent.sensitivity(
        table_model(refusing), rows, "leave-one-out", removal="constant", ids=list("abcd"), batch_size=1
    )
    assert [(f.index, f.id) for f in result.failures] == [(1, "b")]
    assert "not nearby" in result.failures[0].reason
    assert [e.index for e in result.explanations] == [0, 2, 3]


def test_failures_of_all_methods_are_merged():
    def picky(rows):
        rows = np.asarray(rows, dtype=float)
        if (rows[:, 0] == 0).any():
            raise ValueError("no first column")
        return linear(rows)

    result = pertinent.sensitivity(
        table_model(picky), [ROWS[0], "none"], ["random", "leave-one-out"], removal="constant", batch_size=1
    )
    assert [(f.index, f.method) for f in result.failures] == [(0, "leave-one-out"), (1, None)]
    assert result.methods == ["random"]
