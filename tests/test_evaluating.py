"""Evaluations keep apart what differs, and measure with what was explained."""

import numpy as np
import pytest

import pertinent
from pertinent.errors import SettingError
from pertinent.explainers.shapley.kernel import KernelShap
from pertinent.inputs.table import Background
from pertinent.removal.background import FromBackground


def words(texts):
    return [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts]


def rows(table):
    p = 1 / (1 + np.exp(-table.astype(float).sum(axis=1)))
    return np.stack([1 - p, p], axis=1)


def test_one_method_with_several_settings_has_several_rows():
    methods = [KernelShap(samples=8), KernelShap(samples=12), "lime"]
    found = pertinent.compare(words, ["not bad at all", "so bad"], methods)
    assert found.methods == ["kernel-shap samples=8", "kernel-shap samples=12", "lime"]
    assert {i.n for _, _, _, i in found.summary()} == {2}


def test_a_background_of_the_removals_own_must_be_given_again():
    own = FromBackground(background=Background([[9.0, 9.0]]))
    model = pertinent.wrap(rows, kind="table", background=[[0.0, 0.0]])
    e = pertinent.explain(model, [1.0, 2.0], removal=own)
    with pytest.raises(SettingError, match="give the same `removal=` again"):
        pertinent.evaluate(e, model)
    again = pertinent.evaluate(e, model, removal=own)
    assert again.mean("kernel-shap", "comprehensiveness") < 0
    assert pertinent.evaluate(pertinent.explain(model, [1.0, 2.0]), model).rows


def test_misspelt_options_of_compare():
    with pytest.raises(SettingError, match="Did you mean 'budget'"):
        pertinent.compare(words, "not bad", ["lime"], budgets=5)


def test_failures_are_numbered_by_input():
    found = pertinent.compare(words, ["not bad", "", "so bad"], ["lime", "leave-one-out"])
    assert [f.index for f in found.failures] == [1, 1]


def test_measures_come_in_the_order_asked_for():
    for names in (["deletion", "sufficiency"], ["sufficiency", "deletion"]):
        found = pertinent.compare(words, "not bad", ["lime"], metrics=names)
        assert list(found.explanations[0].measures) == names


def test_explanations_are_measured_at_their_own_sparsities():
    e = pertinent.explain(words, "not so bad at all", method="exhaustive-search", sparsity=0.4)
    assert list(pertinent.evaluate(e, words).explanations[0].measures["sufficiency"]) == [0.4]


def test_progress_and_registry_speak_up():
    from pertinent.metric.base import metrics

    with pytest.raises(SettingError, match="must have a `summary`"):
        metrics.register("nameless")(type("Nameless", (), {}))
    with pytest.raises(SettingError, match="registered twice"):
        metrics.register("sufficiency")(type("Other", (), {"summary": "x"}))
