"""`early_stopping`: stops as soon as the order is settled, and is right as often as it says."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import pertinent
from pertinent.cli.parser import parse
from pertinent.errors import SettingError
from pertinent.explainers.early_stopping import EarlyStopping, growing_sizes
from pertinent.testing.games import additive, random_interactions, sum_of_unanimity

METHODS = ("shapley", "shapley-sampling")
D = 10


def model_of(game):
    return pertinent.wrap(lambda rows: game(np.asarray(rows) != 0), kind="table", output="value")


def explained(game, method="shapley", **options):
    rule = {name: options.pop(name) for name in ("top", "confidence") if name in options}
    options = {"early_stopping": EarlyStopping(**{"top": 3} | rule), "progress": False} | options
    return pertinent.explain(model_of(game), np.ones(game.d), method, removal="constant", **options)


def order(scores, top=3):
    return np.argsort(-np.abs(scores), kind="stable")[:top].tolist()


def hard_game(seed, d=D, size=1.0):
    """Interactions of three to five features, so that answers vary much beside what decides."""
    rng = np.random.default_rng(seed)
    sets = [rng.choice(d, rng.integers(3, 6), replace=False) for _ in range(12)] + [[i] for i in range(d)]
    return sum_of_unanimity(
        d, sets, np.concatenate([size * rng.normal(size=12), 2.0 ** -np.arange(d)])[:, None]
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("confidence", [0.6, 0.95])
def test_what_is_settled_is_right_as_often_as_it_says(method, confidence):
    """The chance to see fewer right ones than this, if each were right with the confidence, is below 1%."""
    right = []
    for seed in range(40):
        game = hard_game(seed, size=0.3)
        budget = 900 if method == "shapley" else 4000  # orders have many masks in common
        e = explained(game, method, confidence=confidence, budget=budget, seed=seed)
        if e.details["stopped"] == "stable":
            right.append(order(e.scores) == order(game.shapley[0]))
    assert len(right) >= 10
    assert np.mean(right) >= confidence - 2.33 * np.sqrt(confidence * (1 - confidence) / len(right))


@pytest.mark.parametrize("method", METHODS)
def test_an_easy_game_needs_fewer_evaluations_than_a_hard_one(method):
    easy = explained(additive(2.0 ** -np.arange(D)), method, budget=900)
    hard = [explained(hard_game(seed), method, budget=900).evaluations for seed in range(5)]
    assert easy.details["stopped"] == "stable"
    assert easy.evaluations < 0.5 * np.median(hard)
    assert order(easy.scores) == [0, 1, 2]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [D + 1, 40, 101, 300])
def test_the_budget_is_the_upper_limit(method, budget):
    game = random_interactions(D, seed=1, order=5)
    e = explained(game, method, budget=budget, top=D)
    assert e.evaluations <= budget
    assert game.distinct <= budget
    assert e.details["stopped"] in ("stable", "budget")
    assert (e.details["top"], e.details["confidence"]) == (D, 0.95)


def test_no_mask_is_paid_twice():
    """Rounds reuse what earlier ones asked: every mask is new, but for those that are repeated."""
    game = hard_game(1, d=14)
    e = explained(game, budget=600, top=14)
    assert e.details["stopped"] == "budget"
    assert game.distinct == e.evaluations
    assert len(game.masks) - game.distinct <= 1 + 3
    assert e.evaluations > 500


def test_equal_scores_are_never_told_apart_until_all_masks_are_asked():
    game = sum_of_unanimity(6, [[0, 1, 2], [3]], np.ones((2, 1)))
    few, every = explained(game, budget=60), explained(game, budget=64)
    assert few.details["stopped"] == "budget"
    assert every.details["stopped"] == "stable"
    assert (every.evaluations, every.details["estimator"]) == (64, "regression")
    np.testing.assert_allclose(every.scores, game.shapley[0], atol=1e-9)


def test_draws_of_the_removal_count_in_the_decision():
    """With few random rows the order of two columns is open, however many masks are asked."""
    table = np.random.default_rng(0).normal(size=(400, 4))
    model = pertinent.wrap(
        lambda x: np.asarray(x, dtype=float) @ [[1.0], [1.05], [0.0], [0.0]],
        background=table,
        output="value",
    )
    options = {"early_stopping": EarlyStopping(top=1), "progress": False}
    drawn = pertinent.explain(model, np.ones(4), removal="background:rows=10", **options)
    every = pertinent.explain(model, np.ones(4), removal="background:rows=400", **options)
    assert (drawn.details["stopped"], every.details["stopped"]) == ("all masks", "stable")


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("method", METHODS)
def test_few_features(method, d):
    e = explained(additive(2.0 ** -np.arange(d)), method, top=5)
    np.testing.assert_allclose(e.scores, 2.0 ** -np.arange(d), atol=1e-9)
    assert e.details["stopped"] == "stable"


@pytest.mark.parametrize("method", METHODS)
def test_the_batch_size_does_not_matter(method):
    games = [hard_game(seed) for seed in range(2)]
    many = [explained(game, method, budget=300) for game in games]
    single = [explained(game, method, budget=300, batch_size=3) for game in games]
    for one, other in zip(many, single, strict=True):
        assert one.evaluations == other.evaluations
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-9)


def test_without_early_stopping_nothing_changes():
    e = explained(hard_game(0), budget=100, early_stopping=None)
    assert e.details == {"estimator": "process"}


def test_a_run_resumes(tmp_path):
    options = {"early_stopping": "stable:top=2", "removal": "constant", "progress": False, "budget": 200}
    out = tmp_path / "run.parquet"
    game = hard_game(0)
    first = pertinent.explain(model_of(game), [np.ones(D)], out=out, **options)
    asked = game.calls
    model = model_of(hard_game(0))
    again = pertinent.explain(model, [np.ones(D)], out=out, **options)
    assert again[0].details == first[0].details
    assert again[0].evaluations == first[0].evaluations
    assert asked
    with pytest.raises(pertinent.PertinentError, match="early_stopping"):
        pertinent.explain(
            model, [np.ones(D)], out=out, **options | {"early_stopping": "stable:top=2,confidence=0.9"}
        )


def test_a_request_keeps_it():
    request = pertinent.Request.from_method("shapley", early_stopping="stable:top=3,confidence=0.9")
    assert request.early_stopping == EarlyStopping(3, 0.9)
    assert pertinent.Request.from_dict(request.to_dict()) == request
    assert replace(request, early_stopping=None).fingerprint != request.fingerprint
    assert pertinent.Request.from_method("shapley").to_dict()["early_stopping"] is None


def test_only_some_methods_can_stop():
    with pytest.raises(SettingError, match="choose shapley, shapley-interactions or shapley-sampling"):
        explained(hard_game(0), "kernel-shap")
    with pytest.raises(SettingError, match="estimator='regression'"):
        explained(hard_game(0), estimator="regression")
    with pytest.raises(SettingError, match="stable"):
        explained(hard_game(0), early_stopping="stabel")
    with pytest.raises(SettingError, match="confidence"):
        explained(hard_game(0), confidence=1)


def test_flag_of_the_command_line():
    args = parse(["explain", "some text", "--early-stopping", "stable:top=3,confidence=0.9"])
    assert EarlyStopping.from_setting(args.early_stopping) == EarlyStopping(top=3, confidence=0.9)
    assert parse(["explain", "some text"]).early_stopping is None


# -- the decision ------------------------------------------------------------------------------


def test_settled_by_hand():
    """z = Φ⁻¹(1 − 0.05 / 2) = 1.96 for one comparison at each of two looks: errors add up to 0.196."""
    one = EarlyStopping(top=1)
    assert one.settled(np.array([0.0, -1.0, 0.803]), np.array([9e-9, 0.05, 0.05]), looks=2)
    assert not one.settled(np.array([0.0, -1.0, 0.805]), np.array([9e-9, 0.05, 0.05]), looks=2)
    assert not one.settled(np.array([0.0, -1.0, 0.803]), np.array([9e-9, 0.05, 0.05]), looks=3)


def test_a_feature_far_down_with_a_large_error_counts():
    scores, errors = np.array([1.0, 0.5, 0.1]), np.array([0.01, 0.01, 0.01])
    assert EarlyStopping(top=1).settled(scores, errors, looks=1)
    assert not EarlyStopping(top=1).settled(scores, np.array([0.01, 0.01, 1.0]), looks=1)
    assert not EarlyStopping(top=1).settled(scores, np.array([0.01, 0.01, np.nan]), looks=1)


def test_features_after_the_top_may_be_tied():
    assert EarlyStopping(top=1).settled(np.array([1.0, 0.1, 0.1]), np.full(3, 0.01), looks=1)
    assert not EarlyStopping(top=2).settled(np.array([1.0, 0.1, 0.1]), np.full(3, 0.01), looks=1)


def test_rounds_grow_and_end_at_the_most():
    assert growing_sizes(12, 10) == [10]
    rounds = growing_sizes(12, 1000, step=2)
    assert rounds[-1] == 1000
    assert all(size % 2 == 0 for size in rounds)
    assert all(1.3 < b / a < 1.6 for a, b in pairwise(rounds[:-1]))
