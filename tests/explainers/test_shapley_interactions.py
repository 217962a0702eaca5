"""Interactions of pairs: indices and their definitions, the process and Bayes' rule, coverage."""

from itertools import combinations

import numpy as np
import pytest
from tests.reference import interactions as reference

import pertinent
from pertinent.errors import BudgetError, SettingError
from pertinent.explainers.base import Sampling, Task
from pertinent.explainers.early_stopping import EarlyStopping
from pertinent.explainers.shapley import interaction_gaussian_process, interaction_index
from pertinent.explainers.shapley.gaussian_process import CONSTANT, Prior, noise_variances
from pertinent.explainers.shapley.interaction_gaussian_process import posterior
from pertinent.explainers.shapley.interaction_index import (
    INDICES,
    INDICES_OF_THREE,
    exact_pairs,
    exact_singles,
    exact_triples,
)
from pertinent.explainers.shapley.mask_design import design
from pertinent.explainers.shapley.shapley_interactions import ShapleyInteractions
from pertinent.masks import all_coalitions, full_mask, shapley_values_of
from pertinent.rendering.pairs import shown_triples
from pertinent.testing import games

D = 5
TABLE = games.random_table(D, 0).values(all_coalitions(D))
INDEX_NAMES = sorted(INDICES)


def made(index="k-sii"):
    return ShapleyInteractions(index=index)


def above(matrix):
    return matrix[np.triu_indices(len(matrix), 1)]


@pytest.mark.parametrize("name", INDEX_NAMES)
def test_exact_pairs_are_those_of_the_definition(name):
    expected = {
        "sii": reference.shapley_pairs,
        "k-sii": reference.shapley_pairs,
        "stii": reference.taylor_pairs,
        "banzhaf": reference.banzhaf_pairs,
        "faith-shap": lambda table: reference.faith_shap(table)[1],
    }[name](TABLE[:, 0])
    assert exact_pairs(INDICES[name], TABLE)[..., 0] == pytest.approx(expected, abs=1e-10)


def test_exact_values_of_single_features():
    single = {name: exact_singles(index, TABLE)[:, 0] for name, index in INDICES.items()}
    pairs = {name: exact_pairs(index, TABLE)[..., 0] for name, index in INDICES.items()}
    phi, table, masks = shapley_values_of(TABLE)[:, 0], TABLE[:, 0], all_coalitions(D)
    assert single["sii"] == pytest.approx(phi)
    assert single["k-sii"] == pytest.approx(phi - pairs["k-sii"].sum(axis=1) / 2)
    assert single["stii"] == pytest.approx(table[1 << np.arange(D)] - table[0])
    assert single["faith-shap"] == pytest.approx(reference.faith_shap(table)[0], abs=1e-10)
    assert single["banzhaf"] == pytest.approx(
        [table[masks[:, i]].mean() - table[~masks[:, i]].mean() for i in range(D)]
    )


@pytest.mark.parametrize("name", ["k-sii", "stii", "faith-shap"])
@pytest.mark.parametrize("budget", [2**7, 60])
def test_features_and_pairs_explain_the_prediction(name, budget):
    game = games.random_interactions(7, 3, order=4)
    found = games.play(made(name), game, budget=budget)
    ends = game.values(np.stack([np.zeros(7), np.ones(7)]))[:, 0]
    total = found.scores[0].sum() + above(found.interactions.values[0]).sum()
    assert total == pytest.approx(ends[1] - ends[0], abs=1e-5)
    assert found.details["base value"] == pytest.approx(ends[0])
    assert game.distinct <= budget


@pytest.mark.parametrize("budget", [2**7, 60])
def test_shapley_values_beside_pairs_add_up(budget):
    game = games.random_interactions(7, 3, order=4, classes=2)
    found = games.play(made("sii"), game, budget=budget)
    whole = game.values(np.ones((1, 7)))[0]
    assert found.base_values + found.scores.sum(axis=1) == pytest.approx(whole, abs=1e-12)


def test_a_pair_of_a_unanimity_game():
    """Check [1 and 3 are kept], where only both together have an effect."""
    found = games.play(made(), games.unanimity(6, [1, 3]))
    values = found.interactions.values[0]
    assert values[1, 3] == values[3, 1] == pytest.approx(1)
    assert np.abs(above(values)).sum() == pytest.approx(1)
    assert found.scores[0] == pytest.approx(np.zeros(6), abs=1e-12)
    assert not found.interactions.standard_errors.any()


