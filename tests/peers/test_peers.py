"""Models explained by captum, shap and lime with the same settings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from captum.attr import KernelShap as CaptumKernelShap
from captum.attr import ShapleyValueSampling
from lime.lime_tabular import LimeTabularExplainer
from lime.lime_text import LimeTextExplainer
from scipy.stats import spearmanr
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier

import pertinent

with warnings.catch_warnings():
    # shap's colour maps use a function that matplotlib will deprecate.
    warnings.simplefilter("ignore", PendingDeprecationWarning)
    import shap


def network(d):
    """Return a small network with strong interactions, in double precision."""
    torch.manual_seed(d)
    module = torch.nn.Sequential(torch.nn.Linear(d, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(4)
    return torch.nn.Sequential(module, torch.nn.Softmax(dim=1)).double().eval()


def as_function(module):
    """Return the module as a function of arrays."""

    def function(rows):
        with torch.no_grad():
            return module(torch.as_tensor(np.asarray(rows), dtype=torch.float64)).numpy()

    return function


def row(d):
    return np.random.default_rng(d).normal(size=d)


def explain(function, x, method, **options):
    model = pertinent.wrap(function, kind="table")
    return pertinent.explain(model, x, method=method, removal="constant", target=1, **options)


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def agree(ours, theirs):
    """Return whether two estimates, repeated over seeds, have the same mean within their spread."""
    noise = np.sqrt((np.var(ours, axis=0, ddof=1) + np.var(theirs, axis=0, ddof=1)) / len(ours))
    return bool((np.abs(np.mean(ours, axis=0) - np.mean(theirs, axis=0)) < 4 * noise).all())


def shap_values(function, background, x, n):
    """Return values (classes, features) of shap's KernelExplainer without its feature selection."""
    explainer = shap.KernelExplainer(function, background)
    return explainer.shap_values(x, nsamples=n, l1_reg=False, silent=True).T


# -- shap ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 5, 8])
def test_kernel_shap_equals_shap_where_all_coalitions_are_asked(d):
    function, x = as_function(network(d)), row(d)
    theirs = shap_values(function, np.zeros((1, d)), x, 2**d)
    ours = explain(function, x, "kernel-shap", budget=2**d)
    np.testing.assert_allclose(ours.class_scores, theirs, atol=1e-6)
    np.testing.assert_allclose(explain(function, x, "exact-shapley").class_scores, theirs, atol=1e-6)


def test_kernel_shap_equals_shap_on_an_estimator_with_a_background():
    rows, labels = make_classification(200, 7, n_informative=5, random_state=0)
    estimator = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(rows, labels)
    background, x = rows[:12], rows[50]
    theirs = shap_values(estimator.predict_proba, background, x, 2**7)
    model = pertinent.wrap(estimator, background=background)
    ours = pertinent.explain(model, x, method="kernel-shap", budget=2**7, removal="background")
    np.testing.assert_allclose(ours.class_scores, theirs, atol=1e-6)


def test_sampled_kernel_shap_is_no_worse_than_shap():
    d, n = 12, 300
    function, x = as_function(network(d)), row(d)
    exact = explain(function, x, "exact-shapley").scores
    theirs, ours = [], []
    for seed in range(12):
        np.random.seed(seed)
        theirs.append(shap_values(function, np.zeros((1, d)), x, n)[1])
        ours.append(explain(function, x, "kernel-shap", samples=n, seed=seed).scores)
    assert agree(ours, theirs)
    assert rms(ours - exact) < 1.1 * rms(theirs - exact)


def test_to_shap_can_be_given_to_shap():
    function, x = as_function(network(5)), row(5)
    ours = explain(function, x, "exact-shapley")
    theirs = ours.to_shap()
    assert isinstance(theirs, shap.Explanation)
    np.testing.assert_array_equal(theirs.values, ours.scores)
    assert theirs.base_values == pytest.approx(function(np.zeros((1, 5)))[0, 1], abs=1e-9)


# -- captum -------------------------------------------------------------------------------------


