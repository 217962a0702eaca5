"""Log-likelihoods of answers equal those of a plain pass over ids put together by hand."""

import logging

import numpy as np
import pytest
import torch
import transformers

import pertinent
from pertinent import Prompt
from pertinent.asks import BatchPart, Values
from pertinent.errors import InputError, ModelError, SettingError
from pertinent.models.tokens.generation import GeneratedAnswer, TransformerWriter
from pertinent.removals.base import removals
from tests import tiny_lm

SOURCES = ["Ann keeps the key.", "Bob keeps the map.", "Cleo keeps the lamp."]
PROMPTS = [
    Prompt(
        "Ann keeps the key. Bob keeps the map. Who keeps the map? Answer:", answer=" Bob lost", fixed="none"
    ),
    Prompt("Who keeps the map?", sources=SOURCES, answer=" Bob", chat=False),
    Prompt("Ann keeps the key. Bob lost his shoes.", answer=" Ann keeps it", rather_than=" Bob"),
    Prompt(messages=[{"role": "user", "content": " Ann keeps the key. "}], answer="Ann"),
    Prompt("Ann keeps the key. Bob keeps the map. Who keeps the map? Answer:", answer=" Bob lost"),
    Prompt("Who keeps the map?", sources=SOURCES, answer="Bob"),
]


def wrapped(architecture, bos=True, padding="right", **changes):
    tokenizer = tiny_lm.tokenizer(bos, padding_side=padding)
    return pertinent.wrap((tiny_lm.model(architecture, **changes), tokenizer))


def by_hand(network, ids, answer):
    """Log p of each token of the answer after these ids: one row, no padding, all logits."""
    with torch.no_grad():
        logs = network(input_ids=torch.tensor([[*ids, *answer]])).logits[0].float().log_softmax(dim=-1)
    places = np.arange(len(ids) - 1, len(ids) + len(answer) - 1)
    return logs[places, answer].numpy()


def ids_of(tokenizer, prompt):
    """The ids of a prompt and of its answers, by the tokenizer alone."""
    text = "\n\n".join([*prompt.sources, prompt.text])
    if prompt.messages or (prompt.sources and prompt.chat is None):
        messages = [dict(m) for m in prompt.messages] or [{"role": "user", "content": text}]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        before = tokenizer(text, add_special_tokens=False)["input_ids"]
    else:
        before = tokenizer(text)["input_ids"]
    answers = [own for own in (prompt.answer, prompt.rather_than) if own is not None]
    return before, [tokenizer(own, add_special_tokens=False)["input_ids"] for own in answers]


def expected(network, before, answers):
    own = by_hand(network, before, answers[0])
    row = [own.sum(), *own]
    return [own.sum() - by_hand(network, before, answers[1]).sum(), *row] if len(answers) > 1 else row


def values(model, inputs, masks, removal, seed=0):
    removal = removals.make(removal).bind(model)
    parts = [
        BatchPart(Values(own), input, removal, np.arange(len(own)), seed)
        for input, own in zip(inputs, masks, strict=True)
    ]
    found = Values.read(model, Values.submit(model, parts).outputs(), parts)
    return [np.array(own) for own in found]


@pytest.mark.parametrize("padding", ["left", "right"])
@pytest.mark.parametrize("bos", [True, False])
@pytest.mark.parametrize("architecture", tiny_lm.ARCHITECTURES)
def test_prompts_that_are_cut_equal_a_plain_pass(architecture, bos, padding):
    model = wrapped(architecture, bos, padding)
    rng = np.random.default_rng(0)
    inputs = [model.prepare(prompt) for prompt in PROMPTS]
    masks = [rng.random((6, own.n_features)) < 0.5 for own in inputs]
    for own in masks:
        own[0], own[1] = True, False
    found = values(model, inputs, masks, "slice-out")
    for prompt, input, own, rows in zip(PROMPTS, inputs, masks, found, strict=True):
        before, answers = ids_of(model.tokenizer, prompt)
        feature = input.tokens.feature[: len(before)]
        np.testing.assert_array_equal(input.tokens.ids[: len(before)], before)
        for mask, row in zip(own, rows, strict=True):
            kept = [i for i, f in zip(before, feature, strict=True) if f < 0 or mask[f]]
            plain = expected(model.model, kept or [model.tokenizer.bos_token_id], answers)
            np.testing.assert_allclose(row, plain, atol=1e-4)


