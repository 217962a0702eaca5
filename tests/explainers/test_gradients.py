"""Gradient methods compared with closed forms, completeness, and captum at the same points."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import InputXGradient, IntegratedGradients, LayerIntegratedGradients, Saliency
from tests import tiny

import pertinent
from pertinent.errors import BudgetError, InputError, ModelError, SettingError
from pertinent.removals.base import removals

METHODS = ("gradient", "gradient-x-input", "integrated-gradients", "expected-gradients")
MASK = tiny.VOCABULARY["[MASK]"]


def network(n, classes=3):
    torch.manual_seed(n)
    module = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(n, 10), torch.nn.Tanh(), torch.nn.Linear(10, classes)
    )
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(2)
    return module.eval()


class Probabilities(torch.nn.Module):
    """The softmax of a module's logits, for captum."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *inputs):
        answer = self.module(*inputs)
        return getattr(answer, "logits", answer).softmax(dim=-1)


def row(n, seed=0):
    return np.random.default_rng([n, seed]).normal(size=n).astype(np.float32)


def probability(module, x, target):
    with torch.no_grad():
        return Probabilities(module)(torch.tensor(np.asarray(x, dtype=np.float32)))[..., target].numpy()


@pytest.fixture(scope="module")
def bert():
    """Return a transformer with weights so large that probabilities change by tenths."""
    return pertinent.wrap(tiny.pair("bert", initializer_range=0.06))


# -- closed forms ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def logistic():
    """Return p(x) = σ(w·x + b) for class 1, with ∂p/∂x = p (1 − p) w."""
    module = torch.nn.Linear(4, 2)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, -2.0, 0.5, 0.0]]))
        module.bias.copy_(torch.tensor([0.0, 0.3]))
    return module


W, B, X = np.array([1.0, -2.0, 0.5, 0.0]), 0.3, np.array([0.7, 0.2, -1.0, 3.0])


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@pytest.mark.parametrize("target", [0, 1])
def test_closed_forms_of_a_logistic_model(logistic, target):
    model = pertinent.wrap(logistic, kind="table", output="logit")
    sign = 1 if target == 1 else -1
    p = sigmoid(X @ W + B)
    slope = sign * p * (1 - p) * W

    def scores(method, **settings):
        return pertinent.explain(model, X, method=method, target=target, **settings).scores

    np.testing.assert_allclose(scores("gradient"), slope, atol=1e-6)
    np.testing.assert_allclose(scores("gradient", reduce="length"), np.abs(slope), atol=1e-6)
    np.testing.assert_allclose(scores("gradient-x-input"), slope * X, atol=1e-6)
    for baseline in (np.zeros(4), np.array([1.0, 1.0, 0.0, -2.0])):
        # Along the line all features move at the same rate, so they share p(x) − p(x′) by w (x − x′).
        part = W * (X - baseline)
        expected = sign * (p - sigmoid(baseline @ W + B)) * part / part.sum()
        np.testing.assert_allclose(
            scores("integrated-gradients", points=30, baseline=baseline), expected, atol=1e-5
        )


def test_a_group_of_columns_and_a_patch_sum_over_their_parts(logistic):
    model = pertinent.wrap(
        logistic, kind="table", output="logit", columns=list("abcd"), groups={"bc": ["b", "c"]}
    )
    p = sigmoid(X @ W + B)
    slope = p * (1 - p) * W
    e = pertinent.explain(model, X, method="gradient-x-input", target=1)
    np.testing.assert_allclose(e.scores, [slope[0] * X[0], slope[1:3] @ X[1:3], 0], atol=1e-6)
    e = pertinent.explain(model, X, method="gradient", target=1, reduce="length")
    np.testing.assert_allclose(e.scores, [slope[0], np.hypot(*slope[1:3]), 0], atol=1e-6)
    image = np.random.default_rng(0).random((3, 4, 4)).astype(np.float32)
    module = network(48)
    given = torch.tensor(image[None], requires_grad=True)
    theirs = Saliency(Probabilities(module)).attribute(given, target=1, abs=False)[0]
    ours = pertinent.explain(
        pertinent.wrap(module, kind="image"), image, method="gradient", features="patches:2", target=1
    )
    expected = theirs.reshape(3, 2, 2, 2, 2).sum(dim=(0, 2, 4)).ravel()
    np.testing.assert_allclose(ours.scores, expected, atol=1e-6)


