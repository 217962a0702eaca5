"""Results are alike: each is converted, shown, drawn, saved and read in the same way."""

import json
import random

import numpy as np
import pytest
from rich.console import Console
from torch import nn

import pertinent
from pertinent.diagnostics.base import Diagnostic
from pertinent.errors import FileError
from pertinent.rendering.by_input import name_of
from pertinent.results.failures import Failure
from tests.results.test_damaged_files import damaged
from tests.stubs import sentiment


def explained(inputs=("not bad", "so good", "a bad film"), **options):
    return pertinent.explain(sentiment, list(inputs), "leave-one-out", progress=False, **options)


def attacked(model, rows):
    return pertinent.attack_radius(
        model, rows, [[[0], [0, 1]]] * len(rows), algorithm="decision", progress=False
    )


@pytest.fixture(scope="module")
def attacks():
    rng = np.random.default_rng(0)
    background = rng.normal(size=(50, 3))
    model = pertinent.wrap(
        lambda x: np.stack([1 / (1 + np.exp(-x[:, 0])), 1 / (1 + np.exp(x[:, 0]))], axis=1),
        kind="table",
        background=background,
    )
    return attacked(model, [*background[:3], [np.nan, "x", 1j]])


@pytest.fixture(scope="module")
def results(attacks):
    es = explained(["not bad", "", "so good"])
    return {
        "explanation": es[0],
        "explanations": es,
        "by class": es[0].by_class(),
        "evaluation": pertinent.evaluate(sentiment, es, ["sufficiency", "deletion"]),
        "attacks": attacks,
        **diagnostics(),
    }


def diagnostics():
    """Return a diagnostic of each kind, each with a failure."""
    texts, rows = ["not bad", "", "so good", "a bad film"], [*np.eye(4), "none"]
    es = pertinent.explain(sentiment, ["so bad", "not bad", "so good"], "leave-one-out", progress=False)
    model = pertinent.wrap(lambda x: [[0.5 + r[0] / 9, 0.5 - r[0] / 9] for r in x], kind="table")
    network = pertinent.wrap(nn.Sequential(nn.Linear(4, 2)), kind="table", output="logit")
    quiet = {"progress": False}
    return {
        "removal-check": pertinent.check_removal(sentiment, texts, shares=0.5, draws=2, **quiet),
        "stability": pertinent.stability(sentiment, texts, "lime", samples=9, seeds=2, **quiet),
        "sanity": pertinent.sanity(network, rows, "leave-one-out", removal="constant", **quiet),
        "sensitivity": pertinent.sensitivity(
            model, rows, ["leave-one-out", "random"], sparsity=(0.2, 0.5), samples=2, **quiet
        ),
        "neighbour-stability": pertinent.neighbour_stability(es, k=1, semantic=0, stop_words=()),
    }


DIAGNOSTICS = ["removal-check", "stability", "sanity"]
KINDS = ["explanation", "explanations", "by class", "evaluation", "attacks", *DIAGNOSTICS]
KINDS += ["sensitivity", "neighbour-stability"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_result_is_converted_shown_and_drawn(results, kind):
    result = results[kind]
    assert len(result.to_dataframe()) > 0
    assert isinstance(json.loads(result.to_json()), dict)
    assert result.to_html() == result._repr_html_()
    assert 'class="pertinent"' in result.to_html()
    console = Console(record=True, width=150)
    console.print(result)
    assert console.export_text().strip()
    assert result.plot()._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", KINDS)
def test_every_result_is_saved_and_read(results, kind, tmp_path):
    result = results[kind]
    result.save(tmp_path / "r.json")
    again = pertinent.read(tmp_path / "r.json")
    assert type(result).read(tmp_path / "r.json").to_dict() is not None
    if kind == "explanation":
        again = again[0]
    assert json.loads(again.to_json()) == json.loads(result.to_json())
    result.save(tmp_path / "r.csv")
    assert len((tmp_path / "r.csv").read_text().splitlines()) == len(result.to_dataframe()) + 1
    with pytest.raises(FileError, match=r"must end in .*\.json"):
        result.save(tmp_path / "r.txt")


def test_evaluations_are_the_same_after_reading(results, tmp_path):
    results["evaluation"].save(tmp_path / "e.json")
    again = pertinent.Evaluation.read(tmp_path / "e.json")
    assert repr(again) == repr(results["evaluation"])
    assert again.failures == results["evaluation"].failures
    assert again.explanations[0].measures == results["evaluation"].explanations[0].measures


def test_failed_attacks_are_saved(attacks, tmp_path):
    attacks.save(tmp_path / "a.json")
    again = pertinent.read(tmp_path / "a.json")
    for before, after in zip(attacks, again, strict=True):
        np.testing.assert_array_equal(before.radii, after.radii)
        np.testing.assert_array_equal(before.sets, after.sets)
        np.testing.assert_allclose(before.perturbed, after.perturbed)


MEASURED = {"explanation": 0, "method": "lime", "metric": "deletion", "sparsity": None, "value": 1.0}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "pertinent stability 1"}, "damaged or contains no evaluation: `format`"),
        ({"rows": [MEASURED | {"explanation": 9}]}, "`rows` must be about existing explanations"),
        ({"rows": [MEASURED | {"metric": "other"}]}, "`rows` must be of sufficiency, deletion"),
        ({"better": {"deletion": "sideways"}}, "better.deletion"),
        ({"failures": [{"index": 0}]}, r"failures\[0\]\.reason"),
    ],
)
def test_a_damaged_evaluation_says_what_is_wrong(results, tmp_path, change, said):
    plain = json.loads(results["evaluation"].to_json())
    (tmp_path / "e.json").write_text(json.dumps(plain | change))
    with pytest.raises(FileError, match=said):
        pertinent.Evaluation.read(tmp_path / "e.json")


