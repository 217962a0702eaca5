"""Robustness to attacks on games with known radii."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.asks import Radii
from pertinent.errors import ModelError
from pertinent.metrics.base import metrics

SHARES = (0.25, 0.5, 0.75)


@pytest.fixture(scope="module")
def row():
    """Return an explanation whose order of importance is that of the columns."""
    model = pertinent.wrap(torch.nn.Linear(4, 2), kind="table", output="logit")
    e = pertinent.explain(model, np.ones(4), "random", progress=False)
    e.scores[:] = [4.0, 3.0, 2.0, 1.0]
    return e


def measured(name, explanation, radius, **settings):
    """Measure a game by the radius of each attacked set; also return all attacked sets."""
    steps = metrics.make(name, {"shares": SHARES} | settings).measure(explanation)
    asked, answer = [], None
    while True:
        try:
            question = steps.send(answer)
        except StopIteration as stop:
            return stop.value[None], asked
        asked.append(question.sets.sum(axis=1).tolist())
        radii = np.array([radius(int(mask.sum())) for mask in question.sets])
        answer = Radii(radii, np.full(len(radii), 2))


def test_radii_that_are_found_count_as_they_are(row):
    value, asked = measured("robustness-of-irrelevant", row, lambda size: 4.0 / size)
    assert asked == [[3, 2, 1]]
    assert value == pytest.approx(np.trapezoid([4 / 3, 2.0, 4.0], [25, 50, 75]))


def test_a_set_without_attack_counts_as_half_as_much_again_as_the_largest_radius(row):
    value, asked = measured("robustness-of-irrelevant", row, lambda size: {3: 1.0, 2: 2.0}.get(size, np.inf))
    assert asked == [[3, 2, 1], [4, 1, 1, 1, 1]]
    assert value == pytest.approx(np.trapezoid([1.0, 2.0, 3.0], [25, 50, 75]))
    value, _ = measured("robustness-of-relevant", row, lambda size: {3: 1.0, 2: 2.0}.get(size, np.inf))
    assert value == pytest.approx(np.trapezoid([3.0, 2.0, 1.0], [25, 50, 75]))


@pytest.mark.parametrize("name", ["robustness-of-irrelevant", "robustness-of-relevant"])
def test_where_no_set_can_be_attacked_all_features_count(row, name):
    value, asked = measured(name, row, lambda size: 2.0 if size == 4 else np.inf)
    assert asked[1:] == [[4, 1, 1, 1, 1]]
    assert value == pytest.approx(3.0 * 50)
    with pytest.raises(ModelError, match="No attack changes the prediction"):
        measured(name, row, lambda size: np.inf)


def test_of_many_features_a_hundred_are_attacked_alone():
    flat = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(144, 2))
    model = pertinent.wrap(flat, kind="image", output="logit")
    e = pertinent.explain(model, np.ones((1, 12, 12)), "random", features="pixels", progress=False)
    _, asked = measured("robustness-of-relevant", e, lambda size: 2.0 if size == 144 else np.inf)
    assert asked[1] == [144] + [1] * 100


@pytest.mark.parametrize("background", [0.0, 1.0])
def test_a_perfect_ranking_of_pixels_is_best_on_black_and_on_white(background):
    """Check two deciding pixels: with both ranked first, no attack on the others succeeds."""
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))
    with torch.no_grad():
        module[1].weight.zero_()
        module[1].weight[0, :2] = torch.tensor([2.0, 1.0])
        module[1].bias.copy_(torch.tensor([0.0, 1.0]))
    model = pertinent.wrap(module, kind="image", output="logit")
    image = np.full((1, 4, 4), background)
    image[0, 0, :2] = 1.0
    perfect, bad = (
        pertinent.explain(model, image, "random", features="pixels", progress=False) for _ in range(2)
    )
    perfect.scores[:] = np.r_[5.0, 4.0, np.zeros(14)]
    bad.scores[:] = np.r_[0.0, 0.0, np.ones(14)]
    metric = metrics.make("robustness-of-irrelevant", {"shares": (0.25, 0.5)})
    values = [
        pertinent.evaluate(model, [e], [metric], progress=False).mean("random", "robustness-of-irrelevant")
        for e in (perfect, bad)
    ]
    assert values[0] > 1.2 * values[1]


def test_a_ranking_that_leaves_nothing_to_attack_is_best():
    """Check two deciding columns, which should both be ranked first."""
    module = torch.nn.Linear(4, 2)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[3.0, 0.1, 0.0, 0.0], [0.0] * 4]))
        module.bias.zero_()
    model = pertinent.wrap(module, kind="table", output="logit")
    both, one = (pertinent.explain(model, np.ones(4), "gradient", progress=False) for _ in range(2))
    both.scores[:] = [4.0, 3.0, 2.0, 1.0]
    one.scores[:] = [4.0, 1.0, 3.0, 2.0]
    metric = metrics.make("robustness-of-irrelevant", {"shares": (0.5, 0.75)})
    value = {}
    for name, e in (("both", both), ("one", one)):
        judged = pertinent.evaluate(model, [e], [metric], progress=False)
        value[name] = judged.mean("gradient", "robustness-of-irrelevant")
    assert value["both"] == pytest.approx(1.5 * 31 * 25, rel=0.05)  # 3.1 / 0.1 = 31
    assert value["one"] == pytest.approx(31 * 25, rel=0.05)


def test_a_forest_is_measured_where_some_columns_cannot_be_attacked():
    """Check a model of the first column: sets without it cannot be attacked."""
    from sklearn.tree import DecisionTreeClassifier

    rows = np.random.default_rng(0).normal(size=(200, 4))
    tree = DecisionTreeClassifier(max_depth=1).fit(rows, rows[:, 0] > 0)
    model = pertinent.wrap(tree, background=rows)
    e = pertinent.explain(model, rows[0], "exact-shapley", progress=False)
    judged = pertinent.evaluate(model, [e], ["robustness-of-irrelevant"], progress=False)
    alone = pertinent.attack_radius(model, rows[0], progress=False)
    value = judged.mean("exact-shapley", "robustness-of-irrelevant")
    assert value == pytest.approx(1.5 * alone.radii[0] * 40, rel=0.2)