def test_expected_gradients_are_exact_on_a_linear_model():
    """Check the mean over a background for p = x·w, for any points."""

    class Linear(torch.nn.Module):
        def forward(self, x):
            p = 0.5 + 0.1 * (x @ torch.tensor([1.0, -1.0, 0.5]))
            return torch.stack([1 - p, p], dim=1)

    background = np.random.default_rng(0).random((5, 3))
    x = np.array([0.5, 0.2, 1.0])
    model = pertinent.wrap(Linear(), kind="table", background=background)
    e = pertinent.explain(model, x, method="expected-gradients", samples=35, target=1)
    expected = 0.1 * np.array([1.0, -1.0, 0.5]) * (x - background.mean(axis=0))
    np.testing.assert_allclose(e.scores, expected, atol=1e-6)
    every = 0.1 * np.array([1.0, -1.0, 0.5]) * (x - background)
    np.testing.assert_allclose(
        e.standard_errors, np.tile(every, (7, 1)).std(axis=0, ddof=1) / 35**0.5, atol=1e-6
    )


class LinearImages(torch.nn.Module):
    """Two classes whose probabilities are linear in the pixels of 2 × 5 × 6 images."""

    weights = torch.linspace(-1, 1, 60).reshape(2, 5, 6)

    def forward(self, x):
        p = 0.5 + 0.01 * (x * self.weights).sum(dim=(1, 2, 3))
        return torch.stack([1 - p, p], dim=1)


@pytest.mark.parametrize("kind", ["image", None])
@pytest.mark.parametrize("form", [np.asarray, list, torch.tensor])
def test_expected_gradients_of_images_start_from_the_background(kind, form):
    """Check the mean over all background images for p = x·w."""
    images, x = np.random.default_rng(0).random((6, 2, 5, 6)).astype(np.float32), np.ones((2, 5, 6))
    model = pertinent.wrap(LinearImages(), kind=kind, background=form(images[:5]), output="probability")
    e = pertinent.explain(model, x, method="expected-gradients", samples=35, target=1, features="pixels")
    expected = (0.01 * LinearImages.weights.numpy() * (x - images[:5].mean(axis=0))).sum(axis=0)
    np.testing.assert_allclose(e.scores, expected.ravel(), atol=1e-6)
    assert e.warnings == ()
    other = pertinent.wrap(LinearImages(), background=images[1:], output="probability")
    assert other.fingerprint != model.fingerprint


def test_noise_is_said_where_there_are_no_background_images():
    x = np.random.default_rng(0).random((2, 5, 6))
    model = pertinent.wrap(LinearImages(), kind="image", output="probability")
    several = pertinent.explain(model, [x, 1 - x], method="expected-gradients", samples=5)
    for e in several:
        assert len(e.warnings) == 1
        assert e.warnings[0].startswith("The baselines are uniform noise because the model has no")
    for baseline in ("uniform-noise", "constant", 0 * x):  # asked for
        asked = pertinent.explain(model, x, method="expected-gradients", samples=5, baseline=baseline)
        assert asked.warnings == ()


def test_background_images_must_fit():
    images = np.zeros((3, 2, 5, 6), dtype=np.float32)
    model = pertinent.wrap(LinearImages(), background=images, output="probability")
    with pytest.raises(SettingError, match=r"\(2, 6, 5\), got \(2, 5, 6\)"):
        pertinent.explain(model, np.zeros((2, 6, 5)), method="leave-one-out", removal="background")
    with pytest.raises(InputError, match=r"images of one size, but there are \(2, 5, 6\) and \(2, 6, 5\)"):
        pertinent.wrap(LinearImages(), background=[images[0], np.zeros((2, 6, 5))])


