"""What every registered method keeps to, whatever it does inside."""

from __future__ import annotations

import json
import math
from math import comb
from operator import attrgetter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor
from tests import tiny
from tests.games import as_model, as_probabilities, random_interactions, random_table

import pertinent
from pertinent.errors import BudgetError, InputError, ModelError, SettingError
from pertinent.explainers.base import explainers, n_kept
from pertinent.explainers.search.base import Search
from pertinent.removals import FromBackground, UniformNoise

OF_SOME_MODELS = {
    "counterfactual",
    "grad-cam",
    "greedy",
    "greedy-as",
    "one-step-banzhaf",
    "tree-shap",
}  # they need numbers to attack, convolutions or trees
SAMPLING = [e.name for e in pertinent.list_methods() if "samples" in e.settings and not e.fitted_first]
METHODS = [name for name in explainers.all() if name not in OF_SOME_MODELS]
NEED_GRADIENTS = {
    "expected-gradients",
    "functional-information",
    "gradient",
    "gradient-search",
    "gradient-x-input",
    "integrated-gradients",
    "meaningful-perturbation",
    "smoothgrad",
    "taylor-search",
}
ALONG_MASKS = {"gradient-search", "meaningful-perturbation", "taylor-search"}
KINDS = ("text", "image", "table")
SPARSITIES = (0.1, 0.2, 0.5)
SAME_WHATEVER_THE_SEED = {
    "exact-shapley",
    "exhaustive-search",
    "gradient",
    "gradient-x-input",
    "integrated-gradients",
    "leave-one-out",
    "meaningful-perturbation",
    "occlusion",
}
ALL_CLASSES_AT_ONCE = {"banzhaf", "context-cite", "exact-shapley", "kernel-shap", "leave-one-out", "lime"}
ALL_CLASSES_AT_ONCE |= {"occlusion", "shapley", "shapley-interactions", "shapley-sampling", "single-effects"}
ADD_UP = {"exact-shapley", "kernel-shap", "shapley", "shapley-sampling"}
KNOW_THEIR_ERROR = {"banzhaf", "expected-gradients", "functional-information", "kernel-shap", "lime"}
KNOW_THEIR_ERROR |= {"shapley", "shapley-interactions", "shapley-sampling", "single-effects", "smoothgrad"}
SMALL = 40

every_method = pytest.mark.parametrize("method", METHODS)
every_value_method = pytest.mark.parametrize("method", [m for m in METHODS if m not in NEED_GRADIENTS])
every_gradient_method = pytest.mark.parametrize("method", sorted(NEED_GRADIENTS))
every_kind = pytest.mark.parametrize("kind", KINDS)


# -- function models that treat every row by itself ---------------------------------------------


def _probabilities(numbers):
    """Three classes from a row of numbers, with interactions, one row at a time."""
    score = [0.0, 0.3, -0.2]
    for i, x in enumerate(numbers):
        score[i % 3] += x * (1.0 + 0.5 * math.sin(i))
        score[(i + 1) % 3] += math.tanh(x * numbers[i - 1])
    weights = [math.exp(s) for s in score]
    return [w / sum(weights) for w in weights]


def text_function(texts):
    present = [{word: 0.3 + 0.1 * len(word) for word in text.split()} for text in texts]
    return [_probabilities([found.get(word, 0.0) for word in WORDS]) for found in present]


def array_function(rows):
    return [_probabilities(np.asarray(row, dtype=float).ravel().tolist()) for row in rows]


WORDS = ("w1", "w22", "a", "w3", "w44", "w5", "w66")
CLASSES = ("low", "middle", "high")
MODELS = {
    "text": pertinent.wrap(text_function, classes=CLASSES),
    "image": pertinent.wrap(array_function, kind="image", classes=CLASSES),
    "table": pertinent.wrap(array_function, kind="table", classes=CLASSES),
}


# -- the same as torch modules, and a transformer, for methods that need gradients --------------


