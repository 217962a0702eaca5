"""Attack radii: against closed forms, and checked by the model itself."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.api.attack_radius import attack_radius
from pertinent.errors import InputError, PertinentError, SettingError
from pertinent.rendering.tables import tables_of

D, CLASSES = 12, 4


def linear(seed=0, bias=0.3):
    torch.manual_seed(seed)
    module = torch.nn.Linear(D, CLASSES)
    with torch.no_grad():
        module.bias += bias * torch.randn(CLASSES)
    return module


def wrapped(module, **options):
    return pertinent.wrap(module, kind="table", output="logit", **options)


def closed_form(module, x, sets, norm="l2", toward=None):
    """The distance to the nearest of the boundaries, along the features of each set."""
    w, b = module.weight.detach().double().numpy(), module.bias.detach().double().numpy()
    scores = w @ x + b
    own = int(scores.argmax())
    found = []
    for mask in sets:
        each = []
        for other in range(CLASSES) if toward is None else [toward]:
            if other != own:
                g = (w[own] - w[other])[mask]
                size = np.linalg.norm(g) if norm == "l2" else np.abs(g).sum()
                each.append((scores[own] - scores[other]) / size)
        found.append(min(each))
    return np.array(found)


def some_sets(n=8, seed=1):
    sets = np.random.default_rng(seed).random((n, D)) < 0.5
    sets[0] = True
    return sets


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("algorithm", ["projection", "pgd"])
def test_linear_models_have_a_closed_form(norm, algorithm):
    sets = some_sets()
    for seed in range(3):
        module, x = linear(seed), np.random.default_rng(seed).normal(size=D)
        found = attack_radius(
            wrapped(module),
            x,
            sets,
            norm=norm,
            algorithm=algorithm,
            steps=30,
            max_radius=30.0,
            progress=False,
        )
        exact = closed_form(module, x, sets, norm)
        assert (found.radii > exact * 0.999).all()
        tolerance = 1.01 if algorithm == "projection" else 1.1
        assert np.median(found.radii / exact) < tolerance, found.radii / exact


def test_two_classes_are_within_one_percent():
    torch.manual_seed(5)
    module = torch.nn.Linear(D, 2)
    x = np.random.default_rng(5).normal(size=D)
    sets = some_sets(20)
    w = module.weight.detach().double().numpy()
    margin = abs(float((w[0] - w[1]) @ x + (module.bias[0] - module.bias[1]).item()))
    exact = np.array([margin / np.linalg.norm((w[0] - w[1])[mask]) for mask in sets])
    found = attack_radius(wrapped(module), x, sets, progress=False)
    np.testing.assert_allclose(found.radii, exact, rtol=0.01)


def test_targeted_attacks_reach_their_class():
    module, x = linear(2), np.random.default_rng(2).normal(size=D)
    own = int(module(torch.tensor(x).float()).argmax())
    for toward in set(range(CLASSES)) - {own}:
        found = attack_radius(wrapped(module), x, some_sets(), toward=toward, steps=40, progress=False)
        reached = module(torch.tensor(found.perturbed).float()).argmax(dim=1).numpy()
        assert (reached[found.succeeded] == toward).all()
        assert found.succeeded.any()
        assert found.toward == f"class {toward}"


@pytest.fixture(scope="module")
def convolution():
    torch.manual_seed(0)
    layers = (torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 3))
    return torch.nn.Sequential(*layers)


@pytest.mark.parametrize("algorithm", ["projection", "pgd"])
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_perturbations_are_verified_by_the_model_and_keep_to_their_set(convolution, algorithm, norm):
    image = np.random.default_rng(0).random((1, 8, 8)).astype(np.float32)
    sets = np.random.default_rng(1).random((12, 64)) < 0.4
    model = pertinent.wrap(convolution, kind="image", output="logit")
    found = attack_radius(
        model, image, sets, features="pixels", algorithm=algorithm, norm=norm, progress=False
    )
    own = int(convolution(torch.tensor(image)[None]).argmax())
    after = convolution(torch.tensor(found.perturbed).float()).argmax(dim=1).numpy()
    assert found.succeeded.sum() > 3
    assert (after[found.succeeded] != own).all()
    flat = found.changes.reshape(12, 64)
    assert np.abs(flat[~sets]).max() == 0
    assert found.perturbed.min() >= -1e-6
    assert found.perturbed.max() <= 1 + 1e-6
    sizes = np.linalg.norm(flat, axis=1) if norm == "l2" else np.abs(flat).max(axis=1)
    np.testing.assert_allclose(sizes[found.succeeded], found.radii[found.succeeded], rtol=1e-5)
    assert (found.passes > 0).all()


def test_radii_never_rise_as_a_set_grows(convolution):
    image = np.random.default_rng(3).random((1, 8, 8)).astype(np.float32)
    order = np.random.default_rng(4).permutation(64)
    sets = np.array([np.isin(np.arange(64), order[:k]) for k in range(0, 65, 4)])
    model = pertinent.wrap(convolution, kind="image", output="logit")
    found = attack_radius(model, image, sets, features="pixels", steps=4, progress=False)
    assert (np.diff(found.radii[np.isfinite(found.radii)]) <= 0).all()
    assert np.isinf(found.radii[0])  # the empty set


def test_projection_needs_fewer_passes_than_pgd_for_radii_no_larger(convolution):
    rng = np.random.default_rng(7)
    model = pertinent.wrap(convolution, kind="image", output="logit")
    ratios, passes = [], []
    for _ in range(6):
        image = rng.random((1, 8, 8)).astype(np.float32)
        sets = rng.random((10, 64)) < 0.5
        options = {"features": "pixels", "progress": False}
        ours = attack_radius(model, image, sets, steps=40, **options)
        pgd = attack_radius(model, image, sets, algorithm="pgd", steps=40, **options)
        both = ours.succeeded & pgd.succeeded
        assert (ours.succeeded | ~pgd.succeeded).all()
        ratios += (ours.radii / pgd.radii)[both].tolist()
        passes.append(ours.passes.sum() / pgd.passes.sum())
    assert np.mean(ratios) < 1.005
    assert np.mean(passes) < 0.25


@pytest.mark.parametrize("toward", [None, 2])
def test_pgd_logit_goes_down_the_logit_of_the_class(toward):
    """On a linear model the change is along that logit's weights, until another logit is larger."""
    weights = np.array([[2.0, 1.0, 0.0], [0.0, 1.5, -1.0], [-1.0, 0.5, 1.0]])
    module = torch.nn.Linear(3, 3)
    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(weights))
        module.bias.zero_()
    row = np.array([1.0, 0.3, 0.2])
    model = pertinent.wrap(module, kind="table", output="logit")
    options = {"steps": 100, "max_radius": 5.0, "toward": toward, "progress": False}
    found = attack_radius(model, row, algorithm="pgd-logit", **options)
    along = weights[0] if toward is None else -weights[toward]
    along = along / np.linalg.norm(along)
    ways = [0] if toward is None else [0, 1]
    rivals = [1, 2] if toward is None else [toward]
    needed = [
        [(weights[a] - weights[b]) @ row / ((weights[a] - weights[b]) @ along) for a in ways] for b in rivals
    ]
    radius = min(max(each) for each in needed)
    assert found.radii[0] == pytest.approx(radius, rel=2e-3)
    np.testing.assert_allclose(np.ravel(found.changes[0]), -radius * along, atol=5e-3)
    assert attack_radius(model, row, algorithm="pgd", **options).radii[0] <= found.radii[0] + 1e-3