@pytest.mark.parametrize("architecture", tiny_lm.ARCHITECTURES)
def test_hidden_tokens_keep_their_positions(architecture):
    model = wrapped(architecture)
    inputs = [model.prepare(PROMPTS[i]) for i in (0, 1)]
    masks = [np.random.default_rng(1).random((4, own.n_features)) < 0.5 for own in inputs]
    masks[0][0, -3:] = False  # the tokens just before the answer
    found = values(model, inputs, masks, "attention-mask")
    for input, own, rows in zip(inputs, masks, found, strict=True):
        tokens = input.tokens
        for mask, row in zip(own, rows, strict=True):
            kept = np.where(tokens.feature < 0, True, mask[tokens.feature])
            with torch.no_grad():
                logits = model.model(
                    input_ids=torch.tensor(tokens.ids)[None],
                    attention_mask=torch.tensor(kept.astype(int))[None],
                    position_ids=torch.arange(len(kept))[None],
                ).logits[0]
            slots = np.flatnonzero(kept)
            answer = np.flatnonzero(tokens.scored)
            before = [slots[slots < place].max() for place in answer]
            logs = logits.log_softmax(dim=-1)[before, tokens.ids[answer]].numpy()
            np.testing.assert_allclose(row, [logs.sum(), *logs], atol=1e-4)


def test_equally_long_rows_with_gaps_are_not_taken_for_several_texts():
    """Transformers takes gaps between positions for packed texts where there is no mask."""
    model = wrapped("llama")
    input = model.prepare(PROMPTS[0], "tokens")
    masks = np.ones((2, input.n_features), dtype=bool)
    masks[0, 3], masks[1, 5] = False, False
    assert model.compaction.holds(len(input.tokens.ids))
    (together,) = values(model, [input], [masks], "attention-mask")
    model.compaction.allowed = False
    (padded,) = values(model, [input], [masks], "attention-mask")
    np.testing.assert_allclose(together, padded, atol=1e-4)


@pytest.mark.parametrize("removal", ["pad-token", "zero-vector", "random-token"])
def test_other_removals_score_the_answer_too(removal):
    model = wrapped("llama")
    e = pertinent.explain(model, PROMPTS[2], "leave-one-out", removal=removal)
    assert e.classes[:2] == ("contrast", "answer")
    assert len(e.classes) == len(e.input.text.answer_tokens) + 2
    assert e.prediction.values[1] == pytest.approx(e.prediction.values[2:].sum(), abs=1e-5)


def test_logits_are_computed_at_the_answer_alone():
    model = wrapped("llama")
    shapes = []
    hook = model.model.lm_head.register_forward_hook(lambda *own: shapes.append(tuple(own[2].shape)))
    input = model.prepare(PROMPTS[0])
    values(model, [input], [np.ones((3, input.n_features), dtype=bool)], "slice-out")
    hook.remove()
    assert shapes == [(3, 2, 400)]


def test_a_network_that_changes_its_logits_computes_all_of_them(caplog):
    with caplog.at_level(logging.WARNING):
        wrapped("gemma2")
    assert "Logits are computed for all tokens" in caplog.text


def test_columns_are_the_answer_and_its_tokens():
    model = wrapped("gpt2")
    e = pertinent.explain(model, Prompt("Ann keeps the key.", answer=" the key the"), "leave-one-out")
    assert e.classes == ("answer", "the", "key", "the (2)")
    assert e.target_name == "answer"
    np.testing.assert_allclose(e.class_scores[0], e.class_scores[1:].sum(axis=0), atol=1e-4)
    assert e.for_class("key").target == 2
    assert e.details == {"answer": " the key the"}


