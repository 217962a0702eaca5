"""Attacks where nothing can be found, where little is given, and where it is wrong."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.api.attack_radius import attack_radius
from pertinent.errors import InputError, ModelError, PertinentError, SettingError

D = 6
QUIET = {"progress": False}


def module(weights, bias):
    made = torch.nn.Linear(len(weights[0]), len(weights))
    with torch.no_grad():
        made.weight.copy_(torch.tensor(weights))
        made.bias.copy_(torch.tensor(bias))
    return made


def linear(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Linear(D, 3)


def wrapped(net, **options):
    return pertinent.wrap(net, kind="table", output="logit", **options)


class Step(torch.nn.Module):
    """Decides by the sign of the first value, so that its gradient is zero everywhere."""

    def forward(self, batch):
        side = (batch[:, :1] > 0).float() + 0 * batch.sum(dim=1, keepdim=True)
        return torch.cat([side, 1 - side], dim=1) * 3


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("algorithm", ["projection", "pgd"])
def test_a_gradient_of_zero_everywhere_finds_nothing_and_says_so(norm, algorithm):
    found = attack_radius(wrapped(Step()), np.ones(D), norm=norm, algorithm=algorithm, steps=3, **QUIET)
    assert np.isinf(found.radii).all()
    assert (found.changes == 0).all()
    assert "no attack found" in repr(found)
    np.testing.assert_array_equal(found.perturbed[0], np.ones(D))


def test_decisions_alone_find_what_gradients_cannot():
    def function(rows):
        p = (np.asarray(rows)[:, 0] > 0).astype(float)
        return np.stack([p, 1 - p], axis=1)

    background = np.random.default_rng(0).normal(size=(50, D))
    found = attack_radius(pertinent.wrap(function, background=background), np.ones(D), **QUIET)
    assert found.radii[0] == pytest.approx(1 / background[:, 0].std(), rel=0.01)


@pytest.mark.parametrize("algorithm", ["projection", "pgd"])
def test_a_constant_model_cannot_be_attacked(algorithm):
    constant = module(np.zeros((2, D)).tolist(), [1.0, 0.0])
    found = attack_radius(wrapped(constant), np.ones(D), algorithm=algorithm, steps=3, **QUIET)
    assert not found.succeeded.any()


def test_a_constant_function_cannot_be_attacked():
    background = np.random.default_rng(0).normal(size=(20, D))
    model = pertinent.wrap(lambda rows: np.tile([0.2, 0.8], (len(rows), 1)), background=background)
    found = attack_radius(model, np.ones(D), **QUIET)
    assert not found.succeeded.any()
    assert found.passes[0] > 0


def test_one_class_has_no_other():
    from sklearn.dummy import DummyClassifier

    background = np.random.default_rng(0).normal(size=(20, D))
    model = pertinent.wrap(DummyClassifier().fit(background, np.zeros(20)), background=background)
    with pytest.raises(ModelError, match=r"only one class, '0\.0': there is no other"):
        attack_radius(model, np.ones(D), **QUIET)


def test_a_module_of_one_class_is_refused():
    with pytest.raises(ModelError, match="only one class, 'only'"):
        attack_radius(wrapped(torch.nn.Linear(D, 1), classes=["only"]), np.ones(D), **QUIET)


def test_an_empty_set_costs_nothing_and_finds_nothing():
    net, x = linear(), np.ones(D)
    found = attack_radius(wrapped(net), x, [[], [0]], **QUIET)
    assert np.isinf(found.radii[0])
    assert found.passes[1] > 0
    alone = attack_radius(wrapped(net), x, [], **QUIET)
    assert np.isinf(alone.radii).all()
    assert alone.passes.tolist() == [0]


def test_everything_is_the_default_set():
    net, x = linear(1), np.ones(D)
    every = attack_radius(wrapped(net), x, np.ones((1, D), dtype=bool), **QUIET)
    default = attack_radius(wrapped(net), x, **QUIET)
    assert default.sets.all()
    np.testing.assert_array_equal(every.radii, default.radii)


def test_values_outside_the_range_stay_where_they_are_or_come_nearer():
    """A row beyond the background may move back into it, but no further away."""
    background = np.random.default_rng(0).uniform(0, 1, size=(40, 2))
    net = module([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])
    x = np.array([3.0, 0.5])  # class 0, as the first value is beyond all others
    found = attack_radius(wrapped(net, background=background), x, **QUIET)
    assert found.succeeded[0]
    assert found.perturbed[0, 0] < 3.0
    assert 0.5 <= found.perturbed[0, 1] <= background[:, 1].max() + 1e-6
    farther = attack_radius(wrapped(net, background=background), np.array([0.5, 3.0]), [[1]], **QUIET)
    assert farther.perturbed[0, 1] <= 3.0


def test_images_outside_of_zero_to_one_keep_to_their_own_range():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))
    image = np.random.default_rng(0).normal(size=(1, 4, 4)).astype(np.float32)
    found = attack_radius(
        pertinent.wrap(net, kind="image", output="logit"), image, features="pixels", steps=30, **QUIET
    )
    assert found.perturbed.min() >= image.min() - 1e-6
    assert found.perturbed.max() <= image.max() + 1e-6


@pytest.mark.parametrize("algorithm", ["projection", "pgd"])
def test_a_model_without_gradients_is_not_asked_for_any(algorithm):
    model = pertinent.wrap(lambda rows: np.tile([0.2, 0.8], (len(rows), 1)), background=np.eye(D))
    with pytest.raises(SettingError, match="must be 'decision' for a model without gradients"):
        attack_radius(model, np.ones(D), algorithm=algorithm, **QUIET)


def test_explainers_name_the_same_reason():
    model = pertinent.wrap(lambda rows: np.tile([0.2, 0.8], (len(rows), 1)), background=np.eye(D))
    with pytest.raises(PertinentError, match="'decision'"):
        pertinent.explain(model, np.ones(D), "greedy-as", attack="pgd", **QUIET)


def test_without_a_background_decisions_have_nowhere_to_start():
    model = pertinent.wrap(lambda rows: np.tile([0.2, 0.8], (len(rows), 1)), kind="table")
    with pytest.raises(InputError, match="background"):
        attack_radius(model, np.ones(D), **QUIET)


def test_nan_is_an_error_and_not_a_radius():
    class Nan(torch.nn.Module):
        def forward(self, batch):
            moved = (batch - 1).sum(dim=1, keepdim=True)
            scores = torch.cat([1 - moved, moved], dim=1)
            return torch.where(moved != 0, torch.nan, scores)

    with pytest.raises(ModelError, match="NaN"):
        attack_radius(wrapped(Nan()), np.ones(D), **QUIET)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ("first", "names or indices"),
        ([99], "99"),
        ([0.5], "0.5"),
        ([[0], "word"], "'word' among sets"),
        ([[[0]]], "must be a name or an index"),
        (np.zeros((1, 1, 1)), "names or indices"),
        ([True, False], "one for each"),
        ([None], "None"),
        (7, "names or indices"),
        (np.ones((2, D + 1), dtype=bool), "one for each"),
    ],
)
def test_odd_sets_are_named(sets, said):
    with pytest.raises(PertinentError, match=said):
        attack_radius(wrapped(linear()), np.ones(D), sets, **QUIET)


@pytest.mark.parametrize(
    ("name", "value"), [("steps", 0), *[("max_radius", r) for r in (0, np.nan)], ("seed", -1)]
)
def test_odd_settings_are_named(name, value):
    with pytest.raises(SettingError, match=name):
        attack_radius(wrapped(linear()), np.ones(D), **{name: value}, **QUIET)


def test_one_failing_input_does_not_take_the_others_down():
    found = attack_radius(wrapped(linear()), [np.ones(D), np.full(D, np.nan), np.zeros(D)], **QUIET)
    assert [one.index for one in found] == [0, 2]
    assert [failure.index for failure in found.failures] == [1]
