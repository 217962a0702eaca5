"""What goes wrong is said clearly, and nothing else is lost."""

import numpy as np
import pytest
import torch
from tokenizers import processors

import pertinent
from pertinent.errors import BudgetError, FileError, InputError, ModelError, SettingError
from pertinent.explainers import explainers
from tests import tiny


def words(texts):
    return [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts]


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(tiny.pair("bert"))


def test_bad_texts_among_good_ones_are_recorded(model):
    texts = ["w1 w2", "", "w3 w4 w5", "xyzzy", "   ", "w6"]
    found = pertinent.explain(model, texts, method="leave-one-out")
    assert [len(e.features) for e in found] == [2, 3, 1]
    assert [e.index for e in found] == [0, 2, 5]
    assert [f.index for f in found.failures] == [1, 3, 4]
    assert "empty or blank" in found.failures[0].reason
    assert "unknown to the tokenizer" in found.failures[1].reason


def test_nothing_but_failures_raises(model):
    with pytest.raises(InputError, match=r"None of the 2 inputs could be explained; the first: .*blank"):
        pertinent.explain(model, ["", " "])


@pytest.mark.parametrize("method", [m for m in explainers.all() if m not in ("tree-shap", "grad-cam")])
def test_one_feature(model, method):
    e = pertinent.explain(model, "w1", method=method)
    assert e.features == ("w1",)
    assert np.isfinite(e.scores).all()
    assert e.mask(0.05).tolist() == [True]


def test_more_features_than_positions(model):
    found = pertinent.explain(model, tiny.text(300), budget=400)
    assert len(found.features) == 198
    assert "198 of 300 words" in found.notes[0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "kernel-sharp"}, SettingError, "Did you mean 'kernel-shap'"),
        ({"method": "lime", "sampels": 5}, SettingError, "Did you mean 'samples'"),
        ({"method": "lime", "samples": 0}, SettingError, "`samples` must be at least 2, but got 0"),
        ({"removal": "slice"}, SettingError, "Did you mean 'slice-out'"),
        ({"features": "wrods"}, SettingError, "Did you mean 'words'"),
        ({"target": "possitive"}, SettingError, "Unknown target"),
        ({"target": 7}, SettingError, "`target` must be a name or a number from 0 to 1, but got 7"),
        ({"sparsity": 0}, SettingError, "`sparsity` must be above 0 and at most 1, but got 0"),
        ({"sparsity": [0.1, 1.5]}, SettingError, "at most 1, but got 1.5"),
        ({"budget": 0}, SettingError, "`budget` must be at least 1"),
        ({"method": "leave-one-out", "budget": 3}, BudgetError, "at least 5 .* with 4 features, but got 3"),
        (
            {"method": "parallel-local-search", "objective": "suff"},
            SettingError,
            "Did you mean 'sufficiency'",
        ),
    ],
)
def test_settings(options, error, message):
    with pytest.raises(error, match=message):
        pertinent.explain(words, "not bad at all", **options)


def test_searches_that_would_not_end():
    long = tiny.text(60)
    with pytest.raises(BudgetError, match="at most 16 features"):
        pertinent.explain(words, long, method="exact-shapley")
    with pytest.raises(BudgetError, match=r"needs .* sets of 60 features"):
        pertinent.explain(words, long, method="exhaustive-search")


def test_unknown_metric():
    e = pertinent.explain(words, "not bad")
    with pytest.raises(SettingError, match="Did you mean 'sufficiency'"):
        pertinent.evaluate(words, e, metrics=["sufficency"])


def test_the_wrong_model_is_noticed(model):
    e = pertinent.explain(words, "w1 bad")
    with pytest.raises(InputError, match="evaluate with the model that was explained"):
        pertinent.evaluate(model, e)


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (3, "Cannot wrap int. Accepted: a transformers"),
        ("sentiment", "Cannot wrap str"),
        (torch.nn.Linear, "is a class"),
        ((1, 2), "A pair must be"),
        (tiny.model("bert"), "needs its tokenizer"),
    ],
)
def test_what_cannot_be_wrapped(thing, message):
    with pytest.raises(ModelError, match=message):
        pertinent.wrap(thing)


