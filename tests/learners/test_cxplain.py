"""CXPlain: shares of the loss and divergences computed by hand, and the training."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.errors import SettingError
from pertinent.learners.methods.cxplain import EPSILON, CXPlainLearner

LEARNER = CXPlainLearner()
ROWS = np.random.default_rng(0).normal(size=(260, 3))


pytestmark = pytest.mark.usefixtures("one_thread")


def regressor(rows):
    return np.asarray(rows) @ [1.0, 2.0, 0.0]


def classifier(rows):
    p = 1 / (1 + np.exp(-regressor(rows)))
    return np.column_stack([1 - p, p])


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(classifier, kind="table", classes=["no", "yes"])


def shares(model, row, label=None):
    e = pertinent.explain(model, row, "leave-one-out")
    return LEARNER.targets(e, [e.target], label)["shares"][0]


def test_shares_of_the_cross_entropy_by_hand(model):
    def loss(z, yes):
        return np.log1p(np.exp(-z if yes else z))

    row = [1.0, 0.5, 7.0]  # z = 2, without a column 1, 1 and 2
    grown = loss(1, True) - loss(2, True)
    np.testing.assert_allclose(shares(model, row), np.array([grown, grown, 0]) / (2 * grown), atol=1e-6)
    row = [3.0, -0.5, 0.0]  # z = 2, without a column −1 and 3: the second speaks against yes
    np.testing.assert_allclose(shares(model, row), [1, 0, 0], atol=1e-6)
    # If "no" is right, the loss shrinks without the first and grows without the second.
    np.testing.assert_allclose(shares(model, row, "no"), [0, 1, 0], atol=1e-6)
    assert np.array_equal(shares(model, row, "yes"), shares(model, row))


def test_shares_of_the_squared_error_by_hand():
    model = pertinent.wrap(regressor, kind="table", output="value")
    row = [1.0, -1.5, 4.0]  # −2; without a column −3, 1 and −2
    np.testing.assert_allclose(shares(model, row), np.array([1, 9, 0]) / 10, atol=1e-6)
    # With 0 as the right value the loss is 4, without a column 9, 1 and 4.
    np.testing.assert_allclose(shares(model, row, 0.0), [1, 0, 0], atol=1e-6)


def test_without_any_increase_all_shares_are_equal():
    model = pertinent.wrap(lambda rows: np.full((len(rows), 2), 0.5), kind="table")
    np.testing.assert_allclose(shares(model, [1.0, 2.0, 3.0]), 1 / 3)
    assert EPSILON > 0


def test_the_divergence_by_hand():
    wanted = torch.tensor([[[0.5, 0.25, 0.25, 0.0]], [[1.0, 0.0, 0.0, 0.0]]])
    real = torch.tensor([[True] * 3 + [False], [True] * 2 + [False] * 2])
    scores = torch.tensor([[[np.log(2.0), 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0]]], dtype=torch.float32)
    found = LEARNER.compute_loss(scores, {"shares": wanted}, real, torch.ones(1))
    assert float(found) == pytest.approx((0 + np.log(2)) / 2, abs=1e-6)


def test_what_is_learned(model, tmp_path):
    fitted = pertinent.fit(model, ROWS[:180], "cxplain", out=tmp_path / "f", progress=False)
    new = ROWS[180:]
    found = np.array([e.scores for e in pertinent.explain(model, new, fitted, progress=False)])
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    wanted = np.array([shares(model, row) for row in new])
    error = np.mean((found - wanted) ** 2)
    assert error < 0.3 * np.mean((1 / 3 - wanted) ** 2)
    loaded = pertinent.load_explainer(tmp_path / "f")
    e = pertinent.explain(model, new[0], loaded)
    np.testing.assert_allclose(e.scores, found[0], atol=1e-6)
    assert e.evaluations == 1
    with pytest.raises(SettingError, match="must be the predicted class of this explainer"):
        pertinent.explain(model, new[0], fitted, target=1 - e.target)


def test_labels_are_learned_from(model):
    options = {"epochs": 2, "progress": False}
    right = ["yes" if row[0] > 0 else "no" for row in ROWS[:20]]
    one, two = (pertinent.fit(model, ROWS[:20], "cxplain", labels=own, **options) for own in (None, right))
    assert one.network.card["labels"] is None
    assert two.network.card["labels"] is not None
    assert one.network.fingerprint != two.network.fingerprint
    scores = [pertinent.explain(model, ROWS[30], each).scores for each in (one, two)]
    assert not np.allclose(*scores)


def test_references_of_another_method_are_refused(model):
    other = pertinent.explain(model, ROWS[:4], "shapley-sampling", samples=2, progress=False)
    with pytest.raises(SettingError, match="must be from leave-one-out"):
        pertinent.fit(model, ROWS[:4], "cxplain", teacher_explanations=other, progress=False)
