"""Unusual but valid models, inputs and files are understood."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import pertinent
from pertinent.asks import Values
from pertinent.cli import main
from pertinent.cli.input_files import FileColumns, read_file
from pertinent.errors import PertinentError
from pertinent.explainers.search.ordered_search import MOST_SAMPLES
from tests import tiny
from tests.explanations import changed
from tests.stubs import half, printed, sentiment
from tests.test_errors import FITTED, WINE

EVIL = "<script>alert(1)</script>\x1b[31m"


@pytest.mark.parametrize(
    ("n_outputs", "output", "kind", "n_classes"),
    [
        (1, "value", "value", 1),
        (1, "logit", "class", 2),
        (1, "label-logit", "label", 1),
        (3, "label-logit", "label", 3),
    ],
)
def test_outputs_of_a_module(n_outputs, output, kind, n_classes):
    model = pertinent.wrap(torch.nn.Linear(3, n_outputs), kind="table", output=output)
    e = pertinent.explain(model, np.ones(3), method="leave-one-out")
    assert (e.output.kind, len(e.classes)) == (kind, n_classes)


class Convolution(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Conv2d(channels, 2, 3)

    def forward(self, images):
        return 10 * self.first(images).mean(dim=(2, 3))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "LA", "P", "1"])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_are_converted_to_the_channels_of_a_module(mode, channels):
    picture = Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16)).convert(mode)
    e = pertinent.explain(pertinent.wrap(Convolution(channels)), picture, "leave-one-out")
    assert len(e.input.pixels) == channels


def test_images_with_two_channels_are_refused():
    with pytest.raises(PertinentError, match="2 channels, but the module reads 3"):
        pertinent.explain(pertinent.wrap(Convolution(3), kind="image"), np.zeros((2, 8, 8)))


def test_class_names_may_be_any_array():
    for names in (WINE.target_names, pd.Series(["a", "b", "c"])):
        model = pertinent.wrap(FITTED, background=WINE.data, classes=names)
        assert model.classes == tuple(map(str, names))


@pytest.mark.parametrize(
    ("wrong", "right", "classes"),
    [
        ([0.2] * 5, [0.5, 0.5], ("class 0", "class 1")),
        ({"x": 1.0}, {"a": 0.3, "b": 0.7}, ("a", "b")),
    ],
)
def test_a_wrong_first_answer_does_not_fix_the_classes(wrong, right, classes):
    answers = iter([wrong])
    model = pertinent.wrap(lambda rows: [next(answers, right)] * len(rows), kind="table")
    with pytest.raises(PertinentError):
        pertinent.explain(model, np.ones(3), "leave-one-out")
    assert len(pertinent.explain(model, np.ones((4, 3)), "leave-one-out")) == 4
    assert model.classes == classes


@pytest.mark.parametrize(
    "message", ["CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED", "OOM when allocating"]
)
def test_out_of_memory_errors_of_any_library_reduce_the_batch(message):
    error = type("ResourceExhaustedError", (Exception,), {}) if message.startswith("OOM") else RuntimeError

    def limited(rows):
        if len(rows) > 20:
            raise error(message)
        return half(rows)

    found = pertinent.explain(pertinent.wrap(limited, kind="table"), np.ones((3, 6)), "kernel-shap")
    assert not found.failures


def test_columns_may_be_named_by_numbers():
    frame = pd.DataFrame({1: [1.0, 2.0], 2: [3.0, 4.0], 3: [0.0, 0.0]})
    model = pertinent.wrap(half, columns=[1, 2], background=frame)
    assert pertinent.explain(model, frame, "leave-one-out")[0].features == ("1", "2")


def test_a_group_may_have_the_name_of_one_of_its_columns():
    model = pertinent.wrap(half, columns=["a", "b", "c"], kind="table", groups={"a": ["a", "b"]})
    assert pertinent.explain(model, [1.0, 2.0, 3.0], "leave-one-out").features == ("a", "c")


def test_lone_surrogates_in_names_are_replaced():
    model = pertinent.wrap(half, kind="table")
    e = pertinent.explain(model, {"a\ud800": 1.0, "b": 2.0}, "leave-one-out")
    assert list(e.to_dataframe()["feature"]) == ["a?", "b"]


@pytest.mark.parametrize(
    "sources", [["Ann.", "Bob."], ("Ann.", "Bob."), np.array(["Ann.", "Bob."]), iter(["Ann.", "Bob."])]
)
def test_sources_may_be_any_list(sources):
    assert pertinent.Prompt("Who?", sources=sources).sources == ("Ann.", "Bob.")


@pytest.mark.parametrize("target", [np.int64(1), np.array(1), torch.tensor(1), 1, "1", 1.0])
def test_a_class_may_be_a_number_of_numpy_or_torch(target):
    assert pertinent.explain(sentiment, "not bad", "leave-one-out").for_class(target).target == 1


def test_pairs_of_a_frame():
    frame = pd.DataFrame({"premise": ["so bad", "good"], "hypothesis": ["not good", "fine"]})
    found = pertinent.explain(pertinent.wrap(sentiment, kind="text"), frame, "leave-one-out")
    assert [e.input.text.second for e in found] == ["not good", "fine"]


def test_ids_of_a_stream():
    found = pertinent.explain_iter(sentiment, iter(["not bad", ""]), "leave-one-out", ids=["a", "b"])
    assert {each.index: each.id for each in found} == {0: "a", 1: "b"}


def test_texts_longer_than_the_model_are_truncated():
    e = pertinent.explain(pertinent.wrap(tiny.pair("bert")), tiny.text(300), budget=400)
    assert len(e.features) == 198
    assert "198 of 300 words" in e.notes[0]


def test_a_notebook_shows_the_first_ten_explanations():
    html = pertinent.explain(sentiment, [f"not bad {i}" for i in range(40)], "leave-one-out")._repr_html_()
    assert html.count("<article") == 10
    assert "And 30 more inputs" in html


def test_rounding_errors_are_not_shown_as_effects():
    noise = np.random.default_rng(0).normal(size=5) * 1e-7

    def constant(rows):
        p = 0.7 + rows @ noise
        return np.stack([1 - p, p], axis=1)

    e = pertinent.explain(pertinent.wrap(constant, kind="table"), np.ones(5), "leave-one-out")
    assert "No feature moves the prediction measurably" in e.to_html()


def test_names_and_details_are_escaped():
    e = pertinent.explain(half, "not bad at all", "leave-one-out")
    e = changed(e, details={EVIL: 1.0, "size": EVIL}, settings={EVIL: EVIL}, method=EVIL)
    page = e.to_html()
    assert "<script>" not in page and page.count("&lt;script&gt;") >= 5
    assert "\x1b[31m" not in printed(e, width=200, force_terminal=False)


def test_decimal_commas(tmp_path):
    (tmp_path / "rows.csv").write_text("a;b\n1,5;2\n-0,25;x,y\n")
    records = read_file(str(tmp_path / "rows.csv"), FileColumns("table"))
    assert [record.raw for record in records] == [{"a": 1.5, "b": 2.0}, {"a": -0.25, "b": "x,y"}]


def test_a_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "e.json"
    path.write_text("old")
    path.chmod(0o600)
    pertinent.explain(sentiment, "not bad", "leave-one-out").save(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_failures_are_saved(tmp_path):
    found = pertinent.explain(sentiment, ["not bad", ""])
    found.save(tmp_path / "e.parquet")
    assert pertinent.read(tmp_path / "e.parquet").failures == found.failures


def test_two_output_files_must_differ(tmp_path, capsys):
    name = str(tmp_path / "same.json")
    assert main(["explain", "not bad", "--html", name, "--json", name]) == 2
    assert "listed twice" in capsys.readouterr().err


def test_an_interrupted_command_writes_finished_explanations(tmp_path, monkeypatch):
    (tmp_path / "own_slow_model.py").write_text(
        "calls = []\n"
        "def predict(texts):\n"
        "    calls.append(1)\n"
        "    if len(calls) > 60: raise KeyboardInterrupt\n"
        "    return [[0.9, 0.1] if 'bad' in t else [0.2, 0.8] for t in texts]\n"
    )
    (tmp_path / "texts.txt").write_text("".join(f"not bad {i}\n" for i in range(200)))
    monkeypatch.chdir(tmp_path)
    arguments = ["explain", "--file", "texts.txt", "--model", "own_slow_model:predict", "--batch-size", "10"]
    assert main([*arguments, "--method", "leave-one-out", "--json", "j.json", "--html", "j.html"]) == 130
    assert 5 < len(json.loads((tmp_path / "j.json").read_text())["explanations"]) < 200
    assert (tmp_path / "j.html").exists()


def test_ordered_search_with_a_huge_budget_draws_masks_in_batches(monkeypatch):
    def classify(rows):
        p = 1 / (1 + np.exp(-rows @ np.linspace(-1, 1, 18)))
        return np.stack([1 - p, p], axis=1)

    sizes = []
    check = Values.check

    def counted(self, input):
        sizes.append(len(self.masks))
        return check(self, input)

    monkeypatch.setattr(Values, "check", counted)
    options = {"sparsity": 0.3, "budget": 1_000_000, "removal": "constant"}
    e = pertinent.explain(pertinent.wrap(classify, kind="table"), np.ones(18), "ordered-search", **options)
    assert max(sizes) <= MOST_SAMPLES
    best = np.arange(18) >= 12
    np.testing.assert_array_equal(e.chosen[0.3], best if e.target == 1 else best[::-1])
