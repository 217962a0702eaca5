"""Pairs of features in explanations: the strongest, as tables, saved and read, as shapiq's values."""

from dataclasses import replace

import numpy as np
import pytest

import pertinent
from pertinent.errors import MissingExtra


def answers(texts):
    """0.5 + 0.2 if one of "good" and "bad" is there, − 0.3 if "not" and "good" are, + 0.1 for "film"."""
    rows = []
    for text in texts:
        words = set(text.split())
        p = 0.4 + 0.2 * ("good" in words) - 0.3 * ({"not", "good"} <= words) + 0.1 * ("film" in words)
        rows.append([1 - p, p])
    return rows


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(answers, classes=["bad", "good"])


@pytest.fixture(scope="module")
def explanation(model):
    return pertinent.explain(model, "a film not good", "shapley-interactions", target="good")


def test_strongest_pairs(explanation):
    first, *rest = explanation.top_pairs(3)
    assert first.features == ("not", "good")
    assert first.value == pytest.approx(-0.3)
    assert first.standard_error == 0
    assert [abs(each.value) < 1e-12 for each in rest] == [True, True]
    assert explanation.interactions == pytest.approx(explanation.interactions.T)
    assert not explanation.interactions.diagonal().any()


def test_pairs_as_a_table(explanation):
    frame = explanation.pairs_to_dataframe()
    assert len(frame) == 6
    assert frame.iloc[0].tolist() == ["not", "good", pytest.approx(-0.3), 0.0]


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_saved_and_read(explanation, tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
    explanation.save(path)
    read = pertinent.Explanation.read(path)
    assert np.array_equal(read.interactions, explanation.interactions)
    assert np.array_equal(read.interaction_standard_errors, explanation.interaction_standard_errors)


def test_damaged_pairs_are_refused(explanation):
    plain = explanation.to_dict()
    with pytest.raises(pertinent.PertinentError, match="`interactions` must have shape 4 × 4"):
        pertinent.Explanation.from_dict(plain | {"interactions": [[0.0, 1.0], [1.0, 0.0]]})
    negative = (-np.ones((4, 4))).tolist()
    with pytest.raises(pertinent.PertinentError, match="`interaction_standard_errors` must be at least 0"):
        pertinent.Explanation.from_dict(plain | {"interaction_standard_errors": negative})


def test_another_class_has_no_pairs(explanation):
    assert explanation.for_class("good").interactions is not None
    other = explanation.for_class("bad")
    assert other.interactions is None
    assert other.scores == pytest.approx(-explanation.scores)


def test_errors_of_methods_without_pairs(model):
    e = pertinent.explain(model, "a film not good", "kernel-shap")
    for use in (e.top_pairs, e.pairs_to_dataframe, e.to_shapiq, e.plot_interactions):
        with pytest.raises(pertinent.PertinentError, match="method='shapley-interactions'"):
            use()


def test_shapiq_values(explanation):
    pytest.importorskip("shapiq")
    values = explanation.to_shapiq()
    assert values.index == "k-SII"
    assert values[(2, 3)] == pytest.approx(-0.3)
    assert values[(1,)] == pytest.approx(0.1)
    assert values.baseline_value == pytest.approx(0.4)
    assert values.values.sum() == pytest.approx(explanation.prediction.values[1])


def test_shapiq_is_an_optional_dependency(explanation, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "shapiq", None)
    with pytest.raises(MissingExtra, match=r"pertinent\[shapiq\]"):
        explanation.to_shapiq()


def test_pairs_that_are_not_finite_are_shown(explanation):
    values = explanation.interactions.copy()
    values[0, 1] = values[1, 0] = np.nan
    odd = replace(explanation, interactions=values)
    assert odd.top_pairs(1)[0].features == ("not", "good")
    odd.to_html()
