"""A reader is explained by the overlap of its answers with the answer on the whole input."""

import gc
import inspect
import re
from itertools import combinations, pairwise
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers

import pertinent
from pertinent.asks import BatchPart, MaskGradients
from pertinent.errors import InputError, ModelError, PertinentError, SettingError
from pertinent.explainers import explainers
from pertinent.inputs.text import Text
from pertinent.models.tokens.compaction import Compaction
from pertinent.removals import AttentionMask, Marginalize
from pertinent.removals.base import TokenRows, removals
from pertinent.testing.examples import small_budget
from tests import tiny

QUESTION = tiny.text(5, seed=3)
CONTEXT = tiny.text(14, seed=4)
PAIR = {"question": QUESTION, "context": CONTEXT}
TEXT_REMOVALS = removals.for_kind("text")
COMPACT = ("bert", "roberta", "distilbert", "modernbert", "mpnet")


def reader(architecture="bert", **changes):
    """A random reader of whose answers many change with a word."""
    torch.manual_seed(1)
    base = tiny.BASE | {"num_labels": 2} | changes
    if architecture == "bert":
        made = transformers.BertForQuestionAnswering(transformers.BertConfig(**base))
    elif architecture == "roberta":
        config = transformers.RobertaConfig(**base | {"type_vocab_size": 2})
        made = transformers.RobertaForQuestionAnswering(config)
    elif architecture == "distilbert":
        size = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 256}
        made = transformers.DistilBertForQuestionAnswering(
            transformers.DistilBertConfig(**tiny.SIZE | size | {"num_labels": 2})
        )
    elif architecture == "mpnet":
        made = transformers.MPNetForQuestionAnswering(transformers.MPNetConfig(**base))
    else:
        options = {"num_labels": 2, "global_attn_every_n_layers": 1, "local_attention": 16}
        made = transformers.ModernBertForQuestionAnswering(
            transformers.ModernBertConfig(**tiny.ROTARY | options)
        )
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return made.eval()


def wrapped(architecture="bert", **options):
    return pertinent.wrap((reader(architecture), tiny.tokenizer(model_max_length=200)), **options)


@pytest.fixture(scope="module")
def model():
    return wrapped()


def some_masks(d, n=40):
    rng = np.random.default_rng(0)
    masks = rng.random((n, d)) < rng.random((n, 1)) ** 0.5
    masks[0], masks[1] = True, False
    return masks


def answer_by_hand(model, rows, r, longest=30):
    """The tokens {(place, id)} of the answer to one row, in the row's own length, by plain loops."""
    tokens = rows.tokens
    ids = tokens.ids if rows.ids is None else rows.ids[r]
    seen = [p for p in range(len(ids)) if rows.attend[r, p]]
    fed = seen if rows.renumber else list(range(len(ids)))
    options = {"attention_mask": torch.tensor([[int(p in seen) for p in fed]])}
    words = model.model.get_input_embeddings()(torch.tensor([[int(ids[p]) for p in fed]]))
    if rows.zeroed is not None:
        words = words * torch.tensor([[[float(not rows.zeroed[r, p])] for p in fed]])
    if "token_type_ids" in inspect.signature(model.model.forward).parameters:
        options["token_type_ids"] = torch.tensor([[int(tokens.types[p]) for p in fed]])
    if model.model.config.model_type == "roberta":  # it finds positions by ids, which it is not given
        options["position_ids"] = torch.arange(len(fed))[None] + 1
    with torch.no_grad():
        found = model.model(inputs_embeds=words, **options)
    start, end = found.start_logits[0].tolist(), found.end_logits[0].tolist()
    context = [slot for slot, p in enumerate(fed) if tokens.char_spans[p, 0] == 1 and p in seen]
    best, answer = -np.inf, []
    for i, first in enumerate(context):
        for j in range(i, min(i + longest, len(context))):
            if start[first] + end[context[j]] > best:
                best, answer = start[first] + end[context[j]], context[i : j + 1]
    zeroed = rows.zeroed if rows.zeroed is not None else np.zeros_like(rows.attend)
    return {(fed[slot], "zero" if zeroed[r, fed[slot]] else int(ids[fed[slot]])) for slot in answer}


