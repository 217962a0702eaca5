"""Heads are registered: `wrap` and folders ask the registry, and heads from outside work like any other."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers

import pertinent
from pertinent.errors import ModelError, SettingError
from pertinent.models.embedded.load import find_head, load_transformer
from pertinent.models.heads.base import Head, heads
from pertinent.outputs import Classes
from tests import tiny, tiny_lm

ARCHITECTURES = {
    "BertForSequenceClassification": "text-classification",
    "BertForQuestionAnswering": "question-answering",
    "LlamaForCausalLM": "language-model",
    "GPT2LMHeadModel": "language-model",
    "T5ForConditionalGeneration": "encoder-decoder",
    "ViTForImageClassification": "image-classification",
    "BertModel": "text-classification",
}


@pytest.fixture
def first_token_head():
    """A registered head for token classifiers: the labels of a text's first token."""
    before = dict(heads.all())

    @heads.register("first-token")
    class FirstTokenHead(Head):
        summary = "labels of the first token"
        tasks = ("token-classification",)
        architectures = ("ForTokenClassification",)
        auto_class = "AutoModelForTokenClassification"

        def __init__(self, *, temperature: float = 1.0) -> None:
            self.temperature = temperature
            self.settings = (temperature,)
            self.output, self.classes = Classes(from_logits=True), ("a", "b", "c")

        def answer_of(self, network_output):
            return network_output.logits[:, 0] / self.temperature

    yield FirstTokenHead
    heads._classes = before


def token_classifier():
    torch.manual_seed(0)
    network = transformers.BertForTokenClassification(transformers.BertConfig(**tiny.BASE)).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return network, tiny.tokenizer()


def by_hand(network, tokenizer, text, temperature):
    with torch.no_grad():
        logits = network(**tokenizer(text, return_tensors="pt")).logits[0, 0]
    return (logits / temperature).softmax(dim=-1).numpy()


def test_a_head_from_outside_serves_pairs_pipelines_and_folders(first_token_head, tmp_path):
    pair = token_classifier()
    pipeline = SimpleNamespace(task="token-classification", model=pair[0], tokenizer=pair[1])
    for part in pair:
        part.save_pretrained(tmp_path)
    assert find_head(tmp_path) is first_token_head
    text = tiny.text(5, seed=1)
    for thing in (pair, pipeline):
        model = pertinent.wrap(thing, temperature=2.0)
        assert isinstance(model.head, first_token_head)
        e = pertinent.explain(model, text, "leave-one-out")
        np.testing.assert_allclose(e.prediction.values, by_hand(*pair, text, 2.0), rtol=1e-5)
        without = [by_hand(*pair, " ".join(np.delete(text.split(), i)), 2.0) for i in range(5)]
        assert not np.allclose(without, e.prediction.values)
    loaded = pertinent.explain(load_transformer(tmp_path), text, "leave-one-out")
    np.testing.assert_allclose(loaded.prediction.values, by_hand(*pair, text, 1.0), rtol=1e-5)


def test_an_option_is_an_argument_of_the_head(first_token_head):
    with pytest.raises(SettingError, match=r"first-token option 'temprature'\. Did you mean 'temperature'"):
        pertinent.wrap(token_classifier(), temprature=2.0)


def test_without_the_head_the_model_is_refused():
    with pytest.raises(ModelError, match="token classifier"):
        pertinent.wrap(token_classifier())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_head_of_a_folder(architecture, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"architectures": [architecture]}))
    assert find_head(tmp_path).name == ARCHITECTURES[architecture]


def test_a_decoder_and_an_encoder_with_a_decoder_share_a_task():
    decoder, writer = tiny_lm.model("llama"), tiny_lm.tokenizer()
    pipeline = SimpleNamespace(task="text-generation", model=decoder, tokenizer=writer)
    assert pertinent.wrap(pipeline).head.name == "language-model"
    config = transformers.T5Config(
        vocab_size=len(writer),
        d_model=16,
        d_kv=4,
        d_ff=16,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
    )
    both = transformers.T5ForConditionalGeneration(config).eval()
    for thing in ((both, writer), SimpleNamespace(task="text-generation", model=both, tokenizer=writer)):
        assert pertinent.wrap(thing).head.name == "encoder-decoder"
