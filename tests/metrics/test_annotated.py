"""Precision at k and average precision compared with scikit-learn, hand computation and enumeration."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score
from tests.explanations import explanation_by_hand

import pertinent
from pertinent.errors import PertinentError, SettingError
from pertinent.metrics.plausibility import AveragePrecision, PrecisionAtK
from pertinent.outputs import output_named


def explanation_of(scores, marks, output="probability"):
    return explanation_by_hand(scores, output=output_named(output), annotations=marks)


def value(metric, scores, marks, **options):
    steps = metric.measure(explanation_of(scores, marks, **options))
    with pytest.raises(StopIteration) as stop:
        next(steps)
    return stop.value.value[None]


def test_by_hand():
    scores, marks = [0.9, 0.1, 0.7, 0.5], [True, True, False, False]  # ranks 1 and 4
    assert value(AveragePrecision(), scores, marks) == pytest.approx((1 / 1 + 2 / 4) / 2)
    found = [value(PrecisionAtK(k), scores, marks) for k in (1, 2, 3, 4, 9)]
    assert found == pytest.approx([1, 1 / 2, 1 / 3, 1 / 2, 1 / 2])


@pytest.mark.parametrize("ties", [False, True])
def test_average_precision_is_that_of_scikit_learn(ties):
    rng = np.random.default_rng(0)
    for d in (1, 2, 5, 40):
        for _ in range(20):
            scores = rng.integers(4, size=d).astype(float) if ties else rng.normal(size=d)
            marks = rng.random(d) < 0.4
            marks[rng.integers(d)] = True
            expected = average_precision_score(marks, scores)
            assert value(AveragePrecision(), scores, marks) == pytest.approx(expected)


def test_precision_of_ties_is_the_mean_over_all_orders():
    rng = np.random.default_rng(1)
    for _ in range(20):
        scores, marks = rng.integers(3, size=6), rng.random(6) < 0.5
        marks[0] = True
        for k in (1, 2, 4, 6):
            found = []
            for order in permutations(range(6)):
                ranked = sorted(order, key=lambda i: -scores[i])  # stable: ties stay in this order
                found.append(np.mean([marks[i] for i in ranked[:k]]))
            assert value(PrecisionAtK(k), scores, marks) == pytest.approx(np.mean(found))


def test_a_plain_value_is_ranked_by_magnitude():
    scores, marks = [-5.0, 1.0, 0.5], [0]
    assert value(PrecisionAtK(1), scores, marks) == 0.0
    assert value(PrecisionAtK(1), scores, marks, output="value") == 1.0
    assert value(AveragePrecision(), [1.0, -1.0, 0.5], [1], output="value") == 0.5  # equal in magnitude


# -- through evaluate ----------------------------------------------------------------------------


def words(texts):
    return [[0.9, 0.1] if "bad" in t else [0.2, 0.8] for t in texts]


TEXTS = ["not bad at all", "", "a bad thing", "so bad it is"]
METRICS = [PrecisionAtK(1), AveragePrecision(), "sufficiency"]


def explained(texts=TEXTS, **options):
    return pertinent.explain(words, texts, "leave-one-out", **options)


def test_marks_belong_to_inputs_by_index_also_after_failures_and_of_several_methods():
    marks = [["bad"], ["nothing"], [(2, 5)], [False, False, True, False]]
    es = explained()
    assert [f.index for f in es.failures] == [1]
    found = pertinent.evaluate(words, es, METRICS, annotations=marks)
    assert [e.measures["precision-at-k"][None] for e in found.explanations] == [1.0, 1.0, 0.0]
    ap = [e.measures["average-precision"][None] for e in found.explanations]
    assert ap == pytest.approx([1.0, 1.0, 1 / 4])  # the three others have the same score, 0
    assert found.mean("leave-one-out", "average-precision") == pytest.approx(np.mean(ap))
    both = [*es, *pertinent.explain(words, TEXTS, "random")]
    found = pertinent.evaluate(words, both, METRICS, annotations=marks)
    assert found.mean("leave-one-out", "precision-at-k") == pytest.approx(2 / 3)
    assert found.difference("random", "leave-one-out", "precision-at-k").n == 3
    part = pertinent.evaluate(words, es[2:], METRICS, annotations=marks)
    assert part.mean("leave-one-out", "precision-at-k") == 0.0


def test_by_id_and_of_one_explanation():
    es = explained(ids=["p", "q", "r", "s"])
    found = pertinent.evaluate(words, es, METRICS, annotations={"r": ["bad"], "p": [0]})
    assert [e.measures.get("precision-at-k") for e in found.explanations] == [{None: 0.0}, {None: 1.0}, None]
    assert [(f.index, f.metric) for f in found.failures] == [
        (3, "precision-at-k"), (3, "average-precision"),
    ]  # fmt: skip
    one = pertinent.evaluate(words, es[0], METRICS, annotations=["bad"])
    assert one.mean("leave-one-out", "average-precision") == 1.0


def test_wrong_marks_fail_alone():
    found = pertinent.evaluate(words, explained(), METRICS, annotations=[["good"], None, ["bad"], []])
    assert [f.index for f in found.failures] == [0, 0, 3, 3]
    assert "Unknown feature in `annotations` 'good'" in found.failures[0].reason
    assert "No feature of the input is marked" in found.failures[2].reason
    assert [row.metric for row in found.rows].count("precision-at-k") == 1
    assert len({row.explanation for row in found.rows if row.metric == "sufficiency"}) == 3


def test_without_marks():
    with pytest.raises(PertinentError, match="pass `annotations` to `evaluate`"):
        pertinent.evaluate(words, explained(), "average-precision")


def test_marks_that_cannot_be_assigned():
    es = explained()
    with pytest.raises(SettingError, match="one entry for each input, at least 4, but got 2"):
        pertinent.evaluate(words, es, METRICS, annotations=[["bad"], ["bad"]])
    with pytest.raises(SettingError, match="by the ids of explanations"):
        pertinent.evaluate(words, es, METRICS, annotations={"x": ["bad"]})
    with pytest.raises(SettingError, match="a list with an entry for each input, but got 'bad'"):
        pertinent.evaluate(words, es, METRICS, annotations="bad")
    apart = [pertinent.explain(words, text, "leave-one-out") for text in ("not bad", "so bad")]
    with pytest.raises(SettingError, match="Several inputs have index 0"):
        pertinent.evaluate(words, apart, METRICS, annotations=[["bad"], ["bad"]])


def test_images_marked_by_pixel():
    def bright(images):
        p = np.asarray(images)[:, :2, :2].mean(axis=(1, 2, 3)) / 2
        return np.stack([1 - p, p], axis=1)

    image = np.ones((6, 6, 1))
    mask = np.zeros((6, 6), dtype=bool)
    mask[:2, :2] = True
    model = pertinent.wrap(bright, kind="image")
    es = pertinent.explain(
        model, image[None], "leave-one-out", features="patches:2", removal="constant", target=1
    )
    found = pertinent.evaluate(model, es, METRICS, annotations=mask[None])
    assert found.mean("leave-one-out", "average-precision") == 1.0
    assert found.mean("leave-one-out", "precision-at-k") == 1.0


def test_marks_are_not_saved(tmp_path):
    pytest.importorskip("pyarrow")
    e = replace(explained()[0], annotations=["bad"])
    e.save(tmp_path / "a.parquet")
    assert pertinent.read(tmp_path / "a.parquet")[0].annotations is None
