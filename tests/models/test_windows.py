"""Long texts read in windows, against windows made by hand with the tokenizer."""

from __future__ import annotations

import logging
import re

import numpy as np
import pytest
import torch

import pertinent
from pertinent.asks import MaskGradients, PathGradients, Values
from pertinent.errors import InputError, ModelError, SettingError
from pertinent.removals import AttentionMask, Marginalize, SliceOut
from pertinent.removals.base import removals
from tests import tiny
from tests.models.test_compaction import EXACT, some_masks
from tests.models.test_gradients import STEP, answer, answers, close
from tests.models.test_question_answering import reader
from tests.removals.test_marginalize import language_model

LENGTH = 20
OVERLAP = 4  # a quarter of 18, as each window has two special tokens
TEXT = tiny.text(73)


def wrapped(architecture="bert", long_texts="windows", max_length=LENGTH, **options):
    return pertinent.wrap(tiny.pair(architecture), long_texts=long_texts, max_length=max_length, **options)


@pytest.fixture(scope="module")
def model():
    return wrapped()


def windows_by_hand(model, text, overlap=OVERLAP):
    """The tokenizer's own windows, and the word that each token belongs to: here a word is a token."""
    own = {"truncation": True, "max_length": LENGTH, "stride": overlap}
    encoded = model.tokenizer(
        text, **own, padding=True, return_overflowing_tokens=True, return_offsets_mapping=True
    )
    firsts = {place.start(): n for n, place in enumerate(re.finditer(r"\w+", text))}
    words = [
        [-1 if start == end else firsts[start] for start, end in places]
        for places in encoded["offset_mapping"]
    ]
    return torch.tensor(encoded["input_ids"]), torch.tensor(encoded["attention_mask"]), np.array(words)


def by_hand(model, text, masks, overlap=OVERLAP, softmax=torch.softmax):
    """The definition: every window is read in its padded form, and probabilities are averaged."""
    ids, real, words = windows_by_hand(model, text, overlap)
    found = []
    for mask in masks:
        attend = real * torch.tensor(np.append(mask, True)[words])
        with torch.no_grad():
            logits = model.model(input_ids=ids, attention_mask=attend).logits
        found.append(softmax(logits, 1).mean(dim=0).numpy())
    return np.array(found)


# -- the answer ------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", [*EXACT, "mpnet"])
def test_equal_to_windows_made_by_hand(architecture):
    model, masks = wrapped(architecture), some_masks(73)
    found = answer(model, TEXT, Values(masks))
    np.testing.assert_allclose(found, by_hand(model, TEXT, masks), atol=1e-5)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("overlap", [0, 5, 17])
def test_the_overlap_is_a_setting_and_windows_may_begin_at_the_end(overlap, side):
    model = wrapped(long_texts=f"windows:{overlap}")
    model.tokenizer.truncation_side = side
    masks = some_masks(73)
    np.testing.assert_allclose(
        answer(model, TEXT, Values(masks)), by_hand(model, TEXT, masks, overlap), atol=1e-5
    )


@pytest.mark.parametrize("features", ["words", "tokens", "sentences", "passages:10", [(0, 20), (100, 150)]])
@pytest.mark.parametrize("side", ["right", "left"])
def test_every_word_is_seen(features, side):
    model = wrapped()
    model.tokenizer.truncation_side = side
    given = model.prepare(TEXT, features)
    assert given.truncation is None
    assert given.notes == (
        "read in 5 windows of at most 20 tokens: the mean of their probabilities is explained",
    )
    assert set(given.tokens.feature[given.tokens.feature >= 0]) == set(range(given.n_features))
    if features in ("words", "tokens"):
        assert given.features == tuple(TEXT.split())
        # A word is one feature, however many windows it is in.
        words = [given.features[own] for own in given.tokens.feature[given.tokens.feature >= 0]]
        ids = given.tokens.ids[given.tokens.feature >= 0].tolist()
        assert words == model.tokenizer.convert_ids_to_tokens(ids)
        once = given.tokens.feature[~given.tokens.repeated]
        assert sorted(once[once >= 0]) == list(range(73))


