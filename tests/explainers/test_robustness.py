"""Explainers by robustness on games with known answers."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.asks import AttackRadii, Radii
from pertinent.errors import ModelError, SettingError
from pertinent.explainers.base import Task, explainers
from pertinent.explainers.robustness.base import from_order
from pertinent.masks import all_coalitions
from pertinent.rendering.wording import uninformative_reason

D = 12


def play(explainer, radius, d=D, seed=0):
    """Run an explainer on a game, which returns the radius of each attacked set."""
    prediction = np.array([0.9, 0.1])
    task = Task(d, 0, prediction, 10**9, (0.5,), np.random.default_rng(seed))
    steps, answer = explainer.explain(task), None
    asked = []
    while True:
        try:
            question = steps.send(answer)
        except StopIteration as stop:
            return stop.value, asked
        assert isinstance(question, AttackRadii)
        asked.append(question.sets)
        answer = Radii(np.array([radius(mask) for mask in question.sets]), np.full(len(question.sets), 2))


@pytest.mark.parametrize("method", ["greedy", "greedy-as", "one-step-banzhaf"])
def test_additive_games_give_the_exact_order(method):
    worth = np.random.default_rng(1).permutation(np.linspace(1, 3, D))
    settings = {"chosen": 1.0} if method != "one-step-banzhaf" else {}
    order = np.argsort(-worth)
    found, _ = play(explainers.make(method, settings), lambda attacked: worth[~attacked].sum())
    np.testing.assert_array_equal(np.argsort(-found.scores), order)
    relevant = explainers.make(method, settings | {"criterion": "relevant"})
    found, _ = play(relevant, lambda attacked: 100 - worth[attacked].sum())
    np.testing.assert_array_equal(np.argsort(-found.scores), order)


def test_banzhaf_by_regression_equals_the_formula_for_all_subsets():
    d = 8
    table = np.random.default_rng(2).random(2**d)
    place = 1 << np.arange(d)
    value = {"irrelevant": lambda attacked: table[(~attacked) @ place]}
    value["relevant"] = lambda attacked: table[attacked @ place]
    masks = all_coalitions(d)
    of_mask = np.array([table[mask @ place] for mask in masks])
    exact = np.array([of_mask[masks[:, i]].mean() - of_mask[~masks[:, i]].mean() for i in range(d)])
    for criterion, sign in (("irrelevant", 1), ("relevant", -1)):
        explainer = explainers.make("one-step-banzhaf", {"subsets": 2**d, "criterion": criterion})
        found, _ = play(explainer, value[criterion], d)
        np.testing.assert_allclose(found.scores, sign * exact, atol=1e-10)


def test_each_step_joins_the_chosen_with_subsets_of_the_others():
    worth = np.arange(1.0, 21.0)
    explainer = explainers.make("greedy-as", {"subsets": 200, "step": 0.1, "chosen": 0.3})
    found, asked = play(explainer, lambda attacked: worth[~attacked].sum(), d=20)
    chosen = np.argsort(-found.scores)
    assert len(asked) == 3
    for step, sets in enumerate(asked):
        assert not sets[:, chosen[: 2 * step]].any()  # the chosen are never attacked
        free = (~sets)[:, chosen[2 * step :]]
        assert 0.1 < free.mean() < 0.3
    np.testing.assert_array_equal(chosen[:6], np.arange(19, 13, -1))


def test_sets_without_attack_count_for_more_than_any_radius():
    explainer = explainers.make("greedy", {"chosen": 0.1})
    found, _ = play(explainer, lambda attacked: 1.0 if attacked[3] else np.inf)
    assert found.scores.argmax() == 3


@pytest.mark.parametrize("criterion", ["irrelevant", "relevant"])
@pytest.mark.parametrize("settings", [("greedy", {}), ("greedy-as", {"subsets": 40})])
def test_where_nothing_can_be_attacked_there_is_no_order(settings, criterion):
    method, own = settings
    explainer = explainers.make(method, own | {"criterion": criterion})
    with pytest.raises(ModelError, match="No attack changes the prediction"):
        play(explainer, lambda attacked: np.inf)


@pytest.mark.parametrize("settings", [("greedy", {}), ("greedy-as", {"subsets": 200})])
def test_choice_ends_where_all_that_is_left_is_as_good(settings):
    """Check a game without attacks once features 3 and 7 are fixed: all others are equal."""
    method, own = settings
    explainer = explainers.make(method, own | {"chosen": 0.8})
    found, asked = play(
        explainer, lambda attacked: 3.0 - 2 * attacked[3] if attacked[[3, 7]].any() else np.inf
    )
    np.testing.assert_array_equal(np.argsort(-found.scores)[:2], [3, 7])
    assert len(asked) == 3
    assert len(set(np.delete(found.scores, [3, 7]))) == 1
    assert np.delete(found.scores, [3, 7]).max() < 0.1


def test_features_that_are_all_as_good_have_the_same_score():
    explainer = explainers.make("greedy", {})
    found, asked = play(explainer, lambda attacked: 2.0 if attacked.all() else np.inf)  # all must change
    np.testing.assert_array_equal(found.scores, 1.0)
    assert [len(sets) for sets in asked] == [D, 1]
    alone, _ = play(explainer, lambda attacked: 2.0 if attacked.all() else np.inf, d=1)
    np.testing.assert_array_equal(alone.scores, 1.0)


def test_greedy_can_choose_several_in_a_step():
    """Count one attack per remaining feature and step."""
    share = 2 / D
    explainer = explainers.make("greedy", {"step": share, "chosen": 5 / D})
    found, asked = play(explainer, lambda attacked: 1.0 + float(np.arange(D) @ ~attacked))
    assert [len(sets) for sets in asked][:3] == [D, D - 2, D - 4]
    assert set(np.argsort(-found.scores)[:5]) == set(range(D - 5, D))


def test_order_of_choice_becomes_scores():
    scores = from_order(np.array([2, 0]), np.array([0.0, 0.1, 0.0, 0.7]))
    np.testing.assert_allclose(scores, [0.5, 0.025, 1.0, 0.05])
    scores = from_order(np.array([2]), np.array([0.7, 0.1, 0.0, 0.7]))
    np.testing.assert_allclose(scores, [0.1, 0.05, 1.0, 0.1])
    np.testing.assert_allclose(from_order(np.array([1, 0]), np.zeros(2)), [0.5, 1.0])


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits

    return pertinent.load("digits"), [image / 16 for image in load_digits().images[:4]]


def test_greedy_as_is_best_by_its_own_criteria(digits):
    model, images = digits
    metrics = ["robustness-of-irrelevant", "robustness-of-relevant"]
    measured = {}
    for method, settings in (
        ("random", {}),
        ("gradient", {}),
        ("greedy-as", {"subsets": 150, "attack_steps": 8}),
    ):
        found = pertinent.explain(model, images, method, progress=False, **settings)
        measured[method] = pertinent.evaluate(model, found, metrics, progress=False)
    for other in ("random", "gradient"):
        better = {name: measured["greedy-as"].mean("greedy-as", name) for name in metrics}
        worse = {name: measured[other].mean(other, name) for name in metrics}
        assert better["robustness-of-irrelevant"] > worse["robustness-of-irrelevant"]
        assert better["robustness-of-relevant"] < worse["robustness-of-relevant"]


def test_targets_and_starts(digits):
    model, images = digits
    settings = {"subsets": 60, "chosen": 0.2, "attack_steps": 6, "progress": False}
    e = pertinent.explain(model, images[0], "greedy-as", start="gradient", **settings)
    assert 0 < e.evaluations <= e.cost.budget
    other = (e.target + 1) % 10
    toward = pertinent.explain(model, images[0], "greedy-as", toward=other, **settings)
    assert not np.array_equal(e.scores, toward.scores)
    again = pertinent.explain(model, images[0], "greedy-as", toward=str(other), batch_size=16, **settings)
    np.testing.assert_array_equal(np.argsort(-toward.scores)[:6], np.argsort(-again.scores)[:6])
    with pytest.raises(SettingError, match="toward"):
        pertinent.explain(model, images[0], "greedy-as", target=other, **settings)
    with pytest.raises(SettingError, match="`toward`"):
        pertinent.explain(model, images[0], "greedy-as", toward=e.target, **settings)


def test_a_forest_is_explained_by_decisions():
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    rows, truth = load_iris(return_X_y=True)
    model = pertinent.wrap(RandomForestClassifier(20, random_state=0).fit(rows, truth), background=rows)
    e = pertinent.explain(model, rows[0], "greedy", chosen=0.5, attack_steps=4, progress=False)
    assert np.isfinite(e.scores).all()


def test_texts(digits):
    model = pertinent.load("sentiment")
    e = pertinent.explain(model, "slow but wonderful", "greedy", criterion="relevant", progress=False)
    assert e.features[int(e.scores.argmax())] == "wonderful"


def test_constant_models_and_regressors_are_told():
    torch.manual_seed(0)
    module = torch.nn.Linear(4, 2)
    with torch.no_grad():
        module.weight.zero_()
        module.bias.copy_(torch.tensor([1.0, 0.0]))
    constant = pertinent.wrap(module, kind="table", output="logit")
    for method, settings in (("greedy", {}), ("greedy-as", {}), ("greedy-as", {"start": "gradient"})):
        with pytest.raises(ModelError, match="No attack changes the prediction"):
            pertinent.explain(constant, np.ones(4), method, progress=False, **settings)
    for method in ("one-step-banzhaf", "meaningful-perturbation"):
        e = pertinent.explain(constant, np.ones(4), method, progress=False)
        assert uninformative_reason(e).startswith("No feature moves the prediction measurably")
    with pytest.raises(SettingError, match="a plain value is not a decision"):
        pertinent.explain(pertinent.load("diabetes"), np.zeros(10), "greedy", progress=False)


def test_counterfactual_of_a_linear_model_is_along_its_weights():
    torch.manual_seed(3)
    module = torch.nn.Linear(8, 2)
    model = pertinent.wrap(module, kind="table", output="logit")
    x = np.random.default_rng(0).normal(size=8)
    e = pertinent.explain(model, x, "counterfactual", progress=False)
    slope = (module.weight[0] - module.weight[1]).detach().double().numpy()
    margin = abs(float(slope @ x + (module.bias[0] - module.bias[1]).item()))
    exact = margin * np.abs(slope) / (slope**2).sum()
    np.testing.assert_allclose(e.scores, exact, rtol=0.02)
    assert e.details["radius"] == pytest.approx(margin / np.linalg.norm(slope), rel=0.01)
    few = pertinent.explain(model, x, "counterfactual", most=2, progress=False)
    assert few.details["changed"] == 2
    assert set(np.argsort(-few.scores)[:2]) == set(np.argsort(-np.abs(slope))[:2])
    assert few.details["radius"] > e.details["radius"]


def test_counterfactual_of_images_tables_and_texts(digits):
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    model, images = digits
    e = pertinent.explain(model, images[0], "counterfactual", features="patches:2", progress=False)
    assert np.linalg.norm(e.scores) == pytest.approx(e.details["radius"], rel=1e-5)
    rows, truth = load_iris(return_X_y=True)
    forest = pertinent.wrap(RandomForestClassifier(10, random_state=0).fit(rows, truth), background=rows)
    e = pertinent.explain(forest, rows[0], "counterfactual", progress=False)
    assert np.linalg.norm(e.scores) == pytest.approx(e.details["radius"], rel=1e-5)
    e = pertinent.explain(pertinent.load("sentiment"), "slow but wonderful", "counterfactual", progress=False)
    assert np.linalg.norm(e.scores) == pytest.approx(e.details["radius"], rel=1e-4)


def test_no_counterfactual_is_told():
    module = torch.nn.Linear(4, 2)
    with torch.no_grad():
        module.weight.zero_()
        module.bias.copy_(torch.tensor([1.0, 0.0]))
    constant = pertinent.wrap(module, kind="table", output="logit")
    with pytest.raises(ModelError, match="No perturbation of 4 of 4 features"):
        pertinent.explain(constant, np.ones(4), "counterfactual", progress=False)


def test_no_counterfactual_of_so_few_is_told():
    explainer = explainers.make("counterfactual", {"most": 2})
    with pytest.raises(ModelError, match="3 of 6 features changes the prediction: increase `most`"):
        explain_with_norms(explainer, lambda attacked: 1.0 if attacked.all() else np.inf, d=6)


def explain_with_norms(explainer, radius, d):
    task = Task(d, 0, np.array([0.9, 0.1]), 10**9, (0.5,), np.random.default_rng(0))
    steps, answer = explainer.explain(task), None
    while True:
        question = steps.send(answer)
        radii = np.array([radius(mask) for mask in question.sets])
        answer = Radii(radii, np.full(len(radii), 2), norms=np.ones((len(radii), d)))
