from __future__ import annotations

import copy
import sys
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from tests.explanations import changed

from pertinent.errors import MissingExtra, SettingError
from pertinent.rendering.colours import rgb
from pertinent.rendering.plots.explanation import show as plot
from pertinent.rendering.plots.tables import show_evaluation as plot_evaluation
from pertinent.results.explanation import Explanations

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
    broken = changed(row, input=replace(row.input, features=("$\\frac{", "b", "c")), classes=("$\\x", "$^"))
    drawn(plot(broken))


def test_control_characters_in_names_are_seen(row):
    word = "a\u202e\x9b"
    named = replace(row.input, features=(word,) * 3)
    figure = plot(changed(row, input=named, classes=(word, word), method=word))
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
    # Only one patch has a score; everything else is a shade of grey.
    coloured = np.zeros((6, 9), dtype=bool)
    coloured[2:4, 2:4] = True
    np.testing.assert_array_equal(np.ptp(heat, axis=2) > 40, coloured)


def painted_pixels(e, **look):
    return np.asarray(e.plot(**look).axes[1].images[0].get_array())


@pytest.fixture
def spread(image):
    """Scores of all sizes over an image that goes from black to white."""
    return replace(image, scores=np.linspace(-1, 1, len(image.features)))


PALE = 1 - 0.6 * (1 - np.linspace(0, 1, 54).reshape(6, 9, 1))
"""The image of `spread` under its heat map."""


@pytest.mark.parametrize("opacity", [None, 0.4, 1.0])
def test_the_image_is_readable_below_its_heat_map(spread, opacity):
    alpha = (opacity or 0.75) * np.abs(spread.heatmap())[..., None]
    expected = 255 * (alpha * rgb(np.sign(spread.heatmap())) / 255 + (1 - alpha) * PALE)
    np.testing.assert_allclose(painted_pixels(spread, opacity=opacity), expected, atol=2)
    unscored = replace(spread, scores=np.zeros(len(spread.features)))
    np.testing.assert_allclose(painted_pixels(unscored), 255 * np.repeat(PALE, 3, axis=2), atol=1)


def test_the_colour_bar_has_the_colours_of_the_scores(spread):
    bar = spread.plot().axes[-1].collections[-1]
    share = np.linspace(-1, 1, 9)
    np.testing.assert_allclose(bar.cmap((share + 1) / 2)[..., :3], rgb(share) / 255, atol=2 / 255)
    np.testing.assert_array_equal(bar.get_clim(), (-1, 1))


@pytest.mark.parametrize("opacity", [0.0, 1.5])
def test_an_opacity_out_of_range(spread, opacity):
    with pytest.raises(SettingError, match="`opacity` must be"):
        spread.plot(opacity=opacity)


def test_a_colour_map_by_name(spread):
    from matplotlib import colormaps

    colours = 0.75 * colormaps["RdBu_r"]((spread.heatmap() + 1) / 2)[..., :3] + 0.25 * PALE
    np.testing.assert_allclose(painted_pixels(spread, colours="RdBu_r") / 255, colours, atol=2 / 255)
    assert spread.plot(colours="RdBu_r").axes[-1].collections[-1].cmap.name == "RdBu_r"
    with pytest.raises(SettingError, match="Unknown colour map 'RdBu_x'"):
        spread.plot(colours="RdBu_x")


def test_several_images_make_a_grid(image):
    """A line for each image with the maps of all methods; single maps two to a line."""
    two = [changed(image, index=i, method=m) for i in range(3) for m in ("one", "two")]
    shown = [a for a in Explanations(two).plot().axes if a.images]
    assert [a.get_title(loc="left").partition("\n")[0] for a in shown] == [
        each for i in range(3) for each in (f"input {i}", "one", "two")
    ]
    rows = [round(a.get_position().y0, 3) for a in shown]
    assert rows[0] == rows[1] == rows[2] > rows[3]
    single = [a for a in Explanations(two[::2]).plot().axes if a.images]
    rows = [round(a.get_position().y0, 3) for a in single]
    assert rows[0] == rows[1] == rows[2] == rows[3] > rows[4] == rows[5]


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
