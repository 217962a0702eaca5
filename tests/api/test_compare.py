"""Methods and metrics are compared once each; what cannot be compared or fitted says so."""

import pytest

import pertinent
from pertinent.errors import InputError, PertinentError, SettingError
from pertinent.explainers.lime import Lime
from pertinent.rendering.html.page import report


def words(texts):
    return [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts]


TEXTS = ["not bad", "a film", "so bad a film"]


def test_a_metric_is_there_once_with_the_same_settings():
    with pytest.raises(SettingError, match="sufficiency is listed twice"):
        pertinent.compare(words, TEXTS, "leave-one-out", ["sufficiency"] * 2, progress=False)
    both = pertinent.compare(
        words, TEXTS, "leave-one-out", ["faithfulness:k=1", "faithfulness:k=2"], progress=False
    )
    assert set(both.better) == {"faithfulness k=1", "faithfulness k=2"}


def test_a_method_is_named_once():
    with pytest.raises(SettingError, match="leave-one-out is listed twice"):
        pertinent.compare(words, TEXTS, ["leave-one-out", "random", "leave-one-out"], progress=False)
    other = pertinent.compare(words, TEXTS, [Lime(samples=20), Lime(samples=40)], progress=False)
    assert len(other.methods) == 2


def test_a_failed_input_is_told_once_in_a_report():
    found = pertinent.explain(words, ["not bad", "", "a film"], "leave-one-out", progress=False)
    judged = pertinent.evaluate(words, found, "sufficiency", progress=False)
    for evaluation in (judged, None):
        page = report(found, evaluation=evaluation)
        assert "1 failed" in page
        assert "2 failed" not in page


def test_a_comparison_of_which_nothing_is_measured_raises_the_reason():
    with pytest.raises(PertinentError, match="class"):
        pertinent.compare(words, TEXTS, "leave-one-out", "class-faithfulness:target=7", progress=False)


def test_a_network_is_no_setting():
    rows = [[float(i % 3), float(i % 5)] for i in range(30)]
    model = pertinent.wrap(lambda rows: [[0.9 - r[0] / 9, 0.1 + r[0] / 9] for r in rows], background=rows)
    fitted = pertinent.fit(model, rows, "maple", progress=False)
    for name in ("refine", "network"):
        with pytest.raises(SettingError, match=f"Unknown setting of maple '{name}'. Known: absolute."):
            pertinent.explain(model, rows[0], fitted, **{name: 5})


def test_a_folder_is_a_path():
    with pytest.raises(SettingError, match="`folder` must be the path of a folder"):
        pertinent.load_explainer(3)


def test_a_fit_that_cannot_be_leaves_no_folder(tmp_path):
    with pytest.raises(InputError, match="maple explains table rows, but the inputs are texts"):
        pertinent.fit(words, TEXTS * 5, "maple", out=tmp_path / "f", progress=False)
    assert not (tmp_path / "f").exists()