# -- captum ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [0, 2])
def test_captum_on_rows(target):
    module, x = network(6), row(6)
    model, given = pertinent.wrap(module, kind="table"), torch.tensor(x[None], requires_grad=True)
    wrapped, baseline = Probabilities(module), row(6, seed=1)
    theirs = {
        "gradient": Saliency(wrapped).attribute(given, target=target, abs=False),
        "gradient-x-input": InputXGradient(wrapped).attribute(given, target=target),
        "integrated-gradients": IntegratedGradients(wrapped).attribute(
            given, torch.tensor(baseline[None]), target=target, n_steps=7, method="gausslegendre"
        ),
    }
    for method, found in theirs.items():
        settings = {"points": 7, "baseline": baseline} if method == "integrated-gradients" else {}
        e = pertinent.explain(model, x, method=method, target=target, **settings)
        np.testing.assert_allclose(e.scores, found.detach().numpy()[0], atol=1e-5)


def test_captum_on_word_embeddings(bert):
    """Use the embedding of the mask token as baseline of every word, with special tokens kept."""
    text, target = tiny.text(8, seed=3), 1
    given = bert.prepare(text)
    ids = torch.tensor(given.tokens.ids)[None]
    baseline = torch.where(torch.tensor(given.tokens.feature >= 0)[None], MASK, ids)
    layer = LayerIntegratedGradients(Probabilities(bert.model), bert.model.get_input_embeddings())
    theirs = layer.attribute(ids, baseline, target=target, n_steps=12, method="gausslegendre")
    ours = pertinent.explain(bert, text, method="integrated-gradients", points=12, target=target)
    np.testing.assert_allclose(ours.scores, theirs.sum(dim=-1)[0, 1:-1].detach().numpy(), atol=1e-5)


def test_expected_gradients_agree_with_many_integrated_ones():
    """Compare with captum's integrated gradients from every background row, within the errors."""
    module, x = network(5), row(5)
    background = np.random.default_rng(2).normal(size=(300, 5)).astype(np.float32)
    given = torch.tensor(x).repeat(300, 1)
    theirs = IntegratedGradients(Probabilities(module)).attribute(
        given, torch.tensor(background), target=1, n_steps=20, method="gausslegendre"
    )
    model = pertinent.wrap(module, kind="table", background=background)
    e = pertinent.explain(model, x, method="expected-gradients", samples=1500, target=1)
    miss = (e.scores - theirs.numpy().mean(axis=0)) / e.standard_errors
    assert (np.abs(miss) < 4).all()
    assert e.standard_errors.max() < 0.1 * np.abs(e.scores).max()
    again = [
        pertinent.explain(model, x, method="expected-gradients", samples=60, target=1, seed=s)
        for s in range(40)
    ]
    spread = np.std([a.scores for a in again], axis=0, ddof=1) / np.mean(
        [a.standard_errors for a in again], axis=0
    )
    assert (spread < 1.3).all()
    assert (spread > 0.3).all()


# -- completeness ---------------------------------------------------------------------------------


@pytest.mark.parametrize("baseline", [None, "mask-token", "zero-vector", "pad-token"])
def test_integrated_gradients_are_complete_on_texts(bert, baseline):
    text = tiny.text(6, seed=1)
    e = pertinent.explain(bert, text, method="integrated-gradients", points=400, baseline=baseline)
    removal = "mask-token" if baseline is None else baseline
    nothing = pertinent.explain(bert, text, method="leave-one-out", removal=removal, features="sentences")
    start = e.prediction.values[e.target] - nothing.scores[0]
    assert e.scores.sum() == pytest.approx(e.prediction.values[e.target] - start, abs=1e-4)
    assert abs(e.scores.sum()) > 0.01


def test_integrated_gradients_are_complete_on_rows_and_images():
    for kind, shape in (("table", (7,)), ("image", (1, 4, 4))):
        module = network(int(np.prod(shape)))
        x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
        features = "patches:2" if kind == "image" else None
        e = pertinent.explain(
            pertinent.wrap(module, kind=kind), x, method="integrated-gradients", budget=80, features=features
        )
        change = probability(module, x[None], e.target)[0] - probability(module, 0 * x[None], e.target)[0]
        assert e.scores.sum() == pytest.approx(change, abs=1e-5)
        assert e.evaluations == 80