def test_batches_do_not_matter(convolution):
    rng = np.random.default_rng(8)
    images = [rng.random((1, 8, 8)).astype(np.float32) for _ in range(3)]
    sets = [rng.random((5, 64)) < 0.5 for _ in images]
    model = pertinent.wrap(convolution, kind="image", output="logit")
    options = {"features": "pixels", "progress": False}
    large = attack_radius(model, images, sets, **options)
    small = attack_radius(model, images, sets, batch_size=4, **options)
    for one, other in zip(large, small, strict=True):
        np.testing.assert_allclose(one.radii, other.radii, rtol=1e-4)


def test_forests_are_attacked_by_decisions():
    from sklearn.datasets import load_wine
    from sklearn.ensemble import RandomForestClassifier

    rows, truth = load_wine(return_X_y=True)
    forest = RandomForestClassifier(30, random_state=0).fit(rows, truth)
    model = pertinent.wrap(forest, background=rows)
    found = attack_radius(model, rows[0], progress=False)
    assert found.succeeded.all()
    assert forest.predict(found.perturbed)[0] != forest.predict(rows[:1])[0]
    units = rows.std(axis=0)
    assert found.radii[0] == pytest.approx(np.linalg.norm(found.changes[0] / units), rel=1e-6)
    again = attack_radius(model, rows[0], progress=False)
    np.testing.assert_array_equal(found.radii, again.radii)


