"""Gradients of torch models, against finite differences in double precision through plain formulas."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
import torch

import pertinent
from pertinent.asks import MaskGradients, PathGradients, Values
from pertinent.engine.engine import Engine
from pertinent.engine.job import Job
from pertinent.engine.meter import Meter
from pertinent.errors import BudgetError, InputError, ModelError, SettingError
from pertinent.inputs.image import ImageInput
from pertinent.models.gradients.base import frozen
from pertinent.removals import FromBackground
from pertinent.removals.base import removals
from tests import tiny

ARCHITECTURES = ("bert", "roberta", "distilbert", "mpnet", "modernbert")
WINDOW = {"global_attn_every_n_layers": 3, "num_hidden_layers": 4, "local_attention": 32}
STEP = 3e-4  # large enough for the float32 inside some rotary embeddings


def one(ask):
    return (yield ask)


def answers(model, questions, *, removal=None, features=None, batch_size=None, seed=0):
    """The answers to (input, ask) pairs, all run together; errors are raised."""

    def jobs():
        for number, (raw, ask) in enumerate(questions):
            given = model.prepare(raw, features)
            how = removals.make(model.default_removal(given)) if removal is None else removal
            how = (removals.make(how) if isinstance(how, str) else how).bind(model)
            yield Job(number, given, how, one(ask), seed)

    found = {done.key: done for done in Engine(model, batch_size=batch_size).run(jobs())}
    for done in found.values():
        if done.error is not None:
            raise done.error
    return [found[number].result for number in range(len(found))]


def answer(model, raw, ask, **options):
    return answers(model, [(raw, ask)], **options)[0]


def some_masks(d):
    """Everything, nothing, half of it, all but one."""
    masks = np.ones((4, d), dtype=bool)
    masks[1] = False
    masks[2] = np.arange(d) % 2 == 0
    masks[3, d // 2] = False
    return masks


def close(found, expected):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found / scale, expected / scale, atol=2e-4)


# -- transformers: attention = softmax × mask, renormalised, in every layer ----------------------


@contextmanager
def weighed(weights):
    """Every softmax over tokens multiplied by their weights and renormalised."""
    plain = torch.nn.functional.softmax

    def softmax(scores, dim=-1, dtype=None):
        del dtype
        attention = plain(scores, dim=dim) * weights
        return attention / attention.sum(dim=-1, keepdim=True)

    torch.nn.functional.softmax = softmax
    try:
        yield
    finally:
        torch.nn.functional.softmax = plain


class Plain:
    """The same transformer in double precision, with weights instead of a mask."""

    def __init__(self, architecture, **changes):
        self.module = tiny.model(architecture, torch.float64, **changes)
        self.module.config._attn_implementation = "eager"
        self.takes_types = architecture in ("bert", "roberta")

    def log_probability(self, tokens, weights, target):
        options = {"token_type_ids": torch.tensor(tokens.types)[None]} if self.takes_types else {}
        with torch.no_grad(), weighed(torch.tensor(weights, dtype=torch.float64)):
            logits = self.module(input_ids=torch.tensor(tokens.ids)[None], **options).logits[0]
        return float(logits.log_softmax(dim=-1)[target])

    def gradients(self, given, mask, target):
        """By central differences, token by token; also beyond 0 and 1, where the formula goes on."""
        tokens = given.tokens
        weights = np.append(mask, True)[tokens.feature].astype(float)
        gradients = np.zeros(given.n_features)
        for place, feature in enumerate(tokens.feature.tolist()):
            if feature >= 0:
                moved = [weights.copy(), weights.copy()]
                moved[0][place] += STEP
                moved[1][place] -= STEP
                up, down = (self.log_probability(tokens, w, target) for w in moved)
                gradients[feature] += (up - down) / (2 * STEP)
        return gradients


@pytest.fixture(scope="module")
def bert():
    return pertinent.wrap(tiny.pair("bert"))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_mask_gradients_of_every_architecture(architecture):
    """At kept and at removed entries."""
    model, plain = pertinent.wrap(tiny.pair(architecture)), Plain(architecture)
    text = tiny.text(9, seed=1)
    given, masks = model.prepare(text), some_masks(9)
    for target in (0, 2):
        found = answer(model, text, MaskGradients(masks, target))
        assert found.gradients.shape == (4, 9)
        for mask, gradients in zip(masks, found.gradients, strict=True):
            close(gradients, plain.gradients(given, mask, target))
    values = answer(model, text, Values(masks))
    np.testing.assert_allclose(found.values, values, atol=1e-5)
    for mask, p in zip(masks, found.values, strict=True):
        weights = np.append(mask, True)[given.tokens.feature].astype(float)
        expected = [np.exp(plain.log_probability(given.tokens, weights, c)) for c in range(3)]
        np.testing.assert_allclose(p, expected, atol=1e-5)


def test_a_feature_sums_over_its_tokens_and_the_query_is_none(bert):
    plain = Plain("bert")
    text = "w1 w2 w3. w4 w5. w6 w7 w8."
    masks = some_masks(3)
    given = bert.prepare(text, "sentences")
    found = answer(bert, text, MaskGradients(masks, 1), features="sentences")
    for mask, gradients in zip(masks, found.gradients, strict=True):
        close(gradients, plain.gradients(given, mask, 1))
    pair = pertinent.Text("w9 w8 w7", "w1 w2 w3 w4", fixed="first")
    given = bert.prepare(pair)
    assert given.n_features == 4
    found = answer(bert, pair, MaskGradients(some_masks(4), 1))
    for mask, gradients in zip(some_masks(4), found.gradients, strict=True):
        close(gradients, plain.gradients(given, mask, 1))


def test_attention_windows_are_never_opened():
    """A mask of numbers replaces the model's own, window and all: right on short texts, refused on long."""
    model, plain = pertinent.wrap(tiny.pair("modernbert", **WINDOW)), Plain("modernbert", **WINDOW)
    text = tiny.text(12)
    found = answer(model, text, MaskGradients(some_masks(12), 0))
    for mask, gradients in zip(some_masks(12), found.gradients, strict=True):
        close(gradients, plain.gradients(model.prepare(text), mask, 0))
    questions = [(tiny.text(n), MaskGradients(some_masks(n), 0)) for n in (12, 60)]
    with pytest.raises(ModelError, match="at least for texts of this length; choose parallel-local-search"):
        answers(model, questions)
    alone = pertinent.explain(model, [tiny.text(12), tiny.text(60)], method="taylor-search", budget=20)
    assert [f.index for f in alone.failures] == [1]