def test_shapley_sampling_is_as_good_as_captum():
    """Compare the spread of the same estimator around the same values."""
    d, n, seeds = 8, 25, 40
    module = network(d)
    function, x = as_function(module), row(d)
    exact = explain(function, x, "exact-shapley").scores
    captum = ShapleyValueSampling(module)
    theirs, ours, errors, paired = [], [], [], []
    for seed in range(seeds):
        torch.manual_seed(seed)
        found = captum.attribute(torch.tensor(x[None]), target=1, n_samples=n, perturbations_per_eval=d)
        theirs.append(found.numpy()[0])
        e = explain(function, x, "shapley-sampling", samples=n, antithetic=False, seed=seed)
        ours.append(e.scores)
        errors.append(e.standard_errors)
        paired.append(explain(function, x, "shapley-sampling", samples=n, seed=seed).scores)
    assert agree(ours, theirs)
    assert 0.8 < rms(ours - exact) / rms(theirs - exact) < 1.25
    assert 0.75 < rms(errors) / rms(theirs - exact) < 1.25
    assert rms(paired - exact) < rms(theirs - exact)


def test_kernel_shap_is_no_worse_than_captum():
    d, n, seeds = 10, 200, 15
    module = network(d)
    function, x = as_function(module), row(d)
    exact = explain(function, x, "exact-shapley").scores
    captum = CaptumKernelShap(module)
    theirs, ours = [], []
    for seed in range(seeds):
        torch.manual_seed(seed)
        found = captum.attribute(torch.tensor(x[None]), target=1, n_samples=n, perturbations_per_eval=n)
        theirs.append(found.numpy()[0])
        ours.append(explain(function, x, "kernel-shap", samples=n, seed=seed).scores)
    assert agree(ours, theirs)
    assert rms(ours - exact) < rms(theirs - exact)


def test_a_wrapped_module_gives_what_its_function_gives():
    d = 6
    module, x = network(d), row(d).astype(np.float32)
    wrapped = pertinent.wrap(module, kind="table")
    ours = pertinent.explain(wrapped, x, method="exact-shapley", removal="constant", target=1)
    np.testing.assert_allclose(
        ours.scores, explain(as_function(module), x, "exact-shapley").scores, atol=1e-6
    )


# -- lime ---------------------------------------------------------------------------------------

WORDS = {
    "wonderful": 2.0,
    "good": 1.0,
    "slow": -0.7,
    "dull": -1.6,
    "the": 0.0,
    "never": -0.4,
    "film": 0.15,
    "plot": 0.3,
}
TEXT = "the film was good never dull with wonderful slow plot twists"


def sentiment(texts):
    """Sum word weights, with an interaction of two words."""
    score = np.array(
        [
            sum(WORDS.get(word, 0.0) for word in text.split()) + 1.5 * ("never" in text and "dull" in text)
            for text in texts
        ]
    )
    p = 1 / (1 + np.exp(-score))
    return np.column_stack([1 - p, p])


def test_lime_agrees_with_lime():
    n = 1500
    theirs = LimeTextExplainer(feature_selection="none", random_state=0).explain_instance(
        TEXT, sentiment, labels=(1,), num_features=len(TEXT.split()), num_samples=n
    )
    ours = pertinent.explain(pertinent.wrap(sentiment), TEXT, method="lime", target=1, budget=n)
    weights = dict(theirs.as_list(label=1))
    assert set(weights) == set(ours.features)
    weights = np.array([weights[word] for word in ours.features])
    assert (np.abs(ours.scores - weights) < 5 * np.sqrt(2) * ours.standard_errors).all()
    assert spearmanr(ours.scores, weights).statistic > 0.9
    assert {name for name, _ in ours.top(2)} == {"wonderful", "good"}


TRAINING = np.random.default_rng(0).normal(size=(500, 4)) * [1, 5, 0.1, 2] + [0, 3, 1, 9]


def bent(rows):
    """Return values that are linear, with a step in the second column."""
    rows = np.asarray(rows)
    return rows @ [1.0, -0.3, 20.0, 0.0] + 3 * (rows[:, 1] > 5)


@pytest.mark.parametrize("form", ["continuous", "discretised"])
@pytest.mark.parametrize("place", [3, 8])
def test_forms_of_lime_for_tables_agree_with_lime(form, place):
    settings = {"discretize_continuous": form == "discretised", "feature_selection": "none"}
    theirs = LimeTabularExplainer(TRAINING, mode="regression", random_state=0, **settings).explain_instance(
        TRAINING[place], bent, num_features=4, num_samples=4000
    )
    weights = np.array([weight for _, weight in sorted(theirs.local_exp[1])])
    model = pertinent.wrap(bent, background=TRAINING, output="value")
    ours = pertinent.explain(model, TRAINING[place], "lime", form=form, samples=4000, progress=False)
    assert (np.abs(ours.scores - weights) < 5 * np.sqrt(2) * ours.standard_errors + 1e-3).all()
    assert np.abs(weights).max() > 10 * ours.standard_errors.max()
