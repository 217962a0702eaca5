"""Metrics of the K top features compared with values computed by hand."""

from math import log

import numpy as np
import pytest
from tests.explanations import explanation_by_hand

import pertinent
from pertinent.errors import SettingError
from pertinent.explainers.base import DEFAULT_SPARSITIES
from pertinent.metrics.ablation import Comprehensiveness, Sufficiency
from pertinent.metrics.selected import ShareRemoved, SufficiencyOfSelected
from pertinent.metrics.top_features import (
    Faithfulness,
    Monotonicity,
    NegativeDeltaLogOdds,
    PositiveDeltaLogOdds,
)
from pertinent.outputs import TINY, Labels, PlainValues
from pertinent.testing.games import RecordedGame, answer, as_probabilities, random_table


def voting(*weights, offset=0.0):
    """Return two classes; the second has p = offset + the weights of the kept features."""
    w = np.array(weights)

    def function(masks):
        p = offset + masks @ w
        return np.column_stack([1 - p, p])

    return RecordedGame(len(w), function)


def of_values(*weights):
    w = np.array(weights)
    return RecordedGame(len(w), lambda masks: (masks @ w)[:, None])


def explanation_of(game, scores, target=1, output=None, **fields):
    prediction = game.values(np.ones((1, game.d), dtype=bool))[0]
    return explanation_by_hand(scores, prediction, target, output=output, **fields)


def measure(metric, game, scores, **options):
    return answer(metric.measure(explanation_of(game, scores, **options)), game)


# -- faithfulness -------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "same"), [(1, 0.0), (2, 1.0), (3, 1.0), (4, 1.0), (50, 1.0)])
def test_faithfulness_at_k(k, same):
    """Check .4, which is too small for the second class, and .4 + .3, which is not."""
    game = voting(0.4, 0.3, 0.1, 0.2)
    assert measure(Faithfulness(k=k), game, [4, 3, 1, 2]) == {None: same}
    np.testing.assert_array_equal(game.masks[0], True)
    assert game.masks[1].sum() == min(k, 4)


def test_faithfulness_keeps_the_best_and_not_the_first():
    game = voting(0.1, 0.1, 0.7)
    assert measure(Faithfulness(k=1), game, [0, 0, 1]) == {None: 1.0}
    assert measure(Faithfulness(k=1), game, [1, 0, 0]) == {None: 0.0}


def test_faithfulness_at_sparsities():
    game = voting(0.4, 0.3, 0.1, 0.2)
    scores = [4, 3, 1, 2]
    assert measure(Faithfulness(sparsities=(0.25, 0.5)), game, scores) == {0.25: 0.0, 0.5: 1.0}
    assert tuple(measure(Faithfulness(k=None), game, scores)) == DEFAULT_SPARSITIES
    chosen = {0.5: np.array([False, False, True, True])}
    assert measure(Faithfulness(sparsities=(0.5,)), game, scores, chosen=chosen) == {0.5: 0.0}


@pytest.mark.parametrize("target", [0, 1])
def test_faithfulness_is_about_the_prediction_whatever_class_was_explained(target):
    game = voting(0.4, 0.3, 0.1, 0.2)
    assert measure(Faithfulness(k=2), game, [4, 3, 1, 2], target=target) == {None: 1.0}
    assert measure(Faithfulness(k=2), game, [-4, -3, -1, -2], target=target) == {None: 0.0}


def test_faithfulness_of_a_model_that_always_or_never_predicts_a_class():
    always = RecordedGame(3, lambda masks: np.tile([0.2, 0.8], (len(masks), 1)))
    assert measure(Faithfulness(k=1), always, [1, 2, 3]) == {None: 1.0}
    only_whole = RecordedGame(3, lambda masks: np.where(masks.all(axis=1)[:, None], [0.1, 0.9], [0.9, 0.1]))
    assert measure(Faithfulness(k=2), only_whole, [1, 2, 3]) == {None: 0.0}
    assert measure(Faithfulness(k=3), only_whole, [1, 2, 3]) == {None: 1.0}


def test_faithfulness_of_labels_is_the_side_of_a_half():
    game = RecordedGame(2, lambda masks: np.where(masks[:, :1], [0.9, 0.6], [0.9, 0.4]))
    for target, same in ((0, 1.0), (1, 0.0)):
        assert measure(Faithfulness(k=1), game, [0, 1], target=target, output=Labels()) == {None: same}


# -- log-odds -----------------------------------------------------------------------------------


def test_delta_log_odds_by_hand():
    """Check p = .9 for all features, .6 with the top two, .3 without them."""
    game = voting(0.35, 0.25, 0.2, 0.1)
    scores = [4, 3, 2, 1]
    whole = log(0.9 / 0.1)
    positive = measure(PositiveDeltaLogOdds(k=2), game, scores)
    negative = measure(NegativeDeltaLogOdds(k=2), game, scores)
    assert positive == {None: pytest.approx(whole - log(0.3 / 0.7))}
    assert negative == {None: pytest.approx(whole - log(0.6 / 0.4))}


