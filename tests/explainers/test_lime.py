"""LIME compared with the regression of the lime package, and its sampling with the definition."""

from __future__ import annotations

import numpy as np
import pytest
from lime.lime_base import LimeBase
from scipy.stats import chisquare
from tests.reference import lime as reference

import pertinent
from pertinent.errors import InputError, SettingError
from pertinent.explainers.lime import Lime, draw_bins, draw_masks, proximity, ridge
from pertinent.testing.games import additive, play, random_table


@pytest.mark.parametrize("d", [2, 5, 12])
@pytest.mark.parametrize("width", [5.0, 25.0, 100.0])
def test_coefficients_are_those_of_the_lime_package(d, width):
    game = random_table(d, seed=1, classes=2)
    explainer = Lime(kernel_width=width)
    found = play(explainer, game, budget=150, seed=3)
    base = LimeBase(lambda distance: reference.kernel(distance, width), random_state=0)
    for label in range(2):
        _, pairs, _, _ = base.explain_instance_with_data(
            game.masks.astype(float),
            game.values(game.masks),
            reference.distances(game.masks),
            label,
            num_features=d,
            feature_selection="none",
        )
        coefficients = np.array([weight for _, weight in sorted(pairs)])
        np.testing.assert_allclose(found.scores[label], coefficients, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0, 30.0])
def test_coefficients_are_those_of_scikit_learn(alpha):
    game = random_table(7, seed=2, classes=3)
    found = play(Lime(alpha=alpha), game, budget=90)
    expected = reference.fit(game.masks, game.values(game.masks), alpha=alpha)
    np.testing.assert_allclose(found.scores, expected, atol=1e-8)


def test_an_additive_game_is_recovered_without_penalty():
    weights = np.array([0.3, -2.0, 0.0, 1.0, 0.5])
    found = play(Lime(alpha=0.0), additive(weights, offset=4.0), budget=60)
    np.testing.assert_allclose(found.scores[0], weights, atol=1e-10)
    np.testing.assert_allclose(found.standard_errors[0], np.zeros(5), atol=1e-10)


def test_proximity_is_the_kernel_of_the_cosine_distance():
    masks = draw_masks(np.random.default_rng(0), 50, 8)
    np.testing.assert_allclose(
        proximity(masks, 25.0), reference.kernel(reference.distances(masks)), atol=1e-12
    )
    assert proximity(masks, 25.0)[0] == 1.0


@pytest.mark.parametrize("d", [1, 2, 9])
def test_the_first_mask_is_whole_and_every_other_lacks_something(d):
    masks = draw_masks(np.random.default_rng(0), 200, d)
    assert masks.shape == (200, d)
    assert masks[0].all()
    assert not masks[1:].all(axis=1).any()


def test_the_number_removed_is_uniform():
    d = 7
    removed = (~draw_masks(np.random.default_rng(0), 14_001, d))[1:].sum(axis=1)
    counts = np.bincount(removed, minlength=d + 1)
    assert counts[0] == 0
    assert chisquare(counts[1:]).pvalue > 1e-3


def test_sets_of_equal_size_are_equally_likely():
    masks = draw_masks(np.random.default_rng(1), 20_001, 5)[1:]
    for removed in (1, 2, 3, 4):
        sets, counts = np.unique(masks[(~masks).sum(axis=1) == removed], axis=0, return_counts=True)
        assert len(sets) == {1: 5, 2: 10, 3: 10, 4: 5}[removed]
        assert chisquare(counts).pvalue > 1e-3


def test_the_budget_is_the_number_of_masks():
    game = random_table(9, seed=3)
    play(Lime(), game, budget=77)
    assert len(game.masks) == 77
    game = random_table(9, seed=3)
    play(Lime(samples=31), game)
    assert len(game.masks) == 31


def test_a_single_feature():
    game = random_table(1, seed=4)
    empty, full = game.values(np.array([[False], [True]]))[:, 0]
    masks = np.array([[True], [False]])
    scores, _ = ridge(masks, game.values(masks), np.ones(2), alpha=0.0)
    np.testing.assert_allclose(scores[0, 0], full - empty)
    assert np.sign(play(Lime(), game, budget=20).scores[0, 0]) == np.sign(full - empty)