def test_pooling_by_the_mask_is_right_or_refused():
    model = pertinent.wrap(tiny.pair("modernbert", classifier_pooling="mean"))
    with pytest.raises(ModelError, match="attention scores"):
        answer(model, tiny.text(6), MaskGradients(some_masks(6), 0))


@pytest.mark.filterwarnings("ignore:TF32")
def test_half_precision(bert):
    half = pertinent.wrap((tiny.model("bert", torch.float16), tiny.tokenizer(model_max_length=200)))
    with pytest.raises(ModelError, match="float32 or bfloat16"):
        answer(half, tiny.text(6), MaskGradients(some_masks(6), 0))
    brain = pertinent.wrap((tiny.model("bert", torch.bfloat16), tiny.tokenizer(model_max_length=200)))
    ask = MaskGradients(some_masks(12), 0)
    with torch.backends.mkldnn.flags(enabled=False):  # not every machine has its bfloat16 instructions
        found, exact = (answer(m, tiny.text(12), ask).gradients for m in (brain, bert))
    for mine, other in zip(found, exact, strict=True):
        assert np.corrcoef(mine, other)[0, 1] > 0.97


@pytest.mark.filterwarnings("ignore:TF32")
def test_removed_tokens_count_no_more_in_bfloat16(bert):
    """Gradients at removed entries were 9% too large, because the log of their tiny weight was rounded."""
    brain = pertinent.wrap((tiny.model("bert", torch.bfloat16), tiny.tokenizer(model_max_length=200)))
    masks = np.random.default_rng(0).random((4, 40)) < 0.5
    ask = MaskGradients(masks, 0)
    with torch.backends.mkldnn.flags(enabled=False):
        found, exact = (answer(m, tiny.text(40), ask).gradients for m in (brain, bert))
    for part in (masks, ~masks):
        slope = found[part] @ exact[part] / (exact[part] @ exact[part])
        assert slope == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("removal", ["slice-out", "random-token"])
def test_mask_gradients_need_tokens_that_are_hidden_or_filled_in(bert, removal):
    with pytest.raises(SettingError, match=f"or 'zero-vector', but got '{removal}'"):
        answer(bert, "w1 w2 w3", MaskGradients(some_masks(3), 0), removal=removal)


