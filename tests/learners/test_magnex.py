"""MAGNEx: its quality by hand, its gradient compared with the exact one, and the training."""

import json
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from torch import nn

import pertinent
from pertinent.errors import FileError, SettingError
from pertinent.learners.methods import magnex
from pertinent.learners.methods.magnex import DECAY, MAGNExLearner, logits_of, sufficiency
from pertinent.learners.networks.joint_networks import SelectionBatch
from pertinent.learners.networks.token_scorers import HiddenStateScorer
from pertinent.models.tokens.hidden_states import HiddenStates
from pertinent.removals.base import TokenRows
from tests import tiny

LEARNER = MAGNExLearner()
LOGITS = torch.tensor([0.7, -0.4, 1.5], dtype=torch.float64)
BASELINES = ("leave-one-out", "moving-average")
SHORT = {"progress": False, "patience": None, "batch_size": 16}
QUICK = {"learning_rate": 5e-3}


pytestmark = pytest.mark.usefixtures("one_thread")


# -- quality ---------------------------------------------------------------------------------------


def test_quality_by_hand():
    """Check four of four features, one sufficient feature, and one insufficient feature."""
    predictions = torch.tensor([[0.2, 0.8]]).expand(4, -1)
    answers = torch.tensor([[0.2, 0.8], [0.22, 0.78], [0.7, 0.3], [0.05, 0.95]])
    kept = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]], dtype=torch.bool)
    real = torch.ones(4, 4, dtype=torch.bool)
    np.testing.assert_allclose(sufficiency(answers, predictions), [1.0, 0.98, 0.5, 1.0], rtol=1e-6)
    found = LEARNER.quality(answers, kept, real, predictions)
    np.testing.assert_allclose(found, [1.0, 0.98 + 0.75, 0.5, 1.5], rtol=1e-6)
    strict = replace(LEARNER, least_sufficiency=0.99)
    np.testing.assert_allclose(
        strict.quality(answers, kept, real, predictions), [1, 0.98, 0.5, 1.5], rtol=1e-6
    )


def test_features_that_there_are_not_count_for_nothing():
    answers, predictions = torch.tensor([[1.0]]), torch.tensor([[1.0]])
    kept = torch.tensor([[True, False, False, False]])
    real = torch.tensor([[True, True, False, False]])
    assert float(LEARNER.quality(answers, kept, real, predictions)) == 1.5


def test_an_overlap_is_its_own_sufficiency():
    overlaps = torch.tensor([[1.0], [0.4], [0.0]])
    np.testing.assert_allclose(sufficiency(overlaps, torch.ones(3, 1)), [1.0, 0.4, 0.0], rtol=1e-6)


def test_what_is_selected_is_above_one_half():
    scores = torch.tensor([[[0.0, -3.0, -2.0, 5.0]]])
    real = torch.tensor([[True, True, True, False]])
    # At first everything is kept: σ(0 + log 9) = 0.9; σ(−3 + log 9) = 0.31; σ(−2 + log 9) = 0.55.
    assert LEARNER.selected(scores, real, torch.ones(1, 1)).tolist() == [[True, False, True, False]]


# -- the gradient ----------------------------------------------------------------------------------


class RecordedGame(SelectionBatch):
    """A batch with the same input in every row; the answer depends on which of three features are kept."""

    values = torch.tensor([0.1, 0.3, 0.35, 0.9, 0.2, 0.97, 0.5, 1.0], dtype=torch.float64)

    def __init__(self, logits, n_rows=1):
        self.logits, self.n_rows = logits, n_rows
        self.real = torch.ones(n_rows, 3, dtype=torch.bool)
        self.predictions = torch.ones(n_rows, 1, dtype=torch.float64)
        self.memory = torch.zeros(2)

    def scores(self, network):
        assert network == "explainer"
        return (self.logits - logits_of(torch.zeros(1), LEARNER.initial_probability)).expand(
            self.n_rows, 1, -1
        )

    def approximate(self, network, kept):
        raise AssertionError

    def ask(self, kept):
        return self.values[(kept * torch.tensor([4, 2, 1])).sum(-1)][..., None]


