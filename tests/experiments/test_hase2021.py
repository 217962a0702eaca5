"""Numbers of `experiments/hase2021` on cases with a known answer."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from tests.miniature import scripts


@pytest.fixture
def load():
    with scripts("experiments/hase2021") as found:
        yield found


def searched(probability, logs):
    """A search of four features, one of which is kept at each sparsity but the last, where two are."""
    trajectory = {str(k): log for k, log in logs.items()}
    return SimpleNamespace(
        prediction=np.array([1 - probability, probability]),
        target=1,
        mask=lambda share: np.arange(4) < (2 if share == 0.5 else 1),
        details={"trajectory": trajectory},
    )


def test_course_of_a_search(load):
    """What is lost to the whole input, after so many evaluations, averaged over sparsities."""
    own = load("explain")
    e = searched(0.9, {1: [(5, 0.1), (30, 0.5)], 2: [(5, 0.3), (100, 0.7)]})
    found = dict(zip(own.GRID, own.course([e])[0], strict=True))
    assert found[10] == pytest.approx((3 * 0.8 + 0.6) / 4)
    assert found[50] == pytest.approx((3 * 0.4 + 0.6) / 4)
    assert found[1000] == pytest.approx((3 * 0.4 + 0.2) / 4)
    late = searched(0.9, {1: [(20, 0.1)], 2: [(5, 0.3)]})
    assert own.course([late])[0][0] is None  # one sparsity has nothing yet


def test_when_a_search_has_caught_up(load):
    own = load("own_search")
    e = searched(0.9, {1: [(5, 0.1), (30, 0.5)], 2: [(5, 0.3), (100, 0.7)]})
    assert own.reached([e]).tolist() == [[0.5, 0.5, 0.5, 0.7]]
    wanted = np.array([[0.1, 0.4, 0.6, 0.7]])
    np.testing.assert_array_equal(own.caught_up([e], wanted, 1), [[5, 30, np.nan, 100]])
    np.testing.assert_array_equal(own.caught_up([e], np.full((1, 4), 0.2), -1), [[5, 5, 5, np.nan]])


def test_cells_of_seeds(load, tmp_path):
    """(seeds, inputs), in points, the mean over sparsities; a seed that was not measured is NaN."""
    own = load("collect")
    for seed, methods in ((0, ("lime", "gradient")), (1, ("lime",))):
        rows = [
            {
                "method": method,
                "budget": None,
                "metric": "sufficiency",
                "values": {"probability": [[0.1, 0.3], [0.5, 0.7]], "weight-of-evidence": [[1, 2], [3, 4]]},
            }
            for method in methods
        ]
        (tmp_path / f"sst2-standard-{seed}-sufficiency.json").write_text(json.dumps({"results": rows}))
    results = own.Results(tmp_path)
    key = own.Key("sst2", False, "standard", "lime", None, "sufficiency")
    np.testing.assert_allclose(results.values(key), [[20, 60], [20, 60]])
    np.testing.assert_allclose(results.values(key, "weight-of-evidence"), [[1.5, 3.5]] * 2)
    other = results.values(own.Key("sst2", False, "standard", "gradient", None, "sufficiency"))
    assert np.isnan(other[1]).all() and len(own.measured_seeds(other)) == 1
    assert own.difference(results.values(key), other).mean == 0.0
    assert results.values(own.Key("sst2", True, "standard", "lime", None, "sufficiency")) is None


def test_the_best_of_a_column(load):
    """Sufficiency is better if lower; a lead that is not clear, or too small to be seen, is none."""
    tables = load("tables")
    low, high = np.full((2, 30), 1.0), np.full((2, 30), 2.0)
    assert tables._clearly_best({"a": low, "b": high}, "sufficiency") == "a"
    assert tables._clearly_best({"a": low, "b": high}, "comprehensiveness") == "b"
    assert tables._clearly_best({"a": low, "b": low + 0.001}, "sufficiency") is None
    assert tables.versus(low, high, "sufficiency").startswith("1.00 points better")
    assert tables.versus(low, high, "comprehensiveness").startswith("1.00 points worse")


def test_budgets(load):
    """Salience methods have as many passes as a search, both ways of a gradient counted."""
    explain, methods = load("explain"), load("methods")
    settings = methods.salience(1000)
    assert settings["integrated-gradients"]["points"] * 2 + 4 == settings["lime"]["samples"] + 4 == 1000
    runs = explain.planned(methods.SEARCHES, "sufficiency", 1000, shortest=False)
    budgets = {}
    for run in runs:
        budgets.setdefault(run.method, set()).add(run.budget)
    assert budgets["thompson-search"] == {250}
    assert budgets["ordered-search"] == {250, 1000}
    assert budgets["parallel-local-search"] == {1000}
