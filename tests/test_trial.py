"""What a trial by a new user found."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import pertinent
from pertinent.errors import FileError, ModelError, SettingError


def words(texts):
    return [[0.9, 0.1] if "bad" in str(text) else [0.2, 0.8] for text in texts]


def test_labels_are_never_softmaxed_in_silence():
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Sigmoid())
    with pytest.raises(ModelError, match="label-probability"):
        pertinent.explain(pertinent.wrap(module, kind="table"), [1.0, 2.0, 3.0, 4.0])
    labels = pertinent.wrap(module, kind="table", output="label-probability")
    assert pertinent.explain(labels, [1.0, 2.0, 3.0, 4.0]).output.kind == "label"


@pytest.mark.parametrize("name", ["run.csv", "run.json", "run"])
def test_a_run_is_written_as_parquet_only(tmp_path, name):
    with pytest.raises(FileError, match=r"must end in .parquet"):
        pertinent.explain(words, ["not bad"], out=tmp_path / name)


def test_a_check_is_saved_as_json_only(tmp_path):
    check = pertinent.check_removal(words, ["not bad at all", "so good"])
    with pytest.raises(FileError, match=r"must end in .json"):
        check.save(tmp_path / "check.csv")
    assert "2 inputs tell nothing" in check.recommendation


class Convolution(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Conv2d(channels, 2, 3)

    def forward(self, images):
        return 10 * self.first(images).mean(dim=(2, 3))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "LA", "P", "1"])
@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_have_the_channels_that_a_module_reads(mode, channels):
    picture = Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16)).convert(mode)
    e = pertinent.explain(pertinent.wrap(Convolution(channels)), picture, "leave-one-out")
    assert len(e.input.pixels) == channels


def test_channels_that_cannot_be_converted_are_named():
    with pytest.raises(pertinent.PertinentError, match="2 channels, but the module reads 3"):
        pertinent.explain(pertinent.wrap(Convolution(3), kind="image"), np.zeros((2, 8, 8)))


def test_bytes_given_to_a_module_are_said(caplog):
    picture = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    with caplog.at_level(logging.WARNING):
        pertinent.explain(pertinent.wrap(Convolution(1)), [picture, picture], "leave-one-out")
    assert sum("array of bytes" in line for line in caplog.messages) == 1


def test_a_notebook_shows_the_first_of_many():
    found = pertinent.explain(words, [f"not bad {i}" for i in range(40)], "leave-one-out")
    html = found._repr_html_()
    assert html.count("<article") == 10
    assert "And 30 more inputs" in html


def test_ids_of_a_stream():
    found = pertinent.explain_iter(words, iter(["not bad", ""]), "leave-one-out", ids=["a", "b"])
    assert {each.index: each.id for each in found} == {0: "a", 1: "b"}


def test_pairs_of_a_frame():
    frame = pd.DataFrame({"premise": ["so bad", "good"], "hypothesis": ["not good", "fine"]})
    found = pertinent.explain(pertinent.wrap(words, kind="text"), frame, "leave-one-out")
    assert [e.input.text.second for e in found] == ["not good", "fine"]


def test_the_best_label_alone_is_not_enough():
    with pytest.raises(ModelError, match="top_k=None"):
        pertinent.explain(lambda texts: [{"label": "good", "score": 0.9} for _ in texts], "not bad")


def test_rounding_noise_is_no_evidence():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=5) * 1e-7

    def constant(rows):
        p = 0.7 + rows @ noise
        return np.stack([1 - p, p], axis=1)

    e = pertinent.explain(pertinent.wrap(constant, kind="table"), np.ones(5), "leave-one-out")
    assert "No feature moves the prediction measurably" in e.to_html()


def test_decimal_commas(tmp_path, capsys):
    from pertinent.cli.items import Columns
    from pertinent.cli.records import file_items

    (tmp_path / "rows.csv").write_text("a;b\n1,5;2\n-0,25;x,y\n")
    found = file_items(str(tmp_path / "rows.csv"), Columns("table"), None)
    assert [item.raw for item in found] == [{"a": 1.5, "b": 2.0}, {"a": -0.25, "b": "x,y"}]


def test_a_method_without_settings_says_so():
    with pytest.raises(SettingError, match="There is none"):
        pertinent.explain(words, "not bad", "leave-one-out", id="a")


def test_a_booster_is_told_to_be_a_function():
    class Booster:
        pass

    with pytest.raises(ModelError, match="wrap a function that"):
        pertinent.wrap(Booster())