def gradient(learner, logits, n_rows=1, memory=None):
    """Return the gradient of the quality, as the learner estimates it."""
    own = logits.clone().requires_grad_()
    game = RecordedGame(own, n_rows)
    if memory is not None:
        game.memory.copy_(torch.tensor(memory))
    learner.compute_loss(game).backward()
    return -own.grad


def exact_gradient(logits):
    """Return the gradient of the expected quality, over all eight masks."""
    own = logits.clone().requires_grad_()
    masks = torch.tensor(list(product([False, True], repeat=3)))
    p = own.sigmoid()
    chances = torch.where(masks, p, 1 - p).prod(1)
    game = RecordedGame(own)
    real = torch.ones(8, 3, dtype=torch.bool)
    quality = LEARNER.quality(game.ask(masks), masks, real, torch.ones(8, 1, dtype=torch.float64))
    (chances * quality).sum().backward()
    return own.grad


@pytest.mark.parametrize("baseline", BASELINES)
def test_the_mean_gradient_is_the_exact_one(baseline):
    torch.manual_seed(0)
    learner = MAGNExLearner(baseline=baseline, samples=4)
    several = torch.stack([gradient(learner, LOGITS, 2000, memory=(0.5, 0.5)) for _ in range(20)])
    error = several.std(0) / 20**0.5
    assert (several.mean(0) - exact_gradient(LOGITS)).abs().le(3.5 * error).all()
    assert error.max() < 0.1 * exact_gradient(LOGITS).abs().max()


def test_leave_one_out_is_unbiased_over_all_pairs_of_masks(monkeypatch):
    masks = torch.tensor(list(product([False, True], repeat=3)))
    p = LOGITS.sigmoid()
    chances = torch.where(masks, p, 1 - p).prod(1)
    mean = 0.0
    for i, j in product(range(8), repeat=2):
        drawn = torch.where(masks[[i, j]], 0.0, 1.0)[None]  # below every probability, or above
        monkeypatch.setattr(magnex, "uniform_like", lambda _, drawn=drawn: drawn)
        mean = mean + chances[i] * chances[j] * gradient(MAGNExLearner(samples=2), LOGITS)
    torch.testing.assert_close(mean, exact_gradient(LOGITS), rtol=1e-6, atol=1e-9)


def test_the_moving_average_is_of_earlier_steps():
    learner = MAGNExLearner(baseline="moving-average", samples=1)
    memory = torch.zeros(2)
    found = [float(learner._baseline(torch.tensor([[q]]), memory)) for q in (1.0, 2.0, 5.0)]
    second = (DECAY * 1.0 + 2.0) / (DECAY + 1.0)
    np.testing.assert_allclose(found, [0.0, 1.0, second], rtol=1e-6)


def test_an_input_whose_quality_stays_the_same_teaches_nothing(monkeypatch):
    """Check constant quality, which only has a gradient with the moving average of other inputs."""
    monkeypatch.setattr(RecordedGame, "values", torch.full((8,), 0.4, dtype=torch.float64))
    torch.manual_seed(0)
    found = {
        name: gradient(MAGNExLearner(baseline=name, samples=4), LOGITS, memory=(0.9, 1.0)).abs().max()
        for name in BASELINES
    }
    assert found["leave-one-out"] < 1e-12
    assert found["moving-average"] > 0.01