def overlaps_by_hand(model, rows, longest=30):
    whole = TokenRows(rows.tokens, np.ones((1, len(rows.tokens.ids)), dtype=bool))
    reference = answer_by_hand(model, whole, 0, longest)
    found = []
    for r in range(len(rows.attend)):
        own = answer_by_hand(model, rows, r, longest)
        found.append(len(own & reference) / len(own | reference))
    return found


def values(model, given, masks, removal=None, seed=0):
    rows = (removal or AttentionMask())(given, masks, seed)
    return model.submit([rows]).outputs()[:, 0]


# -- the overlap -------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", COMPACT)
@pytest.mark.parametrize("longest", [2, 30])
def test_the_value_is_the_jaccard_index_of_a_plain_loop(architecture, longest):
    model = wrapped(architecture, max_answer_length=longest)
    assert model.compaction.holds(20)
    given = model.prepare(PAIR)
    masks = some_masks(given.n_features)
    expected = overlaps_by_hand(model, AttentionMask()(given, masks, 0), longest)
    np.testing.assert_allclose(values(model, given, masks), expected, atol=1e-6)
    assert 0.1 < np.mean(expected) < 0.9
    assert architecture != "bert" or len(set(np.round(expected, 3))) >= 3
    assert (expected[0], expected[1]) == (1.0, 0.0)


@pytest.mark.parametrize("name", TEXT_REMOVALS)
def test_every_removal(model, name):
    removal = (
        removals.make(name) if name != "marginalize" else Marginalize((language_model(), tiny.tokenizer()))
    )
    removal = removal.bind(model)
    given = model.prepare(PAIR)
    masks = some_masks(given.n_features, 15)
    expected = overlaps_by_hand(model, removal(given, masks, 0))
    found = values(model, given, masks, removal)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    by_mask = found.reshape(len(masks), -1)
    assert (by_mask[0] == 1).all()
    if name != "marginalize":
        assert not by_mask[1].any() or name == "random-token"  # which may draw the input's own token


def language_model():
    torch.manual_seed(1)
    return transformers.BertForMaskedLM(transformers.BertConfig(**tiny.BASE)).eval()


@pytest.mark.parametrize("fix_question", [True, False])
def test_compact_and_padded_forms_agree(fix_question):
    compact, padded = (wrapped(fix_question=fix_question, compaction=c) for c in (True, False))
    d = compact.prepare(PAIR).n_features
    masks = some_masks(d, 80)
    found, expected = (values(own, own.prepare(PAIR), masks) for own in (compact, padded))
    np.testing.assert_array_equal(found, expected)
    assert 0 < found.mean() < 1


def test_a_long_context_beyond_the_tested_length():
    model = wrapped()
    given = model.prepare((tiny.text(8), tiny.text(150, seed=9)))
    masks = some_masks(given.n_features, 8)
    assert isinstance(model.compaction, Compaction)
    expected = overlaps_by_hand(model, AttentionMask()(given, masks, 0))
    np.testing.assert_allclose(values(model, given, masks), expected, atol=1e-6)


def test_rows_of_many_inputs_share_a_batch(model):
    pairs = [(tiny.text(n, seed=n), tiny.text(3 * n, seed=50 + n)) for n in (1, 4, 7)]
    inputs = [model.prepare(pair) for pair in pairs]
    parts = [AttentionMask()(own, some_masks(own.n_features, 6)[1:], 0) for own in inputs]
    together = model.submit(parts).outputs()[:, 0]
    apart = np.concatenate([model.submit([part]).outputs()[:, 0] for part in parts])
    np.testing.assert_array_equal(together, apart)
    expected = np.concatenate([overlaps_by_hand(model, part) for part in parts])
    np.testing.assert_allclose(together, expected, atol=1e-6)


def test_the_whole_input_is_read_once(model, monkeypatch):
    read = []
    forward = type(model).forward
    monkeypatch.setattr(
        type(model),
        "forward",
        lambda self, batch, *a, **k: read.append(len(batch.ids)) or forward(self, batch, *a, **k),
    )
    e = pertinent.explain(model, PAIR, method="leave-one-out")
    assert sum(read) == 1 + len(e.features) + 1 + 3  # the prediction, each feature, and four of them again
    read.clear()
    given = model.prepare(PAIR)
    for _ in range(2):
        values(model, given, np.eye(given.n_features, dtype=bool)[:4])
    assert read == [5, 4]  # with a row for the answer, and without