def test_expected_gradients_are_complete_in_expectation(bert):
    """Check p(x) − E p(x′) within the error of the sum, for random words and for noise."""
    text = tiny.text(4, seed=2)
    e = pertinent.explain(bert, text, method="expected-gradients", samples=600)
    rng = np.random.default_rng(0)
    words = [" ".join(rng.choice([*tiny.WORDS, "a", ".", ","], 4)) for _ in range(300)]
    drawn = pertinent.explain(bert, words, method="random", target=0)
    start = [d.prediction.values[e.target] for d in drawn]
    error = np.hypot(np.sqrt((e.standard_errors**2).sum()) * 2, np.std(start) / np.sqrt(len(start)))
    assert abs(e.scores.sum() - (e.prediction.values[e.target] - np.mean(start))) < 4 * error
    module, x = network(16), np.random.default_rng(1).random((1, 4, 4)).astype(np.float32)
    e = pertinent.explain(
        pertinent.wrap(module, kind="image"), x, method="expected-gradients", samples=800, features="pixels"
    )
    noise = rng.uniform(x.min(), x.max(), size=(4000, 1, 4, 4))
    expected = probability(module, x[None], e.target)[0] - probability(module, noise, e.target).mean()
    assert e.scores.sum() == pytest.approx(expected, abs=4 * np.sqrt((e.standard_errors**2).sum() * 2))


def test_more_points_integrate_better():
    module, x = network(6), row(6)
    model = pertinent.wrap(module, kind="table")
    missing = []
    for points in (1, 3, 20):
        e = pertinent.explain(model, x, method="integrated-gradients", points=points, target=0)
        change = probability(module, x[None], 0)[0] - probability(module, 0 * x[None], 0)[0]
        missing.append(abs(e.scores.sum() - change))
    assert missing[0] > missing[1] > missing[2]


# -- targets, features, baselines ---------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_probabilities_of_all_classes_sum_to_one_so_scores_sum_to_zero(bert, method):
    """Check that the requested class is explained at every point, not the class predicted there."""
    settings = {"samples": 5} if method == "expected-gradients" else {}
    scores = [
        pertinent.explain(bert, tiny.text(5), method=method, target=c, budget=10, **settings).scores
        for c in range(3)
    ]
    np.testing.assert_allclose(np.sum(scores, axis=0), 0, atol=1e-5)
    if method != "gradient":
        assert np.abs(scores).max() > 1e-3


@pytest.mark.parametrize("method", ["gradient-x-input", "integrated-gradients", "expected-gradients"])
def test_sentences_sum_over_their_words_and_words_over_their_tokens(bert, method):
    text = "w1 w2 w3. w4 w5, w6."
    if method == "expected-gradients":
        # The draws depend on the input, features and all, so only what is fixed can be compared.
        settings = {"baseline": "mask-token", "samples": 400}
    else:
        settings = {} if method == "gradient-x-input" else {"points": 40}
    tokens, words, sentences = (
        pertinent.explain(bert, text, method=method, features=f, target=0, **settings)
        for f in ("tokens", "words", "sentences")
    )
    within = 0.03 if method == "expected-gradients" else 1e-4
    owner = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    assert len(tokens.scores) == 9
    np.testing.assert_allclose(np.bincount(owner, tokens.scores), sentences.scores, atol=within)
    names = dict(zip(words.features, words.scores, strict=True))
    for i, token in enumerate(tokens.features):
        if token.startswith("w"):
            assert names[token] == pytest.approx(tokens.scores[i], abs=within)