def test_the_contrast_is_explained_by_default():
    model = wrapped("gpt2")
    contrast = pertinent.explain(model, PROMPTS[2], "leave-one-out")
    assert contrast.target_name == "contrast"
    rival = pertinent.explain(model, Prompt(PROMPTS[2].text, answer=PROMPTS[2].rather_than), "leave-one-out")
    np.testing.assert_allclose(contrast.scores, contrast.class_scores[1] - rival.scores, atol=1e-4)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("architecture", ["llama", "t5"])
def test_a_span_of_the_answer_is_explained_by_default(architecture, normalised):
    tokenizer = tiny_lm.ending_tokenizer() if architecture == "t5" else tiny_lm.tokenizer()
    pair = tiny_lm.model(architecture), tokenizer
    model = pertinent.wrap(pair, length_normalised=normalised)
    spanned = Prompt("Ann keeps the key.", answer=" Bob keeps the map", span="keeps the")
    plain = Prompt("Ann keeps the key.", answer=" Bob keeps the map")
    e, other = pertinent.explain(model, [spanned, plain], "leave-one-out", progress=False)
    assert e.target_name == "span"
    assert e.details["span"] == "keeps the"
    assert e.classes == ("span", *other.classes)
    first, last = e.input.text.span_tokens
    pieces = e.input.text.answer_tokens
    assert "keeps the" in "".join(pieces[first:last]).strip()
    assert "Bob" not in "".join(pieces[first:last])
    own = other.class_scores[1:][first:last]
    np.testing.assert_allclose(e.scores, own.mean(axis=0) if normalised else own.sum(axis=0), atol=1e-5)
    np.testing.assert_allclose(e.class_scores[1:], other.class_scores, atol=1e-5)
    rows = np.full((1, len(e.classes)), np.log(0.8))
    np.testing.assert_allclose(model.as_scale(e.input, rows, "logit"), np.log(4.0))


@pytest.mark.parametrize("architecture", tiny_lm.ARCHITECTURES)
def test_a_text_is_answered_greedily(architecture):
    model = pertinent.wrap((tiny_lm.model(architecture), tiny_lm.tokenizer()), max_new_tokens=5)
    text = "Ann keeps the key."
    e = pertinent.explain(model, text, "leave-one-out")
    before = model.tokenizer(text, return_tensors="pt")
    options = {"do_sample": False, "max_new_tokens": 5, "pad_token_id": 0}
    ids = model.model.generate(before["input_ids"], attention_mask=before["attention_mask"], **options)
    written = ids[0, before["input_ids"].shape[1] :].tolist()
    assert list(e.input.text.answer_ids) == written
    assert e.details["answer"] == model.tokenizer.decode(written)
    assert e.details["generation"] == "greedy, at most 5 tokens, cut off"
    np.testing.assert_allclose(
        e.prediction.values[1:], by_hand(model.model, before["input_ids"][0].tolist(), written), atol=1e-4
    )


def test_what_is_saved_is_explained_again(tmp_path):
    model = pertinent.wrap((tiny_lm.model("llama"), tiny_lm.tokenizer()), max_new_tokens=4)
    found = pertinent.explain(
        model, [*PROMPTS, "Bob keeps the map."], "leave-one-out", out=tmp_path / "e.parquet"
    )
    again = pertinent.read(tmp_path / "e.parquet")
    assert [e.input.text for e in again] == [e.input.text for e in found]
    evaluated = pertinent.evaluate(model, again, metrics=["sufficiency", "comprehensiveness"])
    assert not evaluated.failures


