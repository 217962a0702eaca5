"""``pertinent fit``, and explainers in a folder wherever a method is named."""

import csv
import json
import random
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import pertinent
from pertinent.cli import main
from pertinent.learners import learned
from pertinent.models.embedded.load import load_transformer
from tests import tiny

MODEL = ["--model", "./model"]
QUICK = ["--set", "samples=4", "--epochs", "2", "--batch-size", "8", "--learning-rate", "1e-3", *MODEL]
FIT = ["fit", "--file", "data.csv", "--column", "review", "--out", "fitted", *QUICK]


def some_texts(n, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(tiny.WORDS[:20], k=rng.randint(4, 7))) for _ in range(n)]


TEXTS = some_texts(20)
ROWS = """
import numpy as np
import pertinent

def predict(rows):
    p = 1 / (1 + np.exp(rows[:, 0] - rows[:, 1] * rows[:, 2]))
    return np.stack([p, 1 - p], axis=1)

background = np.arange(30.0).reshape(10, 3) % 7
model = pertinent.wrap(predict, kind="table", columns=["a", "b", "c"], background=background)
"""


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Return a folder with two models, data, and an explainer of the first model."""
    folder = tmp_path_factory.mktemp("fit")
    tiny.model("bert").save_pretrained(folder / "model")
    tiny.model("bert", hidden_size=16).save_pretrained(folder / "other")
    for name in ("model", "other"):
        tiny.tokenizer(model_max_length=200).save_pretrained(folder / name)
    with (folder / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("review", "stars"), *((text, 3) for text in TEXTS)])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*FIT, "--quiet"]) == 0
    return folder


@pytest.fixture
def run(run, prepared, tmp_path, monkeypatch, capsys):
    """Run a command in a copy of that folder."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("COLUMNS", "200")
    capsys.readouterr()
    return run


def scores(run, *arguments):
    code, out, err = run("explain", *MODEL, "--metrics", "none", "--json", "-", *arguments)
    assert code == 0, err
    return np.array([explanation["scores"] for explanation in json.loads(out)["explanations"]])


def card(folder="fitted"):
    return json.loads(Path(folder, "pertinent.json").read_text())


# -- fitting -----------------------------------------------------------------------------------


def test_the_same_explainer_as_from_python(run):
    options = {"samples": 4, "epochs": 2, "batch_size": 8, "learning_rate": 1e-3, "progress": False}
    fitted = pertinent.fit(tiny.pair("bert"), TEXTS, **options)
    assert fitted.network.card | {"digest": card()["digest"]} == card()
    assert (card()["examples"], card()["dev_examples"]) == (18, 2)


def test_report_and_the_next_command_which_works(run):
    code, out, err = run(*FIT, "--out", "again")
    assert (code, err) == (0, "")
    result = card("again")
    assert f"Fitted: amortized-shapley, on 18 inputs in {result['steps']} steps." in out
    assert f"On 2 held-out inputs: spearman {result['dev_spearman']:.3f}, comprehensiveness " in out
    assert f"leave one out {result['dev_leave_one_out']:.3f}.\nThese measures are uncertain: " in out
    assert "/again\n" in out
    words = following(out)
    assert words == ["explain", TEXTS[0], "--method", "again", "--model", "./model"]
    code, _, err = run(*words)
    assert (code, err) == (0, "")


def test_what_must_be_said_again_is_in_the_next_command(run):
    options = ["--removal", "mask-token", "--scale", "logit", "--features", "tokens"]
    _, out, _ = run(*FIT, "--out", "a folder", *options)
    words = following(out)
    assert words[:6] == ["explain", TEXTS[0], "--method", "a folder", "--model", "./model"]
    assert run(*words)[0] == 0
    assert run(*words[:6])[0] == 2


def following(out):
    """Return the words of the suggested command, with a text of known words."""
    words = shlex.split(out.splitlines()[-1].removeprefix("Next: pertinent "))
    return [TEXTS[0] if word == "some text" else word for word in words]


def test_a_finished_fit_is_read(run, monkeypatch):
    before = card()
    monkeypatch.setattr(
        "pertinent.learners.training_context.TrainingContext.optimise", None
    )  # not to be called
    code, out, err = run(*FIT)
    assert (code, err) == (0, "")
    assert "Already fitted: amortized-shapley" in out
    assert card() == before


