"""Coarse-to-fine explanations of long texts: a known game, the budget, agreement between levels."""

import numpy as np
import pytest

import pertinent
from pertinent.explainers.base import explainers
from pertinent.explainers.coarse_to_fine import level_budgets, max_parts, merge_neighbours, refine_segments

WEIGHTS = {"p7s2w5": 3.0, "p7s2w6": 1.0, "p33s0w1": -2.0}
N_PARAGRAPHS, N_SENTENCES, N_WORDS = 60, 8, 20


def long_text(n_paragraphs=N_PARAGRAPHS):
    """Return a text of about 10,000 words."""
    return "\n\n".join(
        " ".join(" ".join(f"p{p}s{s}w{w}" for w in range(N_WORDS)) + " ." for s in range(N_SENTENCES))
        for p in range(n_paragraphs)
    )


def additive(texts):
    return [[sum(WEIGHTS.get(word, 0.0) for word in text.split())] for text in texts]


def explained(method, function=additive, text=None, **words):
    model = pertinent.wrap(function, output="value")
    options = {"budget": 1000, "progress": False, "features": "coarse-to-fine", **words}
    return pertinent.explain(model, text or long_text(), method, **options)


@pytest.mark.parametrize("method", ["shapley", "leave-one-out", "kernel-shap", "lime", "context-cite"])
def test_words_of_a_long_text_are_found_within_the_budget(method):
    e = explained(method)
    assert len(e.features) == N_PARAGRAPHS * N_SENTENCES * (N_WORDS + 1)
    assert e.evaluations <= e.cost.budget == 1000
    assert [name for name, _ in e.top(3)] == ["p7s2w5", "p33s0w1", "p7s2w6"]
    assert [level["budget"] for level in e.details["levels"]] == [250, 250, 500]
    assert not e.warnings


def test_scores_of_all_levels_agree_on_an_additive_game():
    e = explained("leave-one-out")
    sentence = N_WORDS + 1
    by_paragraph = e.scores.reshape(N_PARAGRAPHS, -1).sum(axis=1)
    truth = np.zeros(N_PARAGRAPHS)
    truth[[7, 33]] = 4.0, -2.0
    np.testing.assert_allclose(by_paragraph, truth, atol=1e-9)
    np.testing.assert_allclose(e.scores.reshape(-1, sentence).sum(axis=1)[7 * N_SENTENCES + 2], 4.0)
    assert e.scores.sum() == pytest.approx(2.0)


def test_shapley_values_sum_up_with_interactions_between_parts():
    def joint(texts):
        return [[2.0 * ("p1s0w0" in text.split() and "p5s0w0" in text.split())] for text in texts]

    e = explained("shapley", joint, long_text(8))
    assert e.scores.sum() == pytest.approx(2.0, abs=1e-6)
    top = dict(e.top(2))
    assert set(top) == {"p1s0w0", "p5s0w0"}
    np.testing.assert_allclose(list(top.values()), 1.0, atol=0.05)


def test_quiet_parts_that_are_put_together_keep_what_was_known_of_them():
    weights = {f"p{p}s0w0": 0.01 * (p % 3) for p in range(N_PARAGRAPHS)} | WEIGHTS

    def many(texts):
        return [[sum(weights.get(word, 0.0) for word in text.split())] for text in texts]

    e = explained("leave-one-out", many)
    by_paragraph = e.scores.reshape(N_PARAGRAPHS, -1).sum(axis=1)
    truth = np.array([0.01 * (p % 3) for p in range(N_PARAGRAPHS)])
    truth[[7, 33]] += 4.0, -2.0
    np.testing.assert_allclose(by_paragraph, truth, atol=1e-9)


def test_a_short_text_has_fewer_levels():
    e = explained("shapley", text="p7s2w5 is here. p33s0w1 is there.")
    assert len(e.details["levels"]) <= 2
    assert dict(e.top(2)) == pytest.approx({"p7s2w5": 3.0, "p33s0w1": -2.0})


@pytest.mark.parametrize(
    ("method", "said"), [("parallel-local-search", "chooses sets"), ("shapley-interactions", "scores pairs")]
)
def test_methods_without_scores_of_features_are_refused(method, said):
    with pytest.raises(pertinent.PertinentError, match=said):
        explained(method, text=long_text(4), sparsity=0.2)


def test_a_budget_that_is_too_small_is_refused():
    with pytest.raises(pertinent.PertinentError, match="too small for features="):
        explained("shapley-sampling", budget=8)


def test_parts_are_numbered_in_order_and_put_together():
    assert merge_neighbours(np.array([5, 5, 2, 9]), 3).tolist() == [0, 0, 1, 2]
    assert merge_neighbours(np.array([0, 1, 2, 3]), 2).tolist() == [0, 0, 1, 1]
    assert level_budgets(10, 1) == [10]


def test_refined_parts_are_never_too_many():
    rng = np.random.default_rng(0)
    for _ in range(200):
        level = np.sort(rng.integers(0, 40, 100))
        parts = merge_neighbours(level // 5, 100)
        most = int(rng.integers(2, 40))
        found = refine_segments(
            parts, rng.standard_normal(parts.max() + 1), merge_neighbours(level, 100), most
        )
        assert 1 <= found.max() + 1 <= most
        assert set(found) == set(range(found.max() + 1))


def test_room_follows_the_method():
    assert max_parts(explainers.make("leave-one-out", {}), 100) == 25
    assert max_parts(explainers.make("exact-shapley", {}), 100) == 6