def test_a_very_long_text_is_explained_by_passages_of_all_of_it():
    text = tiny.text(1200)
    given = wrapped().prepare(text)
    assert given.granularity == "passages:20"
    assert " ".join(given.features) == text
    assert [note.split(":")[0] for note in given.notes] == [
        "read in 86 windows of at most 20 tokens",
        "long text",
    ]


def test_an_empty_window_is_answered_from_its_special_tokens(model):
    """So the value is the mean of one game for each window, all of which always count."""
    given = model.prepare(TEXT)
    masks = np.zeros((2, 73), dtype=bool)
    masks[1, 0] = True  # in the first of five windows alone
    nothing, one = answer(model, TEXT, Values(masks))
    with torch.no_grad():
        ends = torch.tensor([[2, 3]]), torch.tensor([[0, LENGTH - 1]])
        first = model.model(input_ids=ends[0], position_ids=ends[1]).logits.softmax(1)
        last = torch.tensor([[0, given.tokens.lengths[-1] - 1]])
        shorter = model.model(input_ids=ends[0], position_ids=last).logits.softmax(1)
        word = torch.tensor([[2, given.tokens.ids[1], 3]])
        alone = model.model(input_ids=word, position_ids=torch.tensor([[0, 1, LENGTH - 1]])).logits.softmax(1)
    np.testing.assert_allclose(nothing, (4 * first + shorter)[0] / 5, atol=1e-5)
    np.testing.assert_allclose(one, (alone + 3 * first + shorter)[0] / 5, atol=1e-5)


def test_removed_tokens_are_dropped_inside_each_window(model):
    given, masks = model.prepare(TEXT), np.zeros((3, 73), dtype=bool)
    masks[1, 0], masks[2, 15] = True, True  # word 15 is in the second window, too
    assert model.cost(AttentionMask(), given, masks).tolist() == [10, 11, 12]
    np.testing.assert_array_equal(
        model.submit([SliceOut()(given, masks, 0)]).outputs().shape, (3, 3)
    )  # and joined within it


def test_a_pass_holds_only_some_of_very_many_windows(model, monkeypatch):
    masks = some_masks(73)
    expected = answer(model, TEXT, Values(masks))
    sizes, forward = [], model.forward
    monkeypatch.setattr(model, "largest_batch", 10)
    monkeypatch.setattr(model, "forward", lambda batch: (sizes.append(batch.ids.size), forward(batch))[1])
    np.testing.assert_allclose(answer(model, TEXT, Values(masks)), expected, atol=1e-6)
    assert max(sizes) <= 40


@pytest.mark.parametrize("batch_size", [1, 30, 10_000])
def test_scores_do_not_depend_on_company(model, batch_size):
    texts = [TEXT, tiny.text(5, 1), tiny.text(40, 2), tiny.text(18, 3)]
    asked = [(text, Values(some_masks(len(text.split())))) for text in texts]
    for (text, ask), found in zip(asked, answers(model, asked, batch_size=batch_size), strict=True):
        np.testing.assert_allclose(found, answer(model, text, ask), atol=1e-6)


@pytest.mark.parametrize("scale", ["natural", "raw"])
def test_short_texts_are_read_as_ever(model, scale):
    plain, text = wrapped(long_texts="truncate"), tiny.text(18)
    given = model.prepare(text)
    assert given.fingerprint == plain.prepare(text).fingerprint
    assert given.notes == ()
    ask = Values(some_masks(18), scale)
    expected = answer(plain, text, ask)
    np.testing.assert_array_equal(answer(model, text, ask), expected)
    beside = answers(model, [(TEXT, Values(some_masks(73), scale)), (text, ask)])
    np.testing.assert_allclose(beside[1], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("output", "columns", "mean"),
    [
        ("logit", 3, lambda logits: logits.softmax(1).mean(0)),
        ("logit", 1, lambda logits: torch.cat([1 - logits.sigmoid(), logits.sigmoid()], 1).mean(0)),
        ("label-logit", 3, lambda logits: logits.sigmoid().mean(0)),
        ("value", 2, lambda logits: logits.mean(0)),
    ],
)
def test_the_mean_is_of_what_people_read(output, columns, mean):
    network = tiny.model("bert", num_labels=columns)
    names = {"classes": ["no", "yes"]} if columns == 1 else {}
    pair = network, tiny.tokenizer(model_max_length=LENGTH)
    model = pertinent.wrap(pair, output=output, long_texts="windows", **names)
    ids, real, _ = windows_by_hand(model, TEXT)
    with torch.no_grad():
        expected = mean(network(ids, real).logits)
    texts = [TEXT, tiny.text(4)]
    e, short = pertinent.explain(model, texts, method="leave-one-out")
    np.testing.assert_allclose(e.prediction.values, expected, atol=1e-6)
    assert len(short.prediction.values) == len(e.prediction.values)
    means = "values" if output == "value" else "probabilities"
    assert e.notes[0].endswith(f"the mean of their {means} is explained")