def test_answers_are_forgotten_with_their_inputs():
    model = wrapped()
    given = model.prepare(PAIR)
    assert model.details(given)["answer"]
    assert len(model.head.references) == len(model.head.answers) == 1
    del given
    gc.collect()
    assert len(model.head.references) == len(model.head.answers) == 0


def test_the_answer_is_a_part_of_the_context(model):
    given = model.prepare(PAIR)
    whole = TokenRows(given.tokens, np.ones((1, len(given.tokens.ids)), dtype=bool))
    places = sorted(place for place, _ in answer_by_hand(model, whole, 0))
    words = CONTEXT.split()[places[0] - 7 : places[-1] - 6]  # after [CLS], five words and [SEP]
    assert model.details(given)["answer"] == " ".join(words)
    assert model.details(given) == {"answer": " ".join(words)}


# -- inputs ------------------------------------------------------------------------------------


def test_the_question_is_fixed_unless_it_is_not(model):
    free = wrapped(fix_question=False)
    for raw in (PAIR, (QUESTION, CONTEXT), [QUESTION, CONTEXT], {"query": QUESTION, "document": CONTEXT}):
        assert model.prepare(raw).features == tuple(CONTEXT.split())
        assert free.prepare(raw).features == tuple(QUESTION.split() + CONTEXT.split())
    own = Text(QUESTION, CONTEXT, fixed="second")
    assert model.prepare(own).features == free.prepare(own).features == tuple(QUESTION.split())


def test_a_fixed_question_is_read_whatever_is_removed(model):
    given = model.prepare(PAIR)
    rows = AttentionMask()(given, some_masks(given.n_features), 0)
    assert rows.attend[:, : 1 + 5 + 1].all()


@pytest.mark.parametrize(
    ("raw", "several"),
    [
        (PAIR, False),
        ((QUESTION, CONTEXT), False),
        ([QUESTION, CONTEXT], False),
        (Text(QUESTION, CONTEXT), False),
        ([PAIR, PAIR], True),
        ([(QUESTION, CONTEXT)], True),
    ],
)
def test_one_input_or_several(model, raw, several):
    assert (model.split(raw) is not None) == several
    found = pertinent.explain(model, raw, method="random")
    assert isinstance(found, pertinent.Explanations) == several


def test_a_data_frame_of_questions(model):
    pandas = pytest.importorskip("pandas")
    found = pertinent.explain(model, pandas.DataFrame([PAIR, PAIR]), method="leave-one-out")
    assert [e.features for e in found] == [tuple(CONTEXT.split())] * 2


def test_another_question_is_another_input(model):
    other = {**PAIR, "question": tiny.text(6, seed=8)}
    assert model.prepare(PAIR).fingerprint != model.prepare(other).fingerprint
    both = pertinent.explain(model, [PAIR, other], method="leave-one-out")
    for e, raw in zip(both, [PAIR, other], strict=True):
        np.testing.assert_array_equal(e.scores, pertinent.explain(model, raw, method="leave-one-out").scores)
    assert not np.array_equal(both[0].scores, both[1].scores)


def test_options_are_part_of_the_model(model):
    assert wrapped().fingerprint == model.fingerprint
    for options in ({"max_answer_length": 3}, {"no_answer": True}, {"max_length": 50}):
        assert wrapped(**options).fingerprint != model.fingerprint


def test_a_long_context_is_truncated_and_said():
    model = wrapped(max_length=20)
    e = pertinent.explain(model, (QUESTION, tiny.text(40)), method="leave-one-out")
    assert e.notes == ("truncated to 20 tokens: 12 of 40 words are seen",)


@pytest.mark.parametrize("features", ["tokens", "sentences", [(1, 0, 5), (1, 6, 12)]])
def test_features_of_any_size(model, features):
    e = pertinent.explain(model, PAIR, method="leave-one-out", features=features)
    assert e.prediction.values.tolist() == [1.0]


def test_sub_words_share_a_feature(model):
    e = pertinent.explain(model, ("w1 ?", "w1,w2 w3."), method="leave-one-out")
    assert e.features == ("w1", ",", "w2", "w3", ".")


# -- explanations ------------------------------------------------------------------------------


METHODS = list(explainers.all())


