"""Metrics of explanations that score every class."""

import numpy as np
import pytest
from tests.explanations import explanation_by_hand

import pertinent
from pertinent.cli import main
from pertinent.errors import SettingError
from pertinent.metrics.top_features import ClassFaithfulness, ClassIoU
from pertinent.outputs import Labels, PlainValues
from pertinent.testing.games import RecordedGame, answer

NAMES = ("world", "sports", "business")

# Each of four features speaks for a class: 0 for world, 1 and 2 for sports, 3 for business.
VOTES = np.array([[0.5, 0, 0], [0, 0.2, 0], [0, 0.4, 0], [0, 0, 0.1]])


def votes(masks):
    p = 0.1 + masks @ VOTES
    return p / p.sum(axis=1, keepdims=True)


GAME = RecordedGame(4, votes)


def explanation_of(class_scores, target=0, game=GAME, output=None):
    class_scores = None if class_scores is None else np.asarray(class_scores, dtype=float)
    prediction = game.values(np.ones((1, game.d), dtype=bool))[0]
    scores = np.zeros(game.d) if class_scores is None else class_scores[target]
    names = NAMES[: len(prediction)]
    return explanation_by_hand(
        scores, prediction, target, classes=names, output=output, class_scores=class_scores
    )


def measure(metric, explanation, game=GAME):
    return answer(metric.measure(explanation), game)


@pytest.mark.parametrize("target", [0, 1, 2])
def test_right_scores_make_the_model_predict_every_class(target):
    e = explanation_of(VOTES.T, target)
    assert measure(ClassFaithfulness(k=1), e) == {None: 1.0}


def test_class_faithfulness_is_the_mean_over_classes():
    """Check scores of sports that equal those of world, whose top feature makes the model predict world."""
    e = explanation_of(VOTES.T[[0, 0, 2]])
    assert measure(ClassFaithfulness(k=1), e) == {None: pytest.approx(2 / 3)}
    for target, hit in (("world", 1.0), ("sports", 0.0), (2, 1.0), ("2", 1.0)):
        assert measure(ClassFaithfulness(k=1, target=target), e) == {None: hit}
    with pytest.raises(SettingError, match="Did you mean 'sports'"):
        measure(ClassFaithfulness(target="sport"), e)


def test_all_features_predict_one_class():
    e = explanation_of(VOTES.T)
    assert measure(ClassFaithfulness(k=9), e) == {None: pytest.approx(1 / 3)}
    assert measure(ClassFaithfulness(sparsities=(0.25, 1.0)), e) == {0.25: 1.0, 1.0: pytest.approx(1 / 3)}


def test_a_class_that_is_always_predicted_and_those_that_never_are():
    always = RecordedGame(4, lambda masks: np.tile([0.1, 0.8, 0.1], (len(masks), 1)))
    e = explanation_of(VOTES.T, game=always)
    assert measure(ClassFaithfulness(k=1), e, always) == {None: pytest.approx(1 / 3)}
    assert measure(ClassFaithfulness(k=1, target="sports"), e, always) == {None: 1.0}
    assert measure(ClassFaithfulness(k=1, target="world"), e, always) == {None: 0.0}


def test_class_iou_by_hand():
    """Check top twos {0, 1}, {1, 2}, {2, 3}, whose pairs share 1/3, 0 and 1/3."""
    e = explanation_of([[4, 3, 0, 0], [0, 3, 4, 0], [0, 0, 3, 4]])
    assert measure(ClassIoU(k=2), e) == {None: pytest.approx(2 / 9)}
    assert measure(ClassIoU(k=1), e) == {None: 0.0}
    assert measure(ClassIoU(k=4), e) == {None: 1.0}
    assert measure(ClassIoU(sparsities=(0.5, 1.0)), e) == {0.5: pytest.approx(2 / 9), 1.0: 1.0}


def test_methods_that_score_one_class():
    e = explanation_of(None)
    for metric in (ClassFaithfulness(), ClassIoU()):
        with pytest.raises(SettingError, match="by-hand explains one class at a time"):
            measure(metric, e)
    assert measure(ClassFaithfulness(k=1, target="world"), e) == {None: 1.0}


def test_outputs_that_are_not_classes():
    values = RecordedGame(4, lambda masks: masks @ VOTES)
    e = explanation_of(VOTES.T, game=values, output=PlainValues())
    with pytest.raises(SettingError, match="class-faithfulness needs classes, but the model has values"):
        measure(ClassFaithfulness(), e, values)
    e = explanation_of(VOTES.T, game=values, output=Labels())
    with pytest.raises(SettingError, match="class-faithfulness needs classes, but the model has labels"):
        measure(ClassFaithfulness(), e, values)
    assert measure(ClassIoU(k=1), e, values) == {None: 0.0}
    one = RecordedGame(4, lambda masks: masks @ VOTES[:, :1])
    with pytest.raises(SettingError, match="class-iou needs at least two values"):
        measure(ClassIoU(), explanation_of(VOTES.T[:1], game=one, output=PlainValues()), one)


def test_through_a_model():
    def topics(texts):
        counts = np.array([[t.count(w) for w in ("war", "goal", "bank")] for t in texts]) + 0.1
        return counts / counts.sum(axis=1, keepdims=True)

    model = pertinent.wrap(topics, classes=NAMES)
    text = "a goal, a bank and one war"
    found = pertinent.compare(
        model, text, ["exact-shapley"], [ClassFaithfulness(k=1), ClassIoU(k=1)], removal="slice-out"
    )
    assert not found.failures
    assert found.mean("exact-shapley", "class-faithfulness") == 1.0
    assert found.mean("exact-shapley", "class-iou") == 0.0


@pytest.mark.parametrize("target", ["sports", "1"])
def test_a_class_by_name_or_number_on_the_command_line(target, tmp_path, monkeypatch, capsys):
    (tmp_path / "always.py").write_text(
        "import pertinent\n"
        "def answer(texts):\n    return [[0.1, 0.8, 0.1]] * len(texts)\n"
        "model = pertinent.wrap(answer, kind='text', classes=['world', 'sports', '2'])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    options = ["--model", "always:model", "--methods", "leave-one-out", "--metrics"]
    assert main(["compare", "a b c", *options, f"class-faithfulness:target={target},k=1"]) == 0
    assert "1.000" in capsys.readouterr().out
    assert main(["compare", "a b c", *options, "class-faithfulness:target=sport"]) == 2
    assert "Did you mean 'sports'" in capsys.readouterr().err