@pytest.mark.parametrize("features", ["sources", "sentences", "words", "tokens"])
def test_sources_can_be_cut_and_questions_cannot(features):
    model = wrapped("gpt2")
    input = model.prepare(PROMPTS[1], features)
    assert {"sources": 3, "sentences": 3, "words": 15}.get(features, input.n_features) == input.n_features
    text = model.tokenizer.decode(input.tokens.ids[input.tokens.feature < 0])
    assert text.endswith("Who keeps the map? Bob")
    assert "Cleo" not in text


def test_messages_can_be_removed_and_the_template_cannot():
    model = wrapped("gpt2")
    messages = [{"role": "user", "content": "user"}, {"role": "user", "content": "Ann keeps the key."}]
    input = model.prepare(Prompt(messages=messages, answer="Ann", fixed="none"), "messages")
    assert input.features == ("user", "Ann keeps the key.")
    fixed = model.tokenizer.decode(input.tokens.ids[input.tokens.feature < 0])
    assert fixed == "<user><user><model>Ann"


def test_own_spans_are_features():
    model = wrapped("gpt2")
    text = "Ann keeps the key. Bob keeps the map."
    e = pertinent.explain(model, Prompt(text, answer=" Bob"), "leave-one-out", features=[(0, 3), (19, 22)])
    assert e.features == ("Ann", "Bob")


def test_a_question_is_fixed_from_coarse_to_fine():
    model = wrapped("gpt2")
    text = "Ann keeps the key. Bob lost it.\n\nCleo came. Dan left.\n\nWho came?"
    e = pertinent.explain(
        model, Prompt(text, answer=" Cleo"), "leave-one-out", features="coarse-to-fine", budget=60
    )
    assert "".join(e.features) == text.removesuffix("Who came?").replace(" ", "").replace("\n", "")
    assert e.details["levels"][0]["parts"] == 2
    assert np.isfinite(e.scores).all()


def test_an_empty_answer_to_a_text_hints_at_the_chat_template(monkeypatch):
    model = wrapped("gpt2")
    monkeypatch.setattr(TransformerWriter, "generate", lambda *_: [GeneratedAnswer("", (), ended=True)])
    with pytest.raises(InputError, match="chat=True"):
        model.prepare("Who won?")
    with pytest.raises(InputError, match=r"pass an answer to explain\.$"):
        model.prepare(Prompt("Who won?", chat=True))


def test_prompts_share_batches_without_a_difference():
    model = wrapped("llama")
    together = pertinent.explain(model, PROMPTS, "shapley", seed=1, budget=200)
    for prompt, e in zip(PROMPTS, together, strict=True):
        alone = pertinent.explain(model, prompt, "shapley", seed=1, batch_size=40, budget=200)
        np.testing.assert_allclose(alone.class_scores, e.class_scores, atol=1e-4)


def test_a_pipeline_is_wrapped():
    network, tokenizer = tiny_lm.model("gpt2"), tiny_lm.tokenizer()
    pipeline = transformers.pipeline("text-generation", model=network, tokenizer=tokenizer)
    e = pertinent.explain(pipeline, PROMPTS[0], "leave-one-out")
    assert e.classes == ("answer", "Bob", "lost")


@pytest.mark.parametrize("method", ["gradient-x-input", "integrated-gradients"])
def test_gradients_over_embeddings(method):
    model = wrapped("llama")
    found = pertinent.explain(model, PROMPTS, method)
    alone = pertinent.explain(model, PROMPTS[2], method)
    np.testing.assert_allclose(found[2].scores, alone.scores, atol=1e-4)
    assert np.abs(alone.scores).max() > 0


def test_integrated_gradients_add_up_to_the_contrast():
    model = wrapped("gpt2")
    e = pertinent.explain(model, PROMPTS[2], "integrated-gradients", points=200)
    input = model.prepare(PROMPTS[2])
    (empty,) = values(model, [input], [np.zeros((1, input.n_features), dtype=bool)], "zero-vector")
    assert e.scores.sum() == pytest.approx(e.prediction.values[0] - empty[0, 0], abs=0.05)


