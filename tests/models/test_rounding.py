"""Checks at wrap tell rounding from real differences, whatever the scale of a model's states and logits."""

import copy

import numpy as np
import pytest
import torch
import transformers

import pertinent
from pertinent import Prompt
from pertinent.errors import ModelError
from pertinent.models import transformer
from pertinent.models.tokens import prefixes, relative_positions
from pertinent.models.torch.rounding import TOLERANCES, log_softmax_at, relative_difference
from tests import tiny, tiny_lm
from tests.models.test_language_model import values

SCALES = [(1, 1), (50, 2000), (1e-3, 1e-3)]
"""Factors of the embeddings and of the last norm: as initialised, as in trained models, and tiny."""
TRAINED = SCALES[1]
TEXT = "Ann keeps the key. Bob keeps the map. Cleo keeps the lamp and the old red coat."
SIZE = {
    "vocab_size": 400,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
}


def scaled(network, embeddings, norm):
    """The network with embeddings and a last norm that are larger by these factors."""
    with torch.no_grad():
        network.get_input_embeddings().weight.mul_(embeddings)
        getattr(network.base_model, "norm", getattr(network.base_model, "ln_f", None)).weight.mul_(norm)
    return network


def llama(seed, scales):
    torch.manual_seed(seed)
    options = {"hidden_size": 64, "intermediate_size": 128, "tie_word_embeddings": False}
    return scaled(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZE | options)).eval(), *scales)


def round_as_a_gpu(network):
    """Add to the result of every layer a rounding that depends on the length, as that of GPU kernels does."""

    def rounded(_module, _arguments, result):
        noise = torch.randn(result.shape, generator=torch.Generator().manual_seed(result.shape[1]))
        return result + 1e-6 * result.square().mean().sqrt() * noise

    for module in network.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(rounded)
    return network


def reading_ahead(scales):
    """A model whose tokens attend to later ones, with logits of another scale."""
    torch.manual_seed(0)
    network = transformers.BertLMHeadModel(
        transformers.BertConfig(**SIZE | {"hidden_size": 32, "intermediate_size": 32})
    )
    with torch.no_grad():
        network.get_input_embeddings().weight.mul_(scales[0])
        network.cls.predictions.transform.LayerNorm.weight.mul_(scales[1])
    return network.eval()


def wrapped(network):
    return pertinent.wrap((network, tiny_lm.tokenizer()))


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("seed", range(5))
def test_a_causal_model_is_wrapped_at_every_scale(seed, scales, caplog):
    model = wrapped(round_as_a_gpu(llama(seed, scales)))
    assert model.head._to_logits is not None
    assert model.prefixes._verified()
    assert model.compaction.holds(32)
    assert not caplog.text


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_wrapped_without_a_copy(dtype, scales, monkeypatch):
    monkeypatch.setattr(transformer, "MAX_COPIED", 0)
    model = wrapped(llama(0, scales).to(dtype))
    assert model.is_tested_as_it_is and model.rounding == TOLERANCES[dtype]
    assert model.prefixes._verified()


@pytest.mark.parametrize("scales", SCALES)
def test_a_model_that_reads_ahead_is_refused_at_every_scale(scales):
    with pytest.raises(ModelError, match="BertLMHeadModel attends to later tokens"):
        wrapped(reading_ahead(scales))


@pytest.mark.parametrize("scales", SCALES)
def test_wrong_positions_are_found_at_every_scale(scales):
    """What follows a prefix is read one position too late."""
    model = wrapped(scaled(tiny_lm.model("llama"), *scales))
    forward = model.model.model.forward

    def late(input_ids, past_key_values=None, **options):
        if past_key_values is not None:
            first = past_key_values.get_seq_length() + 1
            options["position_ids"] = torch.arange(first, first + input_ids.shape[1])[None]
        return forward(input_ids, past_key_values=past_key_values, **options)

    model.model.model.forward = late
    assert not model.prefixes._verified()


