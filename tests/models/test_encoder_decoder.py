"""Models with an encoder and a decoder: answers are scored as by a plain pass of the whole model."""

import logging

import numpy as np
import pytest
import torch
import transformers

import pertinent
from pertinent import Prompt
from pertinent.cli import main
from pertinent.errors import InputError, ModelError
from tests import tiny_lm
from tests.models.test_language_model import PROMPTS, SOURCES, values
from tests.models.test_slots import OTHERS, SLOTS, TEMPLATE


def wrapped(architecture, **options):
    return pertinent.wrap((tiny_lm.model(architecture), tiny_lm.ending_tokenizer()), **options)


def by_hand(model, ids, answer):
    """Log p of each token of the answer: one row, labels shifted by the model itself."""
    labels = torch.tensor([model.tokenizer(answer, add_special_tokens=False)["input_ids"]])
    with torch.no_grad():
        logits = model.model(input_ids=torch.tensor([ids]), labels=labels).logits
    return logits.log_softmax(dim=-1)[0, torch.arange(labels.shape[1]), labels[0]].numpy()


@pytest.mark.parametrize("architecture", ["t5", "bart"])
def test_answers_are_scored_as_by_a_plain_pass(architecture):
    model = wrapped(architecture)
    rng = np.random.default_rng(0)
    inputs = [model.prepare(prompt) for prompt in PROMPTS]
    masks = [rng.random((5, own.n_features)) < 0.5 for own in inputs]
    for own in masks:
        own[0], own[1] = True, False
    found = values(model, inputs, masks, "slice-out")
    for prompt, input, own, rows in zip(PROMPTS, inputs, masks, found, strict=True):
        assert input.text.template or input.tokens.ids[-1] == 2  # </s> is kept, after which nothing follows
        for mask, row in zip(own, rows, strict=True):
            kept = np.where(input.tokens.feature < 0, True, mask[input.tokens.feature])
            ids = input.tokens.ids[kept].tolist()
            logs = by_hand(model, ids, prompt.answer)
            expected = [logs.sum(), *logs]
            if prompt.rather_than:
                expected = [logs.sum() - by_hand(model, ids, prompt.rather_than).sum(), *expected]
            np.testing.assert_allclose(row, expected, atol=1e-4)


def test_hidden_tokens_are_hidden_from_the_decoder_too():
    model = wrapped("t5")
    input = model.prepare(PROMPTS[0])
    mask = np.arange(input.n_features)[None] % 2 == 0
    (found,) = values(model, [input], [mask], "attention-mask")
    kept = np.where(input.tokens.feature < 0, True, mask[0, input.tokens.feature])
    labels = torch.tensor(model.tokenizer([PROMPTS[0].answer], add_special_tokens=False)["input_ids"])
    with torch.no_grad():
        logits = model.model(
            input_ids=torch.tensor(input.tokens.ids)[None],
            attention_mask=torch.tensor(kept.astype(int))[None],
            labels=labels,
        ).logits
    logs = logits.log_softmax(dim=-1)[0, torch.arange(labels.shape[1]), labels[0]]
    np.testing.assert_allclose(found[0, 0], logs.sum().item(), atol=1e-4)


def test_its_own_answer_is_the_greedy_one():
    model = wrapped("t5", max_new_tokens=5)
    text = "Ann keeps the key."
    ids = model.tokenizer(text, return_tensors="pt")["input_ids"]
    written = model.model.generate(ids, do_sample=False, num_beams=1, max_new_tokens=5)[0, 1:].tolist()
    e = pertinent.explain(model, text, "leave-one-out")
    assert list(e.input.text.answer_ids) == [own for own in written if own != 2]
    assert e.prediction.values[0] == pytest.approx(e.prediction.values[1:].sum(), abs=1e-4)


def test_sources_slots_and_gradients():
    model = wrapped("t5")
    e = pertinent.explain(model, Prompt("Who?", sources=SOURCES, answer=" Bob"), "shapley")
    assert e.features == tuple(SOURCES)
    template = Prompt(TEMPLATE, slots=SLOTS, alternatives=OTHERS, answer=" Ann", rather_than=" Bob")
    assert pertinent.explain(model, template, "shapley").removal == "alternatives"
    both = pertinent.explain(model, PROMPTS, "gradient-x-input")
    alone = pertinent.explain(model, PROMPTS[2], "gradient-x-input")
    np.testing.assert_allclose(both[2].scores, alone.scores, rtol=1e-4, atol=1e-4)
    assert np.abs(alone.scores).max() > 0


def test_integrated_gradients_add_up():
    model = wrapped("bart")
    e = pertinent.explain(model, PROMPTS[2], "integrated-gradients", points=300)
    input = model.prepare(PROMPTS[2])
    (empty,) = values(model, [input], [np.zeros((1, input.n_features), dtype=bool)], "zero-vector")
    assert e.scores.sum() == pytest.approx(e.prediction.values[0] - empty[0, 0], abs=0.05)


def test_gradients_along_a_mask_are_refused():
    with pytest.raises(ModelError, match="Mask gradients"):
        pertinent.explain(wrapped("t5"), PROMPTS[0], "gradient-search", removal="attention-mask")


def test_a_folder_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tiny_lm.model("t5").save_pretrained("t5")
    tiny_lm.ending_tokenizer().save_pretrained("t5")
    assert (
        main(["explain", "Who keeps it?", "--answer", " Ann", "--model", "./t5", "--method", "leave-one-out"])
        == 0
    )
    assert "Ann" in capsys.readouterr().out


def test_what_cannot_be():
    model = wrapped("t5")
    with pytest.raises(InputError, match="the model reads at most 128"):
        pertinent.explain(model, Prompt("the key " * 100, answer=" Bob"), "leave-one-out")
    config = tiny_lm.model("t5").config
    config.decoder_start_token_id = None
    network = transformers.T5ForConditionalGeneration(config)
    network.generation_config.decoder_start_token_id = None
    with pytest.raises(ModelError, match="does not define the decoder's start token"):
        pertinent.wrap((network, tiny_lm.ending_tokenizer()))


def test_a_model_without_a_limit_reads_as_many_tokens_as_the_user_says(caplog):
    tokenizer = tiny_lm.ending_tokenizer()
    tokenizer.model_max_length = int(1e30)
    with caplog.at_level(logging.INFO, "pertinent"):
        model = pertinent.wrap((tiny_lm.model("t5"), tokenizer))
    assert model.max_length == 512
    assert "has no token limit: at most 512 tokens are read" in caplog.text
    long = pertinent.wrap((tiny_lm.model("t5"), tokenizer), max_length=1000)
    prompt = Prompt("Ann keeps the key. " * 100, answer=" Bob")
    assert len(long.prepare(prompt).tokens.ids) > 512
