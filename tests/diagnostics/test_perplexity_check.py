"""Perplexity checks of language models, compared with values computed by hand."""

import pickle
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch

import pertinent
from pertinent import Prompt
from pertinent.asks import TokenPerplexity
from pertinent.diagnostics.check_removal import random_masks
from pertinent.engine.engine import Engine
from pertinent.errors import ModelError, PertinentError
from pertinent.models.tokens import token_perplexity
from pertinent.removals.base import removals
from pertinent.runs.executor import LocalExecutor, LocalWorkers
from pertinent.runs.session import Session
from tests import tiny_lm

PROMPT = Prompt("Who keeps the map?", sources=["Ann keeps the key.", "Bob keeps the map."], answer=" Bob")
PROMPTS = ["Ann keeps the key. Who keeps it?", "Bob keeps the lamp and the map. Who keeps it?"]
REMOVALS = ("slice-out", "pad-token", "attention-mask")


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap((tiny_lm.model("llama"), tiny_lm.tokenizer()))


def surprise(network, ids, counted):
    with torch.no_grad():
        logs = network(input_ids=torch.tensor([ids])).logits[0].log_softmax(dim=-1).numpy()
    return -np.mean([logs[place - 1, ids[place]] for place in counted])


def asked(model, questions, **options):
    """Return the answers to `TokenPerplexity` for (input, removal, masks), computed in one run."""

    def ask(masks, _input, _removal):
        return (yield TokenPerplexity(masks))

    session = Session(model)
    jobs = [
        session.job(number, input, partial(ask, masks), removals.make(removal))
        for number, (input, removal, masks) in enumerate(questions)
    ]
    done = sorted(Engine(model, **options).run(jobs, len(jobs)), key=lambda own: own.key)
    assert not any(own.error for own in done)
    return [own.result for own in done]


def test_surprise_is_the_mean_over_kept_tokens(model):
    input = model.prepare(PROMPT, "sources")
    tokens = input.tokens
    masks = np.array([[True, True], [True, False], [False, True]])
    found, padded = asked(model, [(input, name, masks) for name in ("slice-out", "pad-token")])
    for number, mask in enumerate(masks):
        kept = (tokens.feature < 0) | mask[tokens.feature]
        places = np.flatnonzero(kept)
        removable = [place for place, token in enumerate(places) if tokens.feature[token] >= 0]
        wanted = surprise(model.model, tokens.ids[kept].tolist(), removable)
        np.testing.assert_allclose(found[number], wanted, atol=1e-4)
        ids = np.where(kept, tokens.ids, tokens.pad_id)
        counted = np.flatnonzero(kept & (tokens.feature >= 0))
        np.testing.assert_allclose(padded[number], surprise(model.model, ids.tolist(), counted), atol=1e-4)


def test_removals_are_compared_on_the_same_tokens(model, tmp_path):
    prompts = [
        Prompt(f"{name} keeps the key. Bob keeps the map.", answer=" Bob") for name in ("Ann", "Cleo")
    ] * 12
    check = pertinent.check_removal(model, prompts, draws=2, shares=[0.5], progress=False)
    assert {"slice-out", "attention-mask", "pad-token"} <= set(check.removals)
    assert "mask-token" in check.skipped
    assert check.default == "slice-out"
    assert check.losses[check.best].mean == 0
    assert "perplexity" in check.recommendation
    assert check.table().rows[0].cells
    assert check.chart().panels
    check.save(tmp_path / "check.json")
    again = pertinent.PerplexityCheck.read(tmp_path / "check.json")
    assert again.rows == check.rows
    assert again.recommendation == check.recommendation
    assert "perplexity" in check.to_html()
    e = pertinent.explain(model, prompts[0], "leave-one-out", check=check)
    assert isinstance(e.warnings, tuple)


