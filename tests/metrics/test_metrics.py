"""Metrics compared with loops, known rankings, and known intervals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.explanations import explanation_by_hand
from tests.reference import metrics as reference

import pertinent
from pertinent.errors import SettingError
from pertinent.explainers.base import DEFAULT_SPARSITIES, n_kept
from pertinent.inputs.background import Background
from pertinent.metrics.ablation import Comprehensiveness, Deletion, Insertion, Sufficiency
from pertinent.outputs import log_odds
from pertinent.removals import Constant, FromBackground
from pertinent.stats import bootstrap, resampling
from pertinent.testing.games import (
    additive,
    answer,
    as_model,
    as_probabilities,
    random_interactions,
    random_table,
)

SCALES = ("natural", "weight-of-evidence")


def explanation_of(game, scores, target=1, chosen=None):
    prediction = game.values(np.ones((1, game.d), dtype=bool))[0]
    return explanation_by_hand(scores, prediction, target, chosen=chosen or {})


def measure(metric, game, scores, **options):
    return answer(metric.measure(explanation_of(game, scores, **options)), game)


# -- sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sparsity", "d", "k"),
    [
        (0.1, 30, 3),
        (0.05, 10, 1),
        (0.05, 20, 1),
        (0.05, 21, 2),
        (0.2, 15, 3),
        (0.5, 7, 4),
        (0.05, 1, 1),
        (1.0, 9, 9),
    ],
)
def test_set_sizes(sparsity, d, k):
    assert n_kept(sparsity, d) == reference.set_size(sparsity, d) == k


def test_set_sizes_are_safe_from_rounding():
    """Check 0.07 · 100, which exceeds 7 in floating point."""
    assert 0.07 * 100 > 7
    for percent in range(1, 101):
        for d in range(1, 400):
            assert n_kept(percent / 100, d) == reference.set_size(percent / 100, d), (percent, d)


# -- sufficiency and comprehensiveness ----------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("d", [1, 2, 7, 10])
@pytest.mark.parametrize("target", [0, 1])
def test_ablation_against_loops(scale, d, target):
    game = as_probabilities(random_table(d, seed=1))
    scores = np.random.default_rng(d).normal(size=d).round(1)
    for metric, plain in (
        (Sufficiency(scale=scale), reference.sufficiency),
        (Comprehensiveness(scale=scale), reference.comprehensiveness),
    ):
        found = measure(metric, game, scores, target=target)
        assert tuple(found) == DEFAULT_SPARSITIES
        for sparsity, value in found.items():
            assert value == pytest.approx(plain(game, scores, target, sparsity, scale), abs=1e-9)


def test_ablation_of_the_best_and_the_worst_ranking():
    """Check four features of .1, .2, .3 and .4, half of which add .7 or .3."""
    weights = np.array([0.1, 0.4, 0.2, 0.3])
    game = additive(weights)
    game.function = lambda masks, v=game.function: np.column_stack([1 - v(masks), v(masks)])
    half = {"sparsities": (0.5,)}
    assert measure(Sufficiency(**half), game, weights)[0.5] == pytest.approx(0.3)
    assert measure(Comprehensiveness(**half), game, weights)[0.5] == pytest.approx(0.7)
    assert measure(Sufficiency(**half), game, -weights)[0.5] == pytest.approx(0.7)
    assert measure(Comprehensiveness(**half), game, -weights)[0.5] == pytest.approx(0.3)


def test_the_set_that_a_search_chose_is_measured():
    game = as_probabilities(random_table(6, seed=2))
    mask = np.array([0, 1, 0, 0, 1, 1], dtype=bool)
    found = measure(Sufficiency(sparsities=(0.5,)), game, np.arange(6), chosen={0.5: mask})
    before, after = game.values(np.array([np.ones(6, dtype=bool), mask]))[:, 1]
    assert found[0.5] == pytest.approx(before - after)


def test_weight_of_evidence_is_the_log_odds_and_finite():
    p = np.array([0.5, 0.9, 0.2])
    np.testing.assert_allclose(log_odds(p), np.log(p / (1 - p)))
    extreme = log_odds(np.array([0.0, 1.0]))
    assert np.isfinite(extreme).all()
    assert extreme[0] == pytest.approx(-extreme[1], rel=1e-3)


def test_unknown_settings_are_refused():
    with pytest.raises(SettingError, match="weight-of-evidence"):
        Sufficiency(scale="log-odds")
    with pytest.raises(SettingError, match="`steps` must be at least 1, but got 0"):
        Insertion(steps=0)


# -- curves -------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 7, 12])
@pytest.mark.parametrize("target", [0, 1])
def test_curves_against_loops(d, target):
    game = as_probabilities(random_table(d, seed=3))
    scores = np.random.default_rng(d).normal(size=d).round(1)
    found = measure(Insertion(), game, scores, target=target)
    assert found == {None: pytest.approx(reference.insertion(game, scores, target), abs=1e-12)}
    found = measure(Deletion(), game, scores, target=target)
    assert found == {None: pytest.approx(reference.deletion(game, scores, target), abs=1e-12)}


def test_curves_of_known_rankings():
    """Check a model of one feature: the curve jumps where it is added, and falls where it is removed."""
    game = additive(np.array([0.0, 1.0, 0.0, 0.0]))
    game.function = lambda masks, v=game.function: np.column_stack([1 - v(masks), v(masks)])
    first, last = [0, 9, 2, 1], [3, 0, 2, 1]
    assert measure(Insertion(), game, first)[None] == pytest.approx(3.5 / 4)
    assert measure(Insertion(), game, last)[None] == pytest.approx(0.5 / 4)
    assert measure(Deletion(), game, first)[None] == pytest.approx(0.5 / 4)
    assert measure(Deletion(), game, last)[None] == pytest.approx(3.5 / 4)


@pytest.mark.parametrize(("d", "steps", "masks"), [(5, 20, 6), (40, 20, 21), (40, 7, 8), (30, 1, 2)])
def test_curves_have_as_many_points_as_asked(d, steps, masks):
    game = random_interactions(d, seed=4, order=1, classes=2)
    measure(Insertion(steps=steps), game, np.arange(d))
    sizes = game.masks.sum(axis=1)
    assert len(sizes) == masks
    assert sizes[0] == 0
    assert sizes[-1] == d
    assert (np.diff(sizes) >= d // steps).all()


# -- end to end ---------------------------------------------------------------------------------


def test_evaluate_agrees_with_loops_through_a_model():
    game = as_probabilities(random_interactions(8, seed=5))
    model = as_model(game)
    rows = [np.ones(8), 2 * np.ones(8)]
    explanations = pertinent.explain(model, rows, method="leave-one-out", removal="constant")
    names = ["sufficiency", "comprehensiveness", "insertion", "deletion"]
    evaluation = pertinent.evaluate(model, explanations, metrics=names)
    assert not evaluation.failures
    assert list(evaluation.better.values()) == ["lower", "higher", "higher", "lower"]
    assert len(evaluation.explanations) == 2
    for e, measured in zip(explanations, evaluation.explanations, strict=True):
        assert list(measured.measures) == names
        assert list(measured.measures["sufficiency"]) == list(DEFAULT_SPARSITIES)
        for name in names[:2]:
            plain = getattr(reference, name)
            for sparsity, value in measured.measures[name].items():
                assert value == pytest.approx(plain(game, e.scores, e.target, sparsity), abs=1e-12)
        for name in names[2:]:
            plain = getattr(reference, name)(game, e.scores, e.target)
            assert measured.measures[name][None] == pytest.approx(plain, abs=1e-12)
    frame = evaluation.to_dataframe()
    assert len(frame) == 2 * len(DEFAULT_SPARSITIES) + 2
    assert set(frame["inputs"]) == {2}
    overall = evaluation.mean("leave-one-out", "sufficiency")
    by_hand = np.mean([list(m.measures["sufficiency"].values()) for m in evaluation.explanations])
    assert overall == pytest.approx(by_hand)


def test_measures_are_taken_with_the_removal_of_the_explanation(tmp_path):
    """Check its settings, too: a removed column becomes 5, not 0."""

    def function(rows):
        return [[1 - p, p] for p in (np.asarray(rows).sum(axis=1) / 40).tolist()]

    model = pertinent.wrap(function, kind="table")
    row = np.ones(4)
    five = Constant(value=5.0)
    e = pertinent.explain(model, row, method="leave-one-out", removal=five, target=1)
    comprehensiveness = Comprehensiveness(sparsities=(0.5,))
    expected = pytest.approx(-8 / 40)
    by_default = pertinent.evaluate(model, e, comprehensiveness)
    said = pertinent.evaluate(model, e, comprehensiveness, removal=five)
    compared = pertinent.compare(model, [row], ["leave-one-out"], comprehensiveness, removal=five, target=1)
    assert said.mean("leave-one-out", "comprehensiveness") == expected
    assert compared.mean("leave-one-out", "comprehensiveness") == expected
    assert by_default.mean("leave-one-out", "comprehensiveness") == expected
    e.save(tmp_path / "e.parquet")
    read = pertinent.evaluate(model, pertinent.read(tmp_path / "e.parquet"), comprehensiveness)
    assert read.mean("leave-one-out", "comprehensiveness") == expected


def test_compare_measures_with_the_removal_given():
    """Check a removal with a background that the model does not have."""
    model = pertinent.wrap(
        lambda rows: [[1 - p, p] for p in (np.asarray(rows).sum(axis=1) / 40)], kind="table"
    )
    removal = FromBackground(background=Background(np.full((2, 4), 5.0)))
    compared = pertinent.compare(
        model,
        [np.ones(4)],
        ["leave-one-out"],
        Comprehensiveness(sparsities=(0.5,)),
        removal=removal,
        target=1,
    )
    assert not compared.failures
    assert compared.mean("leave-one-out", "comprehensiveness") == pytest.approx(-8 / 40)


def test_searches_do_best_what_they_search_for():
    game = as_probabilities(random_interactions(9, seed=6))
    evaluation = pertinent.compare(
        as_model(game),
        [np.ones(9)],
        ["exhaustive-search", "leave-one-out", "kernel-shap", "random"],
        removal="constant",
    )
    best = evaluation.mean("exhaustive-search", "sufficiency")
    others = [evaluation.mean(m, "sufficiency") for m in ("leave-one-out", "kernel-shap", "random")]
    assert all(best <= other + 1e-12 for other in others)
    assert best < max(others)


# -- intervals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bootstrap_of_normal_values_has_the_normal_width(level):
    n = 400
    values = np.random.default_rng(0).normal(3.0, 2.0, size=n)
    found = bootstrap(values, level=level)
    half = {0.8: 1.2816, 0.95: 1.9600}[level] * values.std() / np.sqrt(n)
    assert found.mean == pytest.approx(values.mean())
    assert found.n == n
    assert found.high - found.mean == pytest.approx(half, rel=0.05)
    assert found.mean - found.low == pytest.approx(half, rel=0.05)


def test_bootstrap_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(1)
    intervals = [bootstrap(rng.normal(size=60), resamples=600, level=0.9, seed=i) for i in range(400)]
    covered = np.mean([i.low <= 0 <= i.high for i in intervals])
    assert 0.85 < covered < 0.94


@pytest.mark.parametrize("rows_at_once", [1, 7, 5000])
def test_bootstrap_in_pieces(monkeypatch, rows_at_once):
    """Check that chunks have separate draws and the last one may be smaller."""
    n, resamples = 300, 5003
    values = np.random.default_rng(2).exponential(size=n)
    whole = bootstrap(values, resamples=resamples)
    monkeypatch.setattr(resampling, "_CELLS_AT_ONCE", rows_at_once * (n + 1))
    counted = []
    plain = resampling.resampled_means
    monkeypatch.setattr(resampling, "resampled_means", lambda *a: counted.append(plain(*a)) or counted[-1])
    found = bootstrap(values, resamples=resamples)
    assert [len(means) for means in counted[:-1]] == [rows_at_once] * (len(counted) - 1)
    means = np.concatenate(counted)
    assert len(means) == len(np.unique(means)) == resamples
    half = 1.96 * values.std() / np.sqrt(n)
    assert found.mean == whole.mean == pytest.approx(values.mean())
    for interval in (found, whole):
        assert interval.low == pytest.approx(values.mean() - half, abs=0.1 * half)
        assert interval.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_bootstrap_of_little():
    one = bootstrap(np.array([2.0]))
    assert one.mean == 2.0
    assert np.isnan([one.low, one.high]).all()
    assert str(bootstrap(np.ones(3))) == "1.000 [1.000, 1.000]"


def test_bootstrap_of_nothing():
    found = bootstrap(np.array([]))
    assert found.n == 0
    assert np.isnan([found.mean, found.low, found.high]).all()