class Numbers(torch.nn.Module):
    """`_probabilities` as logits; remembers the rows it was asked for, and those with a gradient."""

    def __init__(self):
        super().__init__()
        self.asked, self.differentiated = [], []

    def forward(self, x):
        rows = (self.differentiated if x.requires_grad else self.asked).extend
        rows(row.tobytes() for row in x.detach().numpy())
        x = x.flatten(1)
        i = torch.arange(x.shape[1])
        classes = torch.eye(3)
        own = (x * (1.0 + 0.5 * torch.sin(i))) @ classes[i % 3]
        joint = torch.tanh(x * x.roll(1, dims=1)) @ classes[(i + 1) % 3]
        return torch.tensor([0.0, 0.3, -0.2]) + own + joint


TORCH_MODELS = {
    "text": pertinent.wrap(tiny.pair("bert", initializer_range=0.06), classes=CLASSES),
    "image": pertinent.wrap(Numbers(), kind="image", classes=CLASSES),
    "table": pertinent.wrap(Numbers(), kind="table", classes=CLASSES),
}


def model_of(method, kind):
    return (TORCH_MODELS if method in NEED_GRADIENTS else MODELS)[kind]


def settings_of(method, kind):
    """Rows of several widths have no background to draw from, and a few steps of a descent show enough."""
    if method == "meaningful-perturbation":
        return {"steps": 20}
    return {"baseline": "constant"} if (method, kind) == ("expected-gradients", "table") else {}


def an_input(kind, d, seed=0):
    rng = np.random.default_rng([seed, d])
    if kind == "text":
        return " ".join(rng.permutation(WORDS)[:d])
    values = rng.normal(size=d).round(3)
    if kind == "table":
        return values
    return np.repeat(np.repeat(values[None, None], 2, axis=1), 2, axis=2) + rng.normal(size=(1, 2, 2 * d)) / 9


def small_budget(method, d):
    """Too little to ask for everything, where the method plans by its budget."""
    explainer = explainers.make(method)
    return None if explainer.evaluations(d) is not None else max(SMALL, explainer.min_budget(d))


def explain(method, kind="table", d=7, *, inputs=None, seed=0, **options):
    inputs = an_input(kind, d) if inputs is None else inputs
    options.setdefault("budget", small_budget(method, d))
    features = "patches:2" if kind == "image" else None
    options = {
        "method": method,
        "sparsity": SPARSITIES,
        "features": features,
        "seed": seed,
        **settings_of(method, kind),
        **options,
    }
    return pertinent.explain(model_of(method, kind), inputs, **options)


ARRAYS = (
    "prediction.values",
    "scores",
    "class_scores",
    "standard_errors",
    "class_standard_errors",
    "base_values",
)


def assert_same(a, b):
    """Equal bit for bit, the time it took aside; gradients as far as rounding allows."""
    assert a.method == b.method
    assert a.features == b.features
    assert a.target == b.target
    assert a.evaluations == b.evaluations
    assert a.cost.budget == b.cost.budget
    for name in ARRAYS:
        mine, other = attrgetter(name)(a), attrgetter(name)(b)
        assert (mine is None) == (other is None)
        if mine is not None and a.method in NEED_GRADIENTS:
            np.testing.assert_allclose(mine, other, atol=1e-5, strict=True)
        elif mine is not None:
            np.testing.assert_array_equal(mine, other, strict=True)
    assert list(a.chosen) == list(b.chosen)
    for mine, other in zip(a.chosen.values(), b.chosen.values(), strict=True):
        np.testing.assert_array_equal(mine, other, strict=True)


# -- results ------------------------------------------------------------------------------------


