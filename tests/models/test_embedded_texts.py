"""The embedded text classifiers, against the same files read by transformers."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import pertinent
from pertinent.asks import MaskGradients, PathGradients, Values
from pertinent.models.embedded.load import ASSETS, TEXT_MODELS
from tests.models.test_gradients import answer, some_masks

TEXTS = [
    "a slow start, then wonderful",
    "Ünïcödé, 東京 and \U0001f600 emoji — isn't it “odd”?  Tabs\tand\nlines.",
    "long " * 300,
]
PAIRS = [("a question?", "an answer, and a long one " * 60), ("both " * 200, "are long " * 200)]


def of_transformers(name):
    folder = ASSETS / name
    network = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
    return network, AutoTokenizer.from_pretrained(folder, local_files_only=True)


@pytest.fixture(scope="module", params=TEXT_MODELS)
def both(request):
    """The embedded model, and the same files wrapped as a pair of transformers."""
    return pertinent.load(request.param), pertinent.wrap(of_transformers(request.param))


@pytest.mark.parametrize("text", [*TEXTS, *PAIRS])
@pytest.mark.parametrize("features", [None, "tokens"])
def test_tokens_are_the_same(both, text, features):
    own, other = (model.prepare(text, features) for model in both)
    assert (own.features, own.truncation, own.fingerprint) == (
        other.features,
        other.truncation,
        other.fingerprint,
    )
    for name in ("ids", "types", "feature", "char_spans"):
        np.testing.assert_array_equal(getattr(own.tokens, name), getattr(other.tokens, name))


@pytest.mark.parametrize("text", [TEXTS[2], *PAIRS])
def test_windows_are_the_same(text):
    own = pertinent.load("topics", long_texts="windows").prepare(text, "words")
    other = pertinent.wrap(of_transformers("topics"), long_texts="windows").prepare(text, "words")
    assert own.tokens.lengths == other.tokens.lengths
    np.testing.assert_array_equal(own.tokens.ids, other.tokens.ids)
    assert own.features == other.features


@pytest.mark.parametrize("length", [2, 17, 256])
def test_hidden_states_and_logits_are_the_same(both, length):
    batch = both[0].whole_text(length)
    with torch.no_grad():
        own, other = (model.forward(batch, output_hidden_states=True) for model in both)
    for mine, theirs in zip(own.hidden_states, other.hidden_states, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-6)
    torch.testing.assert_close(own.logits, other.logits, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "ask",
    [
        Values(some_masks(6)),
        MaskGradients(np.full((2, 6), 0.7), 1),
        MaskGradients(some_masks(6), 0),
        PathGradients(np.array([0.2, 1.0]), 1),
    ],
)
def test_answers_and_gradients_are_the_same(both, ask):
    own, other = (answer(model, TEXTS[0], ask) for model in both)
    if isinstance(ask, Values):
        np.testing.assert_allclose(own, other, atol=1e-6)
        return
    np.testing.assert_allclose(own.values, other.values, atol=1e-6)
    np.testing.assert_allclose(own.gradients, other.gradients, atol=1e-6 * np.abs(other.gradients).max())


def test_nothing_is_left_out(both):
    """Kept tokens alone, weighted attention, names and settings are those of transformers."""
    own, other = both
    assert own.compaction.holds(256) and own.weighs_attention(256)
    assert (own.classes, own.max_length, own.pad_id) == (other.classes, other.max_length, other.pad_id)
    np.testing.assert_array_equal(own.words, other.words)
    assert [name for name, _ in own.model.named_parameters()] == [
        name for name, _ in other.model.named_parameters()
    ]


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_other_precisions(dtype):
    own = pertinent.load("sentiment", dtype=dtype)
    network, tokenizer = of_transformers("sentiment")
    other = pertinent.wrap((network.to(getattr(torch, dtype)), tokenizer))
    found = [pertinent.explain(model, TEXTS[0], method="leave-one-out").scores for model in (own, other)]
    np.testing.assert_allclose(*found, atol=1e-6)


def test_it_trains_as_a_model_of_transformers(tmp_path):
    model = pertinent.load("sentiment")
    texts, labels = ["good", "bad"] * 4, ["positive", "negative"] * 4
    trained = pertinent.train(
        model, texts, labels, out=tmp_path / "m", epochs=1, batch_size=4, progress=False
    )
    assert type(trained.model.model).__name__ == "BertForSequenceClassification"
    assert pertinent.explain(trained.model, "good fun", method="leave-one-out").classes == model.classes


def test_transformers_is_not_imported():
    code = (
        "import sys, pertinent; model = pertinent.load('sentiment'); pertinent.explain(model, 'good fun');"
        "print([name for name in ('transformers', 'torch._dynamo', 'scipy.optimize') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_explainers_that_begin_with_its_encoder_are_those_of_transformers(tmp_path):
    model = pertinent.load("sentiment")
    fitted = pertinent.fit(
        model, ["good fun", "bad fun", "a bad film"], method="fastshap", epochs=1, progress=False
    )
    fitted.save(tmp_path / "fitted")
    read = pertinent.load_explainer(tmp_path / "fitted")
    scores = [pertinent.explain(model, "a good film", method=own).scores for own in (fitted, read)]
    np.testing.assert_array_equal(*scores)