@pytest.mark.parametrize("norm", [1e-3, 1, 2000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_wrong_prefixes_are_found_in_every_precision(norm, dtype, monkeypatch):
    """What follows a prefix is read without it."""
    monkeypatch.setattr(transformer, "MAX_COPIED", 0)
    model = wrapped(scaled(tiny_lm.model("llama"), 1, norm).to(dtype))
    forward = model.model.model.forward

    def alone(input_ids, past_key_values=None, **options):
        if past_key_values is not None:
            first = past_key_values.get_seq_length()
            options["position_ids"] = torch.arange(first, first + input_ids.shape[1])[None]
        return forward(input_ids, **options)

    model.model.model.forward = alone
    assert not model.prefixes._verified()


@pytest.mark.parametrize("scales", SCALES)
def test_logits_that_are_changed_are_found_at_every_scale(scales):
    """Gemma 2 caps its logits; here one logit of 400 is ruled out."""
    network = llama(0, scales)
    forward = network.lm_head.forward
    network.lm_head.forward = lambda states: forward(states).index_fill(
        -1, torch.tensor([7]), torch.finfo(torch.float32).min
    )
    assert wrapped(network).head._to_logits is None


@pytest.mark.parametrize("scales", SCALES)
def test_local_attention_is_found_at_every_scale(scales):
    model = wrapped(scaled(tiny_lm.model("mistral"), *scales))
    assert model.compaction.holds(12)
    assert not model.compaction.holds(100)


@pytest.mark.parametrize("factor", [1e-3, 1, 1e4])
@pytest.mark.parametrize(("architecture", "holds"), [("bert", True), ("mpnet", True), ("mpnet", False)])
def test_compaction_of_classifiers_at_every_scale(architecture, holds, factor, monkeypatch):
    if not holds:  # positions that shrink
        monkeypatch.setattr(relative_positions, "NEEDED", ("no such method",))
    network, tokenizer = tiny.pair(architecture)
    with torch.no_grad():
        network.get_input_embeddings().weight.mul_(factor)
        for parameter in network.classifier.parameters():
            parameter.mul_(factor)
    model = pertinent.wrap((network, tokenizer))
    assert model.compaction.holds(64) is holds
    if holds:
        assert model._bias_check.holds(64, weighted=False) and model._bias_check.holds(64, weighted=True)


@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_a_bias_that_overrides_a_window_is_found_at_every_scale(factor):
    window = {"global_attn_every_n_layers": 3, "num_hidden_layers": 4, "local_attention": 32}
    network, tokenizer = tiny.pair("modernbert", **window)
    with torch.no_grad():
        for parameter in network.classifier.parameters():
            parameter.mul_(factor)
    model = pertinent.wrap((network, tokenizer))
    assert model._bias_check.holds(8, weighted=False)
    assert not model._bias_check.holds(100, weighted=False)


def test_answers_of_a_scaled_model_equal_those_without_shared_prefixes(monkeypatch):
    model = wrapped(llama(3, TRAINED))
    model.launch_overhead = 1
    input = model.prepare(Prompt(TEXT, answer=" Ann keeps it"), "tokens")
    masks = [~np.eye(input.n_features, dtype=bool)]
    (shared,) = values(model, [input], masks, "slice-out")
    monkeypatch.setattr(prefixes, "SHORTEST", 10**6)
    (plain,) = values(model, [input], masks, "slice-out")
    np.testing.assert_allclose(shared, plain, rtol=1e-4)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_relative_difference_does_not_depend_on_the_scale(factor):
    rng = torch.Generator().manual_seed(0)
    expected = torch.randn(1, 20, 64, generator=rng)
    found = expected + 1e-3 * torch.randn(1, 20, 64, generator=rng)
    assert relative_difference(found * factor, expected * factor) == pytest.approx(1e-3, rel=0.1)


def test_one_large_token_does_not_hide_the_others():
    expected = torch.ones(1, 10, 8)
    expected[0, 0] = 1e5
    found = expected.clone()
    found[0, 5] += 0.1
    assert relative_difference(found, expected) == pytest.approx(0.1 / 10**0.5, rel=1e-3)


def test_small_vectors_are_measured_by_the_median():
    expected = torch.ones(1, 9, 2)
    expected[0, 3] = 1e-9
    found = expected.clone()
    found[0, 3] += 1e-6
    assert relative_difference(found, expected) < 1e-6


def test_special_values():
    ruled_out = torch.tensor([[1.0, -torch.inf], [1.0, torch.finfo(torch.float32).min]])
    assert relative_difference(ruled_out, ruled_out) == 0
    assert relative_difference(ruled_out + torch.tensor([0.1, 0.0]), ruled_out) == pytest.approx(0.1)
    assert relative_difference(torch.zeros(2, 3), torch.zeros(2, 3)) == 0
    assert relative_difference(torch.full((2, 3), torch.nan), torch.ones(2, 3)) == torch.inf
    assert relative_difference(torch.ones(2, 3), torch.zeros(2, 3)) == torch.inf
    assert relative_difference(torch.ones(2, 3), torch.ones(2, 4)) == torch.inf


def test_log_probabilities_near_one_and_their_gradients_are_exact():
    leads = torch.tensor([0.0, 5.0, 20.0, 60.0])
    leaf = torch.full((4, 3), 40.0)
    leaf[:, 0] += leads
    leaf.requires_grad_()
    logs = log_softmax_at(leaf, torch.zeros(4, 1, dtype=torch.int64), 1)
    logs.sum().backward()
    odds = 2 * torch.exp(-leads.double())  # against the first entry
    np.testing.assert_allclose(logs.detach()[:, 0], -torch.log1p(odds), rtol=1e-5)
    np.testing.assert_allclose(leaf.grad[:, 0], odds / (1 + odds), rtol=1e-5)


def test_a_single_choice_is_certain_and_has_a_gradient():
    leaf = torch.tensor([[3.0, -torch.inf]]).requires_grad_()
    logs = log_softmax_at(leaf, torch.tensor([[0]]), 1)
    logs.sum().backward()
    assert logs.item() == 0
    assert torch.isfinite(leaf.grad).all()


def test_gradients_of_a_confident_token_are_not_lost_to_rounding():
    network = tiny_lm.model("llama")
    with torch.no_grad():
        network.lm_head.weight.mul_(60)
    single, double = (
        pertinent.wrap((made, tiny_lm.tokenizer()), max_new_tokens=8)
        for made in (network, copy.deepcopy(network).double())
    )
    e = pertinent.explain(double, TEXT, "gradient")
    logs = e.prediction.values
    token = 1 + int(logs[1:].argmax())
    assert -1e-8 < logs[token] < 0
    prompt = Prompt(TEXT, answer=e.input.text.answer)
    scores, exact = (pertinent.explain(m, prompt, "gradient", target=token).scores for m in (single, double))
    assert np.abs(exact).max() > 0
    np.testing.assert_allclose(scores, exact, rtol=0.05)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_large_classifiers_are_tested_without_a_copy(dtype, monkeypatch):
    monkeypatch.setattr(transformer, "MAX_COPIED", 0)
    model = pertinent.wrap((tiny.model("bert", dtype), tiny.tokenizer(model_max_length=200)))
    assert model.is_tested_as_it_is
    assert model.compaction.holds(64)
