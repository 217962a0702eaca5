"""Odd models, inputs and files get a clear error or are understood, and nothing is lost."""

from __future__ import annotations

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


@pytest.mark.parametrize("name", ["run.csv", "run.json"])
def test_a_run_is_written_as_parquet_only(tmp_path, name):
    with pytest.raises(FileError, match=r"must end in .parquet"):
        pertinent.explain(words, ["not bad"], out=tmp_path / name)


def test_a_check_is_saved_as_json_or_csv(tmp_path):
    check = pertinent.check_removal(words, ["not bad at all", "so good"])
    with pytest.raises(FileError, match=r"must end in .json or .csv"):
        check.save(tmp_path / "check.parquet")
    assert "2 inputs: too few" in check.recommendation


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
    from pertinent.cli.input_files import FileColumns, read_file

    (tmp_path / "rows.csv").write_text("a;b\n1,5;2\n-0,25;x,y\n")
    found = read_file(str(tmp_path / "rows.csv"), FileColumns("table"), None)
    assert [item.raw for item in found] == [{"a": 1.5, "b": 2.0}, {"a": -0.25, "b": "x,y"}]


def test_an_unknown_setting_names_the_words_that_there_are():
    with pytest.raises(SettingError, match="Known: budget, early_stopping"):
        pertinent.explain(words, "not bad", "leave-one-out", id="a")


def test_a_booster_is_told_to_be_a_function():
    class Booster:
        pass

    with pytest.raises(ModelError, match="wrap a function that"):
        pertinent.wrap(Booster())


def test_a_wrong_first_answer_fixes_no_classes():
    calls = []

    def at_first_wrong(rows):
        calls.append(1)
        return np.full((len(rows), 5 if len(calls) == 1 else 2), 0.2 if len(calls) == 1 else 0.5)

    model = pertinent.wrap(at_first_wrong, kind="table")
    rows = np.ones((4, 3))
    with pytest.raises(pertinent.PertinentError):
        pertinent.explain(model, rows[0], "leave-one-out")
    assert len(pertinent.explain(model, rows, "leave-one-out")) == 4
    assert model.classes == ("class 0", "class 1")


def test_named_answers_may_be_wrong_at_first_too():
    calls = []

    def at_first_wrong(texts):
        calls.append(1)
        return [{"x": 1.0} if len(calls) == 1 else {"a": 0.3, "b": 0.7} for _ in texts]

    model = pertinent.wrap(at_first_wrong)
    with pytest.raises(pertinent.PertinentError):
        pertinent.explain(model, "not bad", "leave-one-out")
    assert pertinent.explain(model, "not bad", "leave-one-out").classes == ("a", "b")


def test_class_names_of_any_array():
    from sklearn.datasets import load_wine
    from sklearn.linear_model import LogisticRegression

    data = load_wine()
    fitted = LogisticRegression(max_iter=20_000).fit(data.data, data.target)
    for names in (data.target_names, pd.Series(["a", "b", "c"])):
        model = pertinent.wrap(fitted, background=data.data, classes=names)
        assert model.classes == tuple(map(str, names))
    with pytest.raises(SettingError, match="different from each other"):
        pertinent.wrap(fitted, background=data.data, classes=["a", "a", "b"])


@pytest.mark.parametrize(
    "groups", [["a"], {"g": None}, {"g": "a"}, {"g": []}, {None: ["a"]}, {"g": ["nothing"]}, 5, {"a": ["b"]}]
)
def test_wrong_groups_are_found_when_a_model_is_wrapped(groups):
    with pytest.raises(pertinent.PertinentError):
        pertinent.wrap(lambda rows: rows, columns=["a", "b"], groups=groups)


@pytest.mark.parametrize(
    "said", ["CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED", "OOM when allocating"]
)
def test_memory_that_ran_out_is_recognised_whoever_says_so(said):
    kind = type("ResourceExhaustedError", (Exception,), {}) if said.startswith("OOM") else RuntimeError

    def narrow(rows):
        if len(rows) > 20:
            raise kind(said)
        return np.full((len(rows), 2), 0.5)

    found = pertinent.explain(pertinent.wrap(narrow, kind="table"), np.ones((3, 6)), "kernel-shap")
    assert not found.failures


def test_a_journal_follows_no_links(tmp_path):
    (tmp_path / "run.parquet.journal").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError):
        pertinent.explain(words, ["not bad"], out=tmp_path / "run.parquet")
    assert not (tmp_path / "elsewhere").exists()


def test_every_byte_of_a_journal_counts(tmp_path):
    out, journal = tmp_path / "run.parquet", tmp_path / "run.parquet.journal"

    def tell(now):
        if now.done >= 6:
            raise KeyboardInterrupt

    texts = [f"not bad {i}" for i in range(30)]
    with pytest.raises(KeyboardInterrupt):
        pertinent.explain(words, texts, "leave-one-out", out=out, progress=tell, batch_size=5)
    good = journal.read_bytes()
    end = good.rindex(b"\n", 0, -1)
    for place in range(10, end, 397):
        journal.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(FileError):
            pertinent.explain(words, texts, "leave-one-out", out=out)
    journal.write_bytes(good)
    assert len(pertinent.explain(words, texts, "leave-one-out", out=out)) == 30


def test_memory_for_samples_that_does_not_suffice(monkeypatch):
    from pertinent.explainers import lime

    def full(*_args, **_options):
        raise MemoryError("Unable to allocate 12 TiB")

    lime.mask_design.cache_clear()
    monkeypatch.setattr(lime, "draw_masks", full)
    with pytest.raises(SettingError, match="not enough memory for this number of samples"):
        pertinent.explain(words, "not bad", "lime", samples=1000)


def test_odd_collections_and_names():
    from scipy.sparse import csr_matrix

    model = pertinent.wrap(lambda rows: np.full((len(rows), 2), 0.5), kind="table")
    with pytest.raises(pertinent.PertinentError, match="toarray"):
        pertinent.explain(model, csr_matrix(np.ones((2, 3))))
    e = pertinent.explain(model, {"a\ud800": 1.0, "b": 2.0}, "leave-one-out")
    assert list(e.to_dataframe()["feature"]) == ["a?", "b"]


def test_a_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "e.json"
    path.write_text("old")
    path.chmod(0o600)
    pertinent.explain(words, "not bad", "leave-one-out").save(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_one_name_for_two_files(tmp_path, capsys):
    from pertinent.cli import main

    name = str(tmp_path / "same.json")
    assert main(["explain", "not bad", "--html", name, "--json", name]) == 2
    assert "named twice" in capsys.readouterr().err


def test_what_is_finished_is_written_when_a_command_is_interrupted(tmp_path, monkeypatch, capsys):
    (tmp_path / "own_slow_model.py").write_text(
        "calls = []\n"
        "def predict(texts):\n"
        "    calls.append(1)\n"
        "    if len(calls) > 60: raise KeyboardInterrupt\n"
        "    return [[0.9, 0.1] if 'bad' in t else [0.2, 0.8] for t in texts]\n"
    )
    (tmp_path / "texts.txt").write_text("".join(f"not bad {i}\n" for i in range(200)))
    monkeypatch.chdir(tmp_path)
    from pertinent.cli import main

    arguments = ["explain", "--file", "texts.txt", "--model", "own_slow_model:predict", "--batch-size", "10"]
    assert main([*arguments, "--method", "leave-one-out", "--json", "j.json", "--html", "j.html"]) == 130
    import json

    assert 5 < len(json.loads((tmp_path / "j.json").read_text())["explanations"]) < 200
    assert (tmp_path / "j.html").exists()
