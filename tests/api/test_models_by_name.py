"""Every public function accepts a model by its name, with and without a cluster."""

import sys

import numpy as np
import pytest

import pertinent
from pertinent.errors import SettingError

TEXTS = ["not bad at all", "so good", "a bad film"]
MODULE = """
import numpy as np

def classify(texts):
    p = np.array([0.9 if "bad" in text else 0.2 + len(text) % 7 / 20 for text in texts])
    return np.stack([p, 1 - p], axis=1)
"""
NAME = "named_models:classify"
QUIET = {"progress": False}


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "named_models.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("named_models", None)


def scores(explanations):
    return [e.scores.tolist() for e in explanations]


def explain_in_a_service(model):
    with pertinent.Service(model) as service:
        return [service.submit(text, "leave-one-out").result(20) for text in TEXTS]


def explain_to_file(model, tmp_path):
    return pertinent.explain(model, TEXTS, "leave-one-out", out=tmp_path / "run.parquet", **QUIET)


VERBS = {
    "explain": lambda m, _: scores(pertinent.explain(m, TEXTS, "leave-one-out", **QUIET)),
    "explain to a file": lambda m, folder: scores(explain_to_file(m, folder)),
    "explain_iter": lambda m, _: sorted(scores(pertinent.explain_iter(m, iter(TEXTS), "leave-one-out"))),
    "compare": lambda m, _: pertinent.compare(m, TEXTS, ["random", "leave-one-out"], **QUIET).rows,
    "evaluate": lambda m, _: (
        pertinent.evaluate(m, pertinent.explain(m, TEXTS, "random", **QUIET), **QUIET).rows
    ),
    "service": lambda m, _: scores(explain_in_a_service(m)),
    "check_removal": lambda m, _: pertinent.check_removal(m, TEXTS, draws=2, **QUIET).rows,
    "stability": lambda m, _: (
        pertinent.stability(m, TEXTS, "lime", seeds=2, budget=20, **QUIET).summary["mse"].mean
    ),
    "fit": lambda m, _: pertinent.fit(m, TEXTS, samples=2, epochs=1, **QUIET).name,
    "benchmark": lambda m, folder: (
        pertinent.benchmark({"d": TEXTS}, {"m": m}, "random", out=folder / "b", **QUIET)
        .to_dataframe()["mean"]
        .tolist()
    ),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_name_gives_the_results_of_the_model(verb, tmp_path):
    import named_models

    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    by_name = VERBS[verb](NAME, folders[0])
    assert by_name == VERBS[verb](pertinent.wrap(named_models.classify), folders[1])


def test_embedded_models_and_rows():
    by_name = pertinent.explain("sentiment", "so good", "leave-one-out", **QUIET)
    e = pertinent.explain(pertinent.load("sentiment"), "so good", "leave-one-out", **QUIET)
    np.testing.assert_array_equal(by_name.scores, e.scores)
    row = pertinent.load("table").background.values[0]
    assert pertinent.attack_radius("table", row, **QUIET).radii.shape == (1,)


def test_wrong_names():
    with pytest.raises(SettingError, match="Did you mean 'sentiment'"):
        pertinent.explain("sentimant", TEXTS)
    with pytest.raises(SettingError, match="no module 'no_such_models'"):
        pertinent.explain("no_such_models:model", TEXTS)
