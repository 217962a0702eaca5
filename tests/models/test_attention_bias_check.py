"""A bias added to attention scores does what a mask does, or is not used."""

import numpy as np
import pytest
import torch
from tokenizers import processors
from transformers import BartConfig, BartForSequenceClassification, XLMConfig, XLMForSequenceClassification

import pertinent
from pertinent.models.tokens.attention_bias import hiding_bias
from pertinent.models.transformer import TransformerModel
from tests import tiny

WINDOW = {"global_attn_every_n_layers": 3, "num_hidden_layers": 4, "local_attention": 32}


def explained(model, texts):
    found = pertinent.explain(model, texts, method="kernel-shap", budget=30, progress=False)
    return [explanation.scores for explanation in found]


@pytest.fixture
def by_bias(monkeypatch):
    """As on CUDA."""
    monkeypatch.setattr(TransformerModel, "hides_by_bias", True)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("architecture", ["bert", "roberta", "distilbert", "mpnet", "modernbert"])
def test_a_bias_hides_what_a_mask_hides(architecture, implementation):
    """Texts of two lengths travel together, so rows are padded; without compaction tokens are hidden, too."""
    texts = [tiny.text(n, seed=n) for n in (7, 9, 9)]
    network, tokenizer = tiny.pair(architecture)
    network.set_attn_implementation(implementation)
    for compaction in (True, False):
        model = pertinent.wrap((network, tokenizer), compaction=compaction)
        assert model._bias_check.holds(11, weighted=False)
        masked = explained(model, texts)
        model.hides_by_bias = True
        for one, other in zip(masked, explained(model, texts), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.filterwarnings("ignore:TF32")
@pytest.mark.usefixtures("by_bias")
def test_what_is_tried_in_full_precision_is_used_in_half():
    network, tokenizer = tiny.model("bert", torch.float16), tiny.tokenizer(model_max_length=200)
    model = pertinent.wrap((network, tokenizer))
    assert model.compaction.holds(64) and model._bias_check.holds(20, weighted=False)
    texts = [tiny.text(n, seed=n) for n in (7, 9, 9)]
    found = explained(model, texts)
    model.hides_by_bias = False
    for one, other in zip(explained(model, texts), found, strict=True):
        np.testing.assert_allclose(one, other, atol=0.02)


@pytest.mark.parametrize(
    ("architecture", "options", "length", "holds"),
    [
        ("bert", {}, 200, True),
        ("modernbert", WINDOW, 8, True),
        ("modernbert", WINDOW, 100, False),
        ("modernbert", {"classifier_pooling": "mean"}, 8, False),
    ],
)
def test_windows_and_pooling_are_noticed(architecture, options, length, holds):
    model = pertinent.wrap(tiny.pair(architecture, **options))
    assert model._bias_check.holds(length, weighted=False) is holds


def test_removed_tokens_do_not_show_however_large_their_scores():
    """With a weight of 1e-12 they showed here, and in MiniLM fine-tuned on long texts."""
    network, tokenizer = tiny.pair("bert")
    with torch.no_grad():
        for layer in network.bert.encoder.layer:
            layer.attention.self.query.weight *= 15
            layer.attention.self.key.weight *= 15
    assert pertinent.wrap((network, tokenizer))._bias_check.holds(64, weighted=True)


@pytest.mark.parametrize("length", [5, 8, 13])
def test_rows_begin_where_fused_kernels_want_them(length):
    mask = torch.ones(3, length, dtype=torch.int64)
    mask[1, 2:] = 0
    bias = hiding_bias(mask, torch.bfloat16)
    assert bias.shape == (3, 1, 1, length) and bias.stride(0) % 8 == 0 and bias.stride(-1) == 1
    assert ((bias[:, 0, 0] == 0) == (mask == 1)).all()


def bart():
    size = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 256}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    tokens = {"bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 3, "forced_eos_token_id": None}
    return BartForSequenceClassification(BartConfig(**tiny.SIZE | size | heads | tokens))


def xlm():
    size = {"emb_dim": 32, "n_layers": 1, "n_heads": 2, "max_position_embeddings": 256}
    special = {"n_words": tiny.SIZE["vocab_size"], "pad_index": 0, "num_labels": 3, "use_lang_emb": False}
    return XLMForSequenceClassification(XLMConfig(**size | special))


@pytest.mark.usefixtures("by_bias")
@pytest.mark.parametrize("make", [bart, xlm])
def test_models_that_want_a_mask_get_one(make):
    """One answers in another form, one insists on the shape of its mask."""
    torch.manual_seed(0)
    model = pertinent.wrap((make().eval(), tiny.tokenizer(model_max_length=200)), compaction=False)
    texts = [tiny.text(n, seed=n) for n in (7, 9)]
    by_bias = explained(model, texts)
    model.hides_by_bias = False
    for one, other in zip(by_bias, explained(model, texts), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_memory_that_runs_out_is_not_held_against_a_model(monkeypatch):
    model = pertinent.wrap(tiny.pair("bert"))
    with monkeypatch.context() as broken:
        broken.setattr(model, "exactly", lambda *_, **__: (_ for _ in ()).throw(torch.OutOfMemoryError))
        with pytest.raises(torch.OutOfMemoryError):
            model._bias_check.holds(8, weighted=True)
    assert model._bias_check.holds(8, weighted=True)


@pytest.mark.usefixtures("by_bias")
def test_rows_of_which_nothing_is_seen_do_not_depend_on_their_company():
    """Without special tokens and compaction the empty mask hides all of a text."""
    tokenizer = tiny.tokenizer(model_max_length=200)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    model = pertinent.wrap((tiny.model("bert"), tokenizer), compaction=False)
    short, long = tiny.text(5), tiny.text(40, seed=1)
    alone = pertinent.explain(model, short, method="kernel-shap", budget=90)
    beside = pertinent.explain(model, [short, long], method="kernel-shap", budget=90)[0]
    np.testing.assert_allclose(alone.scores, beside.scores, atol=1e-5)
