"""The surrogate of FastSHAP: its divergence by hand, its answers, and a game with known values."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForQuestionAnswering

import pertinent
from pertinent.errors import FileError, SettingError
from pertinent.files import read_json, write_json
from pertinent.learners.networks.table_scorer import TableScorer
from pertinent.learners.networks.token_scorers import TokenScorer
from pertinent.learners.surrogate import Surrogate
from pertinent.learners.training_context import ModelAnswers
from pertinent.removals.base import removals
from tests import tiny

RNG = np.random.default_rng(0)
COPIED = RNG.normal(size=(400, 1))
ROWS = np.hstack([COPIED, COPIED, RNG.normal(size=(400, 1))])
"""The second column is a copy of the first."""


pytestmark = pytest.mark.usefixtures("one_thread")


def first_and_last(rows):
    """Answer without reading the copied column."""
    rows = np.asarray(rows, dtype=float)
    return 3 * rows[:, 0] + rows[:, 2]


def surrogate_of(function, output, predictions):
    model = pertinent.wrap(function, kind="table", output=output)
    inputs = [model.prepare(row) for row in ROWS[:4]]
    reader = TableScorer.from_model(model, inputs, 1)
    return Surrogate(model, reader, reader.approximator(model, predictions.shape[1]), predictions), inputs


def test_the_divergence_of_classes_labels_and_values():
    answers = torch.tensor([[0.25, 0.75]])
    own, _ = surrogate_of(lambda rows: np.full((len(rows), 2), 0.5), "probability", answers.numpy())
    even = torch.zeros(1, 2)
    by_hand = 0.25 * np.log(0.25 / 0.5) + 0.75 * np.log(0.75 / 0.5)
    assert own.divergence(even, answers).item() == pytest.approx(by_hand, rel=1e-4)
    assert own.divergence(answers.log(), answers).item() == pytest.approx(0, abs=1e-6)
    own, _ = surrogate_of(lambda rows: np.full((len(rows), 2), 0.5), "label-probability", answers.numpy())
    assert own.divergence(even, answers).item() == pytest.approx(2 * by_hand, rel=1e-4)  # 0.25 and 0.75 alike
    values = np.array([[1.0], [5.0]])  # their standard deviation is 2
    own, _ = surrogate_of(first_and_last, "value", values)
    assert own.divergence(torch.tensor([[4.0]]), torch.tensor([[3.0]])).item() == pytest.approx(0.25)


def test_values_start_at_their_mean_and_removed_columns_say_nothing():
    own, inputs = surrogate_of(first_and_last, "value", np.array([[1.0], [5.0]]))
    nn = own.network.head
    torch.nn.init.zeros_(nn.weight)
    torch.nn.init.ones_(nn.bias)
    masks = [np.zeros((2, 3), dtype=bool), np.ones((1, 3), dtype=bool)]
    first, second = own.ask(inputs[:2], masks)
    np.testing.assert_allclose(first, [[5.0], [5.0]])  # the mean, 3, and one standard deviation
    np.testing.assert_allclose(second, [[5.0]])


def test_a_copy_of_a_transformer_answers_like_the_model():
    model = pertinent.load("sentiment")
    texts = ["a slow start, then wonderful", "dull", "not a good film at all , but I liked the music"]
    inputs = [model.prepare(text) for text in texts]
    reader = TokenScorer.from_model(model, inputs, 1)
    own = Surrogate(model, reader, reader.approximator(model, 2), np.full((3, 2), 0.5)).eval()
    masks = [RNG.random((n, input.n_features)) < 0.5 for n, input in zip((5, 1, 3), inputs, strict=True)]
    asked = ModelAnswers(model, removals.make("attention-mask"), 0)
    for scale in ("natural", "logit"):
        found, wanted = own.ask(inputs, masks, scale), asked.ask(inputs, masks, scale)
        for mine, its in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine, its, atol=1e-4)


def test_the_values_of_a_game_with_a_copied_column(tmp_path):
    """Check that two copies of x share the effect 3x, although the model reads only one."""
    asked = []

    def counting(rows):
        asked.append(len(rows))
        return first_and_last(rows)

    model = pertinent.wrap(counting, kind="table", output="value", background=np.zeros((1, 3)))
    options = {"samples": 6, "epochs": 60, "progress": False}
    fitted = pertinent.fit(model, ROWS[:360], "fastshap", surrogate=True, out=tmp_path / "s", **options)
    of_fit = sum(asked)
    kept = pertinent.read(tmp_path / "s" / "teacher.parquet")
    assert {e.evaluations for e in kept} == {1} and len(kept) == 360
    compared = 20 * 20  # what is asked on 20 held-out rows after the training
    assert 360 <= of_fit <= 360 + compared
    new = ROWS[360:]
    found = pertinent.explain(model, new, fitted, progress=False)
    shared = 1.5 * new[:, 0]
    truth = np.column_stack([shared, shared, new[:, 2]])
    scores = np.array([e.scores for e in found])
    assert np.mean((scores - truth) ** 2) < 0.1 * np.mean(truth**2)
    assert {e.evaluations for e in found} == {2}
    for e in found:
        assert e.base_values[0] + e.scores.sum() == pytest.approx(e.prediction.values[0])
    card = fitted.network.card["surrogate"]
    assert abs(card["base_values"][0]) < 0.5  # the mean answer is 0
    # Uniform numbers of features: (1 + (0.1 + 0.1 + 0.9) / 3 + 0.1 / 3 + 0) / 4 of the variance is unknown.
    assert card["dev_loss"] == pytest.approx(0.35, abs=0.1)
    assert card["dev_loss_of_mean"] > 1.5 * card["dev_loss"]
    assert 0 < card["dev_error_of_whole"] < 1
    # The model itself does not read the copy.
    plain = pertinent.fit(model, ROWS[:360], "fastshap", **options)
    of_plain = np.array([e.scores for e in pertinent.explain(model, new, plain, progress=False)])
    assert np.mean((of_plain - np.column_stack([2 * shared, 0 * shared, new[:, 2]])) ** 2) < 0.5
    again = pertinent.load_explainer(tmp_path / "s")
    np.testing.assert_allclose(pertinent.explain(model, new[0], again).scores, scores[0], atol=1e-6)
    kept_card = read_json(tmp_path / "s" / "pertinent.json")
    write_json(tmp_path / "s" / "pertinent.json", {**kept_card, "surrogate": {}})
    with pytest.raises(FileError, match="base_values"):
        pertinent.load_explainer(tmp_path / "s")


def test_fresh_coalitions_of_a_surrogate_cost_no_evaluations():
    def classes(rows):
        p = 1 / (1 + np.exp(-first_and_last(rows)))
        return np.column_stack([1 - p, p])

    asked = []
    model = pertinent.wrap(
        lambda rows: asked.append(len(rows)) or classes(rows), kind="table", background=np.zeros((1, 3))
    )
    options = {"samples": 4, "epochs": 3, "surrogate": True, "scale": "logit", "progress": False}
    cost = {}
    for fresh in (False, True):
        asked.clear()
        fitted = pertinent.fit(model, ROWS[:40], "fastshap", fresh=fresh, **options)
        cost[fresh] = sum(asked)
    assert cost[True] == pytest.approx(cost[False], abs=20)  # the later comparison depends on the scores
    (e,) = pertinent.explain(model, ROWS[:1], fitted, scale="logit", progress=False)
    odds = first_and_last(ROWS[:1])[0]
    own = odds if e.target == 1 else -odds
    assert e.base_values[e.target] + e.scores.sum() == pytest.approx(own, rel=1e-6)


def test_explanations_by_another_teacher_are_refused():
    model = pertinent.wrap(first_and_last, kind="table", output="value")
    others = pertinent.explain(model, ROWS[:6], "leave-one-out", progress=False)
    few = {"epochs": 1, "surrogate": True, "progress": False}
    with pytest.raises(SettingError, match="coalition-values with surrogate=True"):
        pertinent.fit(model, ROWS[:6], "fastshap", teacher_explanations=others, **few)


def test_a_transformer_has_a_copy_of_itself_and_a_reader_has_none():
    few = {"epochs": 1, "surrogate": True, "samples": 4, "progress": False}
    model = pertinent.wrap(tiny.pair("bert"))
    texts = [tiny.text(3 + i % 4, seed=i) for i in range(12)]
    weights = {name: tensor.clone() for name, tensor in model.model.state_dict().items()}
    fitted = pertinent.fit(model, texts, "fastshap", fresh=True, **few)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.model.state_dict().items())
    e = pertinent.explain(model, texts[0], fitted)
    assert e.base_values.sum() == pytest.approx(1, abs=1e-6)  # probabilities
    assert e.base_values[e.target] + e.scores.sum() == pytest.approx(e.prediction.values[e.target], abs=1e-6)
    config = BertConfig(**tiny.BASE | {"num_labels": 2})
    reader = pertinent.wrap((BertForQuestionAnswering(config).eval(), tiny.tokenizer()))
    pairs = [{"question": tiny.text(3, seed=i), "context": tiny.text(8, seed=50 + i)} for i in range(4)]
    with pytest.raises(SettingError, match="`surrogate` must be False"):
        pertinent.fit(reader, pairs, "fastshap", **few)