def test_a_penalty_that_rounding_swallows_does_no_harm():
    """Check duplicate features: the matrix is singular, but a solution shares the effect."""
    masks = np.array([[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0]], dtype=bool)
    values = masks @ np.array([[1.0], [1.0], [3.0]])
    scores, _ = ridge(masks, values, np.ones(4), alpha=1e-30)
    np.testing.assert_allclose(scores[:, 0], [1.0, 1.0, 3.0], atol=1e-9)


# -- the forms for tables ---------------------------------------------------------------------------

KNOWN = np.random.default_rng(1).gamma(2.0, [1.0, 20.0, 0.1], size=(300, 3))
COEFFICIENTS = np.array([2.0, -0.1, 5.0])


def linear(**options):
    return pertinent.wrap(lambda rows: np.asarray(rows) @ COEFFICIENTS, output="value", **options)


def test_slopes_of_a_linear_model_are_its_coefficients_per_standard_deviation():
    model = linear(background=KNOWN)
    e = pertinent.explain(model, KNOWN[0], "lime", form="continuous", alpha=0.0, samples=50, progress=False)
    np.testing.assert_allclose(e.scores, COEFFICIENTS * KNOWN.std(axis=0), rtol=1e-9)
    assert e.evaluations == 50


def test_a_score_is_the_effect_of_being_in_the_bin_of_the_row():
    """Check a model of bins, which is fitted exactly: 3 in the first quarter of the second column, else 0."""
    first = np.percentile(KNOWN[:, 1], 25)
    model = pertinent.wrap(
        lambda rows: 3.0 * (np.asarray(rows)[:, 1] <= first), output="value", background=KNOWN
    )
    row = KNOWN[KNOWN[:, 1] < first][0]
    e = pertinent.explain(model, row, "lime", form="discretised", alpha=0.0, samples=200, progress=False)
    np.testing.assert_allclose(e.scores, [0, 3, 0], atol=1e-9)


def test_rows_of_bins_fall_into_them_as_often_as_the_background():
    rows, same = draw_bins(np.random.default_rng(0), 4001, KNOWN[0], KNOWN)
    np.testing.assert_array_equal(rows[0], KNOWN[0])
    for column in range(3):
        edges = np.percentile(KNOWN[:, column], [25, 50, 75])
        bins = np.searchsorted(edges, rows[1:, column])
        assert chisquare(np.bincount(bins, minlength=4)).pvalue > 0.001
        own = np.searchsorted(edges, KNOWN[0, column])
        assert (np.abs(same[1:, column] - (bins == own)) > 0).mean() < 0.01  # but for ties at an edge
        assert KNOWN[:, column].min() <= rows[:, column].min()
        assert rows[:, column].max() <= KNOWN[:, column].max()


def test_constant_columns_stay_as_they_are():
    known = np.c_[KNOWN[:, :2], np.full(len(KNOWN), 7.0)]
    for form in ("continuous", "discretised"):
        model = linear(background=known)
        e = pertinent.explain(model, known[0], "lime", form=form, samples=300, progress=False)
        assert np.isfinite(e.scores).all()
    assert (draw_bins(np.random.default_rng(0), 50, known[0], known)[0][:, 2] == 7).all()


@pytest.mark.parametrize("form", ["continuous", "discretised"])
def test_what_the_forms_for_tables_need(form):
    options = {"form": form, "samples": 20, "progress": False}
    with pytest.raises(SettingError, match="pass `background` to"):
        pertinent.explain(linear(kind="table"), KNOWN[0], "lime", **options)
    tolerant = pertinent.wrap(lambda rows: np.nansum(rows, axis=1), output="value", background=KNOWN)
    with pytest.raises(InputError, match=r"has missing values \(NaN\): use form='removal'"):
        pertinent.explain(tolerant, [1.0, np.nan, 2.0], "lime", **options)
    with pytest.raises(SettingError, match="`form` must be 'removal' except for table rows"):
        pertinent.explain(lambda texts: [[0.5, 0.5]] * len(texts), "some words", "lime", **options)
    groups = {"columns": ["a", "b", "c"], "groups": {"ab": ["a", "b"]}}
    with pytest.raises(SettingError, match="a number for each feature"):
        pertinent.explain(linear(background=KNOWN, **groups), KNOWN[0], "lime", **options)
