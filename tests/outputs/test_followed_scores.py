"""What an output says of torch tensors agrees with what it says of numpy arrays."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from pertinent.errors import SettingError
from pertinent.outputs import NAMES, TINY, output_named

VALUES = ("value", "log-likelihood")
PROBABILITIES = [name for name in NAMES if name not in VALUES]


def answers(name, n_columns=3, n_rows=6):
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(n_rows, n_columns))
    if name == "probability" and n_columns > 1:
        return np.exp(drawn) / np.exp(drawn).sum(axis=1, keepdims=True)
    return 1 / (1 + np.exp(-drawn)) if name.endswith("probability") else drawn


def tensor(array):
    return torch.tensor(array, dtype=torch.float32)


@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("name", PROBABILITIES)
def test_the_followed_score_is_the_log_probability(name, n_columns):
    output, outputs = output_named(name), answers(name, n_columns)
    natural = output.natural(output.widen(outputs))
    followed = output.followed_scores(tensor(outputs), "natural").numpy()
    np.testing.assert_allclose(followed, np.log(natural), atol=1e-5)


@pytest.mark.parametrize("lead", [0.0, 5.0, 20.0, 60.0])
@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("name", ["logit", "label-logit"])
def test_the_gradient_of_a_saturated_probability_is_not_lost_to_rounding(name, n_columns, lead):
    """∂ log p is (1 − p) ∂ log-odds, also where p is 1 in single precision."""
    output, outputs = output_named(name), answers(name, n_columns)
    outputs[:, 0] += lead
    gradients = {}
    for scale in ("natural", "logit"):
        leaf = tensor(outputs).requires_grad_()
        column = 1 if name == "logit" and n_columns == 1 else 0
        output.followed_scores(leaf, scale)[:, column].sum().backward()
        gradients[scale] = leaf.grad.double().numpy()
    odds = output.log_odds(output.widen(outputs))[:, [column]]
    rest = 1 / (1 + np.exp(odds))
    np.testing.assert_allclose(gradients["natural"], rest * gradients["logit"], rtol=1e-4)


@pytest.mark.parametrize("name", VALUES)
def test_the_followed_score_of_a_value_is_the_value(name):
    outputs = answers(name)
    np.testing.assert_allclose(
        output_named(name).followed_scores(tensor(outputs), "natural"), outputs, atol=1e-6
    )


@pytest.mark.parametrize("name", ["probability", "label-probability"])
def test_a_probability_of_zero_has_a_finite_score(name):
    followed = output_named(name).followed_scores(tensor([[0.0, 1.0]]), "natural")
    np.testing.assert_allclose(followed, [[np.log(TINY), 0]], rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_slopes_lead_from_the_followed_score_to_the_natural_value(name):
    """The slopes times the gradient of the followed score are the gradient of the natural value."""
    output, outputs = output_named(name), answers(name)
    leaf = tensor(outputs).requires_grad_()
    output.followed_scores(leaf, "natural")[:, 1].sum().backward()
    slopes = output.natural_slopes(output.natural(outputs))[:, [1]]
    step = 1e-5
    for column in range(3):
        moved = outputs + step * np.eye(3)[column]
        change = (output.natural(moved) - output.natural(outputs))[:, 1] / step
        np.testing.assert_allclose(leaf.grad.numpy()[:, [column]] * slopes, change[:, None], atol=1e-4)


@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("name", PROBABILITIES)
def test_margins_are_positive_while_the_decision_stands(name, n_columns):
    output, outputs = output_named(name), answers(name, n_columns, n_rows=40)
    values = output.natural(output.widen(outputs))
    prediction, decided = values[0], int(values[0].argmax())
    column = torch.full((len(outputs), 1), decided)
    sides = torch.full((len(outputs),), output.side(prediction, decided))
    margins = output.margins(tensor(outputs), column, torch.full_like(column, -1), sides)
    stands = (margins > 0).all(dim=1).numpy()
    np.testing.assert_array_equal(stands, output.same_decision(values, prediction, decided))
    assert 0 < stands.sum() < len(stands)
    assert int(torch.isfinite(margins[0]).sum()) == output.n_rivals(values.shape[1])


@pytest.mark.parametrize("name", ["probability", "logit"])
def test_a_margin_toward_a_class_is_negative_once_it_is_reached(name):
    output, outputs = output_named(name), answers(name, n_rows=40)
    values = output.natural(outputs)
    decided, toward = torch.zeros((40, 1), dtype=torch.int64), torch.full((40, 1), 2)
    margins = output.margins(tensor(outputs), decided, toward, torch.ones(40))
    np.testing.assert_array_equal((margins.amin(dim=1) < 0).numpy(), values.argmax(axis=1) == 2)


def test_a_value_is_no_decision():
    output, column = output_named("value"), torch.zeros((1, 1), dtype=torch.int64)
    with pytest.raises(SettingError, match="a plain value is not a decision"):
        output.side(np.zeros(1), 0)
    with pytest.raises(SettingError, match="a plain value is not a decision"):
        output.margins(torch.zeros(1, 1), column, column, torch.ones(1))


def test_what_makes_an_answer_likelier_supports_it():
    output, logs = output_named("log-likelihood"), np.log([[0.9, 0.2], [1.0, 1e-9]])
    assert output.importance(logs[0]).tolist() == logs[0].tolist()
    assert output.objective(logs, logs[0], 1).tolist() == logs[:, 1].tolist()
    odds = output.as_scale(logs, "logit")
    np.testing.assert_allclose(odds[0], np.log([9, 0.25]))
    assert np.isfinite(odds).all()
    assert output.as_scale(logs, "log-probability") is logs
    with pytest.raises(SettingError, match="the likelihood of an answer is not a decision"):
        output.same_decision(logs, logs[0], 0)
    assert output.describe(-0.105) == "-0.105 nats"
    assert output_named(**output.to_dict()) == output


def test_a_feature_is_ranked_by_the_magnitude_of_its_effect_on_a_value_alone():
    scores = np.array([1.0, -3.0])
    assert output_named("value").importance(scores).tolist() == [1.0, 3.0]
    assert output_named("logit").importance(scores).tolist() == [1.0, -3.0]


def test_outputs_do_not_import_torch():
    code = "import sys, pertinent.outputs; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_log_odds_of_a_saturated_label_probability_and_their_gradient_are_finite():
    output = output_named("label-probability")
    leaf = torch.tensor([[0.0, 0.5, 1 - 2e-7, 1.0]], requires_grad=True)
    scores = output.followed_scores(leaf, "logit")
    scores.sum().backward()
    assert torch.isfinite(scores).all()
    assert torch.isfinite(leaf.grad).all()
    assert scores[0, 1].item() == pytest.approx(0)
    assert (scores.diff() > 0).all()
