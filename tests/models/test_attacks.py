"""The parts of the attack by projections, against slow plain references."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.explainers.robustness.greedy import contributions
from pertinent.models.attacks.gradient_attacks import AttackProblem, ChangeBounds, project


def problem(values, free, bounds, margins, norm="l2"):
    rows, zeros = torch.arange(len(values)), torch.zeros(len(values), dtype=torch.int64)
    return AttackProblem(values, free, bounds, margins, rows, zeros, zeros[:1], n_rivals=5, norm=norm)


def by_bisection(gradient, wanted, lower, upper, norm):
    """The smallest change with this product, if the bounds allow it, by bisection of λ."""
    along = gradient if norm == "l2" else np.sign(gradient)
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        change = np.clip(np.sign(wanted) * middle * along, lower, upper)
        low, high = (middle, high) if abs(gradient @ change) < abs(wanted) else (low, middle)
    return np.clip(np.sign(wanted) * high * along, lower, upper)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_projections_solve_the_linear_problem_within_bounds(norm):
    rng = np.random.default_rng(0)
    for _ in range(20):
        gradient, lower, upper = rng.normal(size=12), -rng.random(12), rng.random(12)
        lower[:3], upper[3:5], gradient[5] = 0, 0, 0
        most = np.maximum(gradient * lower, gradient * upper).sum()
        for wanted in (0.3 * most, -0.3 * np.abs(np.minimum(gradient * lower, gradient * upper)).sum()):
            given = [torch.tensor(own)[None] for own in (gradient, lower, upper)]
            made = problem(given[0], given[0] == given[0], ChangeBounds(torch.stack(given[1:3])), None, norm)
            found = project(made, given[0], torch.tensor([wanted]), made.bounds)[0].numpy()
            assert (found >= lower - 1e-12).all() and (found <= upper + 1e-12).all()
            exact = by_bisection(gradient, wanted, lower, upper, norm)
            assert gradient @ found == pytest.approx(wanted, rel=0.02)
            np.testing.assert_allclose(found, exact, atol=0.05)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_without_bounds_projections_are_exact(norm):
    gradient, wanted = torch.tensor([[3.0, -4.0, 0.0]]), torch.tensor([-10.0])
    made = problem(gradient, gradient == gradient, ChangeBounds(), None, norm)
    found = project(made, gradient, wanted, made.bounds)[0]
    expected = [-1.2, 1.6, 0.0] if norm == "l2" else [-10 / 7, 10 / 7, 0.0]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_a_product_that_the_bounds_do_not_allow_goes_as_far_as_they_do():
    gradient = torch.tensor([[1.0, 2.0]])
    made = problem(gradient, gradient > 0, ChangeBounds(torch.tensor([[[-1.0, -1.0]], [[1.0, 1.0]]])), None)
    torch.testing.assert_close(project(made, gradient, torch.tensor([100.0]), made.bounds), torch.ones(1, 2))


@pytest.mark.parametrize(
    "bounds", [ChangeBounds(), ChangeBounds(torch.tensor([-1e6, 1e6])[:, None, None].expand(2, 3, 2))]
)
def test_gradients_of_almost_nothing_make_no_nan(bounds):
    gradient = torch.tensor([[0.0, 0.0], [1e-38, 0.0], [1e-20, 1e-42]])
    made = problem(gradient, gradient > 0, bounds, None)
    found = project(made, gradient, torch.tensor([-1e6, 1e6, -1e6]), made.bounds)
    assert found.isfinite().all()
    assert (found[0] == 0).all()


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_first_step_goes_to_the_nearest_rival_not_the_most_likely(norm):
    """Class 1 is the runner-up, but class 2 is nearer, and with only the first value free class 1 is."""
    module = torch.nn.Linear(2, 3)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 9.0]]))
        module.bias.copy_(torch.tensor([3.0, 2.0, 1.0]))
    model = pertinent.wrap(module, kind="table", output="logit")
    sets = [[0, 1], [0]]
    found = pertinent.attack_radius(model, np.zeros(2), sets, norm=norm, steps=1, progress=False)
    slope = np.hypot(0.5, 9.0) if norm == "l2" else 9.5
    np.testing.assert_allclose(found.radii, [2 / slope * 1.02, 1.02], rtol=1e-5)


def test_the_first_pass_is_made_once_for_all_sets():
    counted = []

    class Counted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(6, 4)

        def forward(self, batch):
            counted.append(len(batch))
            return self.inner(batch)

    torch.manual_seed(0)
    model = pertinent.wrap(Counted(), kind="table", output="logit")
    sets = np.random.default_rng(0).random((10, 6)) < 0.7
    sets[0, 0] = True
    found = pertinent.attack_radius(model, np.ones(6), sets, steps=3, progress=False)
    n = int(sets.any(axis=1).sum())
    assert counted == [1, 1, n, n, n]  # the prediction, the input itself, three steps
    assert (
        found.passes[0] == 1 + 3 + 5
    )  # forwards, back for each rival; three steps, the last without gradient
    assert set(found.passes[1:][sets[1:].any(axis=1)].tolist()) == {5}


def test_batches_of_several_inputs_and_aims_are_as_each_alone():
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    rng = np.random.default_rng(1)
    model = pertinent.wrap(net, kind="table", output="logit", background=rng.normal(size=(50, 8)))
    inputs, sets = list(rng.normal(size=(5, 8))), [rng.random((6, 8)) < 0.6 for _ in range(5)]
    together = pertinent.attack_radius(model, inputs, sets, progress=False)
    for one, x, own in zip(together, inputs, sets, strict=True):
        alone = pertinent.attack_radius(model, x, own, progress=False)
        np.testing.assert_allclose(one.radii, alone.radii, rtol=1e-4)
        np.testing.assert_array_equal(one.passes, alone.passes)


def test_contributions_equal_least_squares():
    rng = np.random.default_rng(0)
    drawn = rng.random((400, 30)) < 0.2
    values = drawn @ rng.normal(size=30) + rng.normal(size=400) + 5
    design = np.column_stack([drawn, np.ones(400)])
    exact = np.linalg.lstsq(design, values, rcond=None)[0][:-1]
    np.testing.assert_allclose(contributions(drawn, values), exact, rtol=1e-9, atol=1e-12)
    few = drawn[:20]  # fewer subsets than features: the smallest solution
    smallest = np.linalg.pinv(few - few.mean(axis=0)) @ (values[:20] - values[:20].mean())
    np.testing.assert_allclose(contributions(few, values[:20]), smallest, rtol=1e-7, atol=1e-10)