def test_negative_delta_log_odds_is_below_zero_where_less_is_more_convincing():
    game = voting(0.9, -0.2)
    found = measure(NegativeDeltaLogOdds(k=1), game, [1, 0])
    assert found == {None: pytest.approx(log(0.7 / 0.3) - log(0.9 / 0.1))}
    assert found[None] < 0


@pytest.mark.parametrize("target", [0, 1])
def test_delta_log_odds_are_of_the_predicted_class(target):
    game = as_probabilities(random_table(6, seed=1))
    scores = np.random.default_rng(0).normal(size=6)
    predicted = int(game.values(np.ones((1, 6), dtype=bool)).argmax())
    for own, known in ((PositiveDeltaLogOdds, Comprehensiveness), (NegativeDeltaLogOdds, Sufficiency)):
        found = measure(own(sparsities=(0.2, 0.5)), game, scores, target=target)
        same = known(scale="weight-of-evidence", sparsities=(0.2, 0.5))
        assert found == pytest.approx(measure(same, game, scores, target=predicted))


def test_log_odds_of_certainty_are_clipped():
    game = voting(1.0, 0.0)
    at_most = log((1 - TINY) / TINY)
    found = measure(PositiveDeltaLogOdds(k=1), game, [1, 0])
    assert found == {None: pytest.approx(2 * at_most, rel=1e-4)}
    assert measure(NegativeDeltaLogOdds(k=1), game, [1, 0]) == {None: pytest.approx(0.0)}


# -- monotonicity -------------------------------------------------------------------------------


def test_monotonicity_counts_the_steps_that_lose_the_decision():
    """Check p = .6, .4, .55, .9 with 1, 2, 3, 4 features: kept, lost, kept, kept."""
    game = voting(0.6, -0.2, 0.15, 0.35)
    scores = [4, 3, 2, 1]
    assert measure(Monotonicity(sizes=(1, 2, 3, 4)), game, scores) == {None: pytest.approx(2 / 3)}
    assert measure(Monotonicity(sizes=(4, 1, 3)), game, scores) == {None: 1.0}
    assert measure(Monotonicity(sizes=(1, 2)), game, scores) == {None: 0.0}
    assert measure(Monotonicity(), game, scores) == {None: 1.0}
    assert measure(Monotonicity(sparsities=(0.25, 0.5)), game, scores) == {None: 0.0}


def test_monotonicity_of_sets_that_a_search_chose():
    game = voting(0.6, 0.1, 0.1, 0.1)
    chosen = {0.25: np.array([1, 0, 0, 0], dtype=bool), 0.5: np.array([0, 1, 1, 0], dtype=bool)}
    found = measure(Monotonicity(sparsities=(0.25, 0.5)), game, [4, 3, 2, 1], chosen=chosen)
    assert found == {None: 0.0}


def test_monotonicity_needs_two_sizes():
    with pytest.raises(SettingError, match="`sizes` must be at least two different numbers"):
        Monotonicity(sizes=(5, 5))
    with pytest.raises(SettingError, match="`sparsities` must be at least two"):
        Monotonicity(sparsities=(0.5,))


# -- MAGNEx -------------------------------------------------------------------------------------


SELECTS = {"selected": 1}
"""The details of a method whose scores are probabilities of selection."""


@pytest.mark.parametrize("metric", [SufficiencyOfSelected, ShareRemoved])
def test_scores_that_select_nothing_need_a_number_or_a_threshold(metric):
    game = voting(0.4, 0.3, 0.2)
    with pytest.raises(SettingError, match=f"`k` or `threshold`, as in {metric.name}:k=5"):
        measure(metric(), game, [0.4, 0.3, 0.2])
    by_number = measure(metric(k=2), game, [0.4, 0.3, 0.2])
    assert by_number == measure(metric(threshold=0.25), game, [0.4, 0.3, 0.2])
    assert by_number == measure(metric(), game, [0.9, 0.6, 0.2], details=SELECTS)


def test_sufficiency_and_share_removed_of_the_selected():
    """Check .5, which does not exceed the threshold: .4 + .2 of .9 remain."""
    game = voting(0.4, 0.3, 0.2)
    scores = [0.9, 0.5, 0.51]
    assert measure(SufficiencyOfSelected(), game, scores, details=SELECTS) == {
        None: pytest.approx(1 - (0.9 - 0.6))
    }
    assert measure(ShareRemoved(), game, scores, details=SELECTS) == {None: pytest.approx(1 / 3)}
    assert measure(SufficiencyOfSelected(threshold=0.6), game, scores) == {None: pytest.approx(0.5)}
    assert measure(ShareRemoved(threshold=0.6), game, scores) == {None: pytest.approx(2 / 3)}
    assert measure(SufficiencyOfSelected(k=2), game, scores) == {None: pytest.approx(0.7)}
    assert measure(ShareRemoved(k=1), game, scores) == {None: pytest.approx(2 / 3)}


