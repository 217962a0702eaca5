"""Signed summaries over many inputs are of one class."""

from dataclasses import replace

import numpy as np
import pytest

import pertinent
from pertinent.app.explanation_browser import ExplanationBrowser, Filter
from pertinent.errors import SettingError
from pertinent.rendering.html.page import report
from tests.explanations import changed

WEIGHTS = np.array([2.0, -1.0])


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(30, 2))


def binary_model(rows):
    def probabilities(x):
        positive = 1 / (1 + np.exp(-np.asarray(x, dtype=float) @ WEIGHTS))
        return np.stack([1 - positive, positive], axis=1)

    return pertinent.wrap(probabilities, background=rows, columns=["a", "b"], classes=["no", "yes"])


@pytest.fixture(scope="module")
def binary(rows):
    """Return explanations of the predicted class, which differs among rows."""
    es = pertinent.explain(binary_model(rows), rows, "exact-shapley", removal="mean")
    assert {e.target for e in es} == {0, 1}
    return es


@pytest.fixture(scope="module")
def three(rows):
    def probabilities(x):
        logits = np.asarray(x, dtype=float) @ np.array([[2.0, -1.0, 0.0], [0.0, 1.0, -2.0]])
        return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)

    model = pertinent.wrap(probabilities, background=rows, columns=["a", "b"], classes=["x", "y", "z"])
    es = pertinent.explain(model, rows, "exact-shapley", removal="mean")
    assert {e.target for e in es} == {0, 1, 2}
    return es


def without_other_classes(explanations, **changes):
    """Return explanations by a method that scores only the target."""
    return pertinent.Explanations(
        [changed(e, class_scores=None, class_standard_errors=None, **changes) for e in explanations]
    )


def assert_of_positive_class(result, binary):
    for place, name in enumerate(("a", "b")):
        expected = [e.class_scores[1, place] for e in binary]
        np.testing.assert_allclose(result.scored[name].scores, expected, atol=1e-12)
        np.testing.assert_allclose(result.rows_for(name)[0].effect, np.mean(expected), atol=1e-12)


def test_binary_importance_is_for_the_positive_class(binary, rows):
    result = binary.importance()
    assert result.groups == [""] and result.targets == {"": "yes"} and result.is_signed
    assert_of_positive_class(result, binary)
    scores, values = np.array(result.scored["a"].scores), rows[:, 0]
    assert np.corrcoef(scores, values)[0, 1] > 0.9  # a high value supports "yes" in every row
    cohorts = ["large" if value > 0 else "small" for value in values]
    assert binary.importance(cohorts).targets == {"small": "yes", "large": "yes"}


def test_scores_of_the_other_class_change_sign(binary):
    assert_of_positive_class(without_other_classes(binary).importance(), binary)
    assert_of_positive_class(
        without_other_classes(binary, scale="logit", base_values=None).importance(), binary
    )


@pytest.mark.parametrize("changes", [{"scale": "raw"}, {"scale": "log-probability"}, {"base_values": None}])
def test_other_binary_explanations_have_a_group_per_class(binary, changes):
    result = without_other_classes(binary, **changes).importance()
    assert set(result.groups) == {"no", "yes"}
    assert result.targets == {"no": "no", "yes": "yes"}


def test_several_classes_have_a_group_each(three):
    result = three.importance()
    assert set(result.groups) == {"x", "y", "z"} and result.is_signed
    assert result.targets == {name: name for name in result.groups}
    expected = np.mean([e.scores[0] for e in three if e.target_name == "y"])
    (row,) = [row for row in result.rows_for("a") if row.group == "y"]
    np.testing.assert_allclose(row.effect, expected)
    assert len(three.importance().plot("beeswarm").axes) >= 3


def test_a_signed_summary_of_mixed_classes_is_refused(three, tmp_path):
    result = three.importance(["one", "other"] * 15)
    assert not result.is_signed and result.targets == {"one": None, "other": None}
    assert all(np.isnan(row.effect) and row.mean > 0 for row in result.rows)
    with pytest.raises(SettingError, match=r'importance\("class"\).*`target`'):
        result.plot("beeswarm")
    result.plot("bars")
    result.save(tmp_path / "found.json")
    again = pertinent.read(tmp_path / "found.json")
    assert again.targets == result.targets and np.isnan(again.rows[0].effect)
    assert "nan" not in result.to_html()


def test_a_chosen_class_is_kept(three):
    es = pertinent.Explanations([e.for_class("z") for e in three])
    result = es.importance(["one", "other"] * 15)
    assert result.targets == {"one": "z", "other": "z"} and result.is_signed


def test_unsigned_scores_have_one_group(three):
    es = pertinent.Explanations([replace(e, meaning="magnitude", scores=np.abs(e.scores)) for e in three])
    result = es.importance()
    assert result.groups == [""] and result.is_signed


def test_pages_and_reports_of_mixed_classes(three):
    assert "Which features matter" in report(three, groups=["one", "other"] * 15)
    saved = ExplanationBrowser(three, "run")
    view = saved.list_view(Filter(method="exact-shapley", by="a", view="beeswarm"))
    assert "nan" not in str(view["importance"])


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # from the import of shap
def test_rows_for_shap_have_the_scores_of_the_second_class(binary):
    expected = [e.class_scores[1] for e in binary]
    np.testing.assert_allclose(binary.to_shap().values, expected, atol=1e-12)
