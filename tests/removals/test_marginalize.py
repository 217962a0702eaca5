"""Marginalize: what is drawn is what the masked language model says, and what is averaged is the answer."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, RobertaConfig, RobertaForMaskedLM

import pertinent
from pertinent.diagnostics.check_removal import random_masks
from pertinent.errors import InputError, ModelError, SettingError
from pertinent.models.tokens import masked_lm as fillers
from pertinent.removals import Marginalize
from tests import tiny, tiny_lm

PAIR = {"text": "w1 w2 w3 w4", "text_pair": "w5 w6"}


def language_model(**changes):
    torch.manual_seed(1)
    made = BertForMaskedLM(BertConfig(**tiny.BASE | changes))
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim > 1:
                parameter.mul_(5)
    return made.eval()


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(tiny.pair("bert"))


@pytest.fixture(scope="module")
def mlm():
    return language_model()


@pytest.fixture(scope="module")
def removal(mlm):
    return Marginalize((mlm, tiny.tokenizer()))


def chances(mlm, ids, types, removed):
    """What the masked language model says of each removed place, special tokens left out."""
    masked = torch.tensor(np.where(removed, 4, ids))[None]
    with torch.no_grad():
        logits = mlm(masked, token_type_ids=torch.tensor(types)[None]).logits[0].double().numpy()
    logits[:, :5] = -np.inf
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (p / p.sum(axis=1, keepdims=True))[removed]


def test_only_removed_tokens_change(model, removal):
    given = model.prepare({"query": "w1 w2", "document": "w3 w4 w5 w6"})
    masks = np.random.default_rng(0).random((20, 4)) < 0.5
    masks[0] = True
    rows = removal(given, masks, 0)
    ids = rows.ids.reshape(20, 10, -1)
    kept = np.concatenate([masks, np.ones((20, 1), dtype=bool)], axis=1)[:, given.tokens.feature]
    assert rows.attend.all()
    for row, keep in zip(ids, kept, strict=True):
        assert (row[:, keep] == given.tokens.ids[keep]).all()
        assert (row[:, ~keep] >= 5).all()  # neither masked nor special
    assert (ids[masks.sum(axis=1) < 4] != given.tokens.ids).any()


@pytest.mark.parametrize("raw", ["w1 w2 w3 w4 w5", PAIR])
def test_draws_follow_the_language_model(model, mlm, raw):
    many = 20_000
    removal = Marginalize((mlm, tiny.tokenizer()), samples=many)
    given = model.prepare(raw)
    masks = np.ones((2, given.n_features), dtype=bool)
    masks[0, 2] = masks[1, 1] = masks[1, 3] = False
    ids = removal(given, masks, 0).ids.reshape(2, many, -1)
    for mask, drawn in zip(masks, ids, strict=True):
        removed = np.isin(given.tokens.feature, np.flatnonzero(~mask))
        for place, p in zip(
            np.flatnonzero(removed), chances(mlm, given.tokens.ids, given.tokens.types, removed), strict=True
        ):
            counts = np.bincount(drawn[:, place], minlength=len(p))
            likely = p * many > 5
            expected = np.append(p[likely], p[~likely].sum()) * many
            observed = np.append(counts[likely], counts[~likely].sum())
            excess = ((observed - expected) ** 2 / np.maximum(expected, 1)).sum()
            assert likely.sum() > 3
            assert excess < likely.sum() + 4 * np.sqrt(2 * likely.sum())
            assert counts[:5].sum() == 0
    first, second = ids[1][:, 2], ids[1][:, 4]
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(many)  # each place independently


def test_the_answer_is_a_plain_average(model, removal):
    given = model.prepare("w1 w2 w3")
    e = pertinent.explain(model, "w1 w2 w3", method="leave-one-out", removal=removal, seed=3)
    without = ~np.eye(3, dtype=bool)
    for feature, mask in enumerate(without):
        total = 0.0
        for ids in removal(given, mask[None], 3).ids:
            with torch.no_grad():
                total += model.model(torch.tensor(ids)[None]).logits.softmax(-1)[0, e.target].item()
        assert e.scores[feature] == pytest.approx(e.prediction.values[e.target] - total / 10, abs=1e-5)


def test_draws_depend_on_seed_input_and_mask_only(model, removal, monkeypatch):
    given, other = model.prepare("w1 w2 w3 w4 w5"), model.prepare("w1 w2 w3 w4 w6")
    masks = np.random.default_rng(0).random((12, 5)) < 0.4
    ids = removal(given, masks, 0).ids.reshape(12, 10, -1)
    order = np.random.default_rng(1).permutation(12)
    np.testing.assert_array_equal(removal(given, masks[order], 0).ids.reshape(ids.shape), ids[order])
    for i in range(12):
        np.testing.assert_array_equal(removal(given, masks[i : i + 1], 0).ids, ids[i])
    monkeypatch.setitem(fillers._MAX_LOGITS, "cpu", 7 * 98 * 4)  # four rows at once
    np.testing.assert_array_equal(removal(given, masks, 0).ids.reshape(ids.shape), ids)
    assert (removal(given, masks, 1).ids.reshape(ids.shape) != ids).any()
    assert (removal(other, masks, 0).ids.reshape(ids.shape)[..., :5] != ids[..., :5]).any()


def test_fewer_samples_are_the_first_of_more(model, mlm):
    given = model.prepare("w1 w2 w3")
    masks = np.array([[False, True, False]])
    three, nine = (Marginalize((mlm, tiny.tokenizer()), samples=n)(given, masks, 0).ids for n in (3, 9))
    np.testing.assert_array_equal(three, nine[:3])


def test_the_language_model_reads_each_mask_once(model, mlm):
    read = []
    handle = mlm.register_forward_pre_hook(lambda _, args, kwargs: read.append(len(kwargs["input_ids"])),
                                           with_kwargs=True)  # fmt: skip
    removal = Marginalize((mlm, tiny.tokenizer()), samples=7)
    removal(model.prepare("w1 w2 w3"), np.zeros((5, 3), dtype=bool), 0)
    handle.remove()
    assert read == [5]


def test_explanations_do_not_depend_on_batch_size_or_company(model, removal):
    texts = [tiny.text(n, seed=n) for n in (4, 6, 5)]
    options = {"method": "kernel-shap", "budget": 16, "removal": removal, "seed": 5}
    alone = [pertinent.explain(model, text, **options) for text in texts]
    for size in (1, 5000):
        together = pertinent.explain(model, texts[::-1], batch_size=size, **options)
        for a, b in zip(alone, together[::-1], strict=True):
            np.testing.assert_allclose(a.scores, b.scores, atol=1e-5)
    assert model.cost(removal, model.prepare(texts[0]), np.ones((2, 4), dtype=bool)).tolist() == [60, 60]


def test_a_pair_must_be_given_again(model, removal, tmp_path):
    es = pertinent.explain(model, ["w1 w2 w3", "w4 w5"], removal=removal, method="leave-one-out")
    assert es[0].request.removal_settings == {"filler": "its own"}
    es.save(tmp_path / "e.parquet")
    again = pertinent.read(tmp_path / "e.parquet")
    with pytest.raises(SettingError, match="custom filler of the removal 'marginalize'"):
        pertinent.evaluate(model, again)
    assert len(pertinent.evaluate(model, again, removal=removal).rows) == 16


def test_a_folder_is_remembered(model, mlm, tmp_path):
    mlm.save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    removal = Marginalize(tmp_path, samples=4)
    e = pertinent.explain(model, "w1 w2 w3", removal=removal, method="leave-one-out")
    assert e.request.removal_settings == {"filler": str(tmp_path), "samples": 4}
    pair = Marginalize((mlm, tiny.tokenizer()), samples=4)
    assert removal.bind(model).fingerprint == pair.bind(model).fingerprint
    given = pertinent.explain(model, "w1 w2 w3", removal=pair, method="leave-one-out")
    np.testing.assert_allclose(e.scores, given.scores, atol=1e-6)
    e.save(tmp_path / "e.parquet")
    again = pertinent.read(tmp_path / "e.parquet")
    with pytest.raises(SettingError, match="is not opened"):
        pertinent.evaluate(model, again)
    assert pertinent.evaluate(model, again, removal=removal).rows
    assert removal.bind(model).filler is Marginalize(str(tmp_path)).bind(model).filler  # loaded once


def test_names_are_short(mlm):
    assert len(repr(Marginalize((mlm, tiny.tokenizer())))) < 100


def test_fingerprints_tell_fillers_apart(model, mlm):
    """By their weights: a copy is the same, and one number is enough to be another."""
    copy, moved = language_model(), language_model()
    with torch.no_grad():
        moved.cls.predictions.bias[7] += 1e-3
    one, same, other = (Marginalize((m, tiny.tokenizer())) for m in (mlm, copy, moved))
    assert one.fingerprint == same.fingerprint == one.bind(model).fingerprint
    assert one.fingerprint != other.fingerprint
    assert one.fingerprint != Marginalize((mlm, tiny.tokenizer()), samples=3).fingerprint


def test_two_fillers_in_one_run_share_no_answers(model):
    """Each fills in one word only; the same text again and again, so that answers are there to be shared."""
    removals = []
    for samples, word in ((10, "w8"), (9, "w9")):
        sure = language_model()
        with torch.no_grad():
            sure.cls.predictions.bias[tiny.VOCABULARY[word]] += 1e4
        removals.append(Marginalize((sure, tiny.tokenizer()), samples=samples))
    check = pertinent.check_removal(
        model, ["w1 w2 w3"] * 12, removals=removals, draws=1, shares=0.5, batch_size=20
    )
    (mask,) = random_masks(model.prepare("w1 w2 w3", "tokens"), 0.5, 1, 0)
    for name, word in zip(check.removals, ("w8", "w9"), strict=True):
        text = " ".join(own if keep else word for own, keep in zip(("w1", "w2", "w3"), mask, strict=True))
        with torch.no_grad():
            ids = model.tokenizer(text, return_tensors="pt")["input_ids"]
            expected = model.model(ids).logits.softmax(-1).max().item()
        found = [row.confidence for row in check.rows if row.removal == name and row.share]
        assert found == pytest.approx([expected] * 12, abs=1e-5)


def test_other_architectures(model):
    torch.manual_seed(0)
    config = RobertaConfig(**tiny.BASE | {"type_vocab_size": 1})
    removal = Marginalize((RobertaForMaskedLM(config), tiny.tokenizer()))
    explained = pertinent.wrap(tiny.pair("roberta"))
    assert len(pertinent.explain(explained, "w1 w2 w3", removal=removal, budget=8).scores) == 3


def test_a_vocabulary_with_room_to_spare(model):
    wide = language_model(vocab_size=len(tiny.VOCABULARY) + 30)
    ids = Marginalize((wide, tiny.tokenizer()), samples=500)(
        model.prepare("w1 w2"), np.zeros((1, 2), bool), 0
    ).ids
    assert ids.max() < len(tiny.VOCABULARY)


def test_what_does_not_fit(model, mlm, tmp_path):
    def explain(filler, text="w1 w2 w3", explained=model):
        return pertinent.explain(explained, text, removal=Marginalize(filler), method="leave-one-out")

    with pytest.raises(SettingError, match="needs a masked language model"):
        pertinent.explain(model, "w1 w2", removal="marginalize")
    with pytest.raises(SettingError, match="reads strings"):
        explain((mlm, tiny.tokenizer()), explained=lambda texts: [[1, 0]] * len(texts))
    with pytest.raises(SettingError, match="`samples` must be at least 1"):
        Marginalize(samples=0)
    with pytest.raises(SettingError, match="`filler` must be a pair"):
        Marginalize((mlm, 3))
    with pytest.raises(SettingError, match="`filler` must be a pair or a folder"):
        Marginalize((mlm,))
    with pytest.raises(SettingError, match="or a folder, but got BertForMaskedLM"):
        explain(mlm)
    wider = tiny.tokenizer()
    wider.add_tokens(["more"])
    with pytest.raises(SettingError, match="has 99 tokens instead of 98"):
        explain((mlm, wider))
    long = pertinent.wrap((tiny.model("bert", max_position_embeddings=400), tiny.tokenizer()))
    with pytest.raises(InputError, match="at most 256 tokens, but the text has 262"):
        explain((mlm, tiny.tokenizer()), tiny.text(260), long)
    unmasked = tiny.tokenizer()
    unmasked.mask_token = None
    with pytest.raises(SettingError, match="must have a mask token"):
        Marginalize((mlm, unmasked))
    with pytest.raises(pertinent.PertinentError, match=r"no config\.json"):
        explain(str(tmp_path))
    model.model.save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="is not a masked language model"):
        explain(tmp_path)


def test_a_language_model_that_breaks(model):
    broken = language_model()
    with torch.no_grad():
        broken.cls.predictions.bias.fill_(float("nan"))
    with pytest.raises(ModelError, match="NaN"):
        pertinent.explain(model, "w1 w2", removal=Marginalize((broken, tiny.tokenizer())))


def test_prompts_are_filled_in_without_a_look_at_the_answer():
    seen = []
    tokenizer = tiny_lm.tokenizer(mask_token="<user>")
    config = BertConfig(
        vocab_size=400, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    torch.manual_seed(0)
    masked = BertForMaskedLM(config).eval()
    masked.register_forward_pre_hook(
        lambda _, __, words: seen.append(words["input_ids"].numpy()), with_kwargs=True
    )
    model = pertinent.wrap((tiny_lm.model("llama"), tokenizer))
    removal = Marginalize(filler=(masked, tokenizer), samples=3)
    prompt = pertinent.Prompt("Ann keeps the key. Bob lost it.", answer=" Bob", rather_than=" Ann keeps")
    e = pertinent.explain(model, prompt, "leave-one-out", features="sentences", removal=removal)
    n_prompt = len(tokenizer(prompt.text)["input_ids"])
    assert {ids.shape[1] for ids in seen} == {n_prompt}
    assert np.isfinite(e.scores).all()
    input = model.prepare(prompt, "sentences")
    rows = removal.bind(model)(input, np.array([[False, True]]), 0)
    first, rival = rows.ids[:, :n_prompt], rows.ids[:, input.tokens.lengths[0] :][:, :n_prompt]
    np.testing.assert_array_equal(first, rival)  # the same prompt before both answers
    assert len(np.unique(first, axis=0)) > 1
    own = input.tokens.feature[:n_prompt] != 0
    np.testing.assert_array_equal(first[:, own], np.tile(input.tokens.ids[:n_prompt][own], (3, 1)))