def test_decisions_come_near_the_closed_form():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 6))
    truth = rows @ rng.normal(size=6) > 0.2
    estimator = LogisticRegression(C=100).fit(rows, truth)
    units = rows.std(axis=0)
    x = rows[np.abs(estimator.decision_function(rows)).argsort()[20]]
    sets = np.array([np.ones(6, dtype=bool), [True, True, True, False, True, True]])
    found = attack_radius(pertinent.wrap(estimator, background=rows), x, sets, progress=False)
    slope = estimator.coef_[0] * units
    margin = abs(float(estimator.decision_function(x[None])[0]))
    exact = np.array([margin / np.linalg.norm(slope[mask]) for mask in sets])
    assert (found.radii >= exact * 0.999).all()
    assert (found.radii <= exact * 1.1).all()


def test_texts_are_attacked_at_their_embeddings():
    model = pertinent.load("sentiment")
    text = "a slow start, then a wonderful ending"
    found = attack_radius(model, text, [["wonderful"], ["start"], ["wonderful", "start"], []], progress=False)
    assert found.radii[2] <= min(found.radii[:2])
    assert not found.succeeded[3]
    with pytest.raises(InputError, match="for texts use `changes`"):
        _ = found.perturbed
    together = attack_radius(model, [text, "flat and dull"], progress=False)
    assert len(together) == 2
    alone = attack_radius(model, text, progress=False)
    assert together[0].radii[0] == pytest.approx(alone.radii[0], rel=1e-3)


def test_one_and_several_are_counted_in_words():
    model, x = wrapped(linear(2)), np.random.default_rng(2).normal(size=D)
    assert "1 of 1 set," in repr(attack_radius(model, x, progress=False))
    assert repr(attack_radius(model, [x], progress=False)) == "<1 attacks>"
    assert repr(attack_radius(model, [x, x], progress=False)) == "<2 attacks>"


def test_no_attack_is_said():
    module = torch.nn.Linear(D, 2)
    with torch.no_grad():
        module.weight.zero_()
        module.bias.copy_(torch.tensor([1.0, 0.0]))
    found = attack_radius(wrapped(module), np.ones(D), progress=False)  # zero gradient, constant model
    assert not found.succeeded.any()
    assert found.passes[0] > 0
    assert "no attack found" in repr(found)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"toward": "class 9"}, "class 9"),
        ({"sets": ["unknown"]}, "unknown"),
        ({"sets": np.ones((2, 3), dtype=bool)}, "one for each of the 12 features"),
        ({"algorithm": "decision"}, "with a `background`"),
        ({"norm": "l1"}, "l1"),
    ],
)
def test_bad_arguments_are_named(options, said):
    with pytest.raises(PertinentError, match=said):
        attack_radius(wrapped(linear()), np.ones(D), progress=False, **options)


def test_the_predicted_class_is_no_aim():
    module, x = linear(), np.ones(D)
    own = int(module(torch.ones(D)).argmax())
    with pytest.raises(SettingError, match="another class"):
        attack_radius(wrapped(module), x, toward=own, progress=False)


def test_regressors_and_strings_cannot_be_attacked():
    with pytest.raises(SettingError, match="a plain value is not a decision"):
        attack_radius(pertinent.load("diabetes"), np.zeros(10), progress=False)
    texts = pertinent.wrap(lambda texts: [[0.4, 0.6] for _ in texts])
    with pytest.raises(InputError, match="perturb numbers"):
        attack_radius(texts, "some text", progress=False)


def test_labels_are_attacked_one_by_one_and_have_no_aim():
    module, x = linear(4), np.random.default_rng(4).normal(size=D)
    for name in ("label-logit", "label-probability"):
        net = module if name == "label-logit" else torch.nn.Sequential(module, torch.nn.Sigmoid())
        model = pertinent.wrap(net, kind="table", output=name)
        scores = module(torch.tensor(x).float()).detach().double().numpy()
        label = int(scores.argmax())
        exact = abs(scores[label]) / np.linalg.norm(module.weight[label].detach().double().numpy())
        found = attack_radius(model, x, progress=False)
        assert found.radii[0] == pytest.approx(exact, rel=0.02)
        after = module(torch.tensor(found.perturbed[0]).float())[label].item()
        assert (after >= 0) != (scores[label] >= 0)
        with pytest.raises(SettingError, match="mutually exclusive"):
            attack_radius(model, x, toward=0, progress=False)


def test_tables_count_inputs_from_zero_as_everything_else_does():
    rows = np.random.default_rng(0).normal(size=(3, D))
    found = attack_radius(wrapped(linear()), rows, [some_sets(2)] * 3, progress=False)
    numbers = [row[0].text for row in tables_of(found)[0].rows]
    assert numbers == [str(one.index) for one in found for _ in range(2)] == list("001122")
