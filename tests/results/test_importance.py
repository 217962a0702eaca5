"""Importance over many inputs: exact means, groups, files and displays."""

import json

import numpy as np
import pytest

import pertinent
from pertinent.errors import InputError, SettingError
from pertinent.rendering.html.page import report
from pertinent.rendering.plot_data import spread
from pertinent.results.importance import Importance

WEIGHTS = np.array([3.0, -1.0, 0.0])


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture(scope="module")
def linear(rows):
    """Exact Shapley values of a linear model: weight × (value − mean of the background)."""
    model = pertinent.wrap(
        lambda x: x @ WEIGHTS, kind="table", output="value", background=rows, columns=["a", "b", "c"]
    )
    return pertinent.explain(model, rows, "exact-shapley", removal="mean")


def test_mean_magnitudes_of_exact_scores(linear, rows):
    result = linear.importance()
    sizes = np.abs(WEIGHTS * (rows - rows.mean(axis=0))).mean(axis=0)
    assert result.features == ["a", "b", "c"] and result.groups == [""] and result.sizes == {"": 40}
    np.testing.assert_allclose([row.mean for row in result.rows], sizes, atol=1e-9)
    np.testing.assert_allclose([row.effect for row in result.rows], 0, atol=1e-9)
    assert all(row.low <= row.mean <= row.high and row.n == 40 for row in result.rows)
    assert result.rows[0].low > result.rows[1].high  # distinguished
    np.testing.assert_allclose(result.scored["a"].positions, np.argsort(np.argsort(rows[:, 0])) / 39)


def test_groups_are_compared(linear, rows):
    cohorts = np.where(rows[:, 0] > 1, "large", "small")
    result = linear.importance(cohorts, top=1)
    assert result.sizes == {name: int((cohorts == name).sum()) for name in result.groups}
    large, small = (
        next(row for row in result.rows_for("a") if row.group == name) for name in ("large", "small")
    )
    assert large.low > small.high and large.effect > 0 > small.effect
    assert result.n_features == 3 and result.features == ["a"]


def test_words_are_counted_in_lower_case():
    model = pertinent.wrap(
        lambda texts: [[0.5 - 0.1 * (n := t.lower().count("good")), 0.5 + 0.1 * n] for t in texts],
        kind="text",
    )
    es = pertinent.explain(
        model, ["Good and good", "good", "plain and simple", "and"], "leave-one-out", target=1
    )
    result = es.importance()
    (good,) = result.rows_for("good")
    np.testing.assert_allclose([good.mean, good.effect], [(0.2 + 0.1) / 4] * 2)
    assert (
        good.n == 2
        and result.features[0] == "good"
        and set(result.features) == {"good", "and", "plain", "simple"}
    )
    assert np.isnan(result.scored["good"].positions).all()


def test_methods_are_not_mixed(linear):
    both = pertinent.Explanations(
        [linear[0], pertinent.Explanation.from_dict({**linear[1].to_dict(), "method": "x"})]
    )
    with pytest.raises(SettingError, match=r"several methods \(exact-shapley, x\)"):
        both.importance()
    assert both.importance("method").groups == ["exact-shapley", "x"]


def test_bad_settings(linear):
    with pytest.raises(SettingError, match="Unknown groups 'age'"):
        linear.importance("age")
    with pytest.raises(
        SettingError, match="`groups` must be as many names as the 40 explanations, but got 2"
    ):
        linear.importance(["a", "b"])
    with pytest.raises(SettingError, match="`explanations` must be at least one"):
        pertinent.Explanations([]).importance()
    with pytest.raises(SettingError, match="Unknown kind 'pie'"):
        linear.importance().plot("pie")


def test_save_read_and_convert(linear, tmp_path):
    result = linear.importance("target", top=2)
    result.save(tmp_path / "i.json")
    again = pertinent.read(tmp_path / "i.json")
    assert isinstance(again, Importance) and again == result
    assert list(result.to_dataframe().feature) == ["a", "b"]
    plain = json.loads((tmp_path / "i.json").read_text())
    plain["rows"][0]["mean"] = "much"
    with pytest.raises(InputError, match=r"rows\[0\].mean"):
        Importance.from_dict(plain)


def test_displays_and_plots(linear, rows):
    result = linear.importance(np.where(rows[:, 0] > 0, "<b>", "small"))
    page = result.to_html()
    assert "&lt;b&gt;" in page and "<b>" not in page.replace("<body>", "")
    for kind in ("bars", "beeswarm"):
        (axes, *_) = result.plot(kind).axes
        assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]
    panels = result.plot("beeswarm").axes[:2]  # one for each group
    assert sum(len(each.get_offsets()) for axes in panels for each in axes.collections) == 120
    assert repr(result) == "<Importance over 40 explanations: 'a', 'b', 'c'>"


def test_points_of_a_beeswarm_do_not_overlap():
    moved = spread(np.zeros(5), 0.0, 1.0)
    assert len(set(moved)) == 5 and np.abs(moved).max() < 0.5
    assert np.abs(spread(np.zeros(500), 0.0, 1.0)).max() < 0.5


def test_reports_of_many_rows_show_importance(linear):
    assert "Which features matter" in report(linear)
    assert "Which features matter" not in report(linear[:5])


def test_the_scores_for_every_class_are_groups():
    model = pertinent.load("table")
    es = pertinent.explain(model, model.background.values[:6], "shapley", budget=60)
    result = es.importance("class")
    assert result.groups == list(model.classes) and set(result.sizes.values()) == {6}
    column = es[0].features.index("alcohol")
    for number, name in enumerate(model.classes):
        expected = np.mean([abs(e.class_scores[number, column]) for e in es])
        (row,) = [row for row in result.rows_for("alcohol") if row.group == name]
        np.testing.assert_allclose(row.mean, expected)
    sets = pertinent.explain(model, model.background.values[:2], "random-search", budget=20)
    with pytest.raises(SettingError, match="one class at a time"):
        sets.importance("class")
