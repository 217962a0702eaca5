"""What rows share at their beginning is computed once, and changes nothing."""

import numpy as np
import pytest
import torch
import transformers

import pertinent
from pertinent import Prompt
from pertinent.errors import ModelError
from pertinent.models import transformer
from pertinent.models.tokens import prefixes
from pertinent.models.tokens.prefixes import divide
from tests import tiny_lm
from tests.models.test_language_model import PROMPTS, values

TEXT = "Ann keeps the key. Bob keeps the map. Cleo keeps the lamp and the old red coat."


def wrapped(architecture, **changes):
    return pertinent.wrap((tiny_lm.model(architecture, **changes), tiny_lm.tokenizer()))


def n_computed(model, work):
    """Number of tokens that the first layer sees."""
    seen = []
    layers = model.model.transformer.h if hasattr(model.model, "transformer") else model.model.model.layers
    hook = layers[0].register_forward_hook(lambda *own: seen.append(own[1][0].shape[:2].numel()))
    found = work()
    hook.remove()
    return sum(seen), found


@pytest.mark.parametrize("architecture", tiny_lm.ARCHITECTURES)
def test_leave_one_out_shares_beginnings_and_changes_nothing(architecture, monkeypatch):
    model = wrapped(architecture)
    model.launch_overhead = 1
    inputs = [model.prepare(own, "tokens") for own in (Prompt(TEXT, answer=" Ann keeps it"), *PROMPTS)]
    masks = [~np.eye(own.n_features, dtype=bool) for own in inputs]
    monkeypatch.setattr(prefixes, "SHORTEST", 10**6)
    n_plain, plain = n_computed(model, lambda: values(model, inputs, masks, "slice-out"))
    monkeypatch.setattr(prefixes, "SHORTEST", 2)
    n_shared, shared = n_computed(model, lambda: values(model, inputs, masks, "slice-out"))
    assert n_shared < 0.75 * n_plain
    for one, other in zip(plain, shared, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_what_stands_before_the_first_feature_is_computed_once():
    model = wrapped("llama")
    model.launch_overhead = 1
    prompt = Prompt(
        "Who?",
        sources=["Ann keeps the key.", "Bob lost it."],
        template=TEXT + "{sources}{text}",
        answer=" Bob",
    )
    n_before = len(model.tokenizer(TEXT)["input_ids"])
    input = model.prepare(prompt, "words")
    rng = np.random.default_rng(0)
    masks = [rng.random((20, input.n_features)) < 0.5]
    own = len(input.tokens.ids) - n_before
    first, found = n_computed(model, lambda: values(model, [input], masks, "slice-out"))
    assert first <= n_before + 20 * own
    again, _ = n_computed(model, lambda: values(model, [input], [masks[0][:10]], "slice-out"))
    assert again <= 10 * own
    with torch.no_grad():
        model.model.lm_head.weight.mul_(2)
        model.model.model.embed_tokens.weight.mul_(2)
    model.forget()
    (changed,) = values(model, [input], masks, "slice-out")
    (plain,) = values(wrapped_again(model), [input], masks, "slice-out")
    assert np.abs(changed - found[0]).max() > 0.1
    np.testing.assert_allclose(changed, plain, atol=1e-4)


def wrapped_again(model):
    return pertinent.wrap((model.model, model.tokenizer))


def test_a_network_that_returns_no_keys_shares_nothing(caplog):
    model = wrapped("llama")
    model.launch_overhead = 1
    forward = model.model.model.forward

    def without(*arguments, **options):
        found = forward(*arguments, **options)
        found.past_key_values = None
        return found

    model.model.model.forward = without
    input = model.prepare(Prompt(TEXT, answer=" Ann"), "tokens")
    masks = [~np.eye(input.n_features, dtype=bool)]
    (found,) = values(model, [input], masks, "slice-out")
    assert "computed separately for each" in caplog.text
    (plain,) = values(wrapped("llama"), [input], masks, "slice-out")
    np.testing.assert_allclose(found, plain, atol=1e-4)


def test_hidden_tokens_are_not_shared():
    model = wrapped("llama")
    input = model.prepare(Prompt(TEXT, answer=" Ann"), "tokens")
    masks = [~np.eye(input.n_features, dtype=bool)]
    total = input.n_features * (len(input.tokens.ids) - 1)
    values(model, [input], masks, "attention-mask")  # which verifies that hidden tokens need not be computed
    n, _ = n_computed(model, lambda: values(model, [input], masks, "attention-mask"))
    assert n == total


def test_a_large_model_is_tested_without_a_copy(monkeypatch):
    monkeypatch.setattr(transformer, "MAX_COPIED", 0)
    network = tiny_lm.model("llama").bfloat16()
    monkeypatch.setattr(torch.nn.Module, "float", None)
    model = pertinent.wrap((network, tiny_lm.tokenizer()))
    model.launch_overhead = 1
    input = model.prepare(Prompt(TEXT, answer=" Ann"), "tokens")
    n, (found,) = n_computed(
        model, lambda: values(model, [input], [~np.eye(input.n_features, dtype=bool)], "slice-out")
    )
    assert n < 0.9 * input.n_features * (len(input.tokens.ids) - 1)  # with the test itself
    assert np.isfinite(found).all()
    config = transformers.BertConfig(
        vocab_size=400, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    reading_ahead = transformers.BertLMHeadModel(config).bfloat16()
    with torch.no_grad():
        for weight in reading_ahead.parameters():
            weight.mul_(8)
    with pytest.raises(ModelError, match="attends to later tokens"):
        pertinent.wrap((reading_ahead, tiny_lm.tokenizer()))


# -- groups ----------------------------------------------------------------------------------------


def cost(groups, lengths, overhead):
    return sum(overhead + shared + len(rows) * (lengths[rows].max() - shared) for rows, shared in groups)


def slow_divide(ids, lengths, overhead):
    """The least cost of sorted rows over all divisions."""
    order = np.lexsort(ids.T[::-1])
    least = [0.0]
    for end in range(1, len(ids) + 1):
        found = []
        for start in range(end):
            rows = order[start:end]
            alike = (ids[rows] == ids[rows[0]]).all(axis=0)
            shared = len(alike) if alike.all() else int(alike.argmin())
            shared = min(shared, lengths[rows].min() - 1) if len(rows) > 1 else 0
            shared = shared if shared >= prefixes.SHORTEST else 0
            found.append(least[start] + cost([(rows, shared)], lengths, overhead))
        least.append(min(found))
    return least[-1]


@pytest.mark.parametrize("overhead", [0, 5, 200])
def test_groups_are_the_cheapest(overhead):
    rng = np.random.default_rng(overhead)
    for _ in range(5):
        lengths = rng.integers(3, 31, 24)
        ids = rng.integers(0, 2, (24, 30))
        ids[:, :12] = ids[rng.integers(0, 4, 24), :12]
        ids[np.arange(30) >= lengths[:, None]] = 9
        groups = divide(ids, lengths, overhead)
        assert sorted(np.concatenate([rows for rows, _ in groups])) == list(range(24))
        for rows, shared in groups:
            assert (ids[rows, :shared] == ids[rows[0], :shared]).all()
            assert (shared < lengths[rows]).all()
        assert cost(groups, lengths, overhead) == slow_divide(ids, lengths, overhead)


def test_one_row_shares_nothing():
    assert [shared for _, shared in divide(np.zeros((1, 9), dtype=int), np.array([9]), 10)] == [0]