def test_the_length_of_a_sentence_is_that_of_all_its_embeddings(bert):
    text = "w1 w2 w3. w4 w5 w6."
    tokens, sentences = (
        pertinent.explain(bert, text, method="gradient", reduce="length", features=f)
        for f in ("tokens", "sentences")
    )
    parts = (tokens.scores**2).reshape(2, 4).sum(axis=1)
    np.testing.assert_allclose(sentences.scores, np.sqrt(parts), rtol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_the_query_is_never_a_feature(bert, method):
    pair = pertinent.Text("w1 w2 w3", "w4 w5", fixed="first")
    e = pertinent.explain(bert, pair, method=method, budget=60)
    assert e.features == ("w4", "w5")
    assert e.scores.shape == (2,)
    if method == "integrated-gradients":
        e = pertinent.explain(bert, pair, method=method, points=300)
        nothing = pertinent.explain(bert, pair, method="exact-shapley", removal="mask-token", target=e.target)
        assert e.scores.sum() == pytest.approx(nothing.scores.sum(), abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_texts_of_different_lengths_together_and_one_by_one(bert, method):
    texts = [tiny.text(n, seed=n) for n in (3, 12, 1, 7)]
    settings = {"reduce": "length"} if method == "gradient" else {"budget": 24}
    together = pertinent.explain(bert, texts, method=method, **settings)
    assert not together.failures
    for text, e in zip(texts, together, strict=True):
        alone = pertinent.explain(bert, text, method=method, batch_size=1, **settings)
        np.testing.assert_allclose(e.scores, alone.scores, atol=1e-5)
        assert e.evaluations == alone.evaluations


def test_baselines_by_name_instance_and_array():
    module, x = network(4), row(4)
    background = np.random.default_rng(0).normal(size=(20, 4))
    model = pertinent.wrap(module, kind="table", background=background)

    def scores(baseline):
        e = pertinent.explain(model, x, method="integrated-gradients", points=9, target=0, baseline=baseline)
        return e.scores

    mean = background.mean(axis=0)
    for same in ("mean", removals.make("mean")):
        np.testing.assert_allclose(scores(same), scores(mean), atol=1e-6)
    for same in ("constant", None):
        np.testing.assert_allclose(scores(same), scores(np.zeros(4)), atol=1e-6)
    instance = removals.make("constant", {"value": 2.0})
    np.testing.assert_allclose(scores(instance), scores(np.full(4, 2.0)), atol=1e-6)
    assert np.abs(scores(mean) - scores(None)).max() > 1e-3


def test_baselines_that_do_not_fit(bert):
    model = pertinent.wrap(network(4), kind="table")
    options = {"method": "integrated-gradients", "points": 3}
    with pytest.raises(SettingError, match=r"shape of the input, \(4,\), but has \(5,\)"):
        pertinent.explain(model, row(4), baseline=np.zeros(5), **options)
    with pytest.raises(SettingError, match=r"'blur' .*image.*table"):
        pertinent.explain(model, row(4), baseline="blur", **options)
    with pytest.raises(SettingError, match="background="):
        pertinent.explain(model, row(4), baseline="mean", **options)
    with pytest.raises(SettingError, match="Did you mean 'zero-vector'"):
        pertinent.explain(bert, "w1 w2", baseline="zero-vektor", **options)
    for name in ("attention-mask", "slice-out"):
        with pytest.raises(SettingError, match=f"'{name}' drops tokens, so it cannot create a baseline"):
            pertinent.explain(bert, "w1 w2", baseline=name, **options)
    with pytest.raises(SettingError, match="must be the name of a removal"):
        pertinent.explain(bert, "w1 w2", baseline=np.zeros(4), **options)


def test_a_tokenizer_without_a_mask_token_starts_from_zero():
    tokenizer = tiny.tokenizer(model_max_length=200)
    tokenizer.mask_token = None
    model = pertinent.wrap((tiny.model("bert"), tokenizer))
    scores = [
        pertinent.explain(model, "w1 w2 w3", method="integrated-gradients", points=5, baseline=b).scores
        for b in (None, "zero-vector")
    ]
    np.testing.assert_array_equal(*scores)


def test_settings_and_budgets():
    model, x = pertinent.wrap(network(4), kind="table"), row(4)
    for method, setting in (("integrated-gradients", "points"), ("expected-gradients", "samples")):
        with pytest.raises(SettingError, match=f"`{setting}` must be at least 1"):
            pertinent.explain(model, x, method=method, **{setting: 0})
        with pytest.raises(BudgetError, match="at least 10 "):
            pertinent.explain(model, x, method=method, budget=9, **{setting: 5})
    with pytest.raises(SettingError, match="length"):
        pertinent.explain(model, x, method="gradient", reduce="lenght")
    for budget in (2, 3, 7, 121):
        e = pertinent.explain(model, x, method="integrated-gradients", budget=budget)
        assert e.evaluations == budget // 2 * 2


@pytest.mark.parametrize("method", METHODS)
def test_a_function_has_no_gradients(method):
    with pytest.raises(ModelError, match="only transformers and torch modules have; choose"):
        pertinent.explain(lambda rows: [[0.4, 0.6] for _ in rows], [1.0, 2.0], method=method, budget=10)