def test_verdicts_of_removals():
    from pertinent.diagnostics.perplexity_check import PerplexityCheck, PerplexityRow

    rows = tuple(
        PerplexityRow(number, removal, share, 1.0 + share * (removal == "pad-token") * (2 + 0.01 * number))
        for number in range(24)
        for removal in ("slice-out", "pad-token")
        for share in (0.0, 0.5)
    )
    check = PerplexityCheck(rows=rows, default="pad-token", features="words", draws=1, seed=0)
    assert check.best == "slice-out"
    assert check.verdict("pad-token") == "badly out"
    assert check.verdict("slice-out") == "in distribution"
    np.testing.assert_allclose(check.score("slice-out", 0.5).mean, np.e)


def test_labels_and_models_with_an_encoder_are_refused(model):
    with pytest.raises(PertinentError, match="labels"):
        pertinent.check_removal(model, [PROMPT], ["a"])
    other = pertinent.wrap((tiny_lm.model("t5"), tiny_lm.ending_tokenizer()))
    with pytest.raises(ModelError, match="perplexity cannot be computed"):
        pertinent.check_removal(other, [PROMPT], progress=False)


def test_prompts_of_different_length_share_batches(model):
    prompts = [
        PROMPT,
        Prompt("Who keeps the map?", sources=["Bob keeps the map and the key."], answer=" Bob"),
    ]
    inputs = [model.prepare(own, "words") for own in prompts]
    masks = [random_masks(own, 0.5, 6, 0) for own in inputs]
    questions = [(own, name, some) for own, some in zip(inputs, masks, strict=True) for name in REMOVALS]
    seen = []
    together = asked(model, questions, progress=seen.append)
    for one, question in zip(together, questions, strict=True):
        alone = [asked(model, [(*question[:2], row[None])])[0][0] for row in question[2]]
        np.testing.assert_allclose(one, alone, atol=1e-5)
    assert seen[-1].done == len(questions)


def test_logits_are_computed_in_chunks_of_rows(model, monkeypatch):
    input = model.prepare(PROMPT, "words")
    question = [(input, "slice-out", random_masks(input, 0.5, 6, 0))]
    at_once = asked(model, question)[0]
    monkeypatch.setattr(token_perplexity, "TOKENS_PER_PASS", 1)
    np.testing.assert_allclose(asked(model, question)[0], at_once, atol=1e-6)


def test_a_model_of_classes_has_no_perplexity():
    with pytest.raises(ModelError, match="perplexity cannot be computed"):
        TokenPerplexity.submit(pertinent.wrap(lambda texts: [[0.5, 0.5] for _ in texts]), [])


def test_a_failing_prompt_does_not_stop_the_others(model, monkeypatch):
    plain = model.compaction.holds
    spoilt = len(model.prepare(PROMPTS[1], "words").tokens.ids)

    def fails(length):
        if length == spoilt:
            raise RuntimeError("no lamp")
        return plain(length)

    monkeypatch.setattr(model.compaction, "holds", fails)
    found = pertinent.check_removal(model, PROMPTS, draws=2, removals=["pad-token", "attention-mask"])
    assert {row.input for row in found.rows} == {0}
    assert [(f.index, f.reason) for f in found.failures] == [
        (1, "pad-token: The model raised RuntimeError: no lamp")
    ]


def test_progress_counts_every_removal(model):
    seen = []
    pertinent.check_removal(
        model, PROMPTS, draws=2, removals=["pad-token", "slice-out"], progress=seen.append
    )
    assert (seen[-1].done, seen[-1].total) == (4, 4)


class PickledWorkers(LocalWorkers):
    """A worker in this process to which tasks and inputs are sent as bytes, as are the results."""

    def results(self, task, items, total, *, quiet=False):
        task, items = pickle.loads(pickle.dumps((task, list(items))))
        results = list(super().results(task, items, total, quiet=quiet))
        assert len(results) == total
        return iter(pickle.loads(pickle.dumps(results)))


class PickledExecutor(LocalExecutor):
    @contextmanager
    def open(self, run):
        yield PickledWorkers(run)


def test_a_cluster_gives_the_result_of_one_process(model):
    own = {"draws": 2, "removals": ["slice-out", "pad-token"], "progress": False}
    here = pertinent.check_removal(model, PROMPTS, **own)
    there = pertinent.check_removal(model, PROMPTS, cluster=PickledExecutor(), **own)
    assert here.rows == there.rows
