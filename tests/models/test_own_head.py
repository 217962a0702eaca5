"""A head from outside the package, of the kind that a language model needs.

Its columns are the tokens of an answer, which differ from input to input and are always kept; its scores are
log-likelihoods, taken from the network's logits of every token.
"""

import numpy as np
import pytest
import torch
import transformers

import pertinent
from pertinent.asks import BatchPart, MaskGradients, PathGradients
from pertinent.errors import InputError
from pertinent.inputs.text import Text
from pertinent.models.heads.base import Head, HeadBatch
from pertinent.models.heads.question_answering import Candidates
from pertinent.models.transformer import TransformerModel
from pertinent.outputs import PlainValues
from pertinent.removals.token_removals import AttentionMask
from tests import tiny

PAIRS = [(tiny.text(6, seed=1), tiny.text(3, seed=2)), (tiny.text(9, seed=3), tiny.text(2, seed=4))]


def log_likelihoods(logits, answer_tokens, ids):
    """Log p of each token of the answer (rows, most tokens), NaN where an input has fewer."""
    rows = torch.arange(len(logits))[:, None]
    at = logits.float().log_softmax(dim=-1)[rows, answer_tokens.slots]
    found = at.gather(2, ids[..., None])[..., 0]
    return found.masked_fill(answer_tokens.indices < 0, torch.nan)


def own_ids(parts, answer_tokens):
    ids = np.zeros((len(answer_tokens.indices), max(len(part.tokens.ids) for part in parts)), dtype=np.int64)
    first = 0
    for part in parts:
        ids[first : first + len(part.attend), : len(part.tokens.ids)] = part.tokens.ids
        first += len(part.attend)
    return torch.from_numpy(ids).gather(1, answer_tokens.indices.clamp_min(0))


class AnswerBatch(HeadBatch):
    def lay_out(self, compact, device):
        self.tokens = Candidates.from_rows(self.parts, compact, device)

    def scores(self, answer):
        return log_likelihoods(answer, self.tokens, own_ids(self.parts, self.tokens))


class AnswerHead(Head):
    """The log-likelihood of each token of a given answer; an input is (prompt, answer)."""

    output = PlainValues("nats")
    classes = ()
    columns_differ = True

    def text_of(self, raw, encoder):
        text = Text.from_input(raw)
        if text.second is None:
            raise InputError("Give a prompt and an answer.")
        return Text(text.first, text.second, fixed="second")

    def columns_of(self, input):
        place = input.tokens.char_spans
        return tuple(input.text.second[start:end] for segment, start, end in place if segment == 1)

    def answer_of(self, network_output):
        return network_output.logits

    def batch(self, parts):
        return AnswerBatch(parts)

    def followed_scores(self, seen, encoder):
        rows = seen()
        tokens = Candidates.from_rows(rows, [False] * len(rows), encoder.device)
        return lambda logits, _: log_likelihoods(logits, tokens, own_ids(rows, tokens))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    network = transformers.BertForMaskedLM(transformers.BertConfig(**tiny.BASE)).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return TransformerModel(network, tiny.tokenizer(model_max_length=200), head=AnswerHead())


def by_hand(model, input, mask=None):
    """The log-likelihoods of the answer's tokens, from one plain pass."""
    tokens = input.tokens
    kept = np.ones(len(tokens.ids), dtype=bool)
    if mask is not None:
        kept[tokens.feature >= 0] = mask[tokens.feature[tokens.feature >= 0]]
    with torch.no_grad():
        logits = model.model(
            input_ids=torch.tensor(tokens.ids)[None],
            token_type_ids=torch.tensor(tokens.types)[None],
            attention_mask=torch.tensor(kept.astype(int))[None],
        ).logits[0]
    answer = np.flatnonzero(tokens.char_spans[:, 0] == 1)
    return logits.log_softmax(dim=-1)[answer, tokens.ids[answer]].numpy()


def test_columns_are_the_tokens_of_the_answer(model):
    found = pertinent.explain(model, PAIRS, "leave-one-out")
    assert [e.classes for e in found] == [tuple(answer.split()) for _, answer in PAIRS]
    assert [e.features for e in found] == [tuple(prompt.split()) for prompt, _ in PAIRS]
    for e in found:
        np.testing.assert_allclose(e.prediction.values, by_hand(model, e.input), atol=1e-4)
        without = [by_hand(model, e.input, mask) for mask in ~np.eye(len(e.features), dtype=bool)]
        np.testing.assert_allclose(e.class_scores, (e.prediction.values - np.array(without)).T, atol=1e-4)


def test_removed_tokens_are_not_computed(model):
    assert model.compaction.holds(12)


def test_a_target_is_a_token_of_the_answer(model):
    _, answer = PAIRS[0]
    e = pertinent.explain(model, PAIRS[0], "leave-one-out", target=answer.split()[2])
    np.testing.assert_array_equal(e.scores, e.class_scores[2])


def test_gradients_are_those_of_the_log_likelihood(model):
    inputs = [model.prepare(pair) for pair in PAIRS]
    parts = [
        BatchPart(MaskGradients(np.ones((1, own.n_features)), target), own, AttentionMask(), np.arange(1), 0)
        for target, own in enumerate(inputs)
    ]
    values, gradients = MaskGradients.submit(model, parts).outputs()
    for i, own in enumerate(inputs):
        np.testing.assert_allclose(values[i, : len(model.columns_of(own))], by_hand(model, own), atol=1e-4)
        step = 1e-2
        soft = np.ones((1, own.n_features))
        soft[0, 0] -= step
        part = BatchPart(MaskGradients(soft, i), own, AttentionMask(), np.arange(1), 0)
        less = MaskGradients.submit(model, [part]).outputs()[0][0, i]
        assert gradients[i, 0] == pytest.approx((values[i, i] - less) / step, abs=0.05, rel=0.1)


@pytest.mark.parametrize("method", ["integrated-gradients", "gradient-search", "gradient-x-input"])
def test_methods_with_gradients_explain_it(model, method):
    budget = 120 if method == "gradient-search" else None
    found = pertinent.explain(model, PAIRS, method, budget=budget)
    assert len(found) == 2
    alone = pertinent.explain(model, PAIRS[1], method, budget=budget)
    np.testing.assert_allclose(found[1].scores, alone.scores, atol=1e-4)


def test_what_an_input_must_look_like_is_said_by_the_head(model):
    with pytest.raises(InputError, match="Give a prompt and an answer"):
        pertinent.explain(model, "a prompt alone", "leave-one-out")


def test_path_gradients_have_the_width_of_the_input(model):
    own = model.prepare(PAIRS[1])
    part = BatchPart(PathGradients(np.array([1.0]), 0), own, AttentionMask(), np.arange(1), 0)
    (rows,) = PathGradients.read(model, PathGradients.submit(model, [part]).outputs(), [part])
    assert PathGradients(np.array([1.0]), 0).assemble(model, own, rows).values.shape == (1, 2)
