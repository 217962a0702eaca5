"""Pairs of features in the terminal, in HTML and in figures."""

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import pertinent
from pertinent.rendering.pairs import arcs, joined_features, shown_pairs

TEXT = "a <slow> film, not <bad> at all but not good"


def classify(texts):
    rows = []
    for text in texts:
        words = " ".join(text) if isinstance(text, tuple) else text
        p = 0.5 + 0.1 * ("slow" in words) + 0.3 * ("not" in words and "bad" in words)
        rows.append([1 - p, p])
    return rows


@pytest.fixture(scope="module")
def text():
    model = pertinent.wrap(classify, classes=["no", "<i>yes</i>"])
    return pertinent.explain(model, TEXT, "shapley-interactions", budget=300, target=1)


@pytest.fixture(scope="module")
def row():
    model = pertinent.wrap(
        lambda rows: np.asarray(rows)[:, 0] * np.asarray(rows)[:, 1] + np.asarray(rows)[:, 2],
        kind="table",
        output="value",
        columns=["age", "<i>income</i>", "$x_1$ [b]"],
        background=np.zeros((1, 3)),
    )
    return pertinent.explain(model, np.array([2.0, 3.0, 1.0]), "shapley-interactions")


@pytest.fixture(scope="module")
def image():
    def classify_images(images):
        corner, middle = np.asarray(images)[:, 0, 0, 0], np.asarray(images)[:, 0, 3, 3]
        return np.stack([1 - corner * middle, corner * middle], axis=1)

    model = pertinent.wrap(classify_images, kind="image")
    return pertinent.explain(
        model, np.ones((1, 4, 4)), "shapley-interactions", features="patches:2", removal="constant"
    )


def terminal(e):
    console = Console(file=StringIO(), width=100, color_system=None)
    console.print(e)
    return console.file.getvalue()


def test_terminal_lists_the_strongest_pairs(row):
    said = terminal(row)
    assert "acting together" in said
    line = next(line for line in said.splitlines() if "age × <i>income</i>" in line)
    assert "+6.00" in line
    assert "± 0.00" in line
    assert "together they raise" in said


def test_words_that_occur_twice_are_told_apart(text):
    places = [i + 1 for i, name in enumerate(text.features) if name == "not"]
    assert f"not ({places[0]}) × bad" in terminal(text)
    assert len(places) == 2


def test_nothing_is_said_of_other_methods(row):
    model_free = replace(row, interactions=None, interaction_standard_errors=None)
    assert "acting together" not in terminal(model_free)
    assert "Acting together" not in model_free.to_html()


def test_no_pair_acts_together(row):
    nothing = replace(row, interactions=np.zeros((3, 3)))
    assert "No pair of features interacts measurably" in terminal(nothing)
    assert "No pair of features interacts measurably" in nothing.to_html()
    nothing.plot_interactions()


def test_html_draws_arcs_over_a_text(text):
    page = text.to_html()
    drawing = page[page.index("<svg") : page.index("</svg>")]
    assert drawing.count("<path") == len(shown_pairs(text))
    assert drawing.count("<rect") == len(text.features)
    assert "&lt;</text>" in drawing
    assert "&lt;i&gt;yes&lt;/i&gt;" in page
    assert "<i>yes" not in page


def test_html_draws_a_heat_map_of_a_row(row):
    page = row.to_html()
    table = page[page.index('class="heat"') :]
    table = table[: table.index("</table>")]
    assert table.count("+6.00</td>") == 2
    assert "<i>income" not in page


def test_html_shows_the_patches_of_an_image(image):
    page = image.to_html()
    assert page.count("<figure>") > image.to_html().count("heat map")
    assert "+1.00" in page[page.index("Acting together") :]


def test_long_texts_are_shortened_to_the_words_that_act(text):
    whole, short = arcs(text, 2), arcs(text, 2, widest=20)
    assert [word.text for word in whole.words] == list(text.features)
    named = [word.feature for word in short.words if word.feature is not None]
    assert named == sorted({i for arc in short.arcs for i in (arc.i, arc.j)})
    assert "…" in [word.text for word in short.words]
    for arc in short.arcs:
        places = {word.feature: word.centre for word in short.words}
        assert (places[arc.i], places[arc.j]) == (arc.left, arc.right)


def test_features_of_the_strongest_pairs(row):
    assert joined_features(row, 2) == [0, 1]
    assert joined_features(row, 20) == [0, 1, 2]


@pytest.mark.parametrize("kind", [None, "arcs", "heat map", "network"])
@pytest.mark.parametrize("of", ["text", "row", "image"])
def test_figures(kind, of, request, tmp_path):
    figure = request.getfixturevalue(of).plot_interactions(kind)
    figure.savefig(tmp_path / "figure.png", dpi=50)
    said = " ".join(t.get_text() for axes in figure.axes for t in axes.texts)
    if (kind or of) in ("arcs", "text") and of == "text":
        assert "a < slow > film , not < bad >" in said
    if kind is None and of == "row":
        assert len(figure.axes) == 3  # heat map, network, colour bar


def test_an_unknown_kind_is_refused(row):
    with pytest.raises(pertinent.PertinentError, match="Unknown kind 'chord'"):
        row.plot_interactions("chord")
