"""FastSHAP: its loss by hand, the minimum of the loss, the questions to the model, and the training."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.errors import SettingError
from pertinent.learners.methods.fastshap import CoalitionValues, FastShap, FastShapLearner
from pertinent.testing.games import additive, as_model, play, random_interactions
from tests.explanations import explanation_by_hand

LEARNER = FastShapLearner()


pytestmark = pytest.mark.usefixtures("one_thread")


def lesson_of(game, samples, seed=0):
    """Return the targets of a game, for all of its columns."""
    model = as_model(game)
    input = model.prepare(np.ones(game.d))
    found = play(CoalitionValues(samples=samples), game, seed=seed)
    columns = found.scores.shape[0]
    explanation = explanation_by_hand(
        found.scores[0],
        game.values(np.ones((1, game.d)))[0],
        target=0,
        classes=("a", "b")[:columns],
        input=input,
        details=found.details,
    )
    return LEARNER.targets(explanation, range(columns), None)


def loss(scores, lesson, deviation=None):
    """Return the loss of one input."""
    tensors = {
        name: torch.tensor(np.asarray(array, dtype=np.float64))[None] for name, array in lesson.items()
    }
    scores = torch.as_tensor(scores, dtype=torch.float64)[None]
    real = torch.ones(1, scores.shape[2], dtype=torch.bool)
    unit = torch.ones(scores.shape[1], dtype=torch.float64) if deviation is None else deviation
    return LEARNER.compute_loss(scores, tensors, real, unit)


def minimum(lesson, columns, d):
    """Return the normalized scores that minimise the quadratic loss, by Newton's method."""
    start = torch.zeros(columns * d, dtype=torch.float64)

    def flat(scores):
        return loss(scores.reshape(columns, d), lesson)

    hessian = torch.autograd.functional.hessian(flat, start)
    gradient = torch.autograd.functional.jacobian(flat, start)
    found = (start - torch.linalg.pinv(hessian) @ gradient).reshape(columns, d).numpy()
    return found + (lesson["total"] - found.sum(axis=1))[:, None] / d


def test_the_loss_by_hand():
    lesson = {
        "masks": np.array([[True, False, False], [False, True, True]]),
        "weights": np.array([0.25, 0.75]),
        "gains": np.array([[3.0], [4.0]]),
        "total": np.array([6.0]),
    }
    # Normalized, (1, 0, 2) is (2, 1, 3): the first coalition lacks 1, the second has 0 too much.
    assert float(loss([[1.0, 0.0, 2.0]], lesson)) == pytest.approx(0.25 * 1 + 0.75 * 0)
    half = torch.tensor([0.5], dtype=torch.float64)
    assert float(loss([[1.0, 0.0, 2.0]], lesson, half)) == pytest.approx(4 * 0.25)


def test_padding_changes_nothing():
    game = random_interactions(5, seed=1, classes=2)
    lesson = lesson_of(game, 20)
    scores = torch.tensor(np.random.default_rng(0).normal(size=(2, 5)))
    alone = loss(scores, lesson)
    padded = {
        "masks": np.pad(lesson["masks"], ((0, 3), (0, 2))),
        "weights": np.pad(lesson["weights"], (0, 3)),
        "gains": np.pad(lesson["gains"], ((0, 3), (0, 0))),
        "total": lesson["total"],
    }
    tensors = {
        name: torch.tensor(np.asarray(array, dtype=np.float64))[None] for name, array in padded.items()
    }
    real = torch.tensor([[True] * 5 + [False] * 2])
    wide = torch.nn.functional.pad(scores, (0, 2))[None]
    assert float(LEARNER.compute_loss(wide, tensors, real, torch.ones(2))) == pytest.approx(float(alone))


@pytest.mark.parametrize("samples", [16, 30])
def test_of_an_additive_game_the_exact_values_have_no_loss(samples):
    weights = np.array([1.0, -2.0, 0.5, 3.0, 0.0, 1.5])
    lesson = lesson_of(additive(weights, offset=0.7), samples)
    assert float(loss(weights[None], lesson)) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(minimum(lesson, 1, 6), weights[None], atol=1e-8)


def test_with_all_coalitions_the_minimum_is_the_shapley_value():
    game = random_interactions(6, seed=3, order=3, classes=2)
    lesson = lesson_of(game, 62)
    assert len(lesson["masks"]) == 62
    assert lesson["weights"].sum() == pytest.approx(1)
    np.testing.assert_allclose(minimum(lesson, 2, 6), game.shapley, atol=1e-8)


def test_coalitions_come_in_pairs_and_their_values_are_the_games():
    game = random_interactions(12, seed=0)
    found = play(CoalitionValues(samples=32), game)
    lesson = lesson_of(game, 32)
    masks = lesson["masks"]
    assert masks.shape == (32, 12)
    np.testing.assert_array_equal(masks[:16], ~masks[16:])
    none = game.values(np.zeros((1, 12), dtype=bool))
    np.testing.assert_allclose(lesson["gains"], game.values(masks) - none, atol=1e-12)
    assert found.scores.sum() == pytest.approx(lesson["total"][0])
    assert CoalitionValues(samples=32).evaluations(12) == 34
    assert CoalitionValues(samples=32).evaluations(3) == 8
    assert lesson_of(additive(np.array([2.0])), 32)["masks"].shape == (0, 1)


def interacting(rows):
    """Return a game of four columns in which the second and third interact."""
    x = np.asarray(rows, dtype=float)
    return x[:, 0] + 2 * x[:, 1] * x[:, 2] - x[:, 3]


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(interacting, kind="table", output="value")


ROWS = np.random.default_rng(0).normal(size=(260, 4))


