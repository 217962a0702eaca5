from __future__ import annotations

import copy
import sys
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest

from pertinent.errors import MissingExtra, SettingError
from pertinent.report.plots.explanation import show as plot
from pertinent.report.plots.tables import show_evaluation as plot_evaluation

pytest.importorskip("matplotlib")


def drawn(figure):
    data = BytesIO()
    figure.savefig(data, format="png")
    return data.getvalue()


def test_every_kind_can_be_drawn(explanation):
    before = "matplotlib.pyplot" in sys.modules
    assert drawn(plot(explanation)).startswith(b"\x89PNG")
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_bars_stand_in_the_order_of_the_ranking(text):
    axes = plot(text, 5).axes[0]
    widths = [bar.get_width() for bar in axes.patches]
    by_size = sorted(text.scores.tolist(), key=abs, reverse=True)
    strongest = [score for score in by_size[:5] if score]
    assert len(strongest) >= 3
    assert widths == sorted(strongest, reverse=True)


def test_names_are_not_read_as_formulas(row):
    figure = plot(row)
    drawn(figure)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert any(label.startswith("$x_1$ [b] = ") for label in labels)
    broken = replace(row, input=replace(row.input, features=("$\\frac{", "b", "c")), classes=("$\\x", "$^"))
    drawn(plot(broken))


def test_control_characters_in_names_are_seen(row):
    word = "a\u202e\x9b"
    named = replace(row.input, features=(word,) * 3)
    figure = plot(replace(row, input=named, classes=(word, word), method=word))
    data = BytesIO()
    figure.savefig(data, format="svg")
    svg = data.getvalue().decode()
    assert "a\ufffd\ufffd" in svg
    assert not set(svg) & set(word[1:])


def test_errors_are_drawn_where_known(text):
    assert "standard error" in plot(text).axes[0].get_xlabel()
    unknown = plot(replace(text, standard_errors=np.full(len(text.features), np.nan)))
    assert "standard error" not in unknown.axes[0].get_xlabel()
    assert not unknown.axes[0].containers[0].errorbar


def test_images_stand_beside_their_heat_map(image):
    left, right, _ = plot(image).axes
    grey = np.round(255 * np.linspace(0, 1, 54)).reshape(6, 9, 1)
    np.testing.assert_array_equal(left.images[0].get_array(), np.repeat(grey, 3, axis=2))
    heat = np.asarray(right.images[0].get_array()).astype(int)
    assert heat.shape == (6, 9, 3)
    # Only one patch has a score; everything else is a shade of grey.
    coloured = np.zeros((6, 9), dtype=bool)
    coloured[2:4, 2:4] = True
    np.testing.assert_array_equal(np.ptp(heat, axis=2) > 40, coloured)


def test_a_scale_without_signs_begins_at_zero(image):
    signed, selected = (plot(replace(image, meaning=meaning)) for meaning in ("effect", "magnitude"))
    assert signed.axes[-1].get_ylim()[0] < 0
    assert selected.axes[-1].get_ylim()[0] == 0


def test_scores_of_zero_can_be_drawn(explanation):
    drawn(plot(replace(explanation, scores=np.zeros(len(explanation.features)), standard_errors=None)))


def test_figures_show_themselves_and_can_be_copied(row):
    figure = plot(row)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert copy.deepcopy(figure).axes


def test_evaluations_have_a_panel_for_each_metric(evaluation):
    figure = plot_evaluation(evaluation)
    drawn(figure)
    assert len(figure.axes) == len(evaluation.better)
    for axes, metric in zip(figure.axes, evaluation.better, strict=True):
        means = [evaluation.mean(method, metric) for method in evaluation.methods]
        np.testing.assert_allclose([bar.get_width() for bar in axes.patches], means)


def test_top_is_checked(text):
    with pytest.raises(SettingError, match="`top` must be at least 1"):
        text.plot(0)
    assert len(plot(text, None).axes[0].patches) == len(text.features)


def test_a_missing_matplotlib_is_named(text, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"pertinent\[plots\]"):
        plot(text)
