"""One explanation for several classes side by side: in the terminal, as HTML, and as a plot."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from tests.explanations import changed

import pertinent
from pertinent.errors import SettingError
from pertinent.outputs import Labels, PlainValues
from pertinent.rendering.html.page import report
from pertinent.rendering.panels import class_panels, largest

from .test_escaping import ATTACK, HARMLESS, Shape

SAID = "chip shares and the cup"
SCORES = np.array(
    [
        [0.10, 0.60, 0.05, 0.0, -0.70],
        [0.40, -0.20, 0.02, 0.0, -0.10],
        [-0.30, -0.45, 0.00, 0.0, 0.80],
    ]
)


@pytest.fixture
def three():
    """A text with exact scores for three classes."""
    classes = ("Business", "Sci/Tech", "Sports")
    model = pertinent.wrap(lambda texts: [[0.5, 0.2, 0.3]] * len(texts), classes=classes)
    e = pertinent.explain(model, SAID, "shapley", sparsity=(0.4, 0.8))
    return replace(e, class_scores=SCORES, scores=SCORES[0], class_standard_errors=None, standard_errors=None)


@pytest.fixture
def ten(image):
    """An image with scores for ten classes."""
    classes = tuple(f"class {i}" for i in range(10))
    scores = np.random.default_rng(0).normal(size=(10, len(image.features)))
    prediction = np.array([0.01, 0.02, 0.03, 0.04, 0.3, 0.05, 0.06, 0.25, 0.15, 0.09])
    return changed(
        image,
        classes=classes,
        prediction=prediction,
        target=0,
        scores=scores[0],
        class_scores=scores,
        standard_errors=None,
        class_standard_errors=None,
    )


def printed(thing, width=120, **options):
    console = Console(width=width, file=StringIO(), force_terminal=True, **options)
    console.print(thing)
    return console.file.getvalue()


def test_there_is_an_explanation_for_each_class_the_most_likely_first(three):
    found = three.by_class()
    assert [e.target_name for e in found] == ["Business", "Sports", "Sci/Tech"]
    for e in found:
        assert e.scores.tolist() == three.for_class(e.target).scores.tolist()
    assert repr(found) == "<Explanation by shapley for 'Business', 'Sports', 'Sci/Tech'>"


def test_the_sets_are_the_top_features_of_each_class_at_the_smallest_sparsity(three):
    found = three.by_class()
    assert found.sparsity == 0.4
    names = np.array(three.features)
    assert [names[own].tolist() for own in found.sets] == [
        ["chip", "shares"],
        ["and", "cup"],
        ["chip", "and"],
    ]
    for own, e in zip(found.sets, found, strict=True):
        assert own.tolist() == e.mask(0.4).tolist()


def test_the_classes_asked_for_are_shown_in_that_order(three):
    assert [e.target_name for e in three.by_class("Sports", 0, "Sports")] == ["Sports", "Business"]
    with pytest.raises(SettingError, match=r"Unknown class 'Sport'. Did you mean 'Sports'\?"):
        three.by_class("Sport")


def test_of_many_classes_the_five_most_likely_and_the_target(ten):
    assert [e.target for e in ten.by_class()] == [4, 7, 8, 9, 6, 0]
    assert [e.target for e in replace(ten, target=8).by_class()] == [4, 7, 8, 9, 6]
    assert len(ten.by_class(*ten.classes)) == 10
    values = changed(ten, output=PlainValues(), target=7)
    assert [e.target for e in values.by_class()] == [0, 1, 2, 3, 4, 7]


def test_a_method_without_scores_for_all_classes_says_so(text_model):
    e = pertinent.explain(text_model, "not slow", "parallel-local-search", budget=20, sparsity=0.5)
    for asked in (e.by_class, lambda: report([e], by_class=True)):
        with pytest.raises(SettingError, match="parallel-local-search explains one class at a time"):
            asked()


def test_a_frame_has_a_row_for_each_class_and_feature(three):
    frame = three.by_class("Sports", "Business").to_dataframe()
    assert frame["target"].tolist() == ["Sports"] * 5 + ["Business"] * 5
    assert frame["score"].tolist() == [*SCORES[2], *SCORES[0]]
    assert frame["feature"][frame["chosen at 0.4"]].tolist() == ["and", "cup", "chip", "shares"]
    assert set(frame["prediction"]) == {0.3, 0.5}


def test_colours_have_one_scale(three, ten):
    found = three.by_class()
    assert largest(found) == 0.8
    assert [p.share.tolist() for p in class_panels(found)] == (SCORES[[0, 2, 1]] / 0.8).tolist()
    full = np.quantile(np.abs(ten.class_scores[:5]), 0.99)
    found = ten.by_class(*range(5))
    assert largest(found) == pytest.approx(full)
    expected = np.clip(ten.class_scores[:5] / full, -1, 1)
    np.testing.assert_allclose([p.share for p in class_panels(found)], expected)
    flat = replace(three, class_scores=np.full((3, 5), 1e-9))
    assert not any(p.share.any() for p in class_panels(flat.by_class()))
    assert printed(flat.by_class(), color_system=None).count("No feature moves the prediction") == 3


def test_the_strongest_features_and_the_top_ones_are_shown(three):
    shown = [[three.features[i] for i in p.shown] for p in class_panels(three.by_class(), top=1)]
    assert shown == [["shares", "cup"], ["cup"], ["chip"]]


def test_rows_show_the_same_columns_for_each_class(row):
    first, second = class_panels(row.by_class())
    assert first.shown.tolist() == second.shown.tolist() == [0, 1, 2]
    first, second = class_panels(row.by_class(), top=2)
    assert first.shown.tolist() == second.shown.tolist() == [1, 2]


def test_the_terminal_without_colours_marks_words_and_sets(three):
    lines = [line.rstrip() for line in printed(three.by_class(), color_system=None).splitlines()]
    assert lines[0] == " Business 50.0%   for each class, by shapley"
    place = next(i for i, line in enumerate(lines) if SAID in line)
    assert [w.split() for w in re.split(r"\s{3,}", lines[place - 1].strip())] == [
        ["Business", "50.0%"],
        ["Sports", "30.0%"],
        ["Sci/Tech", "20.0%"],
    ]
    assert lines[place].split(SAID)[1:-1] == [lines[place].split(SAID)[1]] * 2
    gap = len(lines[place].split(SAID)[1])
    marks = [lines[place + 1][1 + i * (gap + len(SAID)) :][: len(SAID)].rstrip() for i in range(3)]
    assert marks == ["++++ ######         ===", "---- ======         ###", "#### ------         ---"]
    text = "\n".join(lines)
    assert text.count("*") == 7  # six members of sets, and the legend
    assert "* the top 40% of features for each class" in text
    assert "+ supports the class, # strongly   - opposes the class, = strongly" in text


def test_panels_that_do_not_fit_stand_below(three):
    wide, narrow = (printed(three.by_class(), width, color_system=None) for width in (120, 42))
    assert [line.count(SAID) for line in wide.splitlines() if SAID in line] == [3]
    assert [line.count(SAID) for line in narrow.splitlines() if SAID in line] == [1, 1, 1]
    assert max(map(len, printed(three.by_class(), 20, color_system=None).splitlines())) <= 20


def test_the_terminal_underlines_sets_in_colour(three):
    coloured = printed(three.by_class(), color_system="truecolor")
    underlined = re.findall(r"\x1b\[1;4;[^m]*48;2[^m]*m(\w+)\x1b", coloured)
    assert underlined == ["chip", "shares", "and", "cup", "chip", "and"]


def test_other_outputs_have_their_own_words(three):
    labels, values = changed(three, output=Labels()), changed(three, output=PlainValues("m²"))
    said = printed(labels.by_class(), color_system=None)
    assert "for each label, by" in said and "supports the label" in said
    said = printed(values.by_class("Sports"), color_system=None)
    assert "for 1 of 3 values, by" in said and "raises the value" in said and "0.3 m²" in said
    assert "lowers the value" in values.by_class()._repr_html_()


def test_images_are_shown_in_terminal_and_page(ten):
    found = ten.by_class()
    assert "▀" in printed(found, color_system="truecolor")
    assert "for 6 of 10 classes" in printed(found, color_system=None)
    page = found._repr_html_()
    assert page.count("<img") == 1 + 3 * 6  # image, and for each class image, heat map and set
    assert page.count("<figcaption>the top 1</figcaption>") == 6
    assert "clipped at ±" in page


def test_html_underlines_the_set_of_each_class(three):
    page = three.by_class()._repr_html_()
    found = re.findall(
        r'<h4 class="named">(.*?) <span class="quiet">(.*?)</span></h4>(.*?)</table>', page, re.DOTALL
    )
    assert [(name, amount) for name, amount, _ in found] == [
        ("Business", "50.0%"),
        ("Sports", "30.0%"),
        ("Sci/Tech", "20.0%"),
    ]
    underlined = [re.findall(r'<span class="w in[^>]*>(\w+)<', inside) for _, _, inside in found]
    assert underlined == [["chip", "shares"], ["and", "cup"], ["chip", "and"]]
    assert [re.findall(r"<u>(\w+)</u>", inside) for _, _, inside in found] == [
        ["shares", "chip"],
        ["cup", "and"],
        ["chip", "and"],
    ]


def test_a_report_shows_classes_only_when_asked(three, search):
    plain = report([three, search])
    asked = report([three, search], by_class=True)
    assert "<summary>For each class</summary>" not in plain
    assert asked.count("<summary>For each class</summary>") == 1
    assert asked.count('<h4 class="named">') == 3


@pytest.mark.parametrize("kind", ["text", "image", "row"])
def test_hostile_names_add_no_element(kind, request):
    e = request.getfixturevalue(kind)
    shapes = []
    for word in (ATTACK, HARMLESS):
        own = changed(
            e,
            classes=(word, f"{word}2"),
            method=word,
            id=word,
            warnings=(word,),
            output=PlainValues(word),
            input=replace(e.input, features=(word,) * len(e.features), notes=(word,)),
            class_scores=np.stack([e.scores, -e.scores]),
            class_standard_errors=None,
        )
        page = own.by_class()._repr_html_()
        shapes.append(Shape(page + report([own], by_class=True)).shape)
        assert "<script>" not in page
    assert shapes[0] == shapes[1]


def test_hostile_names_are_not_markup_in_the_terminal(text):
    e = changed(text, classes=("[red]\x1b]0;owned\x07", "[/bold]x"))
    for system in (None, "truecolor"):
        said = printed(e.by_class(), color_system=system)
        assert "[/bold]x" in said and "[red]␛]0;owned" in said
        assert "\x07" not in said


def test_a_plot_has_a_panel_for_each_class(three):
    figure = three.by_class().plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "Business 50.0%",
        "Sports 30.0%",
        "Sci/Tech 20.0%",
    ]
    first = figure.axes[0]
    assert [label.get_text() for label in first.get_yticklabels()] == ["shares", "chip", "and", "cup"]
    assert [bar.get_width() for bar in first.patches] == [0.6, 0.1, 0.05, -0.7]
    assert [bar.get_linewidth() > 0 for bar in first.patches] == [True, True, False, False]
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    assert "outlined: the top 40% of features for each class" in figure.legends[0].get_title().get_text()


def test_plots_of_rows_and_images(row, ten):
    figure = row.by_class().plot()
    assert [axes.get_title(loc="left")[:7] for axes in figure.axes] == [
        row.classes[i][:7] for i in _order(row)
    ]
    figure = ten.by_class(*range(10)).plot()
    drawn = [axes for axes in figure.axes if axes.get_images()]
    assert len(drawn) == 1 + 2 * 10
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title for title in titles if title.startswith("class ")] == [
        f"class {i} {100 * p:.1f}%" for i, p in enumerate(ten.prediction.values)
    ]
    with pytest.raises(SettingError, match="`top`"):
        row.by_class().plot(top=0)


def _order(e):
    return np.argsort(-e.prediction.values, kind="stable")
