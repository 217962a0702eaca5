"""``pertinent explain --by-class``, and metrics with settings."""

import pytest

import pertinent
from pertinent.config.settings_parser import split_names

CLASSES = ["low", "middle", "high"]


def by_length(texts):
    shares = [len(text) % 7 / 10 for text in texts]
    return [[0.3 - s / 3, 0.7 - s / 3, 2 * s / 3] for s in shares]


@pytest.fixture
def run(run, use_model, monkeypatch):
    use_model(pertinent.wrap(by_length, kind="text", classes=CLASSES))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    return run


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
    assert run("explain", "some more words here", "--metrics", "none", "--out", "a.parquet")[0] == 0
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
    assert run("explain", "some words", "--metrics", "none", "--out", "a.parquet")[0] == 0
    code, _, err = run("evaluate", "a.parquet", "--metrics", "faithfulness:q=5")
    assert code == 2
    assert "faithfulness" in err and "'q'" in err


def test_settings_of_several_metrics_are_told_apart():
    assert split_names("purity, sufficiency:scale=natural,deletion:steps=5") == [
        "purity",
        "sufficiency:scale=natural",
        "deletion:steps=5",
    ]
    assert split_names("robustness:norm=linf,steps=5,purity") == ["robustness:norm=linf,steps=5", "purity"]


def test_sparsities_are_those_of_the_explanation_or_of_the_metric(run):
    arguments = ["explain", "some more words here", "--sparsity", ".5", "--out", "a.parquet"]
    assert run(*arguments)[0] == 0
    assert list(pertinent.read("a.parquet")[0].measures["sufficiency"]) == [0.5]
    metrics = ["--metrics", "sufficiency:sparsities=.2+.3,faithfulness:k=1", "--out", "b.parquet"]
    assert run("evaluate", "a.parquet", *metrics)[0] == 0
    assert list(pertinent.read("b.parquet")[0].measures["sufficiency"]) == [0.2, 0.3]