def test_a_recurrent_module_has_no_hidden_states_that_are_known():
    class Recurrent(torch.nn.Module):
        def __init__(self, tokenizer):
            super().__init__()
            self.words = torch.nn.Embedding(len(tokenizer), 8)
            self.layer, self.head = torch.nn.GRU(8, 8, batch_first=True), torch.nn.Linear(8, 2)
            names = {0: "no", 1: "yes"}
            self.config = SimpleNamespace(
                vocab_size=len(tokenizer), num_labels=2, id2label=names, problem_type=None
            )

        def get_input_embeddings(self):
            return self.words

        def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None):
            words = self.words(input_ids) if inputs_embeds is None else inputs_embeds
            return SimpleNamespace(logits=self.head(self.layer(words)[1][0]))

    tokenizer = tiny.tokenizer()
    model = pertinent.wrap((Recurrent(tokenizer).eval(), tokenizer), compaction=False)
    texts = [tiny.text(4, seed=i) for i in range(12)]
    fit = pertinent.fit(model, texts, "magnex", removal="zero-vector", epochs=1, **SHORT)
    assert len(pertinent.explain(model, texts[0], fit, removal="zero-vector").scores) == 4


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"samples": 1}, "at least 2 for a leave-one-out"),
        ({"k": 3}, "learns how many"),
        ({"initial_probability": 1.0}, "`initial_probability`"),
        ({"baseline": "none"}, "baseline"),
    ],
)
def test_settings_that_cannot_be(settings, match):
    with pytest.raises(SettingError, match=match):
        MAGNExLearner(**settings)


# -- what is learned -------------------------------------------------------------------------------

COLUMNS = [f"x{i}" for i in range(8)]


def switch(rows):
    """Return the class of column 1 where column 0 is positive, else of column 2; others have no effect."""
    rows = np.asarray(rows, dtype=float)
    logit = 9 * np.abs(rows[:, 0]) * np.where(rows[:, 0] > 0, rows[:, 1], rows[:, 2])
    p = 1 / (1 + np.exp(-logit))
    return np.stack([1 - p, p], axis=1)


def signs(n, seed):
    return np.random.default_rng(seed).choice([-1.0, 1.0], (n, len(COLUMNS)))


@pytest.fixture(scope="module")
def switching():
    return pertinent.wrap(switch, kind="table", output="probability", columns=COLUMNS)


@pytest.fixture(scope="module")
def fitted(switching, tmp_path_factory):
    folder = tmp_path_factory.mktemp("magnex") / "fitted"
    return pertinent.fit(
        switching, signs(320, 0), "magnex", out=folder, removal="constant", epochs=20, **SHORT, **QUICK
    ), folder  # fmt: skip


def test_it_finds_the_features_that_matter(switching, fitted):
    rows = signs(40, 1)
    found = pertinent.explain(switching, rows, fitted[0], removal="constant", progress=False)
    wanted = np.zeros(rows.shape, dtype=bool)
    wanted[:, 0] = True
    wanted[np.arange(40), np.where(rows[:, 0] > 0, 1, 2)] = True
    selected = np.array([e.scores for e in found]) > 0.5
    assert (selected == wanted).all(axis=1).mean() > 0.9
    assert [e.details["selected"] for e in found] == selected.sum(axis=1).tolist()
    for e, own in zip(found, selected, strict=True):
        np.testing.assert_array_equal(e.mask(e.details["selected"] / len(own)), own)
        assert e.scores.min() >= 0 and e.scores.max() <= 1
    measured = pertinent.evaluate(
        switching, found, ["sufficiency-of-selected", "share-removed"], progress=False
    )
    means = {m: np.mean([r.value for r in measured.rows if r.metric == m]) for m in measured.better}
    assert means["sufficiency-of-selected"] > 0.95
    assert means["share-removed"] == pytest.approx(1 - selected.mean())
    assert fitted[0].network.card["dev_quality"] > 1.65  # of at most 1.75


def test_the_card_tells_how_it_went(fitted):
    card = json.loads((fitted[1] / "pertinent.json").read_text())
    history = [each["eval_quality"] for each in card["history"] if "eval_quality" in each]
    assert history[0] == pytest.approx(1.0, abs=0.8) and max(history) == card["dev_quality"]


def test_it_is_saved_and_read(switching, fitted):
    rows = signs(5, 2)
    read = pertinent.load_explainer(fitted[1])
    own = [
        pertinent.explain(switching, rows, each, removal="constant", progress=False)
        for each in (fitted[0], read)
    ]
    for a, b in zip(*own, strict=True):
        np.testing.assert_array_equal(a.scores, b.scores)


def test_a_damaged_card(fitted, tmp_path):
    read = pertinent.load_explainer(fitted[1])
    read.save(tmp_path)
    card = json.loads((tmp_path / "pertinent.json").read_text())
    card["settings"] = {"initial_probability": 1.0}
    (tmp_path / "pertinent.json").write_text(json.dumps(card))
    with pytest.raises(FileError, match="initial_probability"):
        pertinent.load_explainer(tmp_path)


