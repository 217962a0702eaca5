"""Fitting methods that learn to select: any model and input, files, and refusals."""

import json
import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pertinent
from pertinent.cli import main
from pertinent.errors import InputError, SettingError
from pertinent.explainers.base import Task
from pertinent.finetuning.training_settings import TrainerSettings
from pertinent.learners.training_context import TrainingContext
from tests import tiny

METHODS = ("aim", "invase", "l2x", "vibi")
QUICK = {"epochs": 2, "batch_size": 8, "progress": False}
FILLERS = ("the", "a", "film", "plot", "was", "and", "it", "one")
TOPICS = {"sport": ("goal", "match"), "money": ("bank", "stock"), "space": ("moon", "orbit")}


@pytest.fixture(autouse=True, scope="module")
def _quick():
    """Use one thread, and small networks with few hash buckets."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pertinent.learners.networks.word_scorer.BUCKETS", 512)
        yield
    torch.set_num_threads(before)


def sentences(n, seed, length=8):
    """Return texts of fillers, with one word for one topic and sometimes one for another."""
    rng, names = np.random.default_rng(seed), list(TOPICS)
    found = []
    for _ in range(n):
        words = list(rng.choice(FILLERS, length))
        for place, topic in zip(rng.permutation(length)[:3], rng.choice(3, 3), strict=True):
            words[place] = rng.choice(TOPICS[names[topic]])
        found.append(" ".join(words))
    return found


def topic(texts):
    """Return three classes by the number of words of each topic."""
    counts = [[sum(w in own for w in t.split()) for own in TOPICS.values()] for t in texts]
    odds = np.exp(2.0 * np.array(counts) + [0.1, 0.0, 0.0])
    return odds / odds.sum(1, keepdims=True)


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(topic, kind="text", classes=list(TOPICS))


@pytest.fixture(scope="module")
def fits(model):
    options = {"epochs": 8, "batch_size": 32, "patience": None, "progress": False}
    settings = {"k": 3, "learning_rate": 3e-3}
    return {name: pertinent.fit(model, sentences(300, 0), name, **options | settings) for name in METHODS}


def same(model, inputs, *fits, **options):
    """Return whether explainers give identical scores."""
    own = [pertinent.explain(model, inputs, each, progress=False, **options) for each in fits]
    return all(np.array_equal(a.scores, b.scores) for a, b in zip(*own, strict=True))


# -- what is learned ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["aim", "l2x", "vibi"])
def test_words_of_topics_are_selected(model, fits, method):
    found = pertinent.explain(model, sentences(40, 1), fits[method], progress=False)
    every = {word for words in TOPICS.values() for word in words}
    best = [e.features[int(e.scores.argmax())] for e in found]
    assert np.mean([word in every for word in best]) > 0.9  # by chance three of eight
    if method == "aim":  # what speaks for the class, not only what tells about it
        own = [TOPICS[e.classes[e.target]] for e in found]
        assert np.mean([word in words for word, words in zip(best, own, strict=True)]) > 0.9
    assert fits[method].network.card["dev_faithfulness"] >= 0.9


def test_aim_scores_every_class(model, fits):
    found = pertinent.explain(model, sentences(40, 1), fits["aim"], progress=False)
    e = found[0]
    assert e.class_scores.shape == (3, len(e.features))
    np.testing.assert_allclose(e.class_scores.sum(axis=0), 0.0, atol=1e-9)
    right, wrong = [], []
    for e in found:
        for name, words in TOPICS.items():
            scores = e.for_class(name).scores
            marked = np.array([word in words for word in e.features])
            if marked.any():
                right.append(scores[marked].mean())
                wrong.append(scores[~marked].mean())
    assert np.mean(np.greater(right, wrong)) > 0.9
    other = pertinent.explain(model, sentences(1, 1), fits["aim"], target="money")
    np.testing.assert_allclose(other[0].scores, found[0].for_class("money").scores, atol=1e-6)


def test_aim_without_context_scores_a_word_by_itself(model, fits):
    texts = ["the goal was a bank", "moon goal it"]
    narrow = pertinent.fit(model, sentences(20, 0), "aim", context=False, **QUICK)
    one, two = pertinent.explain(model, texts, narrow, progress=False)
    np.testing.assert_allclose(one.class_scores[:, 1], two.class_scores[:, 1], atol=1e-6)
    one, two = pertinent.explain(model, texts, fits["aim"], progress=False)
    assert not np.allclose(one.class_scores[:, 1], two.class_scores[:, 1])


PAPER = {
    "trained": "both",
    "learns_from": "decisions",
    "explore": 0.0,
    "context": False,
    "intercept": False,
    "centring": False,
}


def test_aim_in_the_form_of_the_paper(model, tmp_path):
    texts = ["the goal was a bank", "moon goal it"]
    options = QUICK | PAPER | {"layers": "paper"}
    fit = pertinent.fit(model, sentences(40, 0), "aim", out=tmp_path / "f", **options)
    assert 0 < fit.network.card["dev_kept"] < 1
    assert any("eval_kept" in log for log in fit.network.card["history"])
    one, two = pertinent.explain(model, texts, fit, progress=False)
    np.testing.assert_allclose(one.class_scores[:, 1], two.class_scores[:, 1], atol=1e-6)
    assert np.abs(one.class_scores.sum(axis=0)).max() > 1e-3  # as they are
    assert same(model, texts, fit, pertinent.load_explainer(tmp_path / "f"))
    wide = pertinent.fit(model, sentences(20, 0), "aim", layers="paper", **QUICK)
    (alone,) = pertinent.explain(model, texts[1:], wide, progress=False)
    _, beside = pertinent.explain(model, texts, wide, progress=False)
    np.testing.assert_allclose(alone.class_scores, beside.class_scores, atol=1e-6)


@pytest.mark.parametrize("logit", [-8.0, 8.0])
def test_a_dead_or_open_selector_is_said_and_on_the_card(model, monkeypatch, caplog, logit):
    from pertinent.learners.networks.joint_networks import SelectionBatch

    own = SelectionBatch.scores

    def scores(batch, network):
        found = own(batch, network)
        return found + logit if network == "selector" else found

    monkeypatch.setattr(SelectionBatch, "scores", scores)
    fit = pertinent.fit(model, sentences(20, 0), "aim", trained="both", explore=0.0, **QUICK)
    said = "The selector does not select: it keeps"
    assert fit.network.card["doubt"].startswith(said)
    assert any(record.message.startswith(said) for record in caplog.records)


def test_a_living_selector_is_no_doubt(model):
    fit = pertinent.fit(model, sentences(20, 0), "aim", trained="both", explore=0.0, **QUICK)
    assert "doubt" not in fit.network.card


def test_the_layers_of_the_paper_read_texts():
    digits = pertinent.load("digits")
    images = list(np.random.default_rng(0).uniform(0, 16, (20, 8, 8)))
    with pytest.raises(SettingError, match="`layers` must be 'own' for inputs that are not texts"):
        pertinent.fit(digits, images, "aim", features="patches:4", layers="paper", **QUICK)


def test_aim_finds_the_words_of_a_linear_model_in_texts_it_has_not_seen(monkeypatch):
    """Check recovered words; with decisions only 0.73 of them were recovered, at the same faithfulness."""
    monkeypatch.setattr("pertinent.learners.networks.word_scorer.BUCKETS", 2**14)
    rng = np.random.default_rng(0)
    weights = {f"w{i}": weight for i, weight in enumerate(rng.normal(0, 0.6, 600))}
    chances = 1 / np.arange(3, 603)

    def texts(n):
        drawn = (rng.choice(list(weights), 30, replace=False, p=chances / chances.sum()) for _ in range(n))
        return [" ".join(words) for words in drawn]

    def answer(batch):
        positive = 1 / (1 + np.exp([-sum(map(weights.get, text.split())) for text in batch]))
        return np.stack([1 - positive, positive], axis=1)

    linear = pertinent.wrap(answer, kind="text")
    fitted = pertinent.fit(linear, texts(400), "aim", epochs=10, progress=False)
    shares = []
    for e in pertinent.explain(linear, texts(60), fitted, progress=False):
        truth = np.array([weights[word] for word in e.features]) * (1 if e.target else -1)
        shares.append((truth[np.argsort(-e.scores)[:10]] >= np.sort(truth)[-10]).mean())
    assert np.mean(shares) >= 0.8


def test_a_word_that_aim_never_saw_has_no_weight_of_its_own(model):
    fitted = pertinent.fit(model, sentences(40, 0), "aim", context=False, **QUICK)
    e = pertinent.explain(model, "goal was zyzzyva", fitted, progress=False)
    assert np.abs(e.class_scores[:, 2]).max() == 0
    assert np.abs(e.class_scores[:, 0]).max() > 0


def test_invase_gives_probabilities(fits):
    task = Task(3, 1, np.array([0.2, 0.5, 0.3]), 10, (0.5,), np.random.default_rng(0))
    steps = fits["invase"].explain(task)
    next(steps)
    with pytest.raises(StopIteration) as done:
        steps.send(np.array([[0.0, -1000.0, math.log(3)]]))
    np.testing.assert_allclose(done.value.value.scores, [0.5, 0.0, 0.75])
    assert done.value.value.details == {"selected": 1}


@pytest.mark.parametrize(
    ("settings", "classes"),
    [
        ({"trained": "both"}, "all"),
        ({"trained": "both", "infer": "selector"}, "predicted"),
        ({"trained": "selector"}, "predicted"),
    ],
)
def test_the_ablations_of_aim(model, tmp_path, settings, classes):
    texts = sentences(40, 0)
    fit = pertinent.fit(model, texts, "aim", out=tmp_path / "f", **QUICK | settings)
    card = json.loads((tmp_path / "f" / "pertinent.json").read_text())
    assert card["classes"] == classes
    assert card["settings"].items() >= settings.items()
    e = pertinent.explain(model, texts[0], fit)
    assert (e.class_scores is None) == (classes == "predicted")
    assert same(model, texts[:5], fit, pertinent.load_explainer(tmp_path / "f"))
    if classes == "predicted":
        other = next(name for name in TOPICS if name != e.classes[e.target])
        with pytest.raises(SettingError, match="must be the predicted class of this explainer"):
            pertinent.explain(model, texts[0], fit, target=other)


# -- what is kept ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_saved_and_loaded_it_is_the_same_and_so_with_the_same_seed(model, fits, method, tmp_path):
    fits[method].save(tmp_path / "f")
    assert same(model, sentences(5, 2), fits[method], pertinent.load_explainer(tmp_path / "f"))
    one, two, other = (
        pertinent.fit(model, sentences(20, 0), method, seed=seed, **QUICK) for seed in (4, 4, 5)
    )
    assert one.network.fingerprint == two.network.fingerprint
    assert not same(model, sentences(5, 2), one, other)


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_fit_goes_on_and_gives_the_same_network(model, method, tmp_path):
    class Killed(BaseException):
        pass

    def kill(progress):
        if progress.total == 6 * 18 and progress.done >= 60:
            raise Killed

    texts, options = sentences(20, 3), {"epochs": 6, "batch_size": 6, "patience": None}
    with pytest.raises(Killed):
        pertinent.fit(model, texts, method, out=tmp_path / "f", progress=kill, **options)
    assert list((tmp_path / "f" / "checkpoints").glob("checkpoint-*"))
    resumed = pertinent.fit(model, texts, method, out=tmp_path / "f", progress=False, **options)
    whole = pertinent.fit(model, texts, method, progress=False, **options)
    assert same(model, texts[:5], resumed, whole)
    assert resumed.network.card["history"] == whole.network.card["history"]


def test_the_card_says_how_faithful_it_is(model, fits):
    card = fits["l2x"].network.card
    measured = [log["eval_faithfulness"] for log in card["history"] if "eval_faithfulness" in log]
    assert card["dev_faithfulness"] == max(measured)
    assert card["settings"] == {"k": 3, "temperature": 0.5, "subsets": "random"}
    assert card["dev_examples"] == 30


def test_the_card_has_what_random_features_do(model, fits):
    card = fits["aim"].network.card
    guesses = pertinent.explain(model, sentences(400, 7), "random", progress=False)
    judged = pertinent.evaluate(model, guesses, "faithfulness:k=3", progress=False)
    assert card["dev_random"] < card["dev_faithfulness"]
    assert card["dev_random"] == pytest.approx(judged.mean("random", "faithfulness"), abs=0.3)  # of 30 texts


def test_a_model_that_always_answers_the_same_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "constant.py").write_text("def answer(texts):\n    return [[0.9, 0.1]] * len(texts)\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "texts.csv").write_text("text\n" + "\n".join(sentences(30, 0)) + "\n")
    arguments = ["--file", "texts.csv", "--model", "constant:answer", "--epochs", "1"]
    assert main(["fit", "--method", "l2x", "--out", "same", *arguments]) == 0
    assert "faithfulness 1.000, random 1.000" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["l2x", "vibi"])
def test_scores_of_sampled_features_are_their_chances(model, fits, method):
    found = pertinent.explain(model, sentences(5, 3), fits[method], progress=False)
    for e in found:
        assert e.scores.min() >= 0
        assert e.scores.sum() == pytest.approx(1.0)
    assert "matters for" in found[0].to_html()
    assert "opposes" not in found[0].to_html()


@pytest.mark.parametrize(
    ("settings", "told", "untold"),
    [
        ({}, "opposes", "matters for"),
        ({"trained": "both"}, "opposes", "matters for"),
        ({"trained": "both", "infer": "selector"}, "matters for", "opposes"),
        ({"trained": "selector"}, "matters for", "opposes"),
    ],
)
def test_chances_of_a_selector_speak_against_nothing(model, settings, told, untold):
    fit = pertinent.fit(model, sentences(20, 0), "aim", **settings, **QUICK)
    e = pertinent.explain(model, sentences(1, 3)[0], fit, progress=False)
    assert (e.scores.min() > 0) == (told == "matters for")
    assert told in e.to_html()
    assert untold not in e.to_html()


def test_a_fitted_explainer_remembers_its_features():
    digits = pertinent.load("digits")
    images = list(np.random.default_rng(0).uniform(0, 16, (20, 8, 8)))
    fit = pertinent.fit(digits, images, "l2x", features="patches:4", **QUICK)
    assert len(pertinent.explain(digits, images[0], fit).scores) == 4
    assert len(pertinent.explain(digits, images[0], fit, features="patches:2").scores) == 16
    both = pertinent.compare(digits, images[:2], [fit, "random"], progress=False)
    assert {len(e.scores) for e in both.explanations} == {4}
    other = pertinent.fit(digits, images, "vibi", features="patches:2", **QUICK)
    with pytest.raises(SettingError, match=r"different features \(patches:2, patches:4\)"):
        pertinent.compare(digits, images[:2], [fit, other], progress=False)
    again = pertinent.compare(digits, images[:2], [fit, other], features="patches:2", progress=False)
    assert {len(e.scores) for e in again.explanations} == {16}


def test_words_that_were_never_seen_count_for_nothing_by_themselves(model, fits):
    one, two = pertinent.explain(
        model, ["the goal zorg was", "the goal blip was"], fits["aim"], progress=False
    )
    np.testing.assert_allclose(one.class_scores, two.class_scores, atol=1e-6)


def test_of_equally_faithful_networks_the_surest_is_kept():
    def always_sure(texts):
        p = np.array([0.6 + 0.3 * ("goal" in t.split()) for t in texts])
        return np.column_stack([p, 1 - p])

    own = pertinent.wrap(always_sure, kind="text")
    plain = [text.replace("goal", "match") for text in sentences(120, 0)]
    texts = [f"{text} goal" if i % 2 else text for i, text in enumerate(plain)]
    options = {"epochs": 10, "batch_size": 16, "k": 1, "learning_rate": 3e-3, "progress": False}
    fit = pertinent.fit(own, texts, "l2x", patience=None, temperature=0.2, **options)
    assert {log.get("eval_faithfulness", 1.0) for log in fit.network.card["history"]} == {1.0}
    found = pertinent.explain(own, texts[1:40:2], fit, progress=False)
    assert np.mean([e.features[int(e.scores.argmax())] == "goal" for e in found]) > 0.7


# -- any input and any model -------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_difficult_texts_and_models(method):
    def lopsided(texts):
        p = np.array([0.9 if "moon" in t else 0.05 for t in texts])
        return np.column_stack([1 - p, p])

    def constant(texts):
        return np.tile([0.2, 0.5, 0.3], (len(texts), 1))

    rare = ["moon it", *sentences(29, 0)[:29]]
    rare = [text if i == 0 else text.replace("moon", "orbit") for i, text in enumerate(rare)]
    single = ["moon", "goal", "a", "bank", "one", "stock"]
    for function, texts in ((lopsided, rare), (constant, sentences(20, 0)), (topic, single)):
        own = pertinent.wrap(function, kind="text")
        fit = pertinent.fit(own, texts, method, **QUICK)
        found = pertinent.explain(own, texts, fit, progress=False)
        assert not found.failures
        assert all(np.isfinite(e.scores).all() for e in found)
        if function is constant or texts is single:
            assert fit.network.card["dev_faithfulness"] == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_a_transformer_and_texts_longer_than_it_reads(method, tmp_path):
    wrapped = pertinent.wrap((tiny.model("bert"), tiny.tokenizer(model_max_length=12)))
    texts = [tiny.text(n, seed=n) for n in (1, 3, 30, 5, 40, 8, 2, 11)]
    fit = pertinent.fit(wrapped, texts, method, out=tmp_path / "f", **QUICK)
    found = pertinent.explain(wrapped, texts, fit, progress=False)
    assert not found.failures
    assert [len(e.scores) for e in found] == [min(10, len(t.split())) for t in texts]
    assert same(wrapped, texts, fit, pertinent.load_explainer(tmp_path / "f"))
    alone = pertinent.explain(wrapped, texts[1], fit)
    np.testing.assert_allclose(alone.scores, found[1].scores, atol=1e-5)  # whoever is beside it


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("features", ["patches:2", "pixels"])
def test_images(method, features):
    def bright(images):
        p = 1 / (1 + np.exp(-20 * (images[:, 0, :4, :4].mean((1, 2)) - 0.5)))
        return np.column_stack([1 - p, p])

    own = pertinent.wrap(bright, kind="image")
    pictures = np.random.default_rng(0).random((16, 1, 8, 8)).astype(np.float32)
    fit = pertinent.fit(own, pictures, method, features=features, **QUICK)
    found = pertinent.explain(own, pictures[:4], fit, features=features, progress=False)
    assert not found.failures
    assert {len(e.scores) for e in found} == {64 if features == "pixels" else 16}


@pytest.mark.parametrize("method", METHODS)
def test_tables_with_categories_missing_values_and_a_background(method):
    rng = np.random.default_rng(0)
    rows = [
        {"age": int(a), "colour": str(c), "debt": None if d < -1 else float(d)}
        for a, c, d in zip(
            rng.integers(20, 60, 30), rng.choice(["red", "blue"], 30), rng.normal(size=30), strict=True
        )
    ]

    def rich(rows):
        p = np.array([0.9 if c == "red" and a > 40 else 0.2 for a, c, _ in rows])
        return np.column_stack([1 - p, p])

    background = [list(row.values()) for row in rows[:5]]
    own = pertinent.wrap(rich, kind="table", columns=["age", "colour", "debt"], background=background)
    fit = pertinent.fit(own, rows, method, **QUICK)
    assert not pertinent.explain(own, rows[:6], fit, progress=False).failures


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_only_classes_can_be_selected_for(method):
    for output, noun in (("value", "plain values"), ("label-probability", "labels")):
        own = pertinent.wrap(lambda texts: np.full((len(texts), 2), 0.5), kind="text", output=output)
        with pytest.raises(
            SettingError, match=f"{method} explains classes, but the model answers with {noun}"
        ):
            pertinent.fit(own, sentences(4, 0), method, **QUICK)


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("l2x", {"classes": "all"}, "`classes` must be 'predicted' for l2x"),
        ("aim", {"classes": "predicted"}, "`classes` must be 'all' for aim"),
        ("vibi", {"scale": "logit"}, "`scale` must be natural for vibi"),
        ("invase", {"labels": [0, 1]}, "`labels` must be None"),
        ("aim", {"teacher": "lime"}, "`teacher` must be None"),
        ("l2x", {"temperature": 0.0}, "`temperature` must be above 0"),
        ("vibi", {"beta": -1.0}, "`beta` must be at least 0"),
        ("invase", {"penalty": -1.0}, "`penalty` must be at least 0"),
        ("l2x", {"k": 0}, "`k` must be at least 1"),
        ("aim", {"infer": "approximator"}, "Unknown infer 'approximator'"),
        ("l2x", {"beta": 1.0}, "Unknown setting of l2x 'beta'"),
        ("aim", {"alhpa": 1.0}, "Unknown setting of aim 'alhpa'. Did you mean 'alpha'"),
    ],
)
def test_wrong_settings(model, method, options, said):
    with pytest.raises(SettingError, match=said):
        pertinent.fit(model, sentences(2, 0), method, **QUICK | options)


# -- on the command line -----------------------------------------------------------------------


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tiny.model("bert").save_pretrained("model")
    tiny.tokenizer(model_max_length=200).save_pretrained("model")
    (tmp_path / "data.csv").write_text("text\n" + "\n".join(tiny.text(5, seed=i) for i in range(24)) + "\n")
    arguments = ["--file", "data.csv", "--model", "./model", "--epochs", "2", "--set", "beta=0.01"]
    assert main(["fit", "--method", "aim", "--out", "aim", *arguments]) == 0
    out = capsys.readouterr().out
    share = json.loads((tmp_path / "aim" / "pertinent.json").read_text())["dev_faithfulness"]
    assert "Fitted: aim, on 22 inputs" in out
    assert f"On 2 held-out inputs: faithfulness {share:.3f}" in out
    assert main(["explain", "w1 w2 w3", "--model", "./model", "--method", "aim/", "--json", "-"]) == 0
    (explained,) = json.loads(capsys.readouterr().out)["explanations"]
    assert (explained["method"], len(explained["scores"])) == ("aim", 3)


def test_a_fit_leaves_random_states_as_they_were(model):
    states = [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]
    pertinent.fit(model, sentences(20, 0), "l2x", epochs=1, progress=False)
    assert states == [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]


def test_few_explanations_by_the_teacher_are_measured_as_often_as_many():
    training = TrainerSettings(
        epochs=10,
        batch_size=10,
        learning_rate=1e-3,
        seed=0,
        precision="float32",
        patience=3,
        checkpoint_steps=None,
        options={},
    )
    fit = SimpleNamespace(training=training, measurements=18, validation_fraction=0.1, inputs=range(1000))
    context = SimpleNamespace(fit=fit)
    for n, every in ((900, 50), (90, 5), (1, 1)):
        settings = TrainingContext._settings_for(context, n)
        assert (settings.checkpoint_steps, settings.options["logging_steps"]) == (every, every)
    fit.measurements = None
    assert TrainingContext._settings_for(context, 900) is training


def test_an_empty_text_is_left_out_of_a_fit(model, caplog):
    texts = [*sentences(20, 0), "", *sentences(5, 1)]
    fitted = pertinent.fit(model, texts, "aim", **QUICK)
    assert "Input 20 is skipped: The text is empty" in caplog.text
    assert fitted.network.card["examples"] + fitted.network.card["dev_examples"] == 25
    with pytest.raises(InputError, match=r"at least 2 usable inputs, but got 1\. Input 1: The text is empty"):
        pertinent.fit(model, ["goal", "", " "], "aim", **QUICK)


def test_the_card_compares_a_fit_with_leave_one_out(fits, model):
    card = fits["aim"].network.card
    assert -1 <= card["dev_comprehensiveness"] <= 1
    found = pertinent.explain(
        model, sentences(40, 0), "leave-one-out", metrics=["comprehensiveness"], progress=False
    )
    each = [np.mean(list(e.measures["comprehensiveness"].values())) for e in found]
    assert min(each) <= card["dev_leave_one_out"] <= max(each)