def test_the_logit_of_a_probability_and_of_a_contrast():
    model = wrapped("gpt2")
    input = model.prepare(PROMPTS[2])
    (rows,) = values(model, [input], [np.ones((1, input.n_features), dtype=bool)], "slice-out")
    scaled = model.as_scale(input, rows, "logit")
    p = np.exp(rows[0, 1:])
    np.testing.assert_allclose(scaled[0, 1:], np.log(p / (1 - p)))
    assert scaled[0, 0] == rows[0, 0]


# -- bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Prompt("Who?", answer=" "), "`answer` is empty"),
        (lambda: Prompt("Who?", answer="a", rather_than="a"), "must be another answer"),
        (lambda: Prompt(" "), "text or messages"),
        (lambda: Prompt("Who?", messages=[{"role": "user", "content": "a"}]), "text or messages"),
        (lambda: Prompt("Who?", sources="one"), "list of texts"),
        (lambda: Prompt("Who?", sources=["a"], template="{text}"), "{sources} once"),
        (lambda: Prompt(messages=["hello"]), "A message must be"),
        (lambda: Prompt("Who?", answer=3), "must be text, but got int"),
        (lambda: Prompt("Who?", answer="a b", rather_than="c", span="a"), "`span` and `rather_than` cannot"),
    ],
)
def test_prompts_that_cannot_be(make, said):
    with pytest.raises(InputError, match=said):
        make()


def test_a_span_must_be_in_the_answer():
    with pytest.raises(InputError, match=r"`span` must be a part of the answer ' Bob', got 'Ann'"):
        pertinent.explain(wrapped("llama"), Prompt("Who?", answer=" Bob", span="Ann"), "leave-one-out")


def test_a_prompt_longer_than_the_context_is_not_cut():
    with pytest.raises(
        InputError, match=r"The prompt has .* tokens and the answer 1, but the model reads at most 128"
    ):
        pertinent.explain(wrapped("gpt2"), Prompt("the key " * 100, answer=" Bob"), "leave-one-out")


def test_an_answer_that_cannot_be_spelt_is_refused():
    from tests import tiny

    tokenizer = tiny.tokenizer(model_max_length=100)
    model = pertinent.wrap((tiny_lm.model("gpt2"), tokenizer))
    with pytest.raises(InputError, match="cannot encode 'zebra' in the answer 'w2 zebra'"):
        pertinent.explain(model, Prompt("w1 w2", answer="w2 zebra"), "leave-one-out")


def test_messages_need_a_template():
    tokenizer = tiny_lm.tokenizer()
    tokenizer.chat_template = None
    with pytest.raises(InputError, match="a chat template"):
        pertinent.explain((tiny_lm.model("gpt2"), tokenizer), PROMPTS[3], "leave-one-out")


def test_a_model_without_the_head_is_refused():
    config = transformers.GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=400)
    with pytest.raises(ModelError, match="GPT2Model has no head"):
        pertinent.wrap((transformers.GPT2Model(config), tiny_lm.tokenizer()))


def test_a_model_that_reads_ahead_is_refused():
    config = transformers.BertConfig(
        vocab_size=400, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    with pytest.raises(ModelError, match="BertLMHeadModel attends to later tokens"):
        pertinent.wrap((transformers.BertLMHeadModel(config), tiny_lm.tokenizer()))


def test_a_prompt_is_for_language_models():
    model = pertinent.wrap(lambda texts: [[0.5, 0.5] for _ in texts])
    with pytest.raises(InputError, match="generative language model"):
        pertinent.explain(model, Prompt("Who?", answer="Ann"), "leave-one-out")


def test_a_prompt_has_the_parts_that_it_is_cut_into():
    with pytest.raises(InputError, match="has no sources"):
        pertinent.explain(wrapped("gpt2"), PROMPTS[0], "leave-one-out", features="sources")


def test_methods_that_need_a_decision_say_so():
    with pytest.raises(SettingError, match="not a decision"):
        pertinent.explain(wrapped("gpt2"), PROMPTS[1], "anchors")
