"""Features that are present and must go, and features that are absent and would have to appear."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.explainers.robustness.base import pertinence
from pertinent.inputs.base import Numbers
from pertinent.removals.base import removals

METHODS = {
    "counterfactual": {},
    "greedy": {},
    "greedy-as": {"subsets": 60},
    "one-step-banzhaf": {"subsets": 60},
}


def linear(weights, bias, kind, **options):
    """Return two classes; the first is predicted while weights · x + bias > 0."""

    class Module(torch.nn.Module):
        def forward(self, x):
            own = x.flatten(1) @ torch.tensor(weights, dtype=torch.float32) + bias
            return torch.stack([own, torch.zeros_like(own)], dim=1)

    return pertinent.wrap(Module(), kind=kind, output="logit", classes=["this", "that"], **options)


@pytest.mark.parametrize("method", METHODS)
def test_white_pixels_must_go_and_black_ones_must_come(method):
    """Check two white pixels that support the class, two black ones that would oppose it, and two others."""
    weights, pixels = [3.0, 3.0, -3.0, -3.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0, 1.0, 0.0]
    model = linear(weights, -4.0, "image")
    image = np.array(pixels).reshape(1, 2, 3)
    settings = METHODS[method] | ({"chosen": 0.7} if method.startswith("greedy") else {})
    e = pertinent.explain(model, image, method, features="pixels", sparsity=0.7, progress=False, **settings)
    np.testing.assert_array_equal(e.pertinence, [1, 1, -1, -1, 0, 0])
    assert e.evaluations <= e.cost.budget


def test_a_constant_removal_says_what_is_absent():
    """Check black on white: the removal's 1 is absent, so black pixels must go."""
    model = linear([-3.0, -3.0, 3.0, 3.0], -0.5, "image")
    image = np.array([0.0, 0.0, 1.0, 1.0]).reshape(1, 2, 2)
    removal = removals.make("constant", {"value": 1.0})
    e = pertinent.explain(model, image, "counterfactual", features="pixels", removal=removal, progress=False)
    np.testing.assert_array_equal(e.pertinence, [1, 1, -1, -1])
    by_default = pertinent.explain(model, image, "counterfactual", features="pixels", progress=False)
    np.testing.assert_array_equal(by_default.pertinence, [-1, -1, 1, 1])


def test_columns_move_towards_or_away_from_the_mean():
    """Check columns of different units: the second is a thousand times the first."""
    background = np.array([[-2.0, -2000.0, -2.0], [0.0, 0.0, 0.0], [2.0, 2000.0, 2.0]])
    model = linear([1.0, -0.001, 0.0], 0.4, "table", background=background)
    e = pertinent.explain(model, np.array([1.0, 100.0, 1.5]), "counterfactual", progress=False)
    np.testing.assert_array_equal(e.pertinence, [1, -1, 0])


def test_a_feature_of_several_values_moves_as_a_whole():
    numbers = Numbers(np.array([1.0, 1.0, 0.0]), np.zeros(3), np.array([0, 0, 1]))
    sizes = np.array([1.0, 0.5])
    assert pertinence(numbers, np.array([-0.5, 0.1, 0.3]), sizes) == [1, -1]
    assert pertinence(numbers, np.array([-0.1, 0.5, -0.3]), sizes) == [-1, -1]
    assert pertinence(numbers, np.array([-0.1, 0.5, 0.001]), np.array([0.5, 0.001])) == [-1, 0]


def test_texts_and_categories_have_none():
    model = pertinent.load("sentiment")
    e = pertinent.explain(model, "slow but wonderful", "counterfactual", progress=False)
    assert e.pertinence is None
    rows = pertinent.wrap(lambda rows: [[0.5, 0.5] for _ in rows], kind="table")
    assert rows.prepare(["a", 1.0]).numbers(rows.background, 0.0) is None


def test_no_attack_no_pertinence():
    e = pertinent.explain(linear([0.0] * 4, 1.0, "table"), np.ones(4), "one-step-banzhaf", progress=False)
    assert e.pertinence is None


def test_it_is_saved_and_read(tmp_path):
    e = pertinent.explain(linear([3.0, -3.0], -0.5, "table"), np.array([1.0, 0.0]), "counterfactual")
    e.save(tmp_path / "e.parquet")
    (again,) = pertinent.read(tmp_path / "e.parquet")
    np.testing.assert_array_equal(again.pertinence, [1, -1])
    assert e.to_dict()["details"]["pertinence"] == [1, -1]


@pytest.mark.parametrize("damaged", [[1], [1, 2], [1, "-1"], [1, None], "ab", 3, {"a": 1}, [[1], [1]]])
def test_what_is_not_a_pertinence_is_none(damaged):
    e = pertinent.explain(linear([3.0, -3.0], -0.5, "table"), np.array([1.0, 0.0]), "counterfactual")
    plain = e.to_dict()
    plain["details"]["pertinence"] = damaged
    assert pertinent.Explanation.from_dict(plain).pertinence is None