def test_another_start_is_part_of_the_scores(switching):
    fit = pertinent.fit(
        switching, signs(20, 0), "magnex", removal="constant", epochs=1, initial_probability=0.7, **SHORT
    )
    scorer = fit.network.scorer
    with torch.no_grad():
        for parameter in scorer.parameters():
            parameter.zero_()
    found = pertinent.explain(switching, signs(1, 1)[0], fit, removal="constant")
    np.testing.assert_allclose(found.scores, 0.7)


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_killed_fit_goes_on_and_gives_the_same_network(switching, tmp_path, baseline):
    class Killed(BaseException):
        pass

    def kill(progress):
        if progress.total == 10 * 36 and progress.done >= 200:
            raise Killed

    rows = signs(40, 3)
    options = {"removal": "constant", "epochs": 10, "baseline": baseline, **SHORT, "batch_size": 8}
    with pytest.raises(Killed):
        pertinent.fit(switching, rows, "magnex", out=tmp_path / "f", **options | {"progress": kill})
    assert list((tmp_path / "f" / "checkpoints").glob("checkpoint-*"))
    resumed = pertinent.fit(switching, rows, "magnex", out=tmp_path / "f", **options)
    whole = pertinent.fit(switching, rows, "magnex", **options)
    own = [
        pertinent.explain(switching, rows[:5], each, removal="constant", progress=False)
        for each in (resumed, whole)
    ]
    for a, b in zip(*own, strict=True):
        np.testing.assert_array_equal(a.scores, b.scores)


# -- kinds of models -------------------------------------------------------------------------------


def test_a_forest_has_no_gradients(tmp_path):
    rows = signs(200, 0)
    forest = RandomForestClassifier(5, random_state=0).fit(rows, switch(rows)[:, 1] > 0.5)
    model = pertinent.wrap(forest, background=rows[:10])
    fit = pertinent.fit(model, rows[:40], "magnex", removal="constant", epochs=2, **SHORT)
    found = pertinent.explain(model, rows[:3], fit, removal="constant", progress=False)
    assert all("selected" in e.details for e in found)


def test_pixels_of_a_convolutional_network():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
    model = pertinent.wrap(module.eval(), kind="image", output="logit", classes=["a", "b", "c"])
    images = list(np.random.default_rng(0).random((24, 1, 8, 8), dtype=np.float32))
    options = {"removal": "constant", "features": "pixels"}
    fit = pertinent.fit(model, images, "magnex", epochs=2, **options, **SHORT)
    found = pertinent.explain(model, images[0], fit, **options)
    assert len(found.scores) == 64


def test_texts_of_any_function():
    def rate(texts):
        p = np.array([0.02 + 0.96 * ("good" in text) for text in texts])
        return np.stack([1 - p, p], axis=1)

    model = pertinent.wrap(rate, kind="text", output="probability")
    rng = np.random.default_rng(0)
    words = ["good", "bad", "film", "plot", "the", "a"]
    texts = [" ".join([*rng.permutation(words[1:])[:4], "good"]) for _ in range(64)]
    fit = pertinent.fit(model, [*texts, "good"], "magnex", epochs=40, learning_rate=5e-3, **SHORT)
    found = pertinent.explain(model, [texts[0], "good"], fit, progress=False)
    selected = [[f for f, s in zip(e.features, e.scores, strict=True) if s > 0.5] for e in found]
    assert selected == [["good"], ["good"]]


@pytest.fixture(scope="module")
def transformer():
    return pertinent.wrap(tiny.pair("bert"))