def of_three(index="k-sii"):
    return ShapleyInteractions(index=index, order=3)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sii", reference.shapley_triples),
        ("k-sii", reference.shapley_triples),
        ("banzhaf", reference.banzhaf_triples),
    ],
)
def test_exact_triples_are_those_of_the_definition(name, expected):
    found = exact_triples(INDICES_OF_THREE[name], TABLE)[:, 0]
    assert found == pytest.approx(expected(TABLE[:, 0]), abs=1e-10)


def test_pairs_and_features_beside_triples_are_aggregated_as_in_k_sii():
    """Check Bernoulli's numbers 1, −1/2, 1/6 (Bordt & von Luxburg 2023)."""
    index, sets = INDICES_OF_THREE["k-sii"], list(combinations(range(D), 3))
    triples = reference.shapley_triples(TABLE[:, 0])
    pairs, single = reference.shapley_pairs(TABLE[:, 0]), shapley_values_of(TABLE)[:, 0].copy()
    single -= pairs.sum(axis=1) / 2
    for members, value in zip(sets, triples, strict=True):
        single[list(members)] += value / 6
        for i, j in combinations(members, 2):
            pairs[i, j] = pairs[j, i] = pairs[i, j] - value / 2
    assert exact_pairs(index, TABLE)[..., 0] == pytest.approx(pairs, abs=1e-10)
    assert exact_singles(index, TABLE)[:, 0] == pytest.approx(single, abs=1e-10)


@pytest.mark.parametrize("budget", [2**7, 60])
def test_features_pairs_and_triples_explain_the_prediction(budget):
    game = games.random_interactions(7, 3, order=4)
    found = games.play(of_three(), game, budget=budget)
    ends = game.values(np.stack([np.zeros(7), np.ones(7)]))[:, 0]
    total = found.scores[0].sum() + above(found.interactions.values[0]).sum()
    assert total + sum(found.details["triples"]["values"]) == pytest.approx(ends[1] - ends[0], abs=1e-5)


@pytest.mark.parametrize("d", [3, 30])
def test_a_triple_of_a_unanimity_game(d):
    """Check [0, 1 and 2 are kept], exact for three features and close with 2,000 masks of 30."""
    found = games.play(of_three("sii"), games.unanimity(d, [0, 1, 2]), budget=2000)
    triples = np.array(found.details["triples"]["values"])
    assert triples[0] == pytest.approx(1, abs=0.1)
    assert np.abs(triples[1:]).sum() < 0.1


def test_slopes_at_one():
    measure = interaction_index._SLOPE
    assert measure.moments(31) == pytest.approx([m if m % 2 == 0 else 0 for m in range(31)], abs=1e-9)


def test_intervals_cover_the_truth_of_triples():
    covered = []
    for seed in range(4):
        game = games.Smooth(10, seed).game()
        found = games.play(of_three("sii"), game, budget=200, seed=seed, target=1).details["triples"]
        truth = exact_triples(INDICES_OF_THREE["sii"], game.values(all_coalitions(10)))[:, 1]
        covered.append(np.abs(found["values"] - truth) <= 1.96 * np.array(found["standard_errors"]))
    assert 0.88 < np.mean(covered) <= 1


def test_which_triples_are_valued():
    with pytest.raises(SettingError, match="sii, k-sii, banzhaf"):
        of_three("stii")
    with pytest.raises(BudgetError, match="at most 30 features with order=3"):
        games.play(of_three(), games.unanimity(31, [0]), budget=200)


def test_top_triples_are_named_and_saved(tmp_path):
    model = pertinent.wrap(
        lambda rows: rows.prod(axis=1)[:, None], background=np.zeros((1, 4)), kind="table", output="value"
    )
    e = pertinent.explain(model, np.array([1.0, 1.0, 1.0, 1.0]), "shapley-interactions:order=3,index=sii")
    e.save(tmp_path / "e.parquet")
    again = pertinent.read(tmp_path / "e.parquet")[0]
    first = again.top_triples(1)[0]
    assert first.features == e.features[:3]
    assert first.value == pytest.approx(0.5)
    (names, value), *_ = shown_triples(again)
    assert names == " × ".join(e.features[:3])
    assert value.startswith("+0.5")
    with pytest.raises(SettingError, match="order=3"):
        pertinent.explain(model, np.ones(4), "shapley-interactions").top_triples()
    pytest.importorskip("shapiq", reason="shapiq is not installed (pip install 'pertinent[peers]')")
    assert again.to_shapiq().max_order == 3