def test_an_interrupted_fit_is_continued(run, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pertinent.learners.training_context.TrainingContext.optimise", interrupted)
        assert run(*FIT, "--out", "stopped")[0] == 130
    code, _, err = run("explain", "w1 w2", *MODEL, "--method", "./stopped")
    assert code == 2
    assert "stopped" in err
    assert run(*FIT, "--out", "stopped")[0] == 0
    assert card("stopped") == card()


def test_references_that_are_there_are_used(run):
    code, _, err = run(*FIT, "--out", "second", "--teacher-explanations", "fitted/teacher.parquet")
    assert (code, err) == (0, "")
    assert not Path("second/teacher.parquet").exists()
    assert card("second")["teacher_explanations"] is not None
    own = {"teacher_explanations": None, "digest": card()["digest"]}
    assert card("second") | own == card()


def test_all_classes_can_be_a_target(run):
    assert run(*FIT, "--out", "all", "--classes", "all")[0] == 0
    one, two = (scores(run, TEXTS[0], "--method", "all", "--target", k) for k in (0, 1))
    assert not np.allclose(one, two)


def test_labels_come_from_a_column(run):
    labels = [i % 3 for i in range(len(TEXTS))]
    rows = [f"{text},{label}" for text, label in zip(TEXTS, labels, strict=True)]
    Path("labelled.csv").write_text("\n".join(["text,right", *rows]) + "\n")
    arguments = ["--method", "cxplain", "--label-column", "right", "--epochs", "1", *MODEL]
    code, _, err = run("fit", "--file", "labelled.csv", "--out", "c", *arguments)
    assert (code, err) == (0, "")
    options = {"labels": labels, "epochs": 1, "progress": False}
    fitted = pertinent.fit(tiny.pair("bert"), TEXTS, "cxplain", **options)
    assert card("c") == fitted.network.card | {"digest": card("c")["digest"]}


def test_inputs_that_cannot_be_used_are_left_out_and_listed(run):
    Path("gaps.csv").write_text("\n".join(["text", *TEXTS[:10], '""', *TEXTS[10:]]) + "\n")
    code, out, err = run("fit", "--file", "gaps.csv", "--out", "gaps", *QUICK)
    assert code == 1
    assert err.count("failed: ") == 1
    assert "failed: gaps.csv line 12: " in err
    assert "on 18 inputs" in out
    assert card("gaps") == card()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "model"], "'model' is not empty but contains no training run: choose another folder"),
        (["--out", "data.csv"], "got the file 'data.csv'"),
        (["--epochs", "3"], "'fitted' contains a training run with different settings (epochs)"),
        (["--out", "new", "--limit", "1"], "must be at least 2 usable inputs, but got 1"),
        (["--out", "new", "--method", "lime"], "Unknown method to fit 'lime'. Known: aim, amortized-shapley"),
        (["--out", "new", "--teacher", "limes"], "Unknown method 'limes'. Did you mean 'lime'?"),
        (["--out", "new", "--set", "sample=4"], "Did you mean 'samples'?"),
        (["--out", "new", "--set", "epochs=4"], "Unknown setting of amortized-shapley 'epochs'"),
        (["--out", "new", "--label-column", "stars", "text"], "Texts cannot be combined with --file"),
        (["--out", "new", "--set", "samples=x"], "`samples` must be a whole number, but got 'x'"),
        (
            ["--out", "new", "--validation-fraction", "1"],
            "`--validation-fraction` must be above 0 and below 1, but got 1.0",
        ),
        (["--out", "new", "--teacher-explanations", "no.parquet"], "There is no file 'no.parquet'"),
        (["--out", "new", "--column", "text"], "Unknown column 'text'. Known: review, stars"),
        (["--out", "new", "--model", "fitted"], "'fitted' contains an explainer, not a model"),
    ],
)
def test_bad_usage(run, arguments, message):
    code, out, err = run(*FIT, *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("method", learned.all())
def test_every_method_is_fitted_to_rows_and_explains_them(run, monkeypatch, method):
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("own_rows.py").write_text(ROWS)
    rows = np.random.default_rng(0).integers(9, size=(24, 3))
    Path("rows.csv").write_text("a,b,c\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    model = ["--model", "own_rows:model"]
    epochs = [] if method == "maple" else ["--epochs", "2"]
    code, out, err = run("fit", "--file", "rows.csv", "--method", method, "--out", "r", *epochs, *model)
    doubts = {"magnex": "pertinent: The explainer keeps every feature"}  # this model needs all of them
    assert (code, bool(err)) == (0, method in doubts)
    assert err.startswith(doubts.get(method, ""))
    assert f"Fitted: {method}, on 22 inputs" in out
    assert following(out) == ["explain", "--row", "JSON", "--method", "r", *model]
    code, out, err = run("explain", "--row", "[1, 2, 3]", "--method", "r", *model, "--json", "-")
    assert (code, err) == (0, "")
    (explained,) = json.loads(out)["explanations"]
    assert (explained["method"], len(explained["scores"])) == (method, 3)


def test_without_accelerate(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    code, _, err = run(*FIT, "--out", "new")
    assert code == 2
    assert "pip install 'pertinent[train]'" in err


# -- what was fitted, as a method --------------------------------------------------------------


def test_explain_gives_the_scores_of_python(run):
    model = load_transformer("model")
    fitted = pertinent.load_explainer("fitted")
    for settings, explainer in (([], fitted), (["--set", "refine=3"], fitted.refined(3))):
        own = pertinent.explain(model, TEXTS[0], explainer, progress=False).scores
        assert np.allclose(scores(run, TEXTS[0], "--method", "./fitted", *settings), own)


def test_report_and_file(run):
    outputs = ["--html", "a.html", "--out", "a.parquet"]
    code, out, err = run("explain", *TEXTS[:2], *MODEL, "--method", "fitted/", "--set", "refine=2", *outputs)
    assert (code, err) == (0, "")
    assert "amortized-shapley" in out
    assert "amortized-shapley" in Path("a.html").read_text()
    assert [e.settings["refine"] for e in pertinent.read("a.parquet")] == [2, 2]
    assert run("evaluate", "a.parquet", *MODEL)[0] == 0


def test_compare_and_stability(run):
    code, out, err = run(
        "compare", *TEXTS[:2], *MODEL, "--methods", "./fitted,lime", "--set", "./fitted.refine=2"
    )
    assert (code, err) == (0, "")
    assert "amortized-shapley" in out and "lime" in out
    code, out, err = run("stability", *TEXTS[:2], *MODEL, "--method", "fitted", "--json", "a.json")
    assert (code, err) == (0, "")
    assert pertinent.Stability.read("a.json").summary["mse"].mean == 0  # one pass for every seed


def test_a_registered_name_wins_over_a_folder(run):
    Path("fitted").rename("lime")
    _, out, _ = run("explain", TEXTS[0], *MODEL, "--method", "lime", "--set", "samples=9", "--json", "-")
    assert json.loads(out)["explanations"][0]["method"] == "lime"
    _, out, _ = run("explain", TEXTS[0], *MODEL, "--method", "./lime", "--json", "-")
    assert json.loads(out)["explanations"][0]["method"] == "amortized-shapley"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "./nothing"], "There is no folder './nothing'"),
        (["--method", "model"], "There is no explainer in 'model'"),
        (["--method", "fitte"], "Unknown method 'fitte'"),
        (["--method", "fitted", "--set", "refin=2"], "Did you mean 'refine'?"),
        (["--method", "fitted", "--set", "refine=x"], "`refine` must be a whole number, but got 'x'"),
        (["--method", "fitted", "--model", "./other"], "fitted to a different model"),
        (
            ["--method", "fitted", "--removal", "mask-token"],
            "must be 'attention-mask', which the explainer",
        ),
        (["--method", "fitted", "--scale", "logit"], "`scale` must be 'natural'"),
        *((["--method", name], f"{name!r} must be fitted first: pertinent fit") for name in learned.all()),
    ],
)
def test_what_cannot_explain_is_said_once(run, arguments, message):
    code, out, err = run("explain", "--file", "data.csv", "--column", "review", *MODEL, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_another_model_is_said_once_among_several_methods(run):
    arguments = ["--file", "data.csv", "--column", "review", "--model", "./other"]
    code, out, err = run("compare", *arguments, "--methods", "fitted,leave-one-out")
    assert (code, err.count("\n"), err.count("fitted to a different model")) == (1, 1, 1)
    assert "leave-one-out" in out
    code, out, err = run("stability", *arguments, "--method", "fitted")
    assert (code, out, err.count("fitted to a different model")) == (2, "", 1)


def test_image_may_be_a_folder(tmp_path, capsys):
    from PIL import Image

    for name in ("b.png", "a.png"):
        Image.new("L", (8, 8), 128).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    assert main(["explain", "--image", str(tmp_path), "--budget", "70", "--json", "-"]) == 0
    assert len(json.loads(capsys.readouterr().out)["explanations"]) == 2
    (tmp_path / "empty").mkdir()
    assert main(["explain", "--image", str(tmp_path / "empty")]) == 2
    assert "no image files in the folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--file", "{file}", "--methods", "shapley", "./mine", "lime"], "with --file, but got 'lime'"),
        (["a good film", "lime", "--methods", "shapley"], "combined with names of methods, but got 'lime'"),
        (["--file", "{file}", "--methods", "shapley", "a text"], "with --file, but got 'a text'"),
    ],
)
def test_names_of_methods_are_not_explained_as_texts(tmp_path, capsys, words, said):
    """`--methods ./aim1 ./mag1 lime` explained the texts "./mag1" and "lime"."""
    file = tmp_path / "texts.txt"
    file.write_text("a good film\na bad film\n")
    assert main(["compare", *(word.format(file=file) for word in words)]) == 2
    assert said in capsys.readouterr().err