@pytest.mark.parametrize("batch_size", [1, 17, 60, 10_000])
def test_rows_of_several_texts_travel_together(bert, batch_size):
    """Each row keeps its own text, length, target, baseline and points."""
    rng = np.random.default_rng(0)
    questions = []
    for n, target in ((3, 0), (11, 1), (7, 2), (11, 0), (2, 1)):
        text = tiny.text(n, seed=n + target)
        questions.append((text, MaskGradients(rng.random((4, n)) < 0.5, target)))
        shares = rng.random(5)
        lines = [PathGradients(shares, target, times=t) for t in ("difference", "input", "itself")]
        questions += [(text, line) for line in lines]
        questions.append((text, PathGradients(shares, target, "zero-vector")))
        questions.append((text, PathGradients(shares, target, "drawn", draws=np.arange(20, 25))))
    together = answers(bert, questions, batch_size=batch_size)
    for (text, ask), found in zip(questions, together, strict=True):
        alone = answer(bert, text, ask)
        np.testing.assert_allclose(found.values, alone.values, atol=1e-5)
        scale = np.abs(alone.gradients).max()
        np.testing.assert_allclose(found.gradients / scale, alone.gradients / scale, atol=1e-4)


@pytest.mark.parametrize("ask", [MaskGradients(some_masks(4), 1), PathGradients(np.array([0.3, 1.0]), 1)])
def test_the_weights_are_left_as_they_were(ask):
    module, tokenizer = tiny.pair("bert")
    untrained = [p for p in module.parameters() if p.ndim == 1]
    for parameter in untrained:
        parameter.requires_grad_(False)
    before = {name: (p.requires_grad, p.detach().clone()) for name, p in module.named_parameters()}
    model = pertinent.wrap((module, tokenizer))
    answer(model, "w1 w2 w3 w4", ask)
    for name, parameter in module.named_parameters():
        assert parameter.requires_grad == before[name][0]
        assert parameter.grad is None
        assert torch.equal(parameter, before[name][1])
    assert len(untrained) > 0


@pytest.mark.parametrize("layer", [torch.nn.GRU, torch.nn.LSTM, torch.nn.Linear])
def test_recurrent_layers_are_differentiated_without_cudnn(layer):
    """It says that its backward pass can only be called in training mode."""
    before = torch.backends.cudnn.enabled
    with frozen(torch.nn.Sequential(torch.nn.Flatten(), layer(2, 3))):
        assert torch.backends.cudnn.enabled == (before and layer is torch.nn.Linear)
    assert torch.backends.cudnn.enabled == before


def test_the_weights_are_thawed_after_an_error():
    class Fails(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 2)

        def forward(self, x):
            if x.requires_grad:
                raise ValueError("not this way")
            return self.layer(x)

    module = Fails()
    with pytest.raises(ModelError, match="not this way"):
        answer(pertinent.wrap(module, kind="table"), np.ones(3), MaskGradients(some_masks(3), 0))
    assert all(p.requires_grad for p in module.parameters())


# -- modules: mask · x + (1 − mask) · filler -------------------------------------------------------


def network(n, outputs=3, *tail):
    torch.manual_seed(n)
    layers = [torch.nn.Flatten(), torch.nn.Linear(n, 12), torch.nn.Tanh(), torch.nn.Linear(12, outputs)]
    return torch.nn.Sequential(*layers, *tail)


def plain_gradients(module, given, removal, mask, target):
    """Central differences along the mask, value by value summed over the feature, in double precision."""
    module = module.double()
    x = np.asarray(given.pixels if isinstance(given, ImageInput) else given.values, dtype=float)
    filler = np.asarray(removal(given, np.zeros((1, given.n_features), dtype=bool), 0), dtype=float)[0]

    def log_probability(weights):
        if isinstance(given, ImageInput):
            weight = weights[given.labels][None]
        else:
            weight = np.empty(len(x))
            for feature, columns in enumerate(given.columns):
                weight[list(columns)] = weights[feature]
        with torch.no_grad():
            logits = module(torch.tensor((weight * x + (1 - weight) * filler)[None]))
        return float(logits.log_softmax(dim=-1)[0, target])

    gradients = []
    for i in range(given.n_features):
        up, down = mask.astype(float), mask.astype(float)
        up[i] += STEP
        down[i] -= STEP
        gradients.append((log_probability(up) - log_probability(down)) / (2 * STEP))
    module.float()
    return np.array(gradients)