@pytest.mark.parametrize("name", INDEX_NAMES)
def test_the_posterior_is_that_of_a_regression_on_all_sets(name):
    """Compare the closed forms with Bayes' rule with a weight for each of the 2^d sets."""
    index, masks = INDICES[name], np.concatenate([full_mask(D), design(D, 9, 0)])
    prior = Prior(np.array([0.1, 0.5, 0.3, 0.6, 0.2]), linear=2.5, noise=1e-3, even_noise=2e-3)
    place = 1 << np.arange(D)
    values, complements = TABLE[masks @ place], TABLE[~masks @ place]
    odd, even = (values - complements) / 2, (values + complements) / 2
    known = posterior(prior, index, masks, odd, even, pair_columns=[0])
    x, sets = np.where(masks, 1.0, -1.0), all_coalitions(D)
    size = sets.sum(axis=1)
    signs = np.stack([x[:, members].prod(axis=1) for members in sets], axis=1)
    variance = np.array([prior.r[members].prod() for members in sets])
    variance[size == 1] *= 1 + prior.linear
    single, pairs = np.zeros(D), np.zeros((D, D))
    parts = (
        (1, odd, index.singles_odd, index.pairs_odd),
        (0, even - even.mean(), index.singles_even, index.pairs_even),
    )
    for parity, answers, of_single, of_pair in parts:
        own = (size % 2 == parity) & (size > 0)
        covariance = (signs[:, own] * variance[own]) @ signs[:, own].T
        share = prior.noise if parity else prior.even_noise
        noise = np.diag(noise_variances(share, len(x), covariance[0, 0]))
        if parity == 0:
            covariance += CONSTANT * covariance[0, 0]
        solved = np.linalg.solve(covariance + noise, answers[:, 0])
        weight = np.where(own, variance * (signs.T @ solved), 0.0)
        for i in range(D):
            ours = sets[:, i]
            single[i] += (of_single.moments(D)[size[ours] - 1] * weight[ours]).sum()
        for i, j in combinations(range(D), 2):
            ours = sets[:, i] & sets[:, j]
            pairs[i, j] += (of_pair.moments(D)[size[ours] - 2] * weight[ours]).sum()
    assert known.singles.values[:, 0] == pytest.approx(single, abs=1e-9)
    assert above(known.pairs.values[..., 0]) == pytest.approx(above(pairs), abs=1e-9)


def test_pairs_do_not_depend_on_how_many_are_computed_at_once(monkeypatch):
    game = games.random_interactions(9, 1, order=3)
    whole = games.play(made("stii"), game, budget=90)
    monkeypatch.setattr(interaction_gaussian_process, "AT_ONCE", 1)
    parts = games.play(made("stii"), game, budget=90)
    assert parts.interactions.values == pytest.approx(whole.interactions.values, abs=1e-12)
    assert parts.interactions.standard_errors == pytest.approx(whole.interactions.standard_errors, abs=1e-12)


def test_a_game_of_pairs_is_recovered_from_few_masks():
    game = games.random_interactions(14, 0, order=2)
    found = games.play(made(), game, budget=400)
    truth = exact_pairs(INDICES["sii"], game.values(all_coalitions(14)))[..., 0]
    assert found.interactions.values[0] == pytest.approx(truth, abs=1e-3)


@pytest.mark.parametrize("name", INDEX_NAMES)
def test_intervals_cover_the_truth(name):
    """Check 1.96 standard errors on smooth games with more than pairs."""
    covered = []
    for seed in range(6):
        game = games.Smooth(10, seed).game()
        table = game.values(all_coalitions(10))
        found = games.play(made(name), game, budget=200, seed=seed, target=1)
        pairs, index = found.interactions, INDICES[name]
        off = above(pairs.values[0] - exact_pairs(index, table)[..., 1])
        covered.append(np.abs(off) <= 1.96 * above(pairs.standard_errors[0]))
        off = found.scores[1] - exact_singles(index, table)[:, 1]
        covered.append(np.abs(off) <= 1.96 * found.standard_errors[1])
    assert 0.88 < np.mean(np.concatenate(covered)) <= 1


def test_intervals_cover_the_truth_of_a_vote():
    """Check a game for which a prior fitted to all answers overfits."""
    covered = []
    for seed in range(4):
        votes = np.random.default_rng(seed).uniform(1, 10, 10)
        majority = 0.6 * votes.sum()
        game = games.RecordedGame(10, lambda masks: 1.0 * (masks @ votes > majority)[:, None])  # noqa: B023
        truth = above(exact_pairs(INDICES["sii"], game.values(all_coalitions(10)))[..., 0])
        found = games.play(made("sii"), game, budget=200, seed=seed).interactions
        covered.append(np.abs(above(found.values[0]) - truth) <= 1.96 * above(found.standard_errors[0]))
    assert np.mean(covered) > 0.9