def test_hidden_states_of_a_transformer(transformer, tmp_path):
    """Check that the model is unchanged, the network small, and scores independent of the batch."""
    texts = [tiny.text(n, seed=n) for n in (1, 4, 6, 9, 12, 12, 12, 12, 3, 5, 7, 8)]
    before = {name: tensor.clone() for name, tensor in transformer.model.state_dict().items()}
    fit = pertinent.fit(
        transformer, texts, "magnex", epochs=2, out=tmp_path / "f", **SHORT | {"batch_size": 4}
    )
    scorer = fit.network.scorer
    assert isinstance(scorer, HiddenStateScorer)
    assert {name.split(".")[0] for name in scorer.state_dict()} == {"deviation", "head", "recurrent"}
    assert all(torch.equal(before[name], now) for name, now in transformer.model.state_dict().items())
    assert not any(parameter.grad is not None for parameter in transformer.model.parameters())
    together = pertinent.explain(transformer, texts, fit, progress=False)
    read = pertinent.load_explainer(tmp_path / "f")
    for text, e in zip(texts, together, strict=True):
        alone = pertinent.explain(transformer, text, read)
        np.testing.assert_allclose(e.scores, alone.scores, atol=1e-5)
        assert len(e.scores) == len(text.split())


def test_hidden_states_are_those_of_the_model(transformer):
    """Compare with the last hidden states of one text, the GRU and the linear layer."""
    texts = [tiny.text(n, seed=n) for n in (5, 9)]
    torch.manual_seed(0)
    inputs = [transformer.prepare(text) for text in texts]
    scorer = HiddenStateScorer.from_model(transformer, inputs, 1).eval()
    with torch.no_grad():
        found = scorer.scores(transformer, scorer.read(transformer, inputs), 9)
        for row, text in enumerate(texts):
            tokens = transformer.tokenizer(text, return_tensors="pt")
            hidden = transformer.model.bert(**tokens).last_hidden_state
            own = scorer.head(scorer.recurrent(hidden)[0])[0, 1:-1, 0]
            n = len(own)
            torch.testing.assert_close(found[row, 0, :n], own, atol=1e-5, rtol=1e-4)
            assert not found[row, 0, n:].any()


@pytest.mark.parametrize("most", [2**28, 4 * 32 * 20, 0])
def test_the_encoder_runs_once_for_prediction_and_hidden_states(transformer, monkeypatch, most):
    """Check that hidden states cost no additional rows if they are kept."""
    from pertinent.models import transformer as own

    monkeypatch.setattr(own, "HiddenStates", lambda: HiddenStates(most))
    texts = [tiny.text(n, seed=n) for n in (5, 9, 3, 12, 7)]
    fit = pertinent.fit(transformer, texts, "magnex", epochs=1, **SHORT)
    alone = fit.network.scorer.scores(
        transformer, fit.network.scorer.read(transformer, [transformer.prepare(text) for text in texts]), 12
    )
    rows = []
    hook = transformer.model.bert.register_forward_hook(
        lambda module, args, output: rows.append(len(output.last_hidden_state))
    )
    try:
        pertinent.explain(transformer, texts, "random", progress=False)
        n_predicted = sum(rows)
        rows.clear()
        found = pertinent.explain(transformer, texts, fit, progress=False)
    finally:
        hook.remove()
    assert (sum(rows) == n_predicted) == (most == 2**28)
    assert transformer.hidden_states is None
    initial = np.log(0.9 / 0.1)
    for e, logits in zip(found, alone[:, 0].detach().numpy(), strict=True):
        expected = 1 / (1 + np.exp(-(logits[: len(e.scores)] + initial)))
        np.testing.assert_allclose(e.scores, expected, atol=1e-5)


def test_a_network_that_does_not_tell_its_hidden_states_runs_twice():
    from transformers import BertConfig, BertForSequenceClassification

    class Plain(BertForSequenceClassification):
        def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, inputs_embeds=None):
            return super().forward(input_ids, attention_mask, token_type_ids, inputs_embeds=inputs_embeds)

    torch.manual_seed(0)
    model = pertinent.wrap((Plain(BertConfig(**tiny.BASE)).eval(), tiny.tokenizer()))
    texts = [tiny.text(n, seed=n) for n in (5, 9, 3)]
    fit = pertinent.fit(model, texts, "magnex", epochs=1, **SHORT)
    assert isinstance(fit.network.scorer, HiddenStateScorer)
    assert [len(e.scores) for e in pertinent.explain(model, texts, fit, progress=False)] == [5, 9, 3]