def test_what_is_learned_approaches_the_exact_values(model, tmp_path):
    options = {"samples": 8, "epochs": 80, "progress": False, "out": tmp_path / "f"}
    fitted = pertinent.fit(model, ROWS[:240], "fastshap", **options)
    new = ROWS[240:]
    found = pertinent.explain(model, new, fitted, progress=False)
    exact = pertinent.explain(model, new, "exact-shapley", progress=False)
    truth = np.array([e.scores for e in exact])
    # The values are known: an interaction is shared equally.
    shared = new[:, 1] * new[:, 2]
    np.testing.assert_allclose(truth, np.column_stack([new[:, 0], shared, shared, -new[:, 3]]), atol=1e-6)
    constant = np.mean((truth.mean(axis=1, keepdims=True) - truth) ** 2)  # all that normalizing gives
    assert np.mean((np.array([e.scores for e in found]) - truth) ** 2) < 0.1 * constant
    assert {e.evaluations for e in found} == {3}
    for e in found:
        assert e.base_values[0] + e.scores.sum() == pytest.approx(e.prediction.values[0])
    again = pertinent.load_explainer(tmp_path / "f")
    assert again.network.card["dev_loss"] > 0
    np.testing.assert_allclose(pertinent.explain(model, new[0], again).scores, found[0].scores, atol=1e-6)
    assert (tmp_path / "f" / "teacher.parquet").is_file()
    kept = pertinent.read(tmp_path / "f" / "teacher.parquet")
    assert {e.method for e in kept} == {"coalition-values"}
    assert {e.evaluations for e in kept} == {10}


def test_answers_are_used_again_and_others_refused(model, tmp_path):
    few = {"epochs": 2, "progress": False}
    first = pertinent.fit(model, ROWS[:10], "fastshap", out=tmp_path / "f", **few)
    again = pertinent.fit(
        model,
        ROWS[:10],
        "fastshap",
        teacher_explanations=tmp_path / "f" / "teacher.parquet",
        **few,
    )
    np.testing.assert_array_equal(*(pertinent.explain(model, ROWS[0], f).scores for f in (first, again)))
    other = pertinent.explain(model, ROWS[:10], "leave-one-out", progress=False)
    with pytest.raises(SettingError, match="must come from an earlier fit of fastshap"):
        pertinent.fit(model, ROWS[:10], "fastshap", teacher_explanations=other, **few)


def test_all_classes_at_once():
    def classes(rows):
        p = 1 / (1 + np.exp(-interacting(rows)))
        return np.column_stack([1 - p, p])

    model = pertinent.wrap(classes, kind="table")
    fitted = pertinent.fit(model, ROWS[:40], "fastshap", classes="all", epochs=3, progress=False)
    e = pertinent.explain(model, ROWS[0], fitted, target=0)
    assert e.class_scores.shape == (2, 4)
    np.testing.assert_allclose(e.base_values + e.class_scores.sum(axis=1), e.prediction.values, atol=1e-9)


def test_fresh_coalitions_are_asked_for_in_every_step():
    """Check that each epoch costs as many masks as the teacher, and that scores become more accurate."""
    asked = []

    def counting(rows):
        asked.append(len(rows))
        return interacting(rows)

    own = pertinent.wrap(counting, kind="table", output="value")
    exact = np.array([e.scores for e in pertinent.explain(own, ROWS[240:], "exact-shapley", progress=False)])
    off, cost = {}, {}
    for fresh in (False, True):
        asked.clear()
        options = {"samples": 4, "epochs": 40, "patience": None, "fresh": fresh, "progress": False}
        fitted = pertinent.fit(own, ROWS[:120], "fastshap", **options)
        cost[fresh] = sum(asked)
        assert fitted.network.card["settings"] == {"fresh": fresh}
        found = pertinent.explain(own, ROWS[240:], fitted, progress=False)
        off[fresh] = np.mean((np.array([e.scores for e in found]) - exact) ** 2)
    assert off[True] < off[False]
    # Epochs, training inputs, coalitions; how many rows the later comparison asks for depends on the scores.
    assert cost[True] - cost[False] == pytest.approx(40 * 108 * 4, abs=20)


def test_fresh_targets_are_the_models_answers_on_the_scale(monkeypatch):
    """Check that an additive model on log-odds has no loss, for any coalitions."""

    def classes(rows):
        p = 1 / (1 + np.exp(-(np.asarray(rows, dtype=float) @ np.array([1.0, -2.0, 0.5]))))
        return np.column_stack([1 - p, p])

    own = pertinent.wrap(classes, kind="table", background=np.zeros((1, 3)))
    seen = []

    class Watched(FastShapLearner):
        def step_targets(self, batch, context):
            found = super().step_targets(batch, context)
            seen.append((batch, found))
            return found

    monkeypatch.setattr(FastShap, "learner", Watched)
    rows = np.random.default_rng(1).normal(size=(20, 3))
    options = {"samples": 4, "epochs": 2, "fresh": True, "scale": "logit", "classes": "all"}
    pertinent.fit(own, rows, "fastshap", removal="mean", progress=False, **options)
    masks = [tuple(found["masks"].flatten().tolist()) for _, found in seen]
    assert len(seen) == 2 and len(set(masks)) == 2
    for batch, found in seen:
        weights = np.stack([input.values for input in batch.inputs]) * np.array([1.0, -2.0, 0.5])
        wanted = np.einsum("nsd,nd->ns", found["masks"].numpy(), weights)
        np.testing.assert_allclose(found["gains"].numpy(), np.stack([-wanted, wanted], axis=2), atol=1e-4)
        np.testing.assert_allclose(found["weights"].sum(axis=1), 1.0, atol=1e-6)
