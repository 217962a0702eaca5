"""Computing only the kept tokens is exact where it is used, and not used where it is not."""

import logging

import numpy as np
import pytest
import torch

import pertinent
from pertinent.models.tokens import relative_positions
from pertinent.models.torch import devices
from pertinent.removals import AttentionMask
from tests import tiny

EXACT = ["bert", "roberta", "distilbert", "modernbert"]


def logits(model, text, masks):
    given = model.prepare(text)
    return model.submit([AttentionMask()(given, masks, 0)]).outputs()


def padded_by_hand(model, text, masks):
    """The definition: all tokens in, the removed ones hidden by the attention mask."""
    given = model.prepare(text)
    tokens = given.tokens
    attend = np.ones((len(masks), len(tokens.ids)), dtype=np.int64)
    for row, mask in enumerate(masks):
        for place, feature in enumerate(tokens.feature):
            if feature >= 0 and not mask[feature]:
                attend[row, place] = 0
    with torch.no_grad():
        answer = model.model(
            input_ids=torch.tensor(tokens.ids).expand(len(masks), -1), attention_mask=torch.tensor(attend)
        )
    return answer.logits.numpy()


def some_masks(d, n=12):
    rng = np.random.default_rng(1)
    masks = rng.random((n, d)) < rng.random((n, 1))
    masks[0], masks[1] = True, False
    return masks


@pytest.mark.parametrize("architecture", EXACT)
@pytest.mark.parametrize("length", [3, 40, 150])
def test_equal_to_the_padded_form(architecture, length):
    model = pertinent.wrap(tiny.pair(architecture))
    text, masks = tiny.text(length), some_masks(length)
    assert model.compaction.holds(length + 2)
    np.testing.assert_allclose(logits(model, text, masks), padded_by_hand(model, text, masks), atol=1e-5)


@pytest.mark.parametrize("architecture", EXACT)
def test_fewer_tokens_are_computed(architecture):
    model = pertinent.wrap(tiny.pair(architecture))
    given = model.prepare(tiny.text(50))
    masks = np.eye(50, dtype=bool)[:4]
    assert model.cost(AttentionMask(), given, masks).tolist() == [3, 3, 3, 3]


def test_local_attention_fails_only_beyond_its_window(caplog):
    changes = {"global_attn_every_n_layers": 3, "num_hidden_layers": 3, "local_attention": 64}
    model = pertinent.wrap(tiny.pair("modernbert", **changes))
    assert model.compaction.holds(30)
    with caplog.at_level(logging.WARNING):
        assert not model.compaction.holds(150)
    assert "hidden states differ" in caplog.text
    for length in (20, 150):
        text, masks = tiny.text(length), some_masks(length)
        expected = padded_by_hand(model, text, masks)
        np.testing.assert_allclose(logits(model, text, masks), expected, atol=1e-5)


def test_relative_biases_are_those_of_the_whole_text():
    model = pertinent.wrap(tiny.pair("mpnet"))
    before = dict(vars(model.model.mpnet.encoder))
    for length in (20, 100):
        assert model.compaction.holds(length)
        text, masks = tiny.text(length), some_masks(length)
        expected = padded_by_hand(model, text, masks)
        np.testing.assert_allclose(logits(model, text, masks), expected, atol=1e-5)
    given = model.prepare(tiny.text(20))
    assert model.cost(AttentionMask(), given, np.eye(20, dtype=bool)).tolist() == [3] * 20
    assert vars(model.model.mpnet.encoder) == before


def test_relative_positions_fall_back_to_the_padded_form(caplog, monkeypatch):
    monkeypatch.setattr(relative_positions, "NEEDED", ("no such method",))
    with caplog.at_level(logging.WARNING):
        model = pertinent.wrap(tiny.pair("mpnet"))
    assert not model.compaction.holds(20)
    assert "Removed tokens are also computed" in caplog.text
    text, masks = tiny.text(20), some_masks(20)
    np.testing.assert_allclose(logits(model, text, masks), padded_by_hand(model, text, masks), atol=1e-5)


class IgnoresPositions(torch.nn.Module):
    """Takes position ids and does not use them."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.config = inner.config

    def forward(self, input_ids, attention_mask=None, position_ids=None, **rest):
        return self.inner(input_ids=input_ids, attention_mask=attention_mask, **rest)


def test_a_model_that_ignores_position_ids_is_found_out():
    inner, tokenizer = tiny.pair("bert")
    model = pertinent.wrap((IgnoresPositions(inner), tokenizer))
    assert not model.compaction.holds(20)
    given = model.prepare(tiny.text(20))
    assert model.cost(AttentionMask(), given, np.eye(20, dtype=bool)).tolist() == [22] * 20


def test_low_precision_is_verified_in_float32():
    model = pertinent.wrap(tiny.pair("bert", dtype=torch.bfloat16))
    assert model.compaction.holds(100)
    assert next(model.model.parameters()).dtype == torch.bfloat16


def test_it_can_be_switched_off():
    model = pertinent.wrap(tiny.pair("bert"), compaction=False)
    text, masks = tiny.text(20), some_masks(20)
    assert not model.compaction.holds(20)
    np.testing.assert_allclose(logits(model, text, masks), padded_by_hand(model, text, masks), atol=1e-5)


def test_the_comparison_is_made_in_full_precision():
    """Whatever the user allows, which comes back afterwards."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with devices.in_full_precision():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