@every_method
@every_kind
@pytest.mark.parametrize("d", [1, 2, 7])
def test_an_explanation_is_complete(method, kind, d):
    e = explain(method, kind, d)
    assert len(e.features) == d
    assert e.scores.shape == (d,)
    assert e.scores.dtype == np.float64
    assert np.isfinite(e.scores).all()
    assert e.classes == CLASSES
    assert e.prediction.values.shape == (3,)
    assert e.target == e.prediction.values.argmax()
    assert e.target_name == CLASSES[e.target]
    assert (e.method, e.seed) == (method, 0)
    assert (e.class_scores is not None) == (method in ALL_CLASSES_AT_ONCE)
    if e.class_scores is not None:
        assert e.class_scores.shape == (3, d)
        np.testing.assert_array_equal(e.class_scores[e.target], e.scores)
    assert (e.base_values is not None) == (method in ADD_UP)
    if e.base_values is not None:
        np.testing.assert_allclose(e.base_values + e.class_scores.sum(axis=1), e.prediction.values, atol=1e-9)
    assert (e.standard_errors is not None) == (method in KNOW_THEIR_ERROR)
    if e.standard_errors is not None:
        assert e.standard_errors.shape == (d,)
        assert not (e.standard_errors < 0).any()
        assert not np.isinf(e.standard_errors).any()
    assert tuple(e.chosen) == (SPARSITIES if issubclass(explainers.all()[method], Search) else ())
    for sparsity, mask in e.chosen.items():
        assert mask.shape == (d,)
        assert mask.dtype == np.bool_
        assert mask.sum() == n_kept(sparsity, d)
    for sparsity in SPARSITIES:
        assert e.mask(sparsity).sum() == n_kept(sparsity, d)
    assert [name for name, _ in e.top(d)] == [e.features[i] for i in e.ranking]


@every_method
@pytest.mark.parametrize("target", [0, "middle", 2])
def test_the_class_asked_for_is_explained(method, target):
    e = explain(method, target=target)
    assert e.target == {"middle": 1}.get(target, target)
    if e.class_scores is not None:
        again = explain(method).for_class(target)
        assert (again.target, again.target_name) == (e.target, e.target_name)
        np.testing.assert_array_equal(again.scores, e.scores)
        assert (again.standard_errors is None) == (e.standard_errors is None)
        if e.standard_errors is not None:
            np.testing.assert_array_equal(again.standard_errors, e.standard_errors)
    else:
        with pytest.raises(SettingError, match="explains one class at a time: explain again with target="):
            e.for_class(target)


@every_method
def test_the_feature_that_decides_comes_first(method):
    def function(rows):
        return [[0.9, 0.1] if row[4] else [0.1, 0.9] for row in rows]

    class Module(torch.nn.Module):
        def forward(self, rows):
            return torch.stack([3 * rows[:, 4] - 1, 0 * rows[:, 4]], dim=1)

    model = pertinent.wrap(Module() if method in NEED_GRADIENTS else function, kind="table")
    settings = settings_of(method, "table")
    e = pertinent.explain(model, np.ones(9), method=method, removal="constant", **settings)
    if method == "random":
        assert len(set(e.scores)) == 9
        return
    assert e.ranking[0] == 4
    assert e.mask(0.1)[4]
    assert e.scores[4] > np.delete(e.scores, 4).max()


# -- cost ---------------------------------------------------------------------------------------


@every_value_method
@pytest.mark.parametrize("d", [1, 2, 7])
def test_evaluations_are_what_the_model_was_asked_and_within_the_budget(method, d):
    game = as_probabilities(random_table(d, seed=1))
    budget = small_budget(method, d)
    e = pertinent.explain(
        as_model(game), np.ones(d), method=method, removal="constant", sparsity=SPARSITIES, budget=budget
    )
    sizes = {n_kept(s, d) for s in SPARSITIES}
    assert e.cost.budget == budget or budget is None
    assert e.evaluations <= e.cost.budget * (len(sizes) if e.chosen else 1)
    if method == "ordered-search":
        # Each size has random masks of its own; they count for each, and some are the same.
        assert e.evaluations >= game.distinct - 1
        return
    assert 1 <= len(game.masks) - game.distinct <= 1 + 3  # some are asked again: is the model random?
    assert game.distinct - 1 <= e.evaluations <= game.distinct