@pytest.mark.parametrize("removal", ["constant", "mean", "blur"])
def test_mask_gradients_of_images(removal):
    module = network(2 * 6 * 6)
    model = pertinent.wrap(module, kind="image")
    image = np.random.default_rng(0).random((2, 6, 6)).astype(np.float32)
    given, how = model.prepare(image, "patches:3"), removals.make(removal).bind(model)
    found = answer(model, image, MaskGradients(some_masks(4), 2), removal=removal, features="patches:3")
    for mask, gradients in zip(some_masks(4), found.gradients, strict=True):
        close(gradients, plain_gradients(module, given, how, mask, 2))
    values = answer(model, image, Values(some_masks(4)), removal=removal, features="patches:3")
    np.testing.assert_allclose(found.values, values, atol=1e-6)


@pytest.mark.parametrize("removal", ["constant", "mean", "median-mode"])
def test_mask_gradients_of_rows_with_a_group(removal):
    module = network(5)
    background = np.random.default_rng(1).normal(size=(9, 5))
    model = pertinent.wrap(
        module, kind="table", background=background, columns=list("abcde"), groups={"bc": ["b", "c"]}
    )
    row = np.array([1.0, 0.0, 1.0, -2.0, 0.5])
    given, how = model.prepare(row), removals.make(removal).bind(model)
    assert given.n_features == 4
    found = answer(model, row, MaskGradients(some_masks(4), 1), removal=removal)
    for mask, gradients in zip(some_masks(4), found.gradients, strict=True):
        close(gradients, plain_gradients(module, given, how, mask, 1))


def test_logits_probabilities_one_column_and_none_give_the_same():
    """A sigmoid's logit s is the two logits 0, s."""

    class Squeezed(torch.nn.Sequential):
        def forward(self, x):
            return super().forward(x)[:, 0]

    class Two(torch.nn.Sequential):
        def forward(self, x):
            s = super().forward(x)
            return torch.cat([torch.zeros_like(s), s], dim=1)

    base = network(4, 1)
    modules = {
        "two": pertinent.wrap(Two(*base), kind="table", output="logit"),
        "softmax": pertinent.wrap(torch.nn.Sequential(Two(*base), torch.nn.Softmax(dim=1)), kind="table"),
        "one": pertinent.wrap(base, kind="table", output="logit"),
        "none": pertinent.wrap(Squeezed(*base), kind="table", output="logit"),
        "sigmoid": pertinent.wrap(
            torch.nn.Sequential(*base, torch.nn.Sigmoid()), kind="table", output="probability"
        ),
    }
    row = np.array([1.0, -1.0, 0.5, 2.0])
    for method in ("gradient-x-input", "taylor-search"):
        for target in (0, 1):
            found = {
                name: pertinent.explain(model, row, method=method, target=target, budget=30)
                for name, model in modules.items()
            }
            for e in found.values():
                np.testing.assert_allclose(e.scores, found["two"].scores, rtol=1e-4)
                np.testing.assert_allclose(e.prediction.values, found["two"].prediction.values, rtol=1e-5)


@pytest.mark.parametrize("removal", ["uniform-noise", "background"])
def test_a_removal_that_draws_has_no_gradient(removal):
    background = np.random.default_rng(1).normal(size=(30, 4))
    model = pertinent.wrap(network(4), kind="table", background=background)
    with pytest.raises(SettingError, match=f"such as 'mean' or 'constant', but '{removal}' draws them"):
        answer(model, np.ones(4), MaskGradients(some_masks(4), 0), removal=removal)


def test_a_background_of_one_row_draws_nothing():
    module, row = network(4), np.arange(4.0)
    model = pertinent.wrap(module, kind="table", background=np.full((1, 4), 0.5))
    removal = FromBackground().bind(model)
    found = answer(model, row, MaskGradients(some_masks(4), 0), removal=removal)
    for mask, gradients in zip(some_masks(4), found.gradients, strict=True):
        close(gradients, plain_gradients(module, model.prepare(row), removal, mask, 0))


def test_rows_of_several_shapes_travel_together():
    class Pooled(torch.nn.Module):
        def forward(self, x):
            return torch.stack([x.mean(dim=1), (x**2).mean(dim=1)], dim=1)

    model = pertinent.wrap(Pooled(), kind="table")
    rows = [np.arange(1.0, n + 1) for n in (3, 5, 3, 4)]
    questions = [(row, PathGradients(np.array([0.2, 0.9]), 1)) for row in rows]
    together = answers(model, questions)
    for (row, ask), found in zip(questions, together, strict=True):
        np.testing.assert_allclose(found.gradients, answer(model, row, ask).gradients, rtol=1e-5)


def test_categories_have_no_gradient():
    model = pertinent.wrap(network(2), kind="table")
    with pytest.raises(InputError, match="Gradients need numeric columns"):
        answer(model, np.array([1.0, "red"], dtype=object), PathGradients(np.ones(1), 0))