@pytest.mark.parametrize("method", METHODS)
def test_every_method(model, method):
    explainer = explainers.make(method)
    options = {"budget": small_budget(explainer, 9), "seed": 0, "sparsity": (0.2, 0.5)}
    options |= {"steps": 20} if method == "meaningful-perturbation" else {}
    pair = {"question": QUESTION, "context": " ".join(CONTEXT.split()[:9])}
    if refusal := explainer.refusal(model):
        with pytest.raises(PertinentError, match=f"{re.escape(refusal)}|only table rows"):
            pertinent.explain(model, pair, method=method, **options)
        return
    e = pertinent.explain(model, pair, method=method, **options)
    again = pertinent.explain(model, pair, method=method, **options)
    assert np.isfinite(e.scores).all()
    np.testing.assert_array_equal(e.scores, again.scores)
    assert (e.classes, e.prediction.values.tolist()) == (("answer overlap",), [1.0])
    if method != "random":
        assert np.ptp(e.scores) > 0


@pytest.mark.parametrize("metric", ["sufficiency", "comprehensiveness", "insertion", "deletion"])
def test_metrics(model, metric):
    e = pertinent.explain(model, PAIR, method="kernel-shap", budget=200, sparsity=0.2)
    measured = pertinent.evaluate(model, e, metrics=[metric])
    found = next(iter(measured.explanations[0].measures[metric].values()))
    kept = e.mask(0.2)
    given = model.prepare(PAIR)
    if metric in ("sufficiency", "comprehensiveness"):
        rows = AttentionMask()(given, (kept if metric == "sufficiency" else ~kept)[None], 0)
        assert found == pytest.approx(1 - overlaps_by_hand(model, rows)[0], abs=1e-6)
    assert np.isfinite(found)


@pytest.mark.parametrize(
    "method", ["leave-one-out", "kernel-shap", "parallel-local-search", "gradient-search"]
)
def test_the_batch_size_changes_nothing(model, method):
    inputs = [PAIR, (tiny.text(3), tiny.text(20, seed=7)), (tiny.text(9), tiny.text(4, seed=6))]
    found = [
        pertinent.explain(model, inputs, method=method, budget=30, batch_size=size, seed=1, sparsity=0.3)
        for size in (1, 37, None)
    ]
    for several in zip(*found, strict=True):
        for e in several[1:]:
            np.testing.assert_allclose(e.scores, several[0].scores, atol=1e-5)


def test_saved_and_read_again(model, tmp_path):
    pytest.importorskip("pyarrow")
    inputs = [PAIR, {**PAIR, "question": tiny.text(6, seed=8)}]
    options = {"method": "kernel-shap", "budget": 100, "out": tmp_path / "run.parquet"}
    found = pertinent.explain(model, inputs, **options)
    read = pertinent.read(tmp_path / "run.parquet")
    before = pertinent.evaluate(model, found, metrics=["sufficiency"])
    after = pertinent.evaluate(model, read, metrics=["sufficiency"])
    for e, again, i in zip(found, read, inputs, strict=True):
        np.testing.assert_array_equal(e.scores, again.scores)
        assert again.input.text == Text(i["question"], i["context"], fixed="first")
        assert model.details(again.input)["answer"] == model.details(e.input)["answer"] != ""
        assert model.prepare(again.input.raw).fingerprint == e.input.fingerprint
    measures = [[e.measures for e in own.explanations] for own in (before, after)]
    assert measures[0] == measures[1]


