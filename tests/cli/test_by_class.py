"""``pertinent explain --by-class``, and metrics with settings."""

import pytest

import pertinent
from pertinent.cli import main
from pertinent.cli.options import names_with_settings
from pertinent.cli.settings import make_metrics
from pertinent.errors import SettingError

CLASSES = ["low", "middle", "high"]


def by_length(texts):
    shares = [len(text) % 7 / 10 for text in texts]
    return [[0.3 - s / 3, 0.7 - s / 3, 2 * s / 3] for s in shares]


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    model = pertinent.wrap(by_length, kind="text", classes=CLASSES)
    monkeypatch.setattr("pertinent.cli.commands.load_model", lambda *_: model)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")

    def go(*arguments):
        code = main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return go


def test_classes_are_shown_beside_and_in_the_report(run, tmp_path):
    code, out, _ = run("explain", "some words here", "--by-class", "--html", "a.html")
    assert code == 0
    assert out.count("for each class, by shapley") == 1
    heads = next(line for line in out.splitlines() if all(name in line for name in CLASSES))
    assert heads.count("%") == 3
    assert (tmp_path / "a.html").read_text().count("<summary>For each class</summary>") == 1


def test_each_of_several_inputs_is_shown_by_class(run, tmp_path):
    code, out, _ = run("explain", "some words here", "and some others", "--by-class")
    assert code == 0
    assert out.count("for each class, by shapley") == 2
    code, out, _ = run("explain", "some words here", "--html", "b.html")
    assert code == 0
    assert "for each class" not in out
    assert "For each class" not in (tmp_path / "b.html").read_text()


def test_a_method_that_scores_one_class_still_shows_and_writes_the_rest(run, tmp_path):
    arguments = ["--method", "parallel-local-search", "--budget", "9", "--by-class", "--html", "a.html"]
    code, out, err = run("explain", "some words here", *arguments)
    assert code == 1
    assert "failed: --by-class: parallel-local-search explains one class at a time" in err
    assert "parallel-local-search" in out
    assert (tmp_path / "a.html").exists()


def test_metrics_with_settings_measure_as_in_python(run):
    assert run("explain", "some more words here", "--no-measure", "--out", "a.parquet")[0] == 0
    metrics = "faithfulness:k=1,insertion:steps=2"
    code, _, _ = run("evaluate", "a.parquet", "--metrics", metrics, "--out", "b.parquet")
    assert code == 0
    measured = pertinent.read("b.parquet")[0].measures
    model = pertinent.wrap(by_length, kind="text", classes=CLASSES)
    saved = pertinent.read("a.parquet")
    expected = pertinent.evaluate(model, saved, ["faithfulness:k=1", "insertion:steps=2"]).explanations[0]
    assert measured == expected.measures
    assert (
        measured != pertinent.evaluate(model, saved, ["faithfulness", "insertion"]).explanations[0].measures
    )


def test_a_wrong_setting_is_named(run):
    assert run("explain", "some words", "--no-measure", "--out", "a.parquet")[0] == 0
    code, _, err = run("evaluate", "a.parquet", "--metrics", "faithfulness:q=5")
    assert code == 2
    assert "faithfulness" in err and "'q'" in err


def test_settings_of_several_metrics_are_told_apart():
    assert names_with_settings("purity, sufficiency:scale=natural,deletion:steps=5") == [
        "purity",
        "sufficiency:scale=natural",
        "deletion:steps=5",
    ]
    assert names_with_settings("robustness:norm=linf,steps=5,purity") == [
        "robustness:norm=linf,steps=5",
        "purity",
    ]


def test_sparsities_are_given_to_metrics_that_have_no_size_of_their_own():
    named = ["sufficiency:scale=weight-of-evidence", "faithfulness:k=5", "faithfulness", "insertion"]
    first, second, third, _ = make_metrics(named, (0.1,))
    assert (first.scale, first.sparsities) == ("weight-of-evidence", (0.1,))
    assert (second.k, second.sparsities) == (5, None)
    assert third.sparsities == (0.1,)
    with pytest.raises(SettingError, match="`k`"):
        make_metrics(["faithfulness:k=0"], None)
