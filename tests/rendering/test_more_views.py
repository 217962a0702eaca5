"""Waterfalls, curves by sparsity, and long texts that are folded to where the scores are."""

import re
from itertools import pairwise

import numpy as np
import pytest

import pertinent
from pertinent.errors import SettingError


@pytest.fixture(scope="module")
def linear():
    rows = np.random.default_rng(0).normal(size=(30, 4))
    weights = np.array([3.0, -2.0, 1.0, 0.5])
    return rows, pertinent.wrap(
        lambda x: x @ weights + 7, kind="table", output="value", background=rows, columns=list("abcd")
    )


def test_a_waterfall_leads_from_the_base_value_to_the_prediction(linear):
    rows, model = linear
    e = pertinent.explain(model, rows[0], "exact-shapley", removal="mean")
    (axes,) = e.plot_waterfall(top=2).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[0] == f"base value {e.base_values[0]:.3g}" and names[3] == "2 other features"
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
    np.testing.assert_allclose(bars[0][0], e.base_values[0])
    for (start, width), (following, _) in pairwise(bars):
        np.testing.assert_allclose(start + width, following)
    np.testing.assert_allclose(sum(bars[-1]), e.prediction.values[0])
    assert len(e.plot_waterfall(10).axes[0].patches) == 4
    low, high = axes.get_xlim()
    assert all(low < min(x, x + w) and max(x, x + w) < high for x, w in bars)


def test_scores_that_do_not_add_up_have_no_waterfall(linear):
    rows, model = linear
    e = pertinent.explain(model, rows[0], "leave-one-out", removal="mean")
    with pytest.raises(SettingError, match="those of 'leave-one-out' do not"):
        e.plot_waterfall()


def test_curves_are_the_means_at_each_sparsity(linear):
    rows, model = linear
    metrics = ["sufficiency:sparsities=.25+.5+.75", "comprehensiveness:sparsities=.25+.5+.75"]
    found = pertinent.compare(model, rows, ["exact-shapley", "random"], metrics, removal="mean")
    figure = found.plot_curves()
    assert [axes.get_title(loc="left").split()[0] for axes in figure.axes] == [
        "sufficiency",
        "comprehensiveness",
    ]
    line = figure.axes[1].lines[0]
    assert line.get_label() == "exact-shapley"
    np.testing.assert_allclose(line.get_xdata(), [25, 50, 75])
    means = [
        i.mean
        for m, name, s, i in found.summary(by_sparsity=True)
        if (m, name[:3]) == ("exact-shapley", "com")
    ]
    np.testing.assert_allclose(line.get_ydata(), means)
    with pytest.raises(SettingError, match="several sparsities"):
        pertinent.evaluate(model, found.explanations, "insertion").plot_curves()


def folded(words, notable):
    """The report on a text of plain words, some of which have a score."""
    text = " ".join("loud" if i in notable else f"word{i}" for i in range(words))
    model = pertinent.wrap(
        lambda texts: [[0.9 - 0.01 * (n := t.count("loud")), 0.1 + 0.01 * n] for t in texts], kind="text"
    )
    return text, pertinent.explain(model, text, "leave-one-out", features="words", target=1).to_html()


def test_long_texts_are_folded_to_where_the_scores_are():
    text, page = folded(300, {100, 104, 200})
    drawn = re.search(r'<div class="text".*?</div>', page, re.DOTALL)[0]
    stretches = re.findall(r"<summary>… (\d+) features …</summary>(.*?)</details>", drawn, re.DOTALL)
    assert len(stretches) == 3 and drawn.count("<details") == drawn.count("</details>")
    for n, inside in stretches:
        assert inside.count('class="w') == int(n) and "loud" not in inside
    assert "word99" not in "".join(inside for _, inside in stretches)  # beside a loud word
    plain = re.sub(r"<summary>.*?</summary>|<[^>]*>", "", drawn)
    assert plain == text


def test_short_texts_and_loud_ones_are_not_folded():
    assert "<details class=" not in folded(150, {3})[1]
    assert "<details class=" not in folded(300, set(range(0, 300, 20)))[1]