def test_functions_have_no_gradient():
    model = pertinent.wrap(lambda rows: [[0.4, 0.6] for _ in rows], kind="table")
    for ask in (PathGradients(np.ones(1), 0), MaskGradients(some_masks(2), 0)):
        with pytest.raises(ModelError, match="only transformers and torch modules have"):
            answer(model, np.ones(2), ask)


def test_an_infinite_gradient_is_a_failure_of_its_own_input():
    class Root(torch.nn.Module):
        def forward(self, x):
            s = x.clamp_min(0).sqrt().sum(dim=1)
            return torch.stack([s, 2 * s], dim=1)

    model = pertinent.wrap(Root(), kind="table")
    es = pertinent.explain(model, np.array([[1.0, 4.0], [1.0, 0.0], [2.0, 3.0]]), method="gradient")
    assert [failure.index for failure in es.failures] == [1]
    assert "gradient contains NaN or infinity" in es.failures[0].reason
    assert np.isfinite([e.scores for e in es]).all()


# -- gradients at points --------------------------------------------------------------------------


@pytest.mark.parametrize("times", ["difference", "input", "nothing", "itself"])
def test_gradients_on_a_line(bert, times):
    """∂p/∂(word embeddings), written out."""
    text, shares, target = "w1 w2 w3 w4 w5", np.array([0.0, 0.25, 0.7, 1.0]), 2
    given = bert.prepare(text)
    embed = bert.model.get_input_embeddings()
    ids = torch.tensor(given.tokens.ids)
    x = embed(ids).detach()
    baseline = embed(torch.where(torch.tensor(given.tokens.feature >= 0), 4, ids)).detach()
    found = answer(bert, text, PathGradients(shares, target, times=times))
    for share, p, gradients in zip(shares, found.values, found.gradients, strict=True):
        point = (baseline + share * (x - baseline)).requires_grad_()
        probability = bert.model(inputs_embeds=point[None]).logits[0].softmax(dim=-1)
        (gradient,) = torch.autograd.grad(probability[target], point)
        factor = {"difference": x - baseline, "input": x, "nothing": 1.0, "itself": gradient}[times]
        expected = (gradient * factor).sum(dim=-1)[1:-1]
        expected = expected.sqrt() if times == "itself" else expected
        np.testing.assert_allclose(p, probability.detach(), atol=1e-5)
        scale = float(gradient.abs().max() * 10)
        np.testing.assert_allclose(gradients / scale, expected / scale, atol=1e-4)


def test_draws_of_neighbouring_seeds_have_nothing_in_common():
    """And within one seed, no draw comes twice."""
    drawn = {}
    model = pertinent.wrap(torch.nn.Linear(2, 2), kind="table")
    for seed in (0, 1):
        ask = PathGradients(np.zeros(30), 0, noise(), draws=np.arange(30))
        drawn[seed] = {tuple(p) for p in answer(model, np.ones(2), ask, seed=seed).values.tolist()}
        assert len(drawn[seed]) == 30
    assert not drawn[0] & drawn[1]


def test_a_draw_depends_on_its_number_alone():
    model = pertinent.wrap(torch.nn.Linear(2, 2), kind="table")
    every = answer(model, np.ones(2), PathGradients(np.zeros(30), 0, noise(4), draws=np.arange(30)))
    some = answer(model, np.ones(2), PathGradients(np.zeros(3), 0, noise(4), draws=np.array([29, 3, 8])))
    np.testing.assert_allclose(some.values, every.values[[29, 3, 8]], rtol=1e-6)


def noise(samples=1):
    return removals.make("uniform-noise", {"low": -1.0, "high": 1.0, "samples": samples})


def test_a_gradient_counts_as_two():
    model = pertinent.wrap(torch.nn.Linear(2, 2), kind="table")

    def algorithm():
        yield Values(np.array([[True, False], [True, False]]))
        yield MaskGradients(np.array([[True, False], [True, True]]), 0)
        yield PathGradients(np.array([0.5, 0.6, 0.7]), 0)

    def run(meter):
        given = model.prepare(np.ones(2))
        job = Job(0, given, removals.make("constant"), meter.watch(algorithm()))
        return next(iter(Engine(model).run([job])))

    meter = Meter(11)
    assert run(meter).error is None
    assert meter.evaluations == 1 + 2 * 2 + 2 * 3
    assert isinstance(run(Meter(10)).error, BudgetError)
