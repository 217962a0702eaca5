"""Evaluations keep apart what differs, and measure with what was explained."""

from itertools import pairwise

import numpy as np
import pytest

import pertinent
from pertinent.errors import SettingError
from pertinent.explainers.shapley.kernel_shap import KernelShap
from pertinent.inputs.background import Background
from pertinent.metrics.ablation import Sufficiency
from pertinent.metrics.base import metrics
from pertinent.removals import FromBackground
from tests import tiny


def words(texts):
    return [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts]


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def rows(table):
    p = sigmoid(table.astype(float).sum(axis=1))
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
    with pytest.raises(SettingError, match="the same `removal` again"):
        pertinent.evaluate(model, e)
    again = pertinent.evaluate(model, e, removal=own)
    plain = pertinent.evaluate(model, pertinent.explain(model, [1.0, 2.0]))
    # The second column is the more important either way; without it the sum is 1 + 9, or 1 + 0.
    for found, without in ((again, 10), (plain, 1)):
        expected = sigmoid(3) - sigmoid(without)
        assert found.mean("shapley", "comprehensiveness") == pytest.approx(expected)


def test_misspelt_options_of_compare():
    with pytest.raises(SettingError, match="Did you mean 'budget'"):
        pertinent.compare(words, "not bad", ["lime"], budgets=5)


def test_failures_are_numbered_by_input():
    found = pertinent.compare(words, ["not bad", "", "so bad"], ["lime", "leave-one-out"])
    assert [f.index for f in found.failures] == [1]


def test_measures_come_in_the_order_asked_for():
    for names in (["deletion", "sufficiency"], ["sufficiency", "deletion"]):
        found = pertinent.compare(words, "not bad", ["lime"], metrics=names)
        assert list(found.explanations[0].measures) == names


def test_explanations_are_measured_at_their_own_sparsities():
    e = pertinent.explain(words, "not so bad at all", method="exhaustive-search", sparsity=0.4)
    assert list(pertinent.evaluate(words, e).explanations[0].measures["sufficiency"]) == [0.4]


def test_the_registry_refuses_what_has_no_summary_or_another_s_name():
    before = metrics.all()
    with pytest.raises(SettingError, match="'nameless' needs the class attribute `summary`"):
        metrics.register("nameless")(type("Nameless", (), {}))
    with pytest.raises(SettingError, match="'sufficiency' is already registered"):
        metrics.register("sufficiency")(type("Other", (), {"summary": "x"}))
    assert metrics.all() == before
    assert metrics.register("sufficiency")(Sufficiency) is Sufficiency  # its own name is its own


def test_progress_is_told_until_all_is_done():
    asked = 0

    def counted(texts):
        nonlocal asked
        asked += len(texts)
        return words(texts)

    texts = ["not bad", "", "so so", "all is bad"]
    seen = []
    found = pertinent.compare(counted, texts, ["leave-one-out", "random"], progress=seen.append)
    assert len(found.explanations) == 6
    assert (seen[-1].done, seen[-1].failed, seen[-1].total) == (8, 2, 8)
    assert 0 <= asked - seen[-1].evaluations <= 9  # a few masks are asked about again at the end
    for one, other in pairwise(seen):
        assert one.done <= other.done
        assert one.evaluations <= other.evaluations
    assert {p.total for p in seen} == {8}
    seen.clear()
    pertinent.evaluate(words, found.explanations, progress=seen.append)
    assert (seen[-1].done, seen[-1].failed, seen[-1].total) == (6, 0, 6)


def test_a_method_that_fails_on_an_input_leaves_its_other_methods():
    """Explanations stand by input, then method."""
    found = pertinent.compare(
        words, ["not bad", tiny.text(20), "so so"], ["exact-shapley", "leave-one-out"], "deletion"
    )
    assert [(e.index, e.method) for e in found.explanations] == [
        (0, "exact-shapley"), (0, "leave-one-out"), (1, "leave-one-out"),
        (2, "exact-shapley"), (2, "leave-one-out"),
    ]  # fmt: skip
    assert [(f.index, f.method, f.metric) for f in found.failures] == [(1, "exact-shapley", None)]
    assert str(found.failures[0]) == f"exact-shapley: {found.failures[0].reason}"


def test_another_seed_measures_with_other_draws():
    model = pertinent.wrap(rows, kind="table", background=np.random.default_rng(0).normal(size=(140, 3)))
    e = pertinent.explain(model, [1.0, 2.0, -1.0], "leave-one-out", seed=5)
    by_default, same, other = (
        pertinent.evaluate(model, e, seed=seed).explanations[0].measures for seed in (None, 5, 6)
    )
    assert by_default == same
    assert by_default != other
