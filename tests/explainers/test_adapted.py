"""Adapted functions and explainers of shap, captum and lime on games with known values."""

import random
import threading

import numpy as np
import pytest

import pertinent
from pertinent.errors import SettingError

WEIGHTS = np.array([3.0, -1.0, 0.5, 2.0])
ROW = np.array([1.0, 2.0, 1.0, -1.0])


@pytest.fixture(scope="module")
def linear():
    """Return a linear model with baseline 0, whose scores are weight × value."""
    return pertinent.wrap(
        lambda rows: np.asarray(rows, dtype=float) @ WEIGHTS,
        kind="table",
        output="value",
        columns=list("abcd"),
    )


CALLS = []


def counted(rows):
    """Return the same linear model with a counter of its rows."""
    CALLS.append(len(rows))
    return np.asarray(rows, dtype=float) @ WEIGHTS


def alone(game):
    """Return the effect of each feature on the empty set."""
    return game(np.eye(game.n_features)) - game(np.zeros((1, game.n_features)))


def drawn(game, samples=30):
    """Return scores with noise from the global generators, after several questions."""
    found = np.zeros(game.n_features)
    for _ in range(3):
        found += alone(game) + np.random.normal(size=game.n_features) + random.random()
        game(np.random.random((samples, game.n_features)) < 0.5)
    return found


def test_a_function_is_a_method(linear):
    e = pertinent.explain(linear, ROW, pertinent.adapt(alone), removal="constant")
    np.testing.assert_allclose(e.scores, WEIGHTS * ROW)
    assert e.method == "alone" and e.evaluations == 5 and e.settings["source"].name == "alone"


def test_it_is_measured_saved_and_resumed(linear, tmp_path):
    methods = [pertinent.adapt(alone, "mine"), "leave-one-out", "random"]
    model = pertinent.wrap(counted, kind="table", output="value", columns=list("abcd"))
    words = {"out": tmp_path / "results", "removal": "constant"}
    found = pertinent.benchmark({"rows": [ROW, -ROW]}, {"linear": model}, methods, **words)
    rows = {row[0]: row[3].mean for row in found.evaluations["rows", "linear"].summary()}
    assert rows["mine"] == pytest.approx(rows["leave-one-out"]) and "mine" in found.to_markdown()
    saved = pertinent.read(tmp_path / "results" / "rows--linear.parquet")
    assert [e.method for e in saved].count("mine") == 2
    before = sum(CALLS)
    again = pertinent.benchmark({"rows": [ROW, -ROW]}, {"linear": model}, methods, **words)
    assert again.to_markdown() == found.to_markdown()
    assert sum(CALLS) - before < before / 2  # what was found is not asked for again


def test_the_same_seed_gives_the_same_scores_in_any_company(linear):
    method = pertinent.adapt(drawn)
    rows = [ROW, 2 * ROW, -ROW, ROW + 1]
    words = {"removal": "constant", "budget": 200}
    before = np.random.get_state()[1].copy()
    together = pertinent.explain(linear, rows, method, **words)
    assert (np.random.get_state()[1] == before).all()
    for row, e in zip(rows, together, strict=True):
        np.testing.assert_array_equal(pertinent.explain(linear, row, method, **words).scores, e.scores)
    other = pertinent.explain(linear, ROW, method, seed=1, **words)
    assert not np.allclose(other.scores, together[0].scores)
    fewer = pertinent.explain(linear, ROW, pertinent.adapt(drawn, samples=2), removal="constant")
    assert fewer.evaluations < together[0].evaluations


def test_what_fails_is_said_and_no_thread_is_left(linear):
    before = threading.active_count()
    with pytest.raises(pertinent.PertinentError, match="its budget is 3"):
        pertinent.explain(linear, ROW, pertinent.adapt(alone), removal="constant", budget=3)
    with pytest.raises(pertinent.PertinentError, match="must return 4 scores, but returned"):
        pertinent.explain(linear, ROW, pertinent.adapt(lambda game: game(np.eye(4))[:2]), removal="constant")
    with pytest.raises(pertinent.PertinentError, match="mine failed: oh"):
        pertinent.explain(linear, ROW, pertinent.adapt(_fails, "mine"), removal="constant")
    with pytest.raises(SettingError, match="must be a function or an explainer"):
        pertinent.adapt(3)
    with pytest.raises(SettingError, match="must be a function, a shap, captum or lime class"):
        pertinent.adapt(dict)
    assert threading.active_count() == before


def _fails(game):
    raise ValueError("oh")


@pytest.mark.parametrize("name", ["KernelExplainer", "PermutationExplainer", "SamplingExplainer"])
def test_shap_explains_the_same_game(linear, name):
    shap = pytest.importorskip("shap")
    method = pertinent.adapt(getattr(shap, name))
    e = pertinent.explain(linear, ROW, method, removal="constant", budget=60)
    np.testing.assert_allclose(e.scores, WEIGHTS * ROW, atol=1e-6)
    assert e.method == f"shap {name}" and 0 < e.evaluations <= 16


def test_an_explainer_of_shap_that_has_its_own_model():
    shap = pytest.importorskip("shap")
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    forest = RandomForestRegressor(5, random_state=0).fit(x, x @ WEIGHTS)
    explainer = shap.TreeExplainer(forest)
    model = pertinent.wrap(forest, background=x)
    e = pertinent.explain(model, x[0], pertinent.adapt(explainer, "trees"))
    np.testing.assert_allclose(e.scores, explainer(x[:1]).values[0])
    assert e.evaluations == 0


def test_captum_explains_the_same_game(linear):
    attr = pytest.importorskip("captum.attr")
    for name, options in {"FeatureAblation": {}, "ShapleyValueSampling": {"n_samples": 3}}.items():
        method = pertinent.adapt(getattr(attr, name), **options)
        e = pertinent.explain(linear, ROW, method, removal="constant")
        np.testing.assert_allclose(e.scores, WEIGHTS * ROW, atol=1e-6)
        assert e.method == f"captum {name}"


def test_lime_explains_the_same_game(linear):
    tabular = pytest.importorskip("lime.lime_tabular")
    method = pertinent.adapt(tabular.LimeTabularExplainer, "lime's own")
    e = pertinent.explain(linear, ROW, method, removal="constant", budget=500)
    np.testing.assert_allclose(e.scores, WEIGHTS * ROW, rtol=0.05)
    assert e.method == "lime's own" and e.evaluations == 16