def test_other_json_files_are_refused(tmp_path):
    for text in ("{}", "[]", '{"format": 3}', '{"format": "pertinent novel 1"}'):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(FileError, match="contains no result"):
            pertinent.read(tmp_path / "x.json")


def test_slices_keep_the_failures_of_their_inputs(attacks):
    es = explained(["", "not bad", " ", "so good", "a bad film", ""])
    assert [e.index for e in es] == [1, 3, 4]
    assert [f.index for f in es[:].failures] == [0, 2, 5]
    assert [f.index for f in es[:1].failures] == [0]
    assert [f.index for f in es[1:].failures] == [2, 5]
    assert [f.index for f in es[1:2].failures] == [2]
    assert [f.index for f in es[::2].failures] == [0, 5]
    assert [f.index for f in attacks[:2].failures] == []
    assert [f.index for f in attacks[2:].failures] == [3]
    nothing = pertinent.Explanations([], [Failure(3, "empty")])
    assert nothing[:].failures == nothing.failures


def test_a_failure_in_measuring_stays_with_its_explanation():
    found = pertinent.evaluate(
        sentiment, explained(), ["sufficiency", "precision-at-k"], annotations=[None, [0], None]
    )
    assert [(f.index, f.metric) for f in found.failures] == [(0, "precision-at-k"), (2, "precision-at-k")]
    es = pertinent.Explanations(list(found.explanations), found.failures)
    assert [f.index for f in es[1:].failures] == [2]


def test_one_metric_with_two_settings(tmp_path):
    es = explained()
    metrics = ["precision-at-k:k=1", "precision-at-k:k=2", "sufficiency"]
    found = pertinent.evaluate(sentiment, es, metrics, annotations=[[0], [0], [0]])
    names = ["precision-at-k k=1", "precision-at-k k=2", "sufficiency"]
    assert list(found.better) == names
    assert list(found.explanations[0].measures) == names
    assert found.explanations[0].better == {names[0]: "higher", names[1]: "higher", names[2]: "lower"}
    assert {metric for _, metric, _, _ in found.summary()} == set(names)
    for name in names:
        assert name in found.to_html()
    with pytest.raises(pertinent.PertinentError, match="sufficiency is listed twice with the same settings"):
        pertinent.evaluate(sentiment, es, ["sufficiency", "sufficiency"])


@pytest.mark.parametrize("kind", DIAGNOSTICS)
def test_diagnostics_share_a_base_and_a_file_format(results, kind):
    found = results[kind]
    plain = json.loads(found.to_json())
    assert isinstance(found, Diagnostic)
    assert (plain["format"], plain["kind"], found.kind) == ("pertinent diagnostic 3", kind, kind)
    assert len(plain["rows"][0]) == len(plain["columns"])
    assert len(found.failures) == 1
    assert f"Failed: {name_of(found.failures[0])}" in found.to_html()
    assert found.table().question in found.to_html()


@pytest.mark.parametrize("kind", DIAGNOSTICS)
def test_damaged_files_of_diagnostics_are_read_or_refused(results, kind, tmp_path):
    plain = json.loads(results[kind].to_json())
    draw, refused, path = random.Random(0), 0, tmp_path / "d.json"
    variants = [json.dumps(damaged(plain, draw)) for _ in range(150)]
    for text in [*variants, "", "[]", "null", "[" * 100_000]:
        path.write_text(text)
        try:
            result = type(results[kind]).read(path)
        except FileError:
            refused += 1
        else:
            repr(result), result.to_json(), result.to_html(), result.__rich__(), result.to_dataframe()
    assert refused > 80


def test_a_saved_sensitivity_is_read_as_an_evaluation(results, tmp_path):
    found = results["sensitivity"]
    found.save(tmp_path / "s.json")
    again = pertinent.read(tmp_path / "s.json")
    assert again == found
    assert again.methods == ["leave-one-out", "random"]
    for method in again.methods:
        assert again.mean(method, "set-sensitivity") == found.mean(method, "set-sensitivity")
    assert again.difference("random", "leave-one-out", "set-sensitivity").n == 4
    assert (len(found.explanations), len(again.explanations)) == (8, 8)
    assert again.settings == {"radius": 0.1, "norm": "linf", "samples": 2}
    assert again.plot().axes and again.plot_curves().axes
