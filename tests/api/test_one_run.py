"""Explaining and measuring are one run, and what goes wrong in it is recorded where it belongs."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import pertinent
from pertinent.asks import Values
from pertinent.errors import SettingError
from pertinent.masks import empty_mask
from pertinent.metrics.base import Metric
from pertinent.outputs import Classes, LogLikelihoods
from pertinent.runs.session import Session


class Counting:
    """A model of table rows that counts the rows it is asked for, and refuses rows that hold `refuse`."""

    def __init__(self, refuse=None):
        self.rows = 0
        self.refuse = refuse

    def __call__(self, rows):
        if self.refuse is not None and (rows == self.refuse).any():
            raise ValueError("not this one")
        self.rows += len(rows)
        p = 1 / (1 + np.exp(-(rows * np.linspace(-1, 1, rows.shape[1])).sum(axis=1)))
        return np.stack([1 - p, p], axis=1)


ROWS = np.random.default_rng(0).normal(size=(5, 6))


def test_compare_asks_for_nothing_that_a_method_has_asked_for():
    """exact-shapley asks for all 64 masks, so there is nothing left to ask."""
    function = Counting()
    model = pertinent.wrap(function, kind="table")
    metrics = ["sufficiency", "comprehensiveness", "insertion", "deletion"]
    found = pertinent.compare(model, ROWS, ["exact-shapley"], metrics, removal="constant")
    assert function.rows == 5 * 64 + 3 * (1 + 3)  # three inputs and masks of each again: is the model random?
    apart = pertinent.evaluate(
        model, pertinent.explain(model, ROWS, "exact-shapley", removal="constant"), metrics
    )
    assert found.rows == apart.rows
    assert function.rows > 2 * 5 * 64  # measured apart, the same masks are asked for again


def test_the_total_on_the_bar_is_that_of_the_run():
    seen = []
    model = pertinent.wrap(Counting(), kind="table")
    pertinent.compare(model, ROWS, ["lime", "random"], removal="constant", budget=20, progress=seen.append)
    assert {progress.total for progress in seen} == {10}
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert seen[-1].done == 10


@dataclass(frozen=True)
class Broken(Metric):
    """Raises what nobody expects, before or after it has asked."""

    name = "broken"
    paper = "these tests"
    summary = "raises"
    better = "lower"
    first: bool = True

    def measure(self, explanation):
        if self.first:
            raise ZeroDivisionError("one by nothing")
        yield Values(empty_mask(len(explanation.features)))
        raise KeyError("gone")


@pytest.mark.parametrize(
    ("metric", "reason"), [(Broken(), "broken: one by nothing"), (Broken(first=False), "broken: 'gone'")]
)
@pytest.mark.parametrize("verb", ["compare", "evaluate"])
def test_a_metric_that_breaks_is_recorded_and_the_others_go_on(metric, reason, verb):
    model = pertinent.wrap(Counting(), kind="table")
    if verb == "compare":
        found = pertinent.compare(
            model, ROWS, ["lime"], [metric, "sufficiency"], removal="constant", budget=20
        )
    else:
        explanations = pertinent.explain(model, ROWS, "lime", removal="constant", budget=20)
        found = pertinent.evaluate(model, explanations, [metric, "sufficiency"])
    assert [(f.index, str(f)) for f in found.failures] == [(i, reason) for i in range(5)]
    assert {row.metric for row in found.rows} == {"sufficiency"}
    assert len(found.rows) == 5 * 4


def test_evaluate_records_whatever_a_model_raises_and_goes_on():
    explanations = pertinent.explain(
        pertinent.wrap(Counting(), kind="table"), ROWS, "lime", removal="constant", budget=20
    )
    found = pertinent.evaluate(
        pertinent.wrap(Counting(refuse=ROWS[2, 0]), kind="table"), explanations, "insertion"
    )
    assert [f.index for f in found.failures] == [2]
    assert "ValueError: not this one" in found.failures[0].reason
    assert [row.explanation for row in found.rows] == [0, 1, 3, 4]


def test_evaluate_records_an_input_that_cannot_be_prepared_again():
    class Forgetful(pertinent.wrap(Counting(), kind="table").__class__):
        def prepare(self, raw, features=None):
            if np.asarray(raw)[0] == ROWS[1, 0]:
                raise RuntimeError("I forgot")
            return super().prepare(raw, features)

    explanations = pertinent.explain(
        pertinent.wrap(Counting(), kind="table"), ROWS, "lime", removal="constant", budget=20
    )
    found = pertinent.evaluate(Forgetful(Counting(), kind="table"), explanations, "insertion")
    assert [(f.index, str(f)) for f in found.failures] == [
        (1, "insertion: The input cannot be read: RuntimeError: I forgot")
    ]
    assert len(found.rows) == 4


def test_one_bad_input_is_one_failure_and_counted_once():
    model = pertinent.wrap(Counting(refuse=ROWS[2, 0]), kind="table")
    found = pertinent.compare(model, ROWS, ["lime", "random"], removal="constant", budget=20)
    assert [(f.index, f.reason) for f in found.failures] == [(2, "The model raised ValueError: not this one")]
    with pytest.raises(pertinent.PertinentError, match="None of the 2 inputs"):
        pertinent.compare(lambda texts: texts, ["", " "], ["lime", "random"])


def test_seeds_of_many_inputs_share_batches():
    function = Counting()
    batches = []
    model = pertinent.wrap(lambda rows: batches.append(len(rows)) or function(rows), kind="table")
    from pertinent.runs.explain import explain_all
    from pertinent.runs.run import Run

    requests = [
        pertinent.Request.from_method("lime", removal="constant", budget=20, seed=seed) for seed in range(4)
    ]
    found = explain_all(Run(model, ROWS, batch_size=100), requests)
    assert [(e.index, e.seed) for e in found] == [(i, seed) for i in range(5) for seed in range(4)]
    for e in found:
        alone = pertinent.explain(model, ROWS[e.index], "lime", removal="constant", budget=20, seed=e.seed)
        np.testing.assert_array_equal(e.scores, alone.scores)
    assert max(batches) == 100


@pytest.mark.filterwarnings("ignore")  # shap imports what others deprecate
@pytest.mark.parametrize("method", ["lime", "leave-one-out", "banzhaf", "random"])
def test_no_base_value_where_scores_do_not_add_up(method):
    e = pertinent.explain(pertinent.wrap(Counting(), kind="table"), ROWS[0], method, removal="constant")
    assert e.base_values is None
    assert e.to_shap().base_values == pytest.approx(e.prediction.values[e.target] - e.scores.sum())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["exact-shapley", "kernel-shap", "shapley-sampling"])
@pytest.mark.parametrize("target", [0, 1])
def test_base_values_and_scores_add_up_to_the_prediction(method, target):
    model = pertinent.wrap(Counting(), kind="table")
    e = pertinent.explain(model, ROWS[0], method, removal="constant", target=target)
    as_shap = e.to_shap()
    assert as_shap.base_values == pytest.approx(0.5)  # of a row of zeros
    assert as_shap.base_values + as_shap.values.sum() == pytest.approx(e.prediction.values[target])
    other = e.for_class(1 - target)
    assert other.to_shap().base_values + other.scores.sum() == pytest.approx(e.prediction.values[1 - target])


def test_standard_errors_of_every_class_are_kept(tmp_path):
    def three(rows):
        scores = rows[:, :3] + np.sin(rows[:, 3:])
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)

    model = pertinent.wrap(three, kind="table")
    e = pertinent.explain(model, ROWS[0], "lime", removal="constant", budget=30)
    e.save(tmp_path / "e.parquet")
    (read,) = pertinent.read(tmp_path / "e.parquet")
    for target in range(3):
        alone = pertinent.explain(model, ROWS[0], "lime", removal="constant", budget=30, target=target)
        np.testing.assert_array_equal(e.for_class(target).standard_errors, alone.standard_errors)
        np.testing.assert_array_equal(read.for_class(target).standard_errors, alone.standard_errors)


def test_weight_of_evidence_of_a_regressor_says_so():
    model = pertinent.wrap(lambda rows: rows.sum(axis=1), kind="table", output="value")
    e = pertinent.explain(model, ROWS[0], "lime", removal="constant", budget=30)
    from pertinent.metrics.ablation import Sufficiency

    with pytest.raises(SettingError, match="for a model of plain values"):
        pertinent.evaluate(model, e, Sufficiency(scale="weight-of-evidence"))


def test_a_stream_may_hand_out_one_buffer_again_and_again(tmp_path):
    """Inputs are told apart by their place, not by which object they are."""

    def stream():
        buffer = np.empty(6)
        for row in ROWS:
            buffer[:] = row
            yield buffer

    model = pertinent.wrap(Counting(), kind="table")
    expected = pertinent.explain(model, ROWS, "leave-one-out", removal="constant")
    for options in ({}, {"out": tmp_path / "run.parquet"}):
        found = pertinent.explain(model, stream(), "leave-one-out", removal="constant", **options)
        np.testing.assert_allclose([e.scores for e in found], [e.scores for e in expected])


@pytest.mark.parametrize(
    ("dtype", "output", "differs"),
    [
        ("torch.bfloat16", LogLikelihoods(), False),
        ("torch.float16", LogLikelihoods(), True),
        ("torch.float32", LogLikelihoods(), True),
        ("torch.bfloat16", Classes(), True),
    ],
)
def test_log_likelihoods_vary_with_the_precision(dtype, output, differs):
    """A trained language model on a GPU in bfloat16 answered -1.515 and then -1.635."""
    session = Session(SimpleNamespace(dtype=dtype, output=output))
    assert (session.difference(np.array([-1.515]), np.array([-1.635])) is not None) == differs
    assert session.difference(np.array([-1.5]), np.array([-2.0])) is not None