def test_probabilities_of_a_model_that_gives_them():
    class Network(type(tiny.model("bert"))):
        def forward(self, *arguments, **options):
            found = super().forward(*arguments, **options)
            found.logits = found.logits.softmax(dim=1)
            return found

    network = tiny.model("bert")
    network.__class__ = Network
    model = pertinent.wrap(
        (network, tiny.tokenizer(model_max_length=LENGTH)), output="probability", long_texts="windows"
    )
    expected = by_hand(model, TEXT, some_masks(73), softmax=lambda found, _: found)
    np.testing.assert_allclose(answer(model, TEXT, Values(some_masks(73))), expected, atol=1e-5)


# -- pairs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [("w1 w2 w3", TEXT), (TEXT, "w1 w2 w3")])
def test_of_a_pair_the_longer_text_is_cut_and_the_other_is_in_every_window(model, pair):
    only = "only_second" if pair[1] == TEXT else "only_first"
    encoded = model.tokenizer(
        *pair,
        truncation=only,
        max_length=LENGTH,
        stride=3,  # a quarter of 20 − 3 − 3
        padding=True,
        return_overflowing_tokens=True,
        return_tensors="pt",
    )
    del encoded["overflow_to_sample_mapping"]
    with torch.no_grad():
        expected = model.model(**encoded).logits.softmax(1).mean(0)
    e = pertinent.explain(model, pair, method="leave-one-out")
    np.testing.assert_allclose(e.prediction.values, expected, atol=1e-6)
    assert len(e.features) == 76
    tokens = pertinent.explain(model, pair, method="leave-one-out", features="tokens")
    np.testing.assert_allclose(tokens.scores, e.scores, atol=1e-6)


def test_a_fixed_query_is_in_every_window(model):
    given = model.prepare({"query": "w1 w2 w3", "document": TEXT})
    assert given.features == tuple(TEXT.split())
    for _, window in given.tokens.windows:
        assert model.tokenizer.convert_ids_to_tokens(window.ids[:5]) == ["[CLS]", "w1", "w2", "w3", "[SEP]"]
        assert (window.feature[:5] == -1).all()


def test_a_text_that_leaves_no_room_is_an_error(model):
    with pytest.raises(InputError, match="a window holds only 2 tokens"):
        model.prepare({"query": tiny.text(15), "document": TEXT})
    with pytest.raises(InputError, match="overlap by 17: without special tokens and the other text"):
        wrapped(long_texts="windows:17").prepare((TEXT, "w1"))


# -- gradients, removals, learned explainers, attacks ------------------------------------------------


class Plain:
    """The mean of the windows in double precision, at word embeddings weighted by a soft mask."""

    def __init__(self, model, filler=4):
        self.network = tiny.model("bert", torch.float64)
        self.ids, self.real, self.words = windows_by_hand(model, TEXT)
        embed = self.network.get_input_embeddings()
        with torch.no_grad():
            self.text, self.filler = embed(self.ids), embed(torch.full_like(self.ids, filler))

    def probabilities(self, mask):
        weights = torch.tensor(np.append(mask, 1.0)[self.words])[..., None]
        point = weights * self.text + (1 - weights) * self.filler
        return self.network(inputs_embeds=point, attention_mask=self.real).logits.softmax(1).mean(0)

    def log_probability(self, mask, target):
        with torch.no_grad():
            return float(self.probabilities(mask)[target].log())


