"""ContextCite compared with scikit-learn's lasso as the authors' package uses it; its metrics."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests import tiny_lm

import pertinent
from pertinent import Prompt
from pertinent.errors import SettingError
from pertinent.explainers.context_cite import ContextCite, lasso
from pertinent.testing.games import additive, play, random_table

SOURCES = ["Ann keeps the key.", "Bob keeps the map.", "Cleo keeps the lamp.", "Dan lost his shoes."]


def by_the_package(masks, outputs, alpha=0.01):
    """Fit as `LassoRegression.fit` of context-cite 0.0.4 for an answer of one token."""
    scaler, model = (
        StandardScaler(),
        Lasso(alpha=alpha, random_state=0, fit_intercept=True, tol=1e-8, max_iter=10**5),
    )
    make_pipeline(scaler, model).fit(masks.astype(float), outputs)
    return model.coef_ / scaler.scale_


@pytest.mark.parametrize("penalty", [0.01, 0.07])
@pytest.mark.parametrize(("n", "d"), [(30, 5), (200, 20)])
def test_coefficients_are_those_of_the_package(n, d, penalty):
    rng = np.random.default_rng(n + d)
    masks = rng.random((n, d)) < 0.5
    masks[:, 0] = True  # a source that was never removed
    values = masks @ rng.normal(size=(d, 2)) + rng.normal(size=(n, 2))
    found = lasso(masks, values, np.full(2, penalty))
    for column in range(2):
        expected = by_the_package(masks, values[:, column], penalty)
        np.testing.assert_allclose(found[:, column], expected, atol=1e-3)


def objective(masks, values, scores, penalty):
    spread = masks.std(axis=0)
    rest = values - values.mean() - (masks - masks.mean(axis=0)) @ scores
    return (rest**2).mean() / 2 + penalty * np.abs(spread * scores).sum()


@pytest.mark.parametrize(("n", "d"), [(40, 90), (80, 70), (300, 10)])
def test_no_coefficients_are_better(n, d):
    rng = np.random.default_rng(0)
    masks = rng.random((n, d)) < 0.5
    values = masks @ rng.normal(size=d) + rng.normal(size=n)
    found = lasso(masks, values[:, None], np.array([0.01]))[:, 0]
    best = objective(masks, values, by_the_package(masks, values), 0.01)
    assert objective(masks, values, found, 0.01) - best <= 1e-6 * values.var()


def test_few_sources_that_matter_are_found_and_the_others_are_zero():
    weights = np.zeros(40)
    weights[[3, 17]] = 2.0, -1.0
    found = play(ContextCite(alpha=0.04), additive(weights), budget=60)
    assert set(np.flatnonzero(found.scores[0])) >= {3, 17}
    assert (found.scores[0] == 0).sum() > 25
    np.testing.assert_allclose(found.scores[0, [3, 17]], [2.0, -1.0], atol=0.2)


def test_each_column_is_fitted_alone():
    game = random_table(6, seed=1, classes=3)
    found = play(ContextCite(), game, budget=50)
    masks = game.questions[-1]
    values = game.values(masks)[:, 1:2]
    alone = lasso(masks, values, 0.02 * values.std(axis=0))
    np.testing.assert_allclose(found.scores[1], alone[:, 0], atol=1e-5)


def test_answers_are_explained_by_log_odds_with_a_penalty_relative_to_their_spread():
    model = pertinent.wrap((tiny_lm.model("llama"), tiny_lm.tokenizer()))
    prompt = Prompt("Who keeps the map?", sources=SOURCES, answer=" Bob keeps the map")
    e = pertinent.explain(model, prompt, "context-cite", samples=64)
    assert e.request.scale == "logit"
    assert len(e.input.text.answer_tokens) > 2
    by_hand = pertinent.explain(model, prompt, "context-cite", samples=64, scale="logit")
    np.testing.assert_array_equal(e.scores, by_hand.scores)
    masks = _masks(e)
    values = _answers(model, prompt, masks)
    logits = values[:, 0] - np.log(-np.expm1(values[:, 0]))
    np.testing.assert_allclose(e.scores, by_the_package(masks, logits, 0.02 * logits.std()), atol=1e-3)
    of_token = values[:, 1] - np.log(-np.expm1(values[:, 1]))
    expected = by_the_package(masks, of_token, 0.02 * of_token.std())
    np.testing.assert_allclose(e.class_scores[1], expected, atol=1e-3)


def _masks(e):
    from pertinent.config.fingerprints import generator

    return generator(e.seed, "context-cite", len(e.features)).random((64, len(e.features))) < 0.5


def _answers(model, prompt, masks):
    from tests.models.test_language_model import values

    return values(model, [model.prepare(prompt)], [masks], "slice-out")[0]


def test_plain_values_have_no_log_odds():
    model = pertinent.wrap(
        lambda rows: np.asarray(rows) @ [1.0, 2.0], output="value", background=np.zeros((2, 2))
    )
    assert pertinent.explain(model, [1.0, 1.0], "context-cite").request.scale == "natural"


# -- metrics ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explained():
    model = pertinent.wrap((tiny_lm.model("llama"), tiny_lm.tokenizer()))
    prompt = Prompt("Who keeps the map?", sources=SOURCES, answer=" Bob")
    return model, prompt, pertinent.explain(model, prompt, "exact-shapley")


def test_the_top_source_is_removed(explained):
    model, prompt, e = explained
    found = pertinent.evaluate(model, e, ["top-k-drop", "top-k-drop:k=2"])
    order = np.argsort(-e.scores, kind="stable")
    for k, row in zip((1, 2), found.to_dataframe().itertuples(), strict=True):
        mask = np.ones(4, dtype=bool)
        mask[order[:k]] = False
        assert row.mean == pytest.approx(
            e.prediction.values[0] - _answers(model, prompt, mask[None])[0, 0], abs=1e-4
        )


def test_the_top_class_loses_log_probability():
    model = pertinent.load("sentiment")
    e = pertinent.explain(model, "a slow start, then a wonderful film", "leave-one-out")
    value = pertinent.evaluate(model, e, "top-k-drop").to_dataframe()["mean"].item()
    p, top = e.prediction.values[e.target], e.scores.max()
    assert value == pytest.approx(np.log(p) - np.log(p - top), abs=1e-4)


def test_additive_scores_rank_masks_as_the_model_does():
    weights = np.array([3.0, -1.0, 0.5, 2.0, -0.2])
    model = pertinent.wrap(
        lambda rows: np.asarray(rows) @ weights, output="value", background=np.zeros((1, 5))
    )
    row = np.ones(5)
    exact = pertinent.explain(model, row, "leave-one-out")
    assert _score(model, exact) == pytest.approx(1.0)
    assert _score(model, pertinent.explain(model, row, "random")) < 0.99


def test_scores_of_zero_have_no_correlation():
    model = pertinent.wrap(
        lambda rows: np.asarray(rows).sum(axis=1), output="value", background=np.zeros((1, 3))
    )
    assert _score(model, pertinent.explain(model, np.ones(3), "context-cite", alpha=100.0)) == 0.0


def _score(model, e):
    return pertinent.evaluate(model, e, "linear-datamodeling-score").to_dataframe()["mean"].item()


def test_plain_values_have_no_log_probability():
    model = pertinent.wrap(
        lambda rows: np.asarray(rows) @ [1.0, 2.0], output="value", background=np.zeros((2, 2))
    )
    with pytest.raises(SettingError, match="needs probabilities"):
        pertinent.evaluate(model, pertinent.explain(model, [1.0, 1.0], "leave-one-out"), "top-k-drop")


def test_the_right_source_is_known(explained):
    model, _, e = explained
    best = e.features[int(np.argmax(e.scores))]
    found = pertinent.evaluate(model, e, "precision-at-k:k=1", annotations=[best])
    assert found.to_dataframe()["mean"].item() == 1.0


def test_length_normalised_answers():
    tokenizer = tiny_lm.tokenizer()
    plain = pertinent.wrap((tiny_lm.model("llama"), tokenizer))
    model = pertinent.wrap((tiny_lm.model("llama"), tokenizer), length_normalised=True)
    prompt = Prompt("Ann keeps the key.", answer=" Ann keeps it", rather_than=" Bob")
    e, own = (
        pertinent.explain(model, prompt, "leave-one-out"),
        pertinent.explain(plain, prompt, "leave-one-out"),
    )
    n = len(e.input.text.answer_tokens)
    np.testing.assert_allclose(e.prediction.values[1], own.prediction.values[1] / n, atol=1e-5)
    other = own.prediction.values[1] - own.prediction.values[0]
    n_other = len(tokenizer(" Bob", add_special_tokens=False)["input_ids"])
    mean = own.prediction.values[1] / n - other / n_other
    np.testing.assert_allclose(e.prediction.values[0], mean, atol=1e-5)
    np.testing.assert_allclose(e.prediction.values[2:], own.prediction.values[2:], atol=1e-5)
    assert e.output.describe(-1.0).endswith("nats per token")
    assert pertinent.Explanation.from_dict(e.to_dict()).output == e.output
    assert model.fingerprint != plain.fingerprint
