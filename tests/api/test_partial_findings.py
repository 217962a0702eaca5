"""Methods publish partial explanations; whether somebody listens changes nothing else."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.asks import Publish, Values
from pertinent.explainers.base import Explainer, Finding

N = 9
ROWS = np.random.default_rng(0).normal(size=(2, N)).round(2)
BACKGROUND = np.random.default_rng(1).normal(size=(20, N)).round(2)
STRICT = "stable:top=9,confidence=0.999999"
SAMPLING = {
    "shapley": {"budget": 120},
    "shapley, permutations": {"estimator": "permutations", "budget": 300},
    "shapley, regression": {"estimator": "regression", "budget": 150},
    "shapley, process": {"estimator": "process", "budget": 150},
    "shapley, early stopping": {"early_stopping": STRICT, "budget": 400, "seed": 1},
    "shapley-sampling": {"samples": 41},
    "shapley-sampling, not antithetic": {"samples": 31, "antithetic": False},
    "shapley-sampling, early stopping": {"early_stopping": STRICT, "budget": 2000},
    "kernel-shap": {"budget": 180},
    "kernel-shap, logit": {"budget": 180, "scale": "logit"},
}
SEARCHES = ["gradient-search", "ordered-search", "parallel-local-search", "random-search"]
SEARCHES += ["exhaustive-search", "taylor-search", "thompson-search"]
SETTINGS = ("antithetic", "estimator", "samples", "threshold")


class Recorder(torch.nn.Module):
    """A small network that remembers the rows it was asked for."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(N, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
        self.rows = []

    def forward(self, rows):
        self.rows += [row.tobytes() for row in rows.detach().numpy()]
        return self.layers(rows)


def explained(method, listener=None, rows=ROWS, removal="constant", **words):
    """The explanations, and the rows that the network was asked for."""
    network = Recorder()
    model = pertinent.wrap(network, output="logit", background=BACKGROUND)
    settings = {name: words.pop(name) for name in SETTINGS if name in words}
    request = pertinent.Request.from_method(method, settings, removal=removal, **words)
    network.rows.clear()
    with pertinent.Service(model) as service:
        futures = [service.submit(row, request, on_partial=listener) for row in rows]
    return [future.result() for future in futures], sorted(network.rows)


def same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, rtol=0, atol=1e-6)
        assert a.evaluations == b.evaluations
        assert a.details == b.details
        assert {s: m.tolist() for s, m in a.chosen.items()} == {s: m.tolist() for s, m in b.chosen.items()}


@pytest.mark.parametrize("name", SAMPLING)
def test_estimates_of_shapley_values_are_published_round_by_round(name):
    words, heard = SAMPLING[name], []
    method = name.partition(",")[0]
    found, rows = explained(method, heard.append, **words)
    alone, rows_alone = explained(method, **words)
    assert rows == rows_alone
    same(found, alone)
    closer = []
    for explanation in found:
        own = [p for p in heard if p.input.fingerprint == explanation.input.fingerprint]
        assert len(own) >= 2
        spent = [p.evaluations for p in own]
        assert spent == sorted(set(spent))
        assert spent[-1] < explanation.evaluations
        for partial in own:
            assert partial.class_scores.shape == partial.class_standard_errors.shape == (3, N)
        away = [np.abs(p.scores - explanation.scores).mean() for p in own]
        closer.append(away[0] - away[-1])
    assert np.mean(closer) >= 0


@pytest.mark.parametrize("method", SEARCHES)
def test_searches_publish_the_best_sets_so_far(method):
    heard = []
    words = {"budget": 130, "sparsity": [0.2, 0.4]}
    found, rows = explained(method, heard.append, **words)
    alone, rows_alone = explained(method, **words)
    assert rows == rows_alone
    same(found, alone)
    for explanation in found:
        own = [p.chosen for p in heard if p.input.fingerprint == explanation.input.fingerprint]
        assert own
        assert set(own[-1]) == {0.2, 0.4}
        for chosen in own:
            for sparsity, mask in chosen.items():
                assert mask.sum() == np.ceil(sparsity * N)
        if method != "gradient-search":  # whose last check may be the best
            assert {s: m.tolist() for s, m in own[-1].items()} == {
                s: m.tolist() for s, m in explanation.chosen.items()
            }


def test_anchors_publish_the_best_of_each_size():
    heard, words = [], {"sparsity": 0.6, "budget": 900, "threshold": 1.0}
    found, rows = explained("anchors", heard.append, **words)
    alone, rows_alone = explained("anchors", **words)
    assert rows == rows_alone
    same(found, alone)
    assert heard
    for partial in heard:
        assert partial.chosen[0.6].sum() == np.ceil(0.6 * N)
        assert partial.details["precision low"] <= 1


def test_a_listener_gets_the_models_own_columns_with_the_errors_of_random_draws():
    """Of a random removal, methods get groups of draws as more columns."""
    heard = []
    found, _ = explained("kernel-shap", heard.append, removal="background", budget=180)
    for partial in heard:
        assert partial.class_scores.shape == partial.class_standard_errors.shape == (3, N)
        assert partial.base_values.shape == (3,)
        assert (partial.class_standard_errors > 0).all()
    assert heard[-1].target == found[0].target


def test_a_search_does_not_publish_what_its_start_finds():
    heard = []
    model = pertinent.wrap(Recorder(), output="logit")
    settings = {"start": "kernel-shap"}
    request = pertinent.Request.from_method("parallel-local-search", settings, budget=200, sparsity=0.4)
    with pertinent.Service(model) as service:
        service.submit(ROWS[0], request, on_partial=heard.append)
    assert heard
    assert all(p.meaning == "membership" and p.chosen for p in heard)


def test_a_method_of_ones_own_publishes():
    class Slow(Explainer):
        name, paper, summary = "slow", "none", "one feature after the other"

        def explain(self, task):
            scores = np.zeros(task.n_features)
            for i in range(task.n_features):
                values = yield Values(np.eye(task.n_features, dtype=bool)[i : i + 1])
                scores[i] = values[0, task.target]
                yield Publish(Finding(scores=scores.copy()))
            return Finding(scores=scores)

    heard = []
    model = pertinent.wrap(Recorder(), output="logit")
    request = pertinent.Request.from_method(Slow())
    with pertinent.Service(model) as service:
        found = service.submit(ROWS[0], request, on_partial=heard.append).result()
    assert [int((p.scores != 0).sum()) for p in heard] == list(range(1, N + 1))
    assert [p.evaluations for p in heard] == list(range(1, N + 1))
    np.testing.assert_array_equal(heard[-1].scores, found.scores)
