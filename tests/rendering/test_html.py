from __future__ import annotations

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
import pytest
from tests.explanations import changed

import pertinent
from pertinent.errors import FileError, InputError
from pertinent.inputs.image import image_input
from pertinent.inputs.image_files import png
from pertinent.printable import shorten_name
from pertinent.rendering.colours import LIGHT, Look
from pertinent.rendering.drawings.image import ImageDrawing, resize
from pertinent.rendering.html.explanation import show as fragment
from pertinent.rendering.html.page import report
from pertinent.rendering.html.tables import show as evaluation_table
from pertinent.rendering.panels import panel
from pertinent.rendering.wording import facts
from pertinent.results.explanation import Explanations
from pertinent.results.failures import Failure

VOID = {"meta", "img", "input"}


class Reader(HTMLParser):
    """Checks that tags are balanced, and keeps the text, the tags and the attributes."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text += data


def test_fragments_are_balanced_and_complete(explanation):
    reader = Reader(fragment(explanation))
    for label, value in facts(explanation).items():
        assert label in reader.text
        assert value in reader.text
    assert "article" in reader.tags
    assert "style" in reader.tags


@pytest.mark.parametrize("fixture", ["text", "pair", "search"])
def test_texts_are_shown_as_written(fixture, request):
    e = request.getfixturevalue(fixture)
    reader = Reader(fragment(e))
    assert all(segment in reader.text for segment in e.input.text.segments)
    assert not {"script", "b", "it"} & set(reader.tags)


def test_every_feature_tells_its_score(text):
    titles = [value for name, value in Reader(fragment(text)).attributes if name == "title"]
    scores = [t for t in titles if re.match(r"[+-]\d", t)]
    said = [f"{s:+.3f} ± {e:.3f}" for s, e in zip(text.scores, text.standard_errors, strict=True)]
    assert len(set(said)) > 3
    assert scores == said


def test_names_of_columns_and_classes_are_escaped(row, text):
    reader = Reader(fragment(row))
    assert "<i>income</i>" in reader.text
    assert "<i>income" not in fragment(row)
    assert "<b>bad" not in fragment(text)


def test_quotes_cannot_leave_an_attribute(text_model):
    e = pertinent.explain(text_model, 'wonderful "><img src=x onerror=alert(1)> film', "leave-one-out")
    noted = changed(e, input=replace(e.input, notes=('"><script>',)), settings={"a": "<script>"})
    reader = Reader(report([noted], title="</title><script>"))
    assert not {"script", "img"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert '⚠ "><script>' in reader.text


def test_nan_errors_are_not_shown(text):
    page = fragment(replace(text, standard_errors=np.full(len(text.features), np.nan)))
    assert "±" not in page
    assert "nan" not in Reader(page).text
    assert 'class="error"' not in page


def test_whiskers_are_drawn_for_sampled_scores(row):
    errors = np.array([0.0, 0.1, 0.2])
    assert fragment(replace(row, standard_errors=errors)).count('class="error"') == 2
    assert fragment(replace(row, standard_errors=None)).count('class="error"') == 0


def test_chosen_sets_are_listed(search):
    reader = Reader(fragment(search))
    assert "Best set at each sparsity" in reader.text
    assert fragment(search).count('class="w in"') == search.mask(0.05).sum()


def test_images_can_be_decoded(image):
    pil = pytest.importorskip("PIL.Image")
    uris = [value for name, value in Reader(fragment(image)).attributes if name == "src"]
    assert len(uris) == 3
    for uri, mode in zip(uris, ("RGB", "RGB", "RGBA"), strict=True):  # the image twice, and the heat map
        with pil.open(BytesIO(base64.b64decode(uri.partition(",")[2]))) as picture:
            assert (picture.size, picture.mode) == ((9, 6), mode)
            picture.load()
    _, heat, _ = ImageDrawing().pictures(panel(image))
    with pil.open(BytesIO(png(heat))) as picture:
        np.testing.assert_array_equal(np.asarray(picture), heat)


def test_the_opacity_of_a_heat_map_can_be_changed(image):
    for opacity in (None, 0.5):
        heat = Look(opacity=opacity).layer(panel(image).share[image.input.labels])
        assert heat[..., 3].max() == round(255 * (opacity or 0.75))
        assert base64.b64encode(png(heat)).decode() in report(image, opacity=opacity)


def test_a_reduced_heat_map_has_no_fringe_of_other_colours():
    segments = np.arange(600 * 600).reshape(600, 600) % 600 // 7  # edges fall inside the averaged blocks
    image = image_input(np.full((1, 600, 600), 0.5, np.float32), segments)
    e = pertinent.explain(
        lambda x: x[:, 0, :, :300].mean(axis=(1, 2)), image.raw, "leave-one-out", features=segments
    )
    source = re.search(r'class="over" src="data:image/png;base64,([^"]+)"', fragment(e)).group(1)
    pil = pytest.importorskip("PIL.Image")
    heat = np.asarray(pil.open(BytesIO(base64.b64decode(source)))).reshape(-1, 4)
    assert heat.shape[0] == 300 * 300
    ends = {tuple(bytes.fromhex(colour[1:])) for colour in (LIGHT.support, LIGHT.against)}
    assert {tuple(pixel[:3].tolist()) for pixel in heat if pixel[3]} <= ends


def test_images_have_alternative_texts(image):
    reader = Reader(fragment(image))
    assert sum(name == "alt" and bool(value) for name, value in reader.attributes) == reader.tags.count("img")


@pytest.mark.parametrize("shape", [(7, 5), (64, 40), (1, 1), (33, 100)])
def test_resized_pictures_keep_within_bounds(shape):
    picture = np.full((*shape, 3), 77, dtype=np.uint8)
    small = resize(picture, 32, least=16)
    assert max(small.shape) <= 32
    assert (small == 77).all()


def test_long_lists_of_classes_are_cut(text):
    n = 300
    prediction = np.full(n, 0.5 / (n - 1))
    prediction[17] = 0.5
    classes = tuple(f"class {i}" for i in range(n))
    e = changed(text, classes=classes, prediction=prediction, target=250, base_values=None)
    reader = Reader(fragment(e))
    assert "class 17" in reader.text
    assert "class 250" in reader.text
    assert "and 294 less likely classes" in reader.text
    assert "class 299" not in reader.text


def test_measures_are_shown_by_sparsity(evaluation):
    e = evaluation.explanations[0]
    reader = Reader(fragment(e))
    assert {name: list(values) for name, values in e.measures.items()} == {
        "sufficiency": [0.2],
        "comprehensiveness": [0.2],
    }
    for values in e.measures.values():
        assert f"{values[0.2]:.3f}" in reader.text


def test_evaluation_table(evaluation):
    reader = Reader(evaluation_table(evaluation))
    summary = list(evaluation.summary())
    assert len(summary) == 4
    for method, metric, _, interval in summary:
        own = [e.measures[metric][0.2] for e in evaluation.explanations if e.method == method]
        assert f"{np.mean(own):.3f} [{interval.low:.3f}, {interval.high:.3f}]" in reader.text
    assert "strong" in reader.tags


@pytest.mark.parametrize("many", ["one", "list", "explanations", "evaluation"])
def test_a_page_is_made_of_whatever_is_given(many, text, row, evaluation):
    given = {
        "one": text,
        "list": [text, row],
        "explanations": Explanations([text, row]),
        "evaluation": evaluation,
    }
    reader = Reader(report(given[many]))
    assert reader.tags.count("article") == {"one": 1, "evaluation": len(evaluation.explanations)}.get(many, 2)
    assert ("lang", "en") in reader.attributes


def test_a_page_needs_nothing_else(text, image, evaluation):
    page = report([text, image], evaluation=evaluation)
    reader = Reader(page)
    assert not {"link", "iframe"} & set(reader.tags)
    assert reader.tags.count("script") == 1
    addresses = [value for name, value in reader.attributes if name in ("src", "href")]
    assert len(addresses) >= 2
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert "url(" not in page
    assert page.count("<style>") == 1


def test_failures_are_listed_with_reasons(text, evaluation):
    reader = Reader(report(Explanations([text], [Failure(4, "<i>broken</i>")]), evaluation=evaluation))
    assert "input 4: <i>broken</i>" in reader.text
    assert reader.text.count("The text is empty or blank") == 1
    assert "2 failed" in reader.text


def test_explanations_show_what_the_evaluation_measured(text_model):
    explanations = pertinent.explain(text_model, ["wonderful, not slow"], "leave-one-out")
    page = report(explanations, evaluation=pertinent.evaluate(text_model, explanations))
    assert "Measured" in Reader(page).text


def test_methods_for_one_input_stand_together(evaluation):
    text = Reader(report(evaluation)).text
    assert text.index("Input 0") < text.index("according to kernel-shap") < text.index("Input 1")


def test_pages_are_written_whole(text, tmp_path):
    path = pertinent.save_report(text, str(tmp_path / "page.html"))
    assert path == tmp_path / "page.html" and path.read_text(encoding="utf-8") == report(text)
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(FileError, match="no folder"):
        pertinent.save_report(text, tmp_path / "missing" / "page.html")


def test_a_lone_surrogate_does_not_stop_a_page(text, tmp_path):
    pertinent.save_report(changed(text, settings={"a": "\ud83d"}), tmp_path / "page.html")
    assert "a=\ufffd" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_only_explanations_can_be_reported():
    with pytest.raises(InputError, match="`explanations` must be"):
        report(["text"])


def test_names_are_shortened_in_the_middle(text):
    """Names that differ at their end stay apart, and the whole name is at hand."""
    features = tuple(f"patch at row 1000, column {1000 + i} of the image" for i in range(len(text.features)))
    classes = tuple(f"a class with a very long name {i}" for i in range(len(text.classes)))
    e = changed(text, input=replace(text.input, features=features), classes=classes)
    page = fragment(e)
    for name, length in [(features[0], 32), *((name, 28) for name in classes)]:
        short = shorten_name(name, length)
        assert len(short) == length
        assert f">{short}<" in page
        assert f'title="{name}"' in page
    assert e.plot(2).axes[0].get_yticklabels()[0].get_text().endswith("of the image")
