"""Invalid models, inputs, settings and files raise errors that name the problem and the way out."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet
from scipy.sparse import csr_matrix
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from tokenizers import processors

import pertinent
from pertinent.errors import BudgetError, FileError, InputError, ModelError, PertinentError, SettingError
from pertinent.explainers import explainers, lime
from pertinent.files import file_exists, folder_exists
from pertinent.inputs.image import image_input
from pertinent.models.embedded.load import load_transformer
from pertinent.models.tokens.masked_lm import load_filler
from pertinent.study.answers import Answers
from pertinent.study.create import create_study
from tests import tiny
from tests.stubs import half, sentiment
from tests.study.people import by_the_words, explained, take_part

LONG = "a" * 300
TEXT = "not bad at all"


class Mute:
    """Object whose `__repr__` raises an error."""

    def __repr__(self):
        raise RuntimeError("no words")


@pytest.fixture(scope="module")
def bert():
    return pertinent.wrap(tiny.pair("bert"))


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(sentiment, kind="text")


@pytest.fixture(scope="module")
def explanation(model):
    return pertinent.explain(model, "not bad", "leave-one-out")


# -- models ----------------------------------------------------------------------------------------


WINE = load_wine()
FITTED = LogisticRegression(max_iter=20_000).fit(WINE.data, WINE.target)


@pytest.mark.parametrize(
    ("thing", "options", "error", "message"),
    [
        (3, {}, ModelError, "Cannot wrap int. Accepted: a transformers"),
        ("sentiment", {}, ModelError, "Cannot wrap str"),
        (object(), {}, ModelError, "wrap a function that"),
        (torch.nn.Linear, {}, ModelError, "is a class"),
        ((1, 2), {}, ModelError, "A pair must be"),
        (tiny.model("bert"), {}, ModelError, "needs its tokenizer"),
        (LinearSVC(), {}, ModelError, "no predict_proba"),
        (LogisticRegression(), {}, ModelError, "not fitted"),
        (sentiment, {"backgroud": [[1.0]]}, SettingError, "Did you mean 'background'"),
        (sentiment, {"kind": "video"}, SettingError, "Unknown kind"),
        (tiny.pair("bert"), {"max_length": 10_000}, ModelError, "`max_length` must be between"),
        (half, {"columns": ["a", "b", "a"]}, InputError, "must differ, but these occur twice: a"),
        (half, {"columns": [7], "background": pd.DataFrame({1: [1.0]})}, InputError, "lacks the columns: 7"),
        (
            half,
            {"columns": ["a", "b", "c"], "kind": "table", "groups": {"c": ["a", "b"]}},
            InputError,
            "The group 'c' has the name of a column",
        ),
        (
            FITTED,
            {"background": WINE.data, "classes": ["a", "a", "b"]},
            SettingError,
            "different from each other",
        ),
    ],
)
def test_models_that_cannot_be_wrapped(thing, options, error, message):
    with pytest.raises(error, match=message):
        pertinent.wrap(thing, **options)


@pytest.mark.parametrize(
    "groups", [["a"], {"g": None}, {"g": "a"}, {"g": []}, {None: ["a"]}, {"g": ["nothing"]}, 5, {"a": ["b"]}]
)
def test_invalid_groups(groups):
    with pytest.raises(PertinentError):
        pertinent.wrap(lambda rows: rows, columns=["a", "b"], groups=groups)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sigmoid()), "label-probability"),
        (torch.nn.Linear(3, 1), "single number, whose meaning is ambiguous"),
    ],
)
def test_ambiguous_outputs_require_output(module, message):
    with pytest.raises(ModelError, match=message):
        pertinent.explain(pertinent.wrap(module, kind="table"), np.ones(3), "leave-one-out")


@pytest.mark.parametrize("output", ["value", "probability", "label-probability", "logit"])
def test_models_without_columns(output):
    model = pertinent.wrap(lambda rows: np.zeros((len(rows), 0)), kind="table", output=output)
    with pytest.raises(ModelError, match="at least one number for each input"):
        pertinent.explain(model, np.ones(3))


def test_pipelines_must_return_all_labels():
    with pytest.raises(ModelError, match="top_k=None"):
        pertinent.explain(lambda texts: [{"label": "good", "score": 0.9} for _ in texts], "not bad")


@pytest.mark.parametrize("load", [load_transformer, lambda folder: load_filler(str(folder), "cpu")])
def test_code_in_a_model_folder_is_not_executed(load, tmp_path, monkeypatch):
    folder = tmp_path / "m"
    for part in tiny.pair("bert"):
        part.save_pretrained(folder)
    names = ("AutoConfig", "AutoModelForSequenceClassification", "AutoModelForMaskedLM")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "evil", "architectures": ["Evil"], "auto_map": dict.fromkeys(names, "evil.Evil")}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').write('x')\nclass Evil: pass\n")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(folder)
    assert not (tmp_path / "ran").exists()


# -- inputs ----------------------------------------------------------------------------------------


def test_invalid_texts_are_failures_of_their_inputs(bert):
    found = pertinent.explain(bert, ["w1 w2", "", "w3 w4 w5", "xyzzy", "   ", "w6"], "leave-one-out")
    assert [(e.index, len(e.features)) for e in found] == [(0, 2), (2, 3), (5, 1)]
    assert [f.index for f in found.failures] == [1, 3, 4]
    assert "empty or blank" in found.failures[0].reason
    assert "unknown to the tokenizer" in found.failures[1].reason


def test_an_error_is_raised_if_all_inputs_fail(bert):
    with pytest.raises(InputError, match=r"None of the 2 inputs could be explained; the first: .*blank"):
        pertinent.explain(bert, ["", " "])


@pytest.mark.parametrize(
    ("function", "options", "raw", "message"),
    [
        (half, {}, np.ones((4, 4)), "kind='image' or kind='table'"),
        (half, {"kind": "image"}, np.full((4, 4), "x"), "must hold integers or floats"),
        (half, {"kind": "table"}, csr_matrix(np.ones((2, 3))), "toarray"),
    ],
)
def test_invalid_arrays(function, options, raw, message):
    with pytest.raises(PertinentError, match=message):
        pertinent.explain(pertinent.wrap(function, **options), raw)


def test_images_of_the_wrong_shape_fail():
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    model = pertinent.wrap(network, kind="image")
    found = pertinent.explain(model, [np.ones((1, 4, 4)), np.ones((1, 5, 5))], method="leave-one-out")
    assert len(found) == 1
    assert "The model raised RuntimeError" in found.failures[0].reason


def test_images_with_too_many_features_are_refused_before_they_are_cut():
    # A broadcast view, so that the test needs little memory.
    large = np.broadcast_to(np.float32(0.5), (1, 4000, 3000))
    with pytest.raises(InputError, match="12,000,000 features, but at most 1,048,576"):
        image_input(large, "pixels")
    with pytest.raises(InputError, match="3,000,000 features"):
        image_input(large, "patches:2")
    assert image_input(large[:, :1024, :1024], "pixels").n_features == 1024**2


@pytest.mark.parametrize("removal", ["attention-mask", "slice-out"])
def test_tokenizers_without_special_tokens_cannot_remove_all_features(removal):
    tokenizer = tiny.tokenizer(model_max_length=200)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B:1")
    model = pertinent.wrap((tiny.model("bert"), tokenizer))
    with pytest.raises(InputError, match="No tokens of this text remain when all its features are removed"):
        pertinent.explain(model, tiny.text(4), "kernel-shap", removal=removal)
    assert len(pertinent.explain(model, tiny.text(4), "kernel-shap", removal="mask-token").scores) == 4


@pytest.mark.parametrize("name", ["sources", "messages"])
@pytest.mark.parametrize(
    "value", [5, None, 1.5, True, "text", b"x", {"a": "b"}, {"a"}, torch.tensor(3), np.array(3)]
)
def test_lists_of_a_prompt_must_be_lists(name, value):
    with pytest.raises(InputError, match=f"`{name}` must be a list"):
        pertinent.Prompt(**({"text": "Who?"} if name == "sources" else {}), **{name: value})


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("method", ["shapley", "lime", "kernel-shap", "leave-one-out", "banzhaf"])
def test_values_that_overflow_are_failures(method):
    rows = np.random.default_rng(0).normal(size=(20, 4))
    model = pertinent.wrap(
        lambda rows: 1.7e308 * np.tanh(rows.sum(axis=1)), output="value", kind="table", background=rows
    )
    for found in pertinent.explain_iter(model, rows[:5], method, removal="background:rows=20"):
        if isinstance(found, pertinent.Failure):
            assert "the model's outputs are too large" in found.reason
        else:
            assert np.isfinite(found.scores).all()


# -- settings --------------------------------------------------------------------------------------


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
        ({"method": "leave-one-out", "id": "a"}, SettingError, "Known: budget, early_stopping"),
        *(
            ({"features": odd}, SettingError, "features")
            for odd in (np.array(3), torch.tensor(3), {"a": 1}, 5)
        ),
    ],
)
def test_invalid_settings(options, error, message):
    with pytest.raises(error, match=message):
        pertinent.explain(sentiment, TEXT, **options)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("exact-shapley", "at most 16 features"),
        ("exhaustive-search", r"needs about .* sets of 60 features"),
    ],
)
def test_methods_that_need_too_many_evaluations(method, message):
    with pytest.raises(BudgetError, match=message):
        pertinent.explain(sentiment, tiny.text(60), method=method)


def test_samples_that_do_not_fit_into_memory(monkeypatch):
    def fail(*_args, **_options):
        raise MemoryError("Unable to allocate 12 TiB")

    lime.mask_design.cache_clear()
    monkeypatch.setattr(lime, "draw_masks", fail)
    with pytest.raises(SettingError, match="not enough memory for this number of samples"):
        pertinent.explain(sentiment, "not bad", "lime", samples=1000)


@pytest.mark.parametrize(
    "metrics", [["sufficency"], torch.tensor(3), np.array(3), torch.zeros(2, 2)], ids=repr
)
def test_invalid_metrics(model, explanation, metrics):
    message = "Did you mean 'sufficiency'" if isinstance(metrics, list) else "metrics"
    with pytest.raises(SettingError, match=message):
        pertinent.evaluate(model, explanation, metrics)


def test_evaluation_requires_the_explained_model(bert):
    with pytest.raises(InputError, match="evaluate with the explained model"):
        pertinent.evaluate(bert, pertinent.explain(sentiment, "w1 bad"))


@pytest.mark.parametrize("target", [np.array(["0", "1"]), np.array([0]), torch.tensor([0, 1]), [0], None, {}])
def test_a_class_must_be_one_name_or_number(explanation, target):
    with pytest.raises(InputError, match="must be a name or an index"):
        explanation.for_class(target)


@pytest.mark.parametrize("labels", [torch.tensor(1), np.array(1), 1])
def test_labels_must_be_as_many_as_the_inputs(model, labels):
    with pytest.raises(SettingError, match="labels"):
        pertinent.check_removal(model, ["not bad", "good"], labels=labels)


@pytest.mark.parametrize("words", [[5], "the", [None, "a"]])
def test_stop_words_must_be_a_list_of_words(model, words):
    explanations = pertinent.explain(model, ["a bad film", "so bad"], "leave-one-out")
    with pytest.raises(SettingError, match="`stop_words` must be a list of words"):
        pertinent.neighbour_stability(explanations, semantic=0, stop_words=words)


@pytest.mark.parametrize(
    "call",
    [
        lambda odd: pertinent.explain(half, odd),
        *(
            lambda odd, name=name: pertinent.explain(half, "so good", **{name: odd})
            for name in ("method", "target", "features", "budget", "removal", "scale")
        ),
        lambda odd: pertinent.compare(half, "so good", ["lime"], [odd]),
        pertinent.wrap,
        lambda odd: pertinent.wrap(half, classes=[odd]),
        lambda odd: pertinent.wrap(half, columns=[odd]),
        pertinent.read,
        lambda odd: pertinent.Request.from_dict({"method": odd}),
        lambda odd: pertinent.Explanation.from_dict(
            pertinent.explain(half, "so good").to_dict() | {"scores": odd}
        ),
    ],
)
def test_objects_whose_repr_raises(call):
    with pytest.raises(PertinentError):
        call(Mute())


@pytest.mark.parametrize("method", [m for m in explainers.all() if m not in ("tree-shap", "grad-cam")])
def test_inputs_with_one_feature(bert, method):
    e = pertinent.explain(bert, "w1", method=method)
    assert e.features == ("w1",)
    assert np.isfinite(e.scores).all()
    assert e.mask(0.05).tolist() == [True]


# -- files -----------------------------------------------------------------------------------------


def test_files_that_cannot_be_read_or_written(explanation, tmp_path):
    path = tmp_path / "e.parquet"
    explanation.save(path)
    (tmp_path / "half.parquet").write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    parquet.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    check = pertinent.check_removal(sentiment, [TEXT, "so good"])
    for call, message in {
        lambda: pertinent.read(tmp_path / "missing.parquet"): "There is no file",
        lambda: pertinent.read(tmp_path / "half.parquet"): "damaged",
        lambda: pertinent.read(tmp_path / "other.parquet"): "contains no explanations",
        lambda: explanation.save(tmp_path / "nowhere" / "e.parquet"): "no folder",
        lambda: pertinent.explain(sentiment, ["not bad"], out=tmp_path / "run.csv"): "must end in .parquet",
        lambda: pertinent.explain(sentiment, ["not bad"], out=tmp_path / "run.json"): "must end in .parquet",
        lambda: check.save(tmp_path / "check.parquet"): "must end in .json or .csv",
    }.items():
        with pytest.raises(FileError, match=message):
            call()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize("name", [LONG, f"{LONG}.json", f"{LONG}.parquet", "null\0character.json"])
def test_invalid_file_names(tmp_path, model, explanation, name):
    path = tmp_path / name
    assert not file_exists(path) and not folder_exists(path)
    for call in (
        lambda: pertinent.read(path),
        lambda: pertinent.explain(model, ["not bad"], "leave-one-out", out=path),
        lambda: pertinent.load_explainer(path),
        lambda: pertinent.report_study(path),
        lambda: create_study(path, tmp_path / "study"),
    ):
        with pytest.raises(FileError):
            call()
    with pytest.raises((FileError, SettingError)):
        explanation.save(path)


@pytest.mark.parametrize("unit", ["", "bits"])
def test_an_output_of_an_unknown_unit(explanation, unit):
    plain = explanation.to_dict() | {"output": {"name": "log-likelihood", "unit": unit}}
    with pytest.raises(InputError, match="unit"):
        pertinent.Explanation.from_dict(plain)


def test_a_journal_must_not_be_a_link(tmp_path):
    (tmp_path / "run.parquet.journal").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError):
        pertinent.explain(sentiment, ["not bad"], out=tmp_path / "run.parquet")
    assert not (tmp_path / "elsewhere").exists()


def test_a_journal_with_a_changed_byte_is_refused(tmp_path):
    out, journal = tmp_path / "run.parquet", tmp_path / "run.parquet.journal"

    def interrupt(progress):
        if progress.done >= 6:
            raise KeyboardInterrupt

    texts = [f"not bad {i}" for i in range(30)]
    with pytest.raises(KeyboardInterrupt):
        pertinent.explain(sentiment, texts, "leave-one-out", out=out, progress=interrupt, batch_size=5)
    shutil.copy(journal, tmp_path / "copy")
    good = journal.read_bytes()
    for i in range(10, good.rindex(b"\n", 0, -1), 397):
        journal.write_bytes(good[:i] + bytes([good[i] ^ 1]) + good[i + 1 :])
        with pytest.raises(FileError):
            pertinent.explain(sentiment, texts, "leave-one-out", out=out)
    shutil.copy(tmp_path / "copy", journal)
    assert len(pertinent.explain(sentiment, texts, "leave-one-out", out=out)) == 30


def test_nested_json_in_the_answers_of_a_study(tmp_path):
    study = create_study(explained(4), tmp_path / "study", limit=4)
    take_part(study, 1, by_the_words)
    path = next((tmp_path / "study" / "answers").iterdir())
    first, *rest = path.read_text().splitlines()
    nested = json.dumps("deep")[:-1] + '": ' + "[" * 100_000
    path.write_text("\n".join([first, "{" + nested, *rest, ""]))
    answers = Answers(type(study).read(study.folder))
    assert len(answers.damaged) == 1
    (person,) = answers.people.values()
    assert len([answer for answer in person.answers if answer is not None]) == len(rest)
