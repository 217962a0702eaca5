"""Numbers of `experiments/vo2023` on cases with a known answer."""

import json

import numpy as np
import pytest

from tests.miniature import scripts


@pytest.fixture
def load():
    with scripts("experiments/vo2023") as found:
        yield found


def test_rates_of_selected_columns(load):
    truth = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1]], dtype=bool)
    chosen = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1]], dtype=bool)
    # Half found and half wrong; nothing found and nothing wrong; all found and nothing wrong.
    assert load("known_features").rates(chosen, truth) == pytest.approx((1.5 / 3, 0.5 / 3))


def test_what_a_decision_depends_on(load):
    own = load("known_features")
    rng = np.random.default_rng(0)
    for task in own.TASKS:
        x = own.draw_rows(task, 200, 0)
        needed = own.relevant(task, x)
        for column in range(own.N_COLUMNS):
            moved = x.copy()
            moved[:, column] += rng.normal(size=200) * (column != 9)  # a switch stays where it is
            changed = ~np.isclose(own.log_odds(task, x), own.log_odds(task, moved))
            assert not changed[~needed[:, column]].any()
            assert changed[needed[:, column]].all() or column == 9
    flipped = own.draw_rows("switch", 200, 0) * np.where(np.arange(10) == 9, -1, 1)
    assert not np.isclose(
        own.log_odds("switch", own.draw_rows("switch", 200, 0)), own.log_odds("switch", flipped)
    ).any()


def test_ranks_are_those_of_the_largest_scores(load):
    ranks = load("known_features").ranks_of(np.array([[0.1, 3.0, -1.0]]), np.random.default_rng(0))
    assert ranks.tolist() == [[2, 1, 3]]


def test_means_over_seeds_and_inputs(load):
    results = load("results")
    runs = [
        {"values": {"brevity": [1.0, 2.0, 6.0]}, "words": [["a"] * 4, ["b"] * 2, ["c"] * 4]},
        {"values": {"brevity": [3.0, 4.0, 8.0]}, "words": [["a"] * 4, ["b"] * 2, ["c"] * 4]},
        {"values": {}, "words": []},
    ]
    assert results.over(runs, "brevity").mean == pytest.approx(4.0)
    assert results.over(runs, "brevity", first=2).mean == pytest.approx(2.5)
    assert results.over(runs, "brevity", more_words_than=3).mean == pytest.approx(4.5)
    assert results.over(runs, "purity") is None


def test_results_of_one_row(load, tmp_path):
    results = load("results")
    for name in ("imdb_aim_0", "imdb_aim_1", "imdb_aim_with_a_selector_0", "imdb_l2x_5_0", "imdb_l2x_0"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"name": name}))
    (tmp_path / "imdb_aim_2.json").write_text(json.dumps({"error": "it failed"}))
    found = results.read_results(tmp_path)
    assert [own["name"] for own in results.of(found, "imdb", "aim")] == ["imdb_aim_0", "imdb_aim_1"]
    assert [own["name"] for own in results.of(found, "imdb", "l2x")] == ["imdb_l2x_0"]
    assert [own["name"] for own in results.of(found, "imdb", "l2x 5")] == ["imdb_l2x_5_0"]
    assert len(results.of(found, "imdb", "aim, with a selector")) == 1


def test_two_classes_of_hatexplain(load):
    sets = load("sets")
    assert [sets._label("hatexplain", label) for label in (0, 1, 2)] == [1, 0, 1]
    assert [sets._label("ag_news", label) for label in range(4)] == [0, 1, 2, 3]


def test_a_linear_box_of_words_explained_by_its_own_weights(load):
    """An explainer that gives the true weights finds all true words, with the right signs."""
    from types import SimpleNamespace

    import torch

    own = load("linear_box")
    weights = np.random.default_rng(0).normal(size=(30, 2))
    embeddings = SimpleNamespace(weight=torch.tensor(weights))
    ids, feature = np.arange(2, 28), np.array([-1, *range(24), -1])
    tokens = SimpleNamespace(ids=ids, feature=feature)
    model = SimpleNamespace(
        model=SimpleNamespace(embeddings=embeddings), prepare=lambda _: SimpleNamespace(tokens=tokens)
    )
    apart = (weights[:, 1] - weights[:, 0])[ids[1:-1]]
    right = SimpleNamespace(index=0, target=1, scores=apart, class_scores=None)
    wrong = SimpleNamespace(index=0, target=1, scores=-apart, class_scores=None)
    assert own.true_words(model, ["text"], [right])["true words"] == 1.0
    assert own.true_words(model, ["text"], [right])["true signs"] == 1.0
    assert own.true_words(model, ["text"], [wrong])["rank correlation"] == pytest.approx(-1.0)
    shifted = np.stack([weights[ids[1:-1], 0], weights[ids[1:-1], 1]]) + 5.0
    of_classes = SimpleNamespace(index=0, target=1, scores=shifted[1], class_scores=shifted)
    assert own.true_words(model, ["text"], [of_classes])["true signs, relative"] == 1.0


def test_what_is_found_of_true_words(load):
    found = load("linear_box").agreement
    truth = np.array([4.0, 3.0, 0.1, -5.0, 3.0, 0.0])
    assert found(truth, truth, k=2) == (1.0, 1.0, pytest.approx(1.0))
    assert found(-truth, truth, k=2) == (0.0, 0.0, pytest.approx(-1.0))
    # Words 1 and 4 have the same weight: either is right. Of 3 and 0, the weightiest, 3 has the wrong sign.
    scores = np.array([2.0, 0.0, 0.5, 1.0, 3.0, -1.0])
    share, signs, rho = found(scores, truth, k=2)
    assert (share, signs) == (1.0, 0.5)
    ranks = [5, 2, 3, 4, 6, 1], [6, 4.5, 3, 1, 4.5, 2]
    assert rho == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert found(np.zeros(6), truth, k=2)[2] == 0.0
