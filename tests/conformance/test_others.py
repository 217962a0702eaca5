"""Every registered learned method, removal, metric and modality passes the checks of `pertinent.testing`."""

import numpy as np
import pytest
import torch
from tests import tiny, tiny_lm
from transformers import BertConfig, BertForMaskedLM

import pertinent
from pertinent.learners import learned
from pertinent.metrics import english_words, metrics
from pertinent.metrics.english_words import Senses
from pertinent.removals import Marginalize, removals
from pertinent.testing import check_learned_method, check_metric, check_modality, check_removal

RNG = np.random.default_rng(0)
INPUTS = {
    "text": ["w1 w2 w3", "w4 w5 w6 w7"],
    "image": RNG.random((2, 1, 8, 8)).astype(np.float32),
    "table": RNG.normal(size=(2, 3)),
}
SETTINGS = {"share-removed": "k=3", "sufficiency-of-selected": "k=3"}
LEARNED = [
    (method, kind)
    for method, cls in learned.all().items()
    for kind in ("text", "table")
    if kind in (cls.learner.spec.modalities or ("text", "table"))
]


@pytest.mark.parametrize(("method", "kind"), LEARNED)
@pytest.mark.usefixtures("one_thread")
def test_learned_method(method, kind, monkeypatch):
    monkeypatch.setattr("pertinent.learners.networks.word_scorer.BUCKETS", 64)
    settings = {"trees": 4, "leaf": 2} if method == "maple" else {}
    check_learned_method(method, kinds=[kind], **settings)


@pytest.mark.parametrize("metric", metrics.all())
def test_metric(metric, monkeypatch):
    monkeypatch.setattr(english_words, "stop_words", lambda: frozenset({"a"}))
    monkeypatch.setattr(english_words, "senses", lambda word: Senses(frozenset({word[:1]}), frozenset()))
    check_metric(f"{metric}:{SETTINGS[metric]}" if metric in SETTINGS else metric)


@pytest.mark.parametrize("removal", sorted({*removals.all()} - {"marginalize", "alternatives"}))
def test_removal(removal):
    check_removal(removal)


def test_marginalize():
    torch.manual_seed(0)
    filler = BertForMaskedLM(BertConfig(**tiny.BASE)).eval(), tiny.tokenizer()
    check_removal(Marginalize(filler, samples=2), tiny.pair("bert"), INPUTS["text"])


def test_alternatives():
    model = pertinent.wrap((tiny_lm.model("gpt2"), tiny_lm.tokenizer()))
    slots = [{"name": "Ann", "thing": "red coat"}, {"name": "Bob", "thing": "map"}]
    others = {"name": ["Cleo", "Dan"], "thing": ["key", "lamp"]}
    prompts = [
        pertinent.Prompt("{name} keeps the {thing}.", slots=own, alternatives=others, answer=" Yes")
        for own in slots
    ]
    check_removal("alternatives:samples=3", model, prompts)


@pytest.mark.parametrize("kind", INPUTS)
def test_modality(kind):
    check_modality(kind, INPUTS[kind])