def test_a_journal_goes_on_where_it_stopped(model, tmp_path):
    pytest.importorskip("pyarrow")
    pairs = [(tiny.text(4, seed=s), CONTEXT) for s in range(4)]
    options = {"method": "shapley-sampling", "samples": 3, "seed": 2}
    out = tmp_path / "run.parquet"

    def until_two(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pertinent.explain(model, pairs, out=out, progress=until_two, batch_size=40, **options)
    resumed = pertinent.explain(model, pairs, out=out, **options)
    for e, again in zip(pertinent.explain(model, pairs, **options), resumed, strict=True):
        np.testing.assert_array_equal(e.scores, again.scores)


def test_a_learned_explainer(model):
    inputs = [(tiny.text(3, seed=s), tiny.text(6, seed=90 + s)) for s in range(8)]
    fitted = pertinent.fit(model, inputs, teacher="leave-one-out", epochs=1, progress=False)
    e = pertinent.explain(model, inputs[0], method=fitted)
    assert e.scores.shape == (6,)


# -- gradients ---------------------------------------------------------------------------------


def log_probability_by_hand(model, given, ids):
    """Of the answer on the whole input, if these are the ids."""
    whole = TokenRows(given.tokens, np.ones((1, len(given.tokens.ids)), dtype=bool))
    places = sorted(place for place, _ in answer_by_hand(model, whole, 0))
    with torch.no_grad():
        found = model.model(torch.tensor(ids)[None], token_type_ids=torch.tensor(given.tokens.types)[None])
    context = given.tokens.char_spans[:, 0] == 1
    total = 0.0
    for logits, place in ((found.start_logits, places[0]), (found.end_logits, places[-1])):
        own = logits[0].double().numpy()
        total += own[place] - np.log(np.exp(own[context]).sum())
    return total


def test_integrated_gradients_add_up_to_the_change_of_the_log_probability():
    model = wrapped()
    with torch.no_grad():
        for parameter in model.model.parameters():
            parameter.div_(2)  # smooth enough to be integrated
    e = pertinent.explain(model, PAIR, method="integrated-gradients", points=200)
    given = model.prepare(PAIR)
    masked = np.where(given.tokens.feature >= 0, given.tokens.mask_id, given.tokens.ids)
    change = log_probability_by_hand(model, given, given.tokens.ids) - log_probability_by_hand(
        model, given, masked
    )
    assert e.scores.sum() == pytest.approx(change, abs=2e-3)
    assert abs(change) > 0.05


@pytest.mark.parametrize("first", ["values", "gradients"])
@pytest.mark.parametrize("name", ["attention-mask", "mask-token", "zero-vector"])
def test_the_values_beside_gradients_are_overlaps(first, name):
    model = wrapped()
    given = model.prepare(PAIR)
    masks, removal = some_masks(given.n_features, 12), removals.make(name)
    if first == "values":
        values(model, given, masks, removal)
    part = BatchPart(MaskGradients(masks, 0), given, removal, np.arange(12), 0)
    found, gradients = MaskGradients.submit(model, [part]).outputs()
    np.testing.assert_allclose(found[:, 0], values(model, given, masks, removal), atol=1e-6)
    assert np.abs(gradients).max() > 0
    assert np.isfinite(gradients).all()
    assert model.details(given)["answer"] == wrapped().details(given)["answer"] != ""


def test_gradients_along_a_mask_are_slopes_of_the_log_probability():
    """At the whole input: by how much does the log-probability fall as one word is hidden a little?"""
    from pertinent.models.tokens import attention_bias

    model = wrapped()
    given = model.prepare(PAIR)
    d = given.n_features
    part = BatchPart(MaskGradients(np.ones((1, d), dtype=bool), 0), given, AttentionMask(), np.arange(1), 0)
    _, gradients = MaskGradients.submit(model, [part]).outputs()
    whole = TokenRows(given.tokens, np.ones((1, len(given.tokens.ids)), dtype=bool))
    places = sorted(place for place, _ in answer_by_hand(model, whole, 0))
    context = torch.tensor(given.tokens.char_spans[:, 0] == 1)
    model.model.double()

    def log_p(weights):
        bias = attention_bias.attention_bias(torch.tensor(weights)[None], None, torch.float64)
        with torch.no_grad(), attention_bias.in_use(model.model):
            found = model.model(
                torch.tensor(given.tokens.ids)[None],
                token_type_ids=torch.tensor(given.tokens.types)[None],
                attention_mask=bias,
            )
        logs = [
            (own[0] + torch.tensor(weights).log()).masked_fill(~context, -torch.inf).log_softmax(0)
            for own in (found.start_logits, found.end_logits)
        ]
        return float(logs[0][places[0]] + logs[1][places[-1]])

    for feature in {0, d - 1, *given.tokens.feature[places].tolist()}:
        less = np.where(given.tokens.feature == feature, 1 - 1e-5, 1.0)
        slope = (log_p(np.ones(len(less))) - log_p(less)) / 1e-5
        assert gradients[0, feature] == pytest.approx(slope, rel=1e-2, abs=1e-3)


# -- a reader whose rule is known --------------------------------------------------------------

SKY = "w1 w2 w3 a w4 w5"
"""The rule: the answer is the word after "a"; without it, the last word that is seen."""


class RuleForQuestionAnswering(torch.nn.Module):
    """Answers with the seen token after the word "a", or else with the last one."""

    def __init__(self, no_answer=False):
        super().__init__()
        self.config = transformers.BertConfig(**tiny.BASE)
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.no_answer = no_answer

    def forward(self, input_ids, attention_mask=None):
        seen = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        logits = torch.zeros(input_ids.shape) + self.weight
        for row, ids in enumerate(input_ids.tolist()):
            slots = [slot for slot, own in enumerate(ids) if seen[row, slot] and own > 4]
            for slot in slots:
                logits[row, slot] = slot / 1000
            for before, after in pairwise(slots):
                if ids[before] == tiny.VOCABULARY["a"]:
                    logits[row, after] = 5.0
            if self.no_answer and logits[row].max() < 1:
                logits[row, 0] = 2.0
        return SimpleNamespace(start_logits=logits, end_logits=logits)


def after_a(kept):
    """The number of the word that the rule answers with."""
    words = SKY.split()
    kept = [i for i, own in enumerate(kept) if own]
    for before, after in pairwise(kept):
        if words[before] == "a":
            return after
    return kept[-1] if kept else None


@pytest.fixture(scope="module")
def rule():
    return pertinent.wrap((RuleForQuestionAnswering(), tiny.tokenizer(model_max_length=200)))


def test_the_words_that_decide_are_marked(rule):
    e = pertinent.explain(rule, ("w9", SKY), method="leave-one-out")
    assert rule.details(e.input)["answer"] == "w4"
    assert e.scores.tolist() == [0, 0, 0, 1, 1, 0]
    assert {word for word, _ in e.top(2)} == {"a", "w4"}


def test_shapley_values_of_the_rule_are_those_of_its_game(rule):
    e = pertinent.explain(rule, ("w9", SKY), method="exact-shapley")
    d = len(SKY.split())
    value = {
        kept: float(after_a([i in kept for i in range(d)]) == 4)
        for k in range(d + 1)
        for kept in combinations(range(d), k)
    }
    for i in range(d):
        others = [j for j in range(d) if j != i]
        expected = sum(
            (value[tuple(sorted((*own, i)))] - value[own]) / (d * comb(d - 1, k))
            for k in range(d)
            for own in combinations(others, k)
        )
        assert e.scores[i] == pytest.approx(expected, abs=1e-9)


def test_a_search_finds_what_the_answer_needs(rule):
    for objective, best in (("sufficiency", 0.0), ("comprehensiveness", 1.0)):
        e = pertinent.explain(
            rule, ("w9", SKY), method="exhaustive-search", objective=objective, sparsity=0.34
        )
        measured = pertinent.evaluate(rule, e, metrics=[objective]).explanations[0].measures[objective]
        assert list(measured.values()) == [best]
        chosen = {e.features[i] for i in np.flatnonzero(e.mask(0.34))}
        assert "w4" in chosen or (objective == "comprehensiveness" and "a" in chosen)


def test_a_reader_may_say_that_there_is_no_answer():
    made = RuleForQuestionAnswering(no_answer=True)
    model = pertinent.wrap((made, tiny.tokenizer(model_max_length=200)), no_answer=True)
    e = pertinent.explain(model, ("w9", SKY), method="leave-one-out")
    assert e.scores.tolist() == [0, 0, 0, 1, 1, 0]
    e = pertinent.explain(model, ("w9", "w1 w2 w3"), method="leave-one-out")
    assert model.details(e.input)["answer"] == ""
    assert e.prediction.values.tolist() == [1.0]
    assert e.scores.tolist() == [0, 0, 0]  # without any of the words there is no answer either
    given = model.prepare(("w9", "w1 w2"))
    assert values(model, given, np.array([[False, False]])).tolist() == [1.0]


# -- errors ------------------------------------------------------------------------------------


def test_a_pipeline_is_unpacked():
    model = pertinent.wrap(
        SimpleNamespace(task="question-answering", model=reader(), tokenizer=tiny.tokenizer())
    )
    assert model.classes == ("answer overlap",)
    with pytest.raises(ModelError, match=r"'text-to-speech'; only .*'question-answering'"):
        pertinent.wrap(SimpleNamespace(task="text-to-speech", model=reader(), tokenizer=tiny.tokenizer()))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("only a question", r"pass \(question, context\)"),
        ({"text": "only a text"}, r"pass \(question, context\)"),
        (("", CONTEXT), "blank"),
        ({"question": " ", "context": CONTEXT}, "The question is empty"),
        ({"question": QUESTION, "context": ""}, "blank"),
        ({"question": QUESTION}, "'question' and 'context'"),
        ({**PAIR, "id": "7"}, "'question' and 'context'"),
        (3, "must be a string, a pair"),
    ],
)
def test_what_cannot_be_read(model, raw, message):
    with pytest.raises(InputError, match=message):
        pertinent.explain(model, raw)