@every_gradient_method
@pytest.mark.parametrize("d", [1, 2, 7])
def test_a_gradient_counts_as_two_evaluations(method, d):
    module = Numbers()
    model = pertinent.wrap(module, kind="table", classes=CLASSES)
    budget = small_budget(method, d)
    e = pertinent.explain(
        model, an_input("table", d), method=method, sparsity=SPARSITIES, budget=budget,
        **settings_of(method, "table"),
    )  # fmt: skip
    assert 1 <= len(module.asked) - len(set(module.asked)) <= 1 + 3  # again: is the model random?
    counted = 2 * len(module.differentiated) + len(set(module.asked))
    sizes = {n_kept(s, d) for s in SPARSITIES}
    checked_again = (
        len(sizes) if method == "gradient-search" else 0
    )  # a set that stays the best is charged twice
    assert counted - 1 <= e.evaluations <= counted + checked_again
    assert e.evaluations <= e.cost.budget * (len(sizes) if e.chosen else 1)


@every_method
def test_gradients_are_asked_of_those_who_have_them(method):
    """A function has none, and says so."""
    options = {"method": method, "budget": small_budget(method, 7), **settings_of(method, "table")}
    if method not in NEED_GRADIENTS:
        pertinent.explain(MODELS["table"], an_input("table", 7), **options)
        return
    with pytest.raises(ModelError, match="needs gradients, which only transformers and torch modules have"):
        pertinent.explain(MODELS["table"], an_input("table", 7), **options)


@every_value_method
def test_a_cache_makes_no_method_cheaper(method):
    """The first explainer's questions are remembered, the second still counts its own."""
    game = as_probabilities(random_table(6, seed=2))
    budget = None if small_budget(method, 6) is None else 64
    options = {"removal": "constant", "sparsity": SPARSITIES, "budget": budget}
    alone = pertinent.explain(as_model(game), np.ones(6), method=method, **options)
    first = "leave-one-out" if method == "exact-shapley" else "exact-shapley"
    both = pertinent.compare(as_model(game), [np.ones(6)], [first, method], "insertion", **options)
    assert_same(both.explanations[-1], alone)


@every_gradient_method
def test_a_cache_makes_no_gradient_cheaper(method):
    row = an_input("table", 6)
    explainer = explainers.make(method, settings_of(method, "table"))
    options = {"sparsity": SPARSITIES, "budget": None if explainer.evaluations(6) else 64}
    alone = pertinent.explain(TORCH_MODELS["table"], row, method=explainer, **options)
    first = explainers.make("exact-shapley")
    both = pertinent.compare(TORCH_MODELS["table"], [row], [first, explainer], "insertion", **options)
    assert_same(both.explanations[-1], alone)


@every_method
def test_the_least_budget_suffices_and_less_is_refused(method):
    d = 7
    explainer = explainers.make(method, settings_of(method, "table"))
    least = comb(7, 4) if method == "exhaustive-search" else explainer.min_budget(d)
    e = explain(method, d=d, budget=least)
    assert e.evaluations <= least * (3 if isinstance(explainer, Search) else 1)
    assert np.isfinite(e.scores).all()
    with pytest.raises(BudgetError if least > 1 else SettingError) as error:
        explain(method, d=d, budget=least - 1)
    assert str(least) in str(error.value)
    assert str(least - 1) in str(error.value)


@pytest.mark.parametrize("method", SAMPLING)
def test_samples_beyond_the_budget_are_refused(method):
    needed = explainers.make(method, {"samples": 60}).evaluations(7)
    assert explain(method, samples=60, budget=None).cost.budget == needed
    assert explain(method, samples=60, budget=needed + 5).evaluations <= needed
    with pytest.raises(BudgetError, match=f"at least {needed} .* with 7 features, but got {needed - 1}"):
        explain(method, samples=60, budget=needed - 1)
    with pytest.raises(SettingError, match="`samples` must be at least"):
        explain(method, samples=0)