def test_gradients_along_a_mask(model):
    plain, masks = Plain(model), np.random.default_rng(0).uniform(0.05, 0.95, size=(2, 73))
    found = answer(model, TEXT, MaskGradients(masks, 1), removal="mask-token")
    for mask, values, gradients in zip(masks, found.values, found.gradients, strict=True):
        ends = [
            [plain.log_probability(mask + sign * STEP * own, 1) for sign in (1, -1)] for own in np.eye(73)
        ]
        close(gradients, np.array([(up - down) / (2 * STEP) for up, down in ends]))
        assert values[1] == pytest.approx(float(np.exp(plain.log_probability(mask, 1))), abs=1e-5)


def test_gradients_of_attention(model):
    """The values of soft masks of zeros and ones are those of masks, and gradients predict small changes."""
    masks = some_masks(73)
    found = answer(model, TEXT, MaskGradients(masks.astype(float), 1))
    np.testing.assert_allclose(found.values, by_hand(model, TEXT, masks), atol=1e-5)
    mask = np.full((1, 73), 0.6)
    gradients = answer(model, TEXT, MaskGradients(mask, 1)).gradients[0]
    ends = [answer(model, TEXT, MaskGradients(mask + step, 1)).values[0, 1] for step in (5e-3, -5e-3)]
    assert gradients.sum() == pytest.approx(float(np.log(ends[0] / ends[1]) / 1e-2), rel=2e-2)


def test_gradients_on_a_path_are_those_of_all_windows(model):
    shares, plain = np.array([0.3, 1.0]), Plain(model)
    found = answer(model, TEXT, PathGradients(shares, 2, baseline="mask-token"))
    for share, values, gradients in zip(shares, found.values, found.gradients, strict=True):
        point = plain.filler + share * (plain.text - plain.filler)
        point = torch.where(torch.tensor(plain.words >= 0)[..., None], point, plain.text).requires_grad_()
        p = plain.network(inputs_embeds=point, attention_mask=plain.real).logits.softmax(1).mean(0)[2]
        (slope,) = torch.autograd.grad(p, point)
        products = (slope * (plain.text - plain.filler)).sum(-1).numpy()
        close(gradients, np.array([products[plain.words == word].sum() for word in range(73)]))
        assert values[2] == pytest.approx(p.item(), abs=1e-5)


@pytest.mark.parametrize("method", ["integrated-gradients", "expected-gradients", "smoothgrad"])
def test_gradient_methods_do_not_depend_on_company(model, method):
    texts = [tiny.text(9, 1), TEXT, tiny.text(30, 2)]
    together = pertinent.explain(model, texts, method=method)
    for text, e in zip(texts, together, strict=True):
        alone = pertinent.explain(model, text, method=method)
        np.testing.assert_allclose(e.scores, alone.scores, atol=1e-4 * np.abs(alone.scores).max() + 1e-12)


def test_integrated_gradients_are_complete(model):
    e = pertinent.explain(model, TEXT, method="integrated-gradients", budget=4000)
    ends = answer(model, TEXT, Values(np.array([[True] * 73, [False] * 73])), removal="mask-token")
    assert e.scores.sum() == pytest.approx(ends[0, e.target] - ends[1, e.target], abs=2e-3)


@pytest.mark.parametrize("name", ["mask-token", "pad-token", "zero-vector", "slice-out", "random-token"])
def test_removals_leave_the_whole_as_it_is(model, name):
    removal = removals.make(name).bind(model)
    whole = answer(model, TEXT, Values(np.ones((1, 73), dtype=bool)), removal=removal)
    np.testing.assert_allclose(whole, by_hand(model, TEXT, np.ones((1, 73), dtype=bool)), atol=1e-5)
    assert np.isfinite(answer(model, TEXT, Values(some_masks(73)), removal=removal)).all()


