"""What a random removal draws counts in standard errors: once, and only where something is left to chance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

import pertinent
from pertinent.explainers.base import Explainer, Finding
from pertinent.explainers.removal_jackknife import RemovalJackknife
from pertinent.removals import FromBackground, UniformNoise
from pertinent.stats import student_factor

D, ROWS = 6, 300
SEEDS = 60
rng = np.random.default_rng(0)
TABLE = rng.normal(size=(ROWS, D))
TABLE = TABLE[np.argsort(TABLE[:, 0])]  # in the order of a column that matters: groups must not follow it
INPUTS = [rng.normal(size=D) for _ in range(3)]
SAMPLED = {"kernel-shap": 40, "shapley": 40, "shapley-sampling": 40}


def answer(rows):
    x = np.asarray(rows, dtype=float)
    z = 1.5 * x[:, 0] + x[:, 1] * x[:, 2] - np.abs(x[:, 3]) + x[:, 4] * x[:, 0] * x[:, 5]
    p = 1 / (1 + np.exp(-z))
    return np.stack([1 - p, p], axis=1)


MODEL = pertinent.wrap(answer, background=TABLE)


def explained(method, removal, seed=0, model=MODEL, inputs=INPUTS, **options):
    return pertinent.explain(
        model, inputs, method, removal=removal, target=1, seed=seed, progress=False, **options
    )


def coverage(method, removal, truth, model=MODEL, inputs=INPUTS, **options):
    """For each seed, the share of scores within 1.96 standard errors of the truth."""
    exact = np.array([e.scores for e in explained("exact-shapley", truth, 10**6, model, inputs, **options)])
    options["budget"] = SAMPLED.get(method)
    return [
        np.mean(
            [
                np.abs(e.scores - own) <= 1.96 * e.standard_errors
                for e, own in zip(explained(method, removal, s, model, inputs, **options), exact, strict=True)
            ]
        )
        for s in range(SEEDS)
    ]


def assert_covered(shares):
    """Between 93% and 97%, give or take what so many seeds allow; scores of one seed hang together."""
    margin = 3 * np.std(shares) / np.sqrt(len(shares))
    assert 0.93 - margin < np.mean(shares) < 0.97 + margin
    assert margin < 0.035


@pytest.mark.parametrize("rows", [20, 60])
@pytest.mark.parametrize("method", ["exact-shapley", *SAMPLED])
def test_errors_cover_the_values_of_all_background_rows(method, rows):
    assert_covered(coverage(method, f"background:rows={rows}", f"background:rows={ROWS}"))


@pytest.mark.parametrize("method", ["exact-shapley", *SAMPLED])
def test_errors_cover_the_values_without_noise(method):
    assert_covered(coverage(method, "uniform-noise:samples=8", "uniform-noise:samples=3000"))


def test_errors_of_logits():
    shares = coverage("exact-shapley", "background:rows=30", f"background:rows={ROWS}", scale="logit")
    assert_covered(shares)


def test_errors_of_an_image():
    def brightness(images):
        x = np.stack([np.asarray(image, dtype=float).mean(axis=-1) for image in images]) / 255
        left, below, right = (part.mean((1, 2)) for part in (x[:, :2, :2], x[:, 2:, :2], x[:, :, 2:]))
        p = 1 / (1 + np.exp(-4 * (left * below - right)))
        return np.stack([1 - p, p], axis=1)

    model = pertinent.wrap(brightness, kind="image")
    images = list(np.random.default_rng(3).integers(0, 255, (4, 4, 4, 3)).astype(np.uint8))
    options = {"model": model, "inputs": images, "features": "patches:2"}
    shares = coverage("exact-shapley", "uniform-noise:samples=10", "uniform-noise:samples=3000", **options)
    assert_covered(shares)


# -- where there is nothing to count -----------------------------------------------------------


@pytest.mark.parametrize("removal", [f"background:rows={ROWS}", "mean", "uniform-noise"])
@pytest.mark.parametrize("method", ["exact-shapley", "leave-one-out"])
def test_nothing_changes_without_several_random_draws(method, removal):
    assert all(e.standard_errors is None for e in explained(method, removal))


def test_methods_that_are_exact_given_the_answers_have_the_errors_of_the_draws():
    for method in ("exact-shapley", "leave-one-out", "banzhaf"):
        (e,) = explained(method, "background:rows=20", inputs=INPUTS[:1])
        assert e.standard_errors.shape == (D,)
        assert (e.standard_errors > 0).all()
        assert e.class_standard_errors.shape == e.class_scores.shape == (2, D)


def test_a_column_that_is_not_used_has_no_error():
    model = pertinent.wrap(lambda x: np.asarray(x, dtype=float)[:, :1], background=TABLE, output="value")
    (e,) = pertinent.explain(model, INPUTS[:1], "exact-shapley", removal="background:rows=10")
    assert e.standard_errors[0] > 0.01
    np.testing.assert_allclose(e.standard_errors[1:], 0, atol=1e-12)


def test_the_error_of_a_mean_is_the_textbooks():
    """f(x) = x₀: the score is x₀ minus the mean of R of N rows, drawn without replacement."""
    removal = FromBackground(rows=10, background=MODEL.background)
    model = pertinent.wrap(lambda x: np.asarray(x, dtype=float)[:, :1], background=TABLE, output="value")
    (e,) = pertinent.explain(model, INPUTS[:1], "exact-shapley", removal=removal, seed=4)
    drawn = removal(e.input, np.zeros((1, D), dtype=bool), 4)[:, 0]
    wanted = student_factor(9) * np.sqrt((1 - 10 / ROWS) * drawn.var(ddof=1) / 10)
    np.testing.assert_allclose(e.standard_errors[0], wanted, rtol=1e-9)


def test_scores_are_those_of_all_draws():
    """What is left out in turn never enters the scores, the base values or the measures."""
    removal = "background:rows=23"
    (e,) = explained("exact-shapley", removal, inputs=INPUTS[:1])
    rows = FromBackground(rows=23, background=MODEL.background)(e.input, np.zeros((1, D), dtype=bool), 0)
    one = pertinent.wrap(answer, background=rows)
    (all_of_them,) = explained("exact-shapley", "background:rows=23", model=one, inputs=INPUTS[:1])
    np.testing.assert_allclose(e.scores, all_of_them.scores, atol=1e-12)
    np.testing.assert_allclose(e.base_values, all_of_them.base_values, atol=1e-12)
    assert e.base_values.shape == (2,)


def test_a_search_sees_the_model_s_own_columns():
    for method in ("anchors", "parallel-local-search"):
        (e,) = explained(method, "background:rows=10", inputs=INPUTS[:1], budget=200)
        assert e.standard_errors is None or e.standard_errors.shape == (D,)


def test_an_explainer_that_scores_the_model_s_columns_alone_is_left_as_it_is():
    @dataclass(frozen=True)
    class Own(Explainer):
        name, paper, summary = "own", "", ""

        def explain(self, task):
            yield from ()
            return Finding(np.ones((2, task.n_features)), np.ones((2, task.n_features)))

    (e,) = explained(Own(), "background:rows=10", inputs=INPUTS[:1])
    np.testing.assert_array_equal(e.standard_errors, np.ones(D))


def test_the_batch_size_and_what_was_asked_before_do_not_matter():
    options = {"removal": "background:rows=20", "target": 1, "budget": 64, "progress": False}
    alone = pertinent.explain(MODEL, INPUTS[0], "kernel-shap", **options)
    small = pertinent.explain(MODEL, INPUTS[0], "kernel-shap", batch_size=7, **options)
    both = pertinent.compare(MODEL, INPUTS[:1], ["exact-shapley", "kernel-shap"], **options).explanations
    assert (alone.standard_errors > 0).all()
    np.testing.assert_allclose(small.standard_errors, alone.standard_errors, rtol=1e-9)
    np.testing.assert_allclose(both[1].standard_errors, alone.standard_errors, rtol=1e-9)
    np.testing.assert_allclose(both[0].standard_errors, alone.standard_errors, rtol=1e-6)


# -- the arithmetic ----------------------------------------------------------------------------


def test_groups_hold_every_draw_once():
    for draws in (2, 7, 10, 23, 100):
        groups = UniformNoise(samples=draws).groups
        assert sorted(np.concatenate(groups).tolist()) == list(range(draws))
        assert len(groups) == min(draws, 10)
    assert UniformNoise(samples=1).groups == ()


def test_the_variance_of_unequal_groups_is_unbiased():
    """Of a mean of independent draws the jackknife has the right variance, whatever the sizes."""
    sizes, draws = (1, 2, 5, 3), RemovalJackknife((1, 2, 5, 3))
    many = np.random.default_rng(0).normal(size=(20_000, 11))
    edges = np.cumsum((0, *sizes))
    without = [np.delete(many, range(a, b), axis=1).mean(axis=1) for a, b in pairwise(edges)]
    scores = np.stack([many.mean(axis=1), *without])
    squares = draws.standard_errors(scores, None) ** 2 / student_factor(3) ** 2
    assert abs(squares.mean() * 11 - 1) < 4 * squares.std() * 11 / np.sqrt(squares.size)


def test_what_residuals_contain_is_not_counted_twice():
    """The mean of noisy answers with the standard error of their residuals needs nothing added."""
    groups, n, answers = 10, 4000, 50
    noise = np.random.default_rng(1).normal(size=(n, answers, groups))
    without = (noise.sum(axis=2, keepdims=True) - noise) / (groups - 1)
    every = np.concatenate([noise.mean(axis=2, keepdims=True), without], axis=2)
    scores = every.mean(axis=1).T
    errors = np.sqrt(every.var(axis=1, ddof=1) / answers).T
    found = RemovalJackknife((1,) * groups).standard_errors(scores, errors)
    assert found.shape == (1, n)
    np.testing.assert_allclose(found.mean(), np.sqrt(1 / answers / groups), rtol=0.02)
