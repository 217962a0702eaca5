"""Numbers of `benchmarks` on cases with a known answer."""

import json
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from tests.miniature import call, scripts


@pytest.fixture
def load():
    with scripts("benchmarks") as found:
        yield found


def test_operations_of_an_encoder(load):
    """Of one layer, one row of n tokens: four w × w products, two w × inner, and two of attention."""
    w, inner, n = 4, 8, 5
    config = SimpleNamespace(hidden_size=w, intermediate_size=inner, num_hidden_layers=3)
    one = 2 * n * (4 * w * w + 2 * w * inner) + 2 * (2 * n * n * w)
    assert load("common").flops(config, [n, n]) == 2 * 3 * one


def test_trees_as_sums_of_products(load):
    """A tree is the same function as its terms, and their Shapley values are those of the tree."""
    from pertinent.masks import all_coalitions, shapley_values_of

    leaves = [{"leaf_value": float(v)} for v in (1.0, -2.0, 0.5, 4.0)]
    tree = {"split_feature": 0, "left_child": leaves[0]}
    tree["right_child"] = {"split_feature": 2, "left_child": leaves[1]}
    tree["right_child"]["right_child"] = {
        "split_feature": 1,
        "left_child": leaves[2],
        "right_child": leaves[3],
    }
    terms = load("shapley_peers")._terms_of(tree)

    def answer(node, mask):
        while "leaf_value" not in node:
            node = node["right_child" if mask[node["split_feature"]] else "left_child"]
        return node["leaf_value"]

    for mask in product((False, True), repeat=3):
        signs = np.where(mask, 1.0, -1.0)
        assert sum(c * signs[list(members)].prod() for members, c in terms.items()) == pytest.approx(
            answer(tree, mask)
        )
    scores = np.zeros(3)
    for members, coefficient in terms.items():
        if len(members) % 2:
            scores[list(members)] += 2 * coefficient / len(members)
    table = np.array([answer(tree, mask) for mask in all_coalitions(3)])
    assert scores == pytest.approx(shapley_values_of(table))


def test_peers_of_papers_are_exact_with_all_masks(load):
    pytest.importorskip("lightgbm")
    games, peers = load("shapley_games"), load("shapley_peers")
    game = games.table("unanimity", games._unanimity(np.random.default_rng(1), 5), 5)
    for peer in (peers._leverage_shap, peers._boosted):
        assert peer(game, 2**5, 0) == pytest.approx(game.truth, abs=1e-6)


def test_long_runs_value_pairs(load, monkeypatch):
    """The interactions of a long run are those of all masks, as nearly as it says itself."""
    games = load("interaction_games")
    monkeypatch.setattr(games, "SETS", 40)
    game = games.table("sigmoid", games._sigmoid(np.random.default_rng(3)), games.D)
    truth = games.pairs_of(game, "sii")
    found, own_error = games._long_run(game.function, game.d)
    assert 0 <= own_error < 0.01 * (truth**2).mean()
    assert ((found - truth) ** 2).mean() < 4 * own_error + 1e-12


def test_interactions_in_miniature(load, tmp_path, capsys, monkeypatch):
    """One game, few evaluations: every row has an error, a best peer and a coverage."""
    pytest.importorskip("shapiq")
    pytest.importorskip("lightgbm")
    games = load("interaction_games")
    game = games.table("sigmoid", games._sigmoid(np.random.default_rng(3)), games.D)
    benchmark = load("interactions")
    monkeypatch.setattr(benchmark, "games", lambda: [game])
    out = tmp_path / "rows.json"
    call(benchmark, "--seeds", 1, "--long", 0, "--times", 5, "--json", out)
    rows = json.loads(out.read_text())
    assert [row["index"] for row in rows] == ["sii", "stii", "faith-shap"]
    for row in rows:
        assert 0 < float(row["error"]) < 10
        assert row["best peer"] in row
        assert row["coverage"].endswith("%")
    assert "within 1.05 in" in capsys.readouterr().out


def test_the_schedule_of_blocks_for_one_worker(load):
    """It loads the model for 30 s and does 600 s of work, in twice the time if it is slow."""
    schedule = load("block_schedule")
    words = {"minutes": 10, "seconds": 0.01, "seed": 0}
    fast, slow, lost = (schedule.Case(1, 100, slow, lost) for slow, lost in ((0, 0), (1, 0), (0, 30)))
    assert schedule.efficiency(fast, **words) == pytest.approx(600 / 630, abs=0.01)
    assert schedule.efficiency(slow, **words) == pytest.approx(600 / 1230, abs=0.01)
    # In 600 s about five workers are lost, each of which costs 30 s and the blocks done twice.
    assert 600 / (630 + 12 * 35) < schedule.efficiency(lost, **words) < 600 / (630 + 30)