def test_marginalize_fills_in_each_window_by_itself(model):
    removal = Marginalize((language_model(), tiny.tokenizer(model_max_length=LENGTH)), samples=2).bind(model)
    given, masks = model.prepare(TEXT), some_masks(73)
    removal.check(given)
    rows = removal(given, masks, 0)
    kept = np.append(masks, np.ones((len(masks), 1), bool), axis=1)[:, given.tokens.feature].repeat(2, axis=0)
    np.testing.assert_array_equal(rows.ids[kept], np.broadcast_to(given.tokens.ids, kept.shape)[kept])
    assert (rows.ids[~kept] > 4).all()
    # The first window is filled in as the text of its words is, with the same random numbers.
    short = model.prepare(" ".join(TEXT.split()[:18]))
    first = np.zeros((1, 73), dtype=bool)
    first[0, 18:] = True
    removed = np.zeros((1, LENGTH), dtype=bool)
    removed[0, 1:19] = True
    uniform = np.random.default_rng(0).random((18, 2))
    drawn = [removal.filler.draw(own, removed, uniform) for own in (given.tokens.windows[0][1], short.tokens)]
    np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize("method", ["aim", "fastshap", "magnex"])
def test_explainers_are_fitted_to_windows(model, method):
    texts = [tiny.text(n, n) for n in range(30, 42)]
    fitted = pertinent.fit(model, texts, method=method, seed=0, epochs=1, progress=False)
    e = pertinent.explain(model, TEXT, method=fitted)
    assert len(e.scores) == 73


def test_attacks_are_refused(model):
    with pytest.raises(InputError, match="read in windows cannot be attacked"):
        pertinent.attack_radius(model, TEXT, [np.ones(73, dtype=bool)], progress=False)


# -- the setting -----------------------------------------------------------------------------------


def test_the_setting_is_part_of_the_model(model):
    plain = wrapped(long_texts="truncate")
    assert plain.fingerprint == pertinent.wrap(tiny.pair("bert"), max_length=LENGTH).fingerprint
    prints = {m.fingerprint for m in (plain, model, wrapped(), wrapped(long_texts="windows:3"))}
    assert len(prints) == 3


def test_explanations_are_saved_and_measured_again(model, tmp_path):
    es = pertinent.explain(model, [TEXT, tiny.text(6)], method="leave-one-out", out=tmp_path / "run.parquet")
    read = pertinent.read(tmp_path / "run.parquet")
    assert read[0].notes == es[0].notes
    np.testing.assert_array_equal(read[0].scores, es[0].scores)
    both = [pertinent.evaluate(model, own, metrics=["sufficiency"]).to_dataframe() for own in (es, read)]
    assert both[0].equals(both[1])
    other = pertinent.evaluate(wrapped(long_texts="truncate"), read, metrics=["sufficiency"])
    (failure,) = other.failures
    assert failure.index == 0
    assert "has 73 features, but this model finds 18" in failure.reason


def test_truncation_names_the_setting(caplog):
    with caplog.at_level(logging.WARNING):
        e = pertinent.explain(wrapped(long_texts="truncate"), TEXT, method="leave-one-out")
    assert "long_texts='windows' reads the whole text" in caplog.text
    assert e.notes == ("truncated to 20 tokens: 18 of 73 words are seen",)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("window", "windows"),
        ("windows:x", "a number of tokens below 20, but got 'windows:x'"),
        ("windows:20", "a number of tokens below 20"),
        ("truncate:3", "must be 'truncate', 'windows'"),
        (3, "long_texts"),
    ],
)
def test_wrong_settings(setting, message):
    with pytest.raises(SettingError, match=message):
        wrapped(long_texts=setting)


def test_readers_are_refused():
    with pytest.raises(ModelError, match="ReaderHead cannot read long texts in windows"):
        pertinent.wrap((reader("bert"), tiny.tokenizer(model_max_length=200)), long_texts="windows")


def test_embedded_models_read_windows():
    model = pertinent.load("sentiment", long_texts="windows")
    text = "A dull hour. " * 70 + "Then it becomes wonderful, a joy to the end."
    e = pertinent.explain(model, text, method="leave-one-out")
    assert e.features[-1].endswith("end.") or e.features[-1] == "."
    assert e.notes[0].startswith("read in 2 windows of at most 256 tokens")
    with pytest.raises(SettingError, match="does not read long texts"):
        pertinent.load("table", long_texts="windows")


def test_training_on_windows_is_refused(model, tmp_path):
    with pytest.raises(SettingError, match="long_texts"):
        pertinent.train(model, [TEXT] * 2, [0, 1], out=tmp_path)