@every_method
def test_a_misspelt_setting_is_refused(method):
    with pytest.raises(SettingError, match="samplez"):
        explain(method, samplez=3)


# -- seeds --------------------------------------------------------------------------------------


@every_value_method
def test_another_seed_asks_otherwise_where_the_method_samples(method):
    asked, scores = [], []
    for seed in (0, 1):
        game = as_probabilities(random_interactions(10, seed=3))
        e = pertinent.explain(
            as_model(game),
            np.ones(10),
            method=method,
            removal="constant",
            sparsity=0.5,
            budget=small_budget(method, 10),
            seed=seed,
        )
        asked.append({mask.tobytes() for mask in game.masks})
        scores.append(e.scores.tolist())
        assert e.seed == seed
    same = asked[0] == asked[1] and scores[0] == scores[1]
    assert same == (method in SAME_WHATEVER_THE_SEED)


@every_gradient_method
def test_another_seed_looks_elsewhere_where_the_method_samples(method):
    asked = []
    for seed in (0, 1):
        module = Numbers()
        e = pertinent.explain(
            pertinent.wrap(module, kind="table"), an_input("table", 10), method=method, sparsity=0.5,
            budget=small_budget(method, 10), seed=seed, **settings_of(method, "table"),
        )  # fmt: skip
        asked.append((set(module.asked), set(module.differentiated)))
        assert e.seed == seed
    assert (asked[0] == asked[1]) == (method in SAME_WHATEVER_THE_SEED)


@every_method
@every_kind
@settings(max_examples=6, deadline=None, derandomize=True, database=None)
@given(
    batch_size=st.sampled_from([1, 3, 1000, None]),
    seed=st.integers(0, 2**32),
    order=st.permutations(range(4)),
    companions=st.integers(1, 4),
)
def test_the_result_depends_on_the_input_and_the_seed_alone(
    method, kind, batch_size, seed, order, companions
):
    """Not on the batch size, the order of the inputs, or which others are explained with it."""
    inputs = [an_input(kind, d, seed=d) for d in (7, 1, 6, 7)]
    chosen = order[:companions]
    together = explain(method, kind, inputs=[inputs[i] for i in chosen], seed=seed, batch_size=batch_size)
    assert not together.failures
    for i, e in zip(chosen, together, strict=True):
        assert_same(e, explain(method, kind, inputs=inputs[i], seed=seed))


@every_method
def test_the_batch_size_changes_nothing(method):
    rows = [an_input("table", 7, seed=s) for s in range(3)]
    found = [explain(method, inputs=rows, batch_size=size) for size in (1, 3, 1000)]
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            assert_same(a, b)


@every_method
@pytest.mark.parametrize(
    "removal", [FromBackground(rows=3), UniformNoise(samples=2)], ids=["background", "uniform-noise"]
)
def test_random_removals_depend_on_input_mask_and_seed_alone(method, removal):
    background = np.random.default_rng(0).normal(size=(30, 7))
    module = Numbers() if method in NEED_GRADIENTS else array_function
    model = pertinent.wrap(module, kind="table", background=background)
    rows = [an_input("table", 7, seed=s) for s in range(3)]
    options = {
        "method": method,
        "removal": removal,
        "budget": small_budget(method, 7),
        "sparsity": SPARSITIES,
    }
    if method in ALONG_MASKS:
        with pytest.raises(SettingError, match="need a removal that fills in fixed values"):
            pertinent.explain(model, rows[1], **options)
        return
    alone = pertinent.explain(model, rows[1], **options)
    for size in (1, 7, 1000):
        together = pertinent.explain(model, rows[::-1], batch_size=size, **options)
        assert_same(together[1], alone)


# -- afterwards ---------------------------------------------------------------------------------