def test_hidden_states_are_kept_until_they_are_taken(transformer):
    texts = [transformer.prepare(tiny.text(n, seed=n)).tokens for n in (3, 5)]
    parts = [
        TokenRows(texts[0], np.array([[True] * 5, [True] * 4 + [False]])[::-1]),
        TokenRows(texts[1], np.ones((1, 7), dtype=bool)),
    ]
    hidden = torch.arange(3 * 7 * 2.0).reshape(3, 7, 2)
    states = HiddenStates(capacity=(5 + 7) * 2 * 4)
    states.keep(parts, hidden)
    assert torch.equal(states.take([texts[1]]), hidden[2:])
    assert states.take(texts) is None  # the second is gone
    states.keep(parts[1:], hidden[2:])
    both = states.take(texts)
    assert torch.equal(both[0, :5], hidden[1, :5]) and not both[0, 5:].any()
    assert torch.equal(both[1], hidden[2])
    few = HiddenStates(capacity=7 * 2 * 4)
    few.keep(parts, hidden)
    assert few.take([texts[1]]) is None and few.take([texts[0]]) is not None


def test_a_reader_is_explained_by_its_overlap(tmp_path):
    from transformers import BertConfig, BertForQuestionAnswering

    torch.manual_seed(1)
    reader = BertForQuestionAnswering(BertConfig(**tiny.BASE | {"num_labels": 2})).eval()
    model = pertinent.wrap((reader, tiny.tokenizer()))
    pairs = [{"question": tiny.text(3, seed=i), "context": tiny.text(8, seed=50 + i)} for i in range(12)]
    fit = pertinent.fit(model, pairs, "magnex", epochs=1, **SHORT)
    found = pertinent.explain(model, pairs[0], fit)
    assert len(found.scores) == 8


def test_a_regressor_has_no_sufficiency():
    model = pertinent.wrap(lambda rows: np.asarray(rows)[:, :1], kind="table", output="value")
    with pytest.raises(SettingError, match="fastshap for a regressor"):
        pertinent.fit(model, signs(10, 0), "magnex", removal="constant", epochs=1, **SHORT)


def test_a_model_that_always_answers_the_same_needs_nothing():
    def same(rows):
        return np.tile([0.1, 0.9], (len(rows), 1))

    model = pertinent.wrap(same, kind="table", output="probability", columns=COLUMNS)
    fit = pertinent.fit(
        model, signs(64, 0), "magnex", removal="constant", epochs=40, learning_rate=1e-2, **SHORT
    )
    found = pertinent.explain(model, signs(3, 1), fit, removal="constant", progress=False)
    assert all(e.details["selected"] == 0 for e in found)
    assert fit.network.card["dev_quality"] == 2.0


def test_a_fit_that_removes_nothing_says_so(caplog):
    """Check a model that needs every feature."""

    def needs_all(rows):
        p = np.where((np.asarray(rows) != 0).all(axis=1), 0.95, 0.05)
        return np.column_stack([1 - p, p])

    model = pertinent.wrap(needs_all, kind="table", background=np.zeros((1, 4)))
    rows = list(1 + np.random.default_rng(0).random((20, 4)))
    fit = pertinent.fit(model, rows, "magnex", removal="mean", epochs=2, **SHORT)
    assert fit.network.card["dev_share_removed"] == 0
    said = "The explainer keeps every feature"
    assert fit.network.card["doubt"].startswith(said)
    assert any(record.message.startswith(said) for record in caplog.records)
    assert LEARNER.doubt({"dev_share_removed": 0.1}) is None


def test_independent_labels():
    def labels(rows):
        rows = np.asarray(rows, dtype=float)
        return 1 / (1 + np.exp(-4 * rows[:, :3]))

    model = pertinent.wrap(labels, kind="table", output="label-probability", columns=COLUMNS)
    fit = pertinent.fit(model, signs(20, 0), "magnex", removal="constant", epochs=1, **SHORT)
    assert len(pertinent.explain(model, signs(1, 1)[0], fit, removal="constant").scores) == len(COLUMNS)
