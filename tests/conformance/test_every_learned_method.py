"""Every registered method that is fitted first keeps the same promises, on texts and on table rows."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent.errors import ModelError, SettingError
from pertinent.learners import learned

WORDS = ("good", "fine", "bad", "poor", "the", "film", "was")
RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(WORDS, RNG.integers(2, 6))) for _ in range(16)]
ROWS = RNG.normal(size=(24, 3)).round(2).tolist()
SMALL = {"trees": 4, "leaf": 2}
"""Settings of methods that are not trained in epochs."""


def sigmoid(points):
    p = 1 / (1 + np.exp(-np.array(points, dtype=float)))
    return np.column_stack([1 - p, p])


def liked(texts):
    return sigmoid([2.0 * (text.count("good") - text.count("bad")) for text in texts])


def rated(rows):
    return sigmoid([row[0] - 2.0 * row[1] * row[2] for row in np.asarray(rows, dtype=float)])


MODELS = {
    "text": (pertinent.wrap(liked, kind="text", classes=["no", "yes"]), TEXTS),
    "table": (pertinent.wrap(rated, kind="table", classes=["no", "yes"]), ROWS),
}
CASES = [
    (method, kind)
    for method, cls in learned.all().items()
    for kind in MODELS
    if kind in (cls.learner.spec.modalities or MODELS)
]
every_case = pytest.mark.parametrize(("method", "kind"), CASES)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pertinent.learners.networks.word_scorer.BUCKETS", 64)
        yield
    torch.set_num_threads(before)


def fit(method, kind, **options):
    model, inputs = MODELS[kind]
    trained = learned.get(method).learner().schedule(model, [model.prepare(inputs[0])]) is not None
    small = {"epochs": 1, "batch_size": 8} if trained else SMALL
    return pertinent.fit(model, inputs, method, progress=False, **small, **options)


@pytest.fixture(scope="module")
def fitted():
    return {case: fit(*case, seed=3) for case in CASES}


def scores(explainer, kind, n=6, **options):
    """The scores of some inputs: of all classes where the explainer has them."""
    model, inputs = MODELS[kind]
    found = pertinent.explain(model, inputs[:n], explainer, progress=False, **options)
    assert not found.failures
    return [e.scores if e.class_scores is None else e.class_scores for e in found]


def assert_same(one, other):
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@every_case
def test_an_explanation_is_complete(fitted, method, kind):
    model, inputs = MODELS[kind]
    explainer = fitted[method, kind]
    for e in pertinent.explain(model, inputs[:6], explainer, progress=False):
        assert (e.method, len(e.scores)) == (method, len(e.features))
        assert np.isfinite(e.scores).all()
        assert e.evaluations <= explainer.evaluations(len(e.features))
        if explainer.traits.meaning == "magnitude":
            assert e.scores.min() >= 0


@every_case
def test_the_same_seed_gives_the_same_explainer(fitted, method, kind):
    again = fit(method, kind, seed=3)
    assert again.digest == fitted[method, kind].digest
    assert_same(scores(again, kind), scores(fitted[method, kind], kind))


@every_case
def test_neither_seed_nor_batch_size_nor_company_changes_an_explanation(fitted, method, kind):
    explainer = fitted[method, kind]
    together = scores(explainer, kind)
    assert_same(scores(explainer, kind, seed=5), together)
    for other in (scores(explainer, kind, batch_size=1), scores(explainer, kind, n=2)):
        for mine, theirs in zip(other, together, strict=False):
            np.testing.assert_allclose(mine, theirs, atol=1e-6)


@every_case
def test_saved_and_loaded_it_is_the_same(fitted, method, kind, tmp_path):
    explainer = fitted[method, kind]
    explainer.save(tmp_path / "f")
    loaded = pertinent.load_explainer(tmp_path / "f", digest=explainer.digest)
    assert type(loaded) is learned.get(method)
    assert loaded.folder == explainer.folder == tmp_path / "f"
    assert_same(scores(loaded, kind), scores(explainer, kind))


@every_case
def test_another_model_is_refused(fitted, method, kind):
    model, inputs = MODELS[kind]
    other = pertinent.wrap(lambda raw: np.full((len(raw), 2), 0.5), kind=kind, classes=model.classes)
    with pytest.raises(ModelError, match="fitted to another model"):
        pertinent.explain(other, inputs[0], fitted[method, kind])


@pytest.mark.parametrize("method", learned.all())
def test_it_has_to_be_fitted_first(method):
    (entry,) = [entry for entry in pertinent.list_methods() if entry.name == method]
    assert entry.fitted_first and entry.summary and entry.paper
    with pytest.raises(SettingError, match=f"'{method}' has to learn first"):
        pertinent.explain(MODELS["text"][0], TEXTS[0], method)


@pytest.mark.parametrize("method", learned.all())
def test_a_misspelt_setting_is_refused(method):
    with pytest.raises(SettingError, match=f"Unknown setting of {method} 'sample_size'"):
        fit(method, "table", sample_size=3)