@pytest.mark.parametrize("n_words", [6, 7, 20])
def test_a_question_without_room_for_the_context(n_words):
    model = wrapped(max_length=10)
    pair = (tiny.text(n_words), CONTEXT)
    if n_words == 6:  # and three special tokens
        assert model.prepare(pair).n_features == 1
        return
    with pytest.raises(InputError, match="leaves none for the context"):
        pertinent.explain(model, pair)
    with pytest.raises(InputError, match="The context is fixed and too long"):
        pertinent.explain(model, Text(QUESTION, CONTEXT, fixed="second"))
    with pytest.raises(InputError, match="4 tokens leave none for the context"):
        pertinent.explain(wrapped(max_length=4, fix_question=False), ("w1 w2", "w3"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ["a"]}, "Unknown question-answering option 'classes'"),
        ({"max_answer_length": 0}, "`max_answer_length` must be"),
        ({"fix_question": "no"}, "`fix_question` must be"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(SettingError, match=message):
        wrapped(**options)


def test_no_answer_needs_a_first_token_that_stands_for_it():
    plain = tiny.tokenizer(model_max_length=200)
    plain.backend_tokenizer.post_processor = None
    with pytest.raises(SettingError, match="`no_answer` must be False"):
        pertinent.wrap((reader(), plain), no_answer=True)


def test_a_head_that_gives_no_logits_of_spans():
    class BeamForQuestionAnswering(RuleForQuestionAnswering):
        def forward(self, input_ids, attention_mask=None):
            return SimpleNamespace(top_starts=super().forward(input_ids, attention_mask).start_logits)

    model = pertinent.wrap((BeamForQuestionAnswering(), tiny.tokenizer()))
    with pytest.raises(ModelError, match="must return start_logits and end_logits"):
        pertinent.explain(model, PAIR)


def test_an_answer_of_nan_is_said():
    made = reader()
    made.qa_outputs.bias.data[:] = torch.nan
    model = pertinent.wrap((made, tiny.tokenizer(model_max_length=200)))
    with pytest.raises(ModelError, match="NaN"):
        pertinent.explain(model, PAIR)


def test_attacks_need_a_decision(model):
    with pytest.raises(PertinentError, match="not a decision"):
        pertinent.explain(model, PAIR, method="greedy-as")


def test_a_scale_of_logits_is_refused(model):
    with pytest.raises(SettingError, match="with plain values, which have no probabilities"):
        pertinent.explain(model, PAIR, method="kernel-shap", scale="logit")


def test_a_reader_is_not_called_a_regressor(model):
    e = pertinent.explain(model, PAIR, method="leave-one-out")
    refused = []
    for metric in sorted(m.name for m in pertinent.list_metrics()):
        try:
            pertinent.evaluate(model, e, metric)
        except PertinentError as error:
            refused.append(str(error))
    for method, options in (("anchors", {}), ("greedy", {}), ("lime", {"scale": "logit"})):
        with pytest.raises(PertinentError) as caught:
            pertinent.explain(model, PAIR, method=method, **options)
        refused.append(str(caught.value))
    for metric in ("sufficiency", "comprehensiveness"):
        with pytest.raises(SettingError, match="for a model of plain values") as raised:
            pertinent.evaluate(model, e, f"{metric}:scale=weight-of-evidence")
        refused.append(str(raised.value))
    assert len(refused) > 9
    assert not [message for message in refused if "regressor" in message]


def test_a_reader_with_random_parameters_is_compared_with_its_own_answers():
    from pertinent.models.torch.randomised import RandomisedModel, layers_of

    model = wrapped()
    given = model.prepare(PAIR)
    whole = np.ones((1, given.n_features), dtype=bool)
    assert values(model, given, whole) == [1]
    copied = RandomisedModel(model, seed=0)
    for layer in layers_of(model):
        copied.randomise(layer)
        assert values(copied.model, given, whole) == [1]
    assert copied.model.details(given) != model.details(given)