def test_nothing_selected_and_everything():
    game = voting(0.4, 0.4, offset=0.1)
    assert measure(SufficiencyOfSelected(), game, [0.1, 0.2], details=SELECTS) == {
        None: pytest.approx(1 - 0.8)
    }
    assert measure(ShareRemoved(), game, [0.1, 0.2], details=SELECTS) == {None: 1.0}
    assert measure(SufficiencyOfSelected(), game, [0.6, 0.7], details=SELECTS) == {None: 1.0}
    assert measure(ShareRemoved(), game, [0.6, 0.7], details=SELECTS) == {None: 0.0}


def test_sufficiency_of_selected_is_at_most_one_and_of_the_predicted_class():
    game = voting(0.9, -0.2)
    for target in (0, 1):
        assert measure(SufficiencyOfSelected(), game, [0.9, 0.1], details=SELECTS, target=target) == {
            None: 1.0
        }
        found = measure(SufficiencyOfSelected(), game, [0.1, 0.9], details=SELECTS, target=target)
        assert found == {None: pytest.approx(1 - (0.7 + 0.2))}


def test_sufficiency_of_an_answer_is_its_overlap():
    """Check 'Stanford University' and 'the Stanford University', which share 2 of 3 words."""
    game = of_values(2 / 3, 1 / 3)
    found = measure(
        SufficiencyOfSelected(), game, [0.9, 0.1], details=SELECTS, target=0, output=PlainValues()
    )
    assert found == {None: pytest.approx(2 / 3)}


# -- what makes no sense ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "match"),
    [
        (Faithfulness(), "a plain value is not a decision.*sufficiency"),
        (Monotonicity(), "a plain value is not a decision"),
        (PositiveDeltaLogOdds(), "needs probabilities"),
        (NegativeDeltaLogOdds(), "needs probabilities"),
        (SufficiencyOfSelected(), "needs probabilities, or an overlap"),
    ],
)
def test_regressors_have_no_decision(metric, match):
    with pytest.raises(SettingError, match=match):
        measure(metric, of_values(3.0, 4.0), [1, 2], target=0, output=PlainValues(), details=SELECTS)


@pytest.mark.parametrize("metric", [Faithfulness, PositiveDeltaLogOdds, Monotonicity, SufficiencyOfSelected])
def test_one_feature(metric):
    found = measure(metric(), voting(0.8), [1.0], details=SELECTS)
    assert found[None] == (log(0.8 / 0.2) + log((1 - TINY) / TINY) if metric is PositiveDeltaLogOdds else 1.0)


# -- through a model ----------------------------------------------------------------------------


def test_mean_and_noise_masking_of_tables():
    """Check p that rises with the sum; the other column has mean 3, and noise is from −1 to 1 (App. E.2)."""

    def function(rows):
        p = 1 / (1 + np.exp(-np.asarray(rows, dtype=float).sum(axis=1)))
        return np.column_stack([1 - p, p])

    model = pertinent.wrap(function, kind="table", background=[[0.0, 2.0], [0.0, 4.0]])
    e = pertinent.explain(model, [-2.0, 1.0], method="leave-one-out", target=0, removal="mean")
    assert e.ranking[0] == 0
    metrics = [Faithfulness(k=1), PositiveDeltaLogOdds(k=1)]
    by_mean = pertinent.evaluate(model, e, metrics).explanations[0].measures
    assert by_mean == {"faithfulness": {None: 0.0}, "positive-delta-log-odds": {None: pytest.approx(1 + 1)}}
    drops = []
    for seed in range(5):
        noise = pertinent.evaluate(model, e, metrics, removal="uniform-noise:low=-1,high=1", seed=seed)
        measures = noise.explanations[0].measures
        assert measures["faithfulness"] == {None: 1.0}
        drops.append(measures["positive-delta-log-odds"][None])
    assert len({*drops}) == 5
    assert all(1 <= drop <= 3 for drop in drops)


@pytest.mark.parametrize("text", ["bad", "not so bad after all, really"])
def test_texts_of_any_length(text):
    model = pertinent.wrap(lambda texts: [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts])
    found = pertinent.compare(
        model,
        text,
        ["leave-one-out"],
        metrics=["faithfulness", "positive-delta-log-odds", "negative-delta-log-odds", "monotonicity"],
    )
    assert not found.failures
    assert found.mean("leave-one-out", "faithfulness") == 1.0
    assert found.mean("leave-one-out", "negative-delta-log-odds") == pytest.approx(0.0)
    expected = log(0.9 / 0.1) - log(0.2 / 0.8)
    assert found.mean("leave-one-out", "positive-delta-log-odds") == pytest.approx(expected)