def test_pairs_are_for_the_target_alone():
    game = games.random_interactions(6, 2, order=3, classes=3)
    table = game.values(all_coalitions(6))
    found = games.play(made(), game, target=2)
    assert found.interactions.values[0] == pytest.approx(exact_pairs(INDICES["sii"], table)[..., 2])
    assert found.scores == pytest.approx(exact_singles(INDICES["k-sii"], table).T)


def stopping(game, budget, has_listener=False, **settings):
    """Return the finding with early stopping, and the published findings."""
    d = game.d
    prediction = game.values(np.ones((1, d)))[0]
    rule, rng = EarlyStopping(**settings) if settings else None, np.random.default_rng(0)
    task = Task(
        d,
        0,
        prediction,
        budget,
        (0.5,),
        rng,
        sampling=Sampling(early_stopping=rule, has_listener=has_listener),
    )
    published, steps, answer = [], made().explain(task), None
    while True:
        try:
            ask = steps.send(answer)
        except StopIteration as stop:
            return stop.value, published
        if type(ask).__name__ == "Publish":
            published.append(ask.make())
            answer = None
        else:
            answer = ask.compute() if hasattr(ask, "compute") else game(ask.masks)


def test_stops_when_the_strongest_pairs_are_settled():
    game = games.sum_of_unanimity(12, [[0], [1, 2], [3, 4], [5, 6, 7]], np.array([1.0, 3.0, -2.0, 0.5]))
    found, _ = stopping(game, 2**12, top=2)
    assert found.details["stopped"] == "stable"
    assert game.distinct < 1000
    pairs = np.abs(np.triu(found.interactions.values[0]))
    assert np.unravel_index(pairs.argmax(), pairs.shape) == (1, 2)


def test_asks_for_all_masks_if_it_does_not_settle():
    game = games.random_table(8, 1)
    found, _ = stopping(game, 2**8, top=5)
    assert found.details["stopped"] == "all masks"
    truth = exact_pairs(INDICES["sii"], game.values(all_coalitions(8)))[..., 0]
    assert found.interactions.values[0] == pytest.approx(truth)


def test_publishes_pairs_while_it_goes_on():
    game = games.random_interactions(12, 0, order=3)
    found, published = stopping(game, 400, has_listener=True)
    assert len(published) > 1
    assert all(each.interactions.values.shape == (12, 12) for each in published)
    quiet, _ = stopping(games.random_interactions(12, 0, order=3), 400)
    assert found.interactions.values == pytest.approx(quiet.interactions.values)


def test_standard_errors_include_the_removals_draws():
    """Check that pairs vary with the random background rows as much as their errors state."""
    rng = np.random.default_rng(0)
    background = rng.normal(size=(300, 4))
    model = pertinent.wrap(
        lambda rows: np.asarray(rows)[:, 0] * np.asarray(rows)[:, 1],
        kind="table",
        output="value",
        background=background,
    )
    e = pertinent.explain(model, np.full(4, 1.0), "shapley-interactions", removal="background")
    assert e.interaction_standard_errors[0, 1] > 0
    off = abs(e.interactions[0, 1] - np.mean((1 - background[:, 0]) * (1 - background[:, 1])))
    assert off < 4 * e.interaction_standard_errors[0, 1]


@pytest.mark.parametrize("name", INDEX_NAMES)
@pytest.mark.parametrize("budget", [30, 300])
def test_games_without_interactions(name, budget):
    """Check that an additive game has no interactions and small errors; those of a constant are unknown.

    With 14 equations for 14 features STII, which counts sets of three, has large errors.
    """
    unsure = name == "stii" and budget == 30
    for weights in (np.zeros(14), np.arange(14.0)):
        found = games.play(made(name), games.additive(weights), budget=budget)
        assert np.abs(found.interactions.values).max() < (1e-2 if unsure else 1e-4)
        errors = above(found.interactions.standard_errors[0])
        assert errors.max() < (1 if unsure else 1e-3) if weights.any() else np.isnan(errors).all()
        assert found.scores[0] == pytest.approx(weights, abs=1e-2)


@pytest.mark.parametrize("d", [1, 2])
def test_one_and_two_features(d):
    game = games.unanimity(d, range(d))
    found = games.play(made(), game)
    assert found.interactions.values.shape == (1, d, d)
    assert above(found.interactions.values[0]).sum() == d - 1


def test_too_many_features():
    with pytest.raises(pertinent.PertinentError, match="at most 500 features, but there are 501"):
        made().min_budget(501)