@every_method
@every_kind
def test_saved_and_read_again(method, kind, tmp_path):
    inputs = [an_input(kind, d) for d in (7, 2)]
    es = explain(method, kind, inputs=inputs)
    model = model_of(method, kind)
    es = pertinent.evaluate(model, es, metrics=["sufficiency", "deletion"]).explanations
    es.save(tmp_path / "e.parquet")
    again = pertinent.read(tmp_path / "e.parquet")
    assert len(again) == 2
    for a, b in zip(es, again, strict=True):
        assert_same(a, b)
        assert (a.settings, a.removal, a.classes, a.seed) == (b.settings, b.removal, b.classes, b.seed)
        assert a.cost.seconds == b.cost.seconds
        assert a.measures == b.measures
        assert set(b.measures) == {"sufficiency", "deletion"}
        assert (a.input.kind, a.input.granularity, a.input.notes) == (
            b.input.kind,
            b.input.granularity,
            b.input.notes,
        )
        assert a.input.fingerprint == b.input.fingerprint
    measured = pertinent.evaluate(model, again, metrics=["sufficiency"])
    assert not measured.failures
    before, after = (e.measures["sufficiency"] for e in (es[0], measured.explanations[0]))
    assert after == (pytest.approx(before, abs=1e-6) if method in NEED_GRADIENTS else before)


@every_method
def test_one_explanation_saved_and_read_again(method, tmp_path):
    e = explain(method)
    e.save(tmp_path / "e.parquet")
    (again,) = pertinent.read(tmp_path / "e.parquet")
    assert_same(e, again)


@every_method
@every_kind
@pytest.mark.parametrize("d", [1, 7])
def test_as_json(method, kind, d):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    e = explain(method, kind, d)
    plain = json.loads(e.to_json(), parse_constant=refuse)
    assert plain["method"] == method
    assert plain["scores"] == e.scores.tolist()
    assert plain["features"] == list(e.features)


@every_method
@every_kind
def test_as_a_data_frame(method, kind):
    es = explain(method, kind, inputs=[an_input(kind, d) for d in (7, 2)])
    frame = es.to_dataframe()
    assert len(frame) == 9
    assert frame["input"].tolist() == [0] * 7 + [1] * 2
    assert frame["feature"].tolist() == [*es[0].features, *es[1].features]
    np.testing.assert_array_equal(frame["score"], np.concatenate([e.scores for e in es]))
    assert set(frame["method"]) == {method}
    chosen = [column for column in frame if column.startswith("chosen at")]
    assert chosen == [f"chosen at {s:g}" for s in es[0].chosen]
    assert len(es[0].to_dataframe()) == 7


# -- what a model cannot be asked ---------------------------------------------------------------


@pytest.mark.parametrize("method", explainers.all())
def test_what_is_refused_is_said_before_it_is_asked(method):
    rows = np.random.default_rng(0).normal(size=(30, 4))
    answers = rows[:, 0] + rows[:, 1]
    models = {
        "function": (lambda x: 1 / (1 + np.exp(-np.stack([x[:, 0], -x[:, 0]], 1))), {"kind": "table"}),
        "value": (lambda x: x.sum(axis=1), {"kind": "table", "output": "value"}),
        "trees": (DecisionTreeRegressor(max_depth=2).fit(rows, answers), {}),
        "linear": (LinearRegression().fit(rows, answers), {}),
        "module": (torch.nn.Linear(4, 2), {"kind": "table", "output": "logit"}),
    }
    cheap = {"attack_steps": 1} if "attack_steps" in explainers.get(method).__dataclass_fields__ else {}
    cheap |= {"removal": "mean"} if method in ALONG_MASKS else {}
    for name, (thing, options) in models.items():
        model, said = pertinent.wrap(thing, background=rows, **options), ""
        try:
            pertinent.explain(model, rows[0], method=method, progress=False, **cheap)
        except (InputError, ModelError, SettingError) as error:
            said = str(error)
        assert said == explainers.get(method).refusal(model), name