def test_estimators_without_probabilities():
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    with pytest.raises(ModelError, match="no predict_proba"):
        pertinent.wrap(LinearSVC())
    with pytest.raises(ModelError, match="not fitted"):
        pertinent.wrap(LogisticRegression())


def test_misspelt_wrap_options(model):
    with pytest.raises(SettingError, match="Did you mean 'background'"):
        pertinent.wrap(words, backgroud=[[1.0]])
    with pytest.raises(SettingError, match="Unknown kind"):
        pertinent.wrap(words, kind="video")
    with pytest.raises(ModelError, match="`max_length` must be between"):
        pertinent.wrap((model.model, model.tokenizer), max_length=10_000)


def test_one_number_may_mean_anything():
    module = torch.nn.Linear(3, 1)
    with pytest.raises(ModelError, match="one number, which may mean anything"):
        pertinent.explain(pertinent.wrap(module, kind="table"), np.ones(3), method="leave-one-out")
    for output, kind in (("value", "value"), ("logit", "class"), ("label-logit", "label")):
        model = pertinent.wrap(module, kind="table", output=output)
        e = pertinent.explain(model, np.ones(3), method="leave-one-out")
        assert (e.output.kind, len(e.classes)) == (kind, 2 if kind == "class" else 1)


@pytest.mark.parametrize("removal", ["attention-mask", "slice-out"])
def test_a_text_of_which_nothing_is_left(removal):
    """Where the tokenizer adds no special tokens, an empty mask leaves no token at all."""
    tokenizer = tiny.tokenizer(model_max_length=200)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B:1")
    model = pertinent.wrap((tiny.model("bert"), tokenizer))
    with pytest.raises(InputError, match="Nothing is left of this text when all its features are removed"):
        pertinent.explain(model, tiny.text(4), "kernel-shap", removal=removal)
    assert len(pertinent.explain(model, tiny.text(4), "kernel-shap", removal="mask-token").scores) == 4


def test_images_of_the_wrong_shape():
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    model = pertinent.wrap(network, kind="image")
    found = pertinent.explain(model, [np.ones((1, 4, 4)), np.ones((1, 5, 5))], method="leave-one-out")
    assert len(found) == 1
    assert "The model raised RuntimeError" in found.failures[0].reason


def test_a_two_dimensional_array_is_ambiguous():
    with pytest.raises(InputError, match="kind='image' or kind='table'"):
        pertinent.explain(lambda rows: [[0.5, 0.5]] * len(rows), np.ones((4, 4)))


def test_wrong_dtype():
    model = pertinent.wrap(lambda rows: [[0.5, 0.5]] * len(rows), kind="image")
    with pytest.raises(InputError, match="must hold numbers"):
        pertinent.explain(model, np.full((4, 4), "x"))


def test_files(tmp_path):
    with pytest.raises(FileError, match="There is no file"):
        pertinent.read(tmp_path / "missing.parquet")
    e = pertinent.explain(words, "not bad at all")
    e.save(tmp_path / "e.parquet")
    whole = (tmp_path / "e.parquet").read_bytes()
    (tmp_path / "half.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match="damaged"):
        pertinent.read(tmp_path / "half.parquet")
    with pytest.raises(FileError, match="no folder"):
        e.save(tmp_path / "nowhere" / "e.parquet")
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(FileError, match="holds no explanations"):
        pertinent.read(tmp_path / "other.parquet")
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_failures_are_saved_too(tmp_path):
    found = pertinent.explain(words, ["not bad", ""])
    found.save(tmp_path / "e.parquet")
    assert pertinent.read(tmp_path / "e.parquet").failures == found.failures
