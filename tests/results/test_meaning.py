"""Explanations declare the meaning of their scores; reports need no installed methods."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import pertinent
from pertinent.explainers.base import Explainer, Finding, explainers
from pertinent.learners.base import learned
from pertinent.rendering.wording import directions, facts, score_text
from pertinent.results.explanation import Explanation
from tests.explanations import changed
from tests.stubs import sentiment


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(sentiment)


def explained(model, method, **options):
    return pertinent.explain(model, "a bad film", method=method, progress=False, **options)


@pytest.mark.parametrize(
    ("method", "meaning"),
    [("leave-one-out", "effect"), ("random-search", "membership"), ("anchors", "membership")],
)
def test_the_meaning_is_kept_in_files(model, tmp_path, method, meaning):
    e = explained(model, method)
    e.save(tmp_path / "e.parquet")
    read = pertinent.read(tmp_path / "e.parquet")[0]
    for each in (e, read, Explanation.from_dict(e.to_dict())):
        assert each.meaning == meaning
        assert each.cost.budget_per_sparsity == (method == "random-search")
        assert facts(each)["budget"].endswith("per sparsity") == (method == "random-search")


def test_every_method_declares_the_meaning_of_its_scores():
    of_methods = {name: cls.traits.meaning for name, cls in (explainers.all() | learned.all()).items()}
    assert of_methods["greedy-as"] == of_methods["counterfactual"] == "attack"
    assert of_methods["parallel-local-search"] == "membership"
    assert of_methods["magnex"] == of_methods["functional-information"] == "magnitude"
    assert of_methods["shapley"] == of_methods["fastshap"] == "effect"


def test_an_unknown_meaning_or_direction_is_an_error(model):
    plain = explained(model, "leave-one-out").to_dict()
    with pytest.raises(pertinent.PertinentError, match="Unknown meaning 'size'"):
        Explanation.from_dict(plain | {"meaning": "size"})
    with pytest.raises(pertinent.PertinentError, match=r"Unknown better\.sufficiency 'sideways'"):
        Explanation.from_dict(plain | {"better": {"sufficiency": "sideways"}})


def test_a_finding_may_change_the_meaning(model):
    @dataclass(frozen=True)
    class Sizes(Explainer):
        name = "sizes"
        paper = summary = ""

        def explain(self, task):
            yield from ()
            return Finding(np.arange(task.n_features) / 10, meaning="magnitude")

    e = explained(model, Sizes())
    assert e.meaning == "magnitude"
    assert directions(e) == ("matters for class 0", "does not matter for class 0")
    assert score_text(e, 2) == "+0.200"


def test_measures_declare_their_direction(model, tmp_path):
    es = pertinent.explain(model, ["a bad film"], "leave-one-out", progress=False)
    measured = pertinent.evaluate(model, es, ["sufficiency", "comprehensiveness"]).explanations
    measured.save(tmp_path / "e.parquet")
    for e in (measured[0], pertinent.read(tmp_path / "e.parquet")[0]):
        assert e.better == {"sufficiency": "lower", "comprehensiveness": "higher"}
        assert 'sufficiency <span title="lower is better">↓</span>' in e.to_html()


def test_displays_import_no_methods(model, tmp_path):
    e = changed(explained(model, "leave-one-out"), method="my-own-method", meaning="magnitude")
    e.save(tmp_path / "e.parquet")
    code = f"""
import sys, pertinent
from rich.console import Console
e = pertinent.read({str(tmp_path / "e.parquet")!r})[0]
console = Console(record=True, width=200)
console.print(e)
print("matters for class 0" in e.to_html(), "speaks against" in e.to_html())
print("matters for class 0" in console.export_text(clear=False), "speaks" in console.export_text())
prefixes = ("pertinent.explainers.", "pertinent.learners")
print(sorted(name for name in sys.modules if name.startswith(prefixes)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # The base and the settings that its task has.
    known = ["base", "early_stopping", "removal_jackknife"]
    modules = str([f"pertinent.explainers.{name}" for name in known])
    assert done.stdout.splitlines()[-3:] == ["True False", "True False", modules]
