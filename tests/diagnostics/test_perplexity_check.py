"""How surprised a language model is by what is left of prompts, beside a plain computation by hand."""

import numpy as np
import pytest
import torch

import pertinent
from pertinent import Prompt
from pertinent.errors import ModelError, PertinentError, SettingError
from pertinent.removal.base import removals
from tests import tiny_lm

PROMPT = Prompt("Who keeps the map?", sources=["Ann keeps the key.", "Bob keeps the map."], answer=" Bob")


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap((tiny_lm.model("llama"), tiny_lm.tokenizer()))


def surprise(network, ids, counted):
    with torch.no_grad():
        logs = network(input_ids=torch.tensor([ids])).logits[0].log_softmax(dim=-1).numpy()
    return -np.mean([logs[place - 1, ids[place]] for place in counted])


def test_kept_tokens_are_counted_each_given_what_is_read_before_it(model):
    input = model.prepare(PROMPT, "sources")
    tokens = input.tokens
    masks = np.array([[True, True], [True, False], [False, True]])
    slice_out, pad = (removals.make(name).bind(model) for name in ("slice-out", "pad-token"))
    found = model.surprise(slice_out, input, masks, 0)
    padded = model.surprise(pad, input, masks, 0)
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
    assert pertinent.PerplexityCheck.chart([check]).panels
    check.save(tmp_path / "check.json")
    again = pertinent.PerplexityCheck.read(tmp_path / "check.json")
    assert again.rows == check.rows
    assert again.recommendation == check.recommendation
    assert "perplexity" in check.to_html()
    e = pertinent.explain(model, prompts[0], "leave-one-out", check=check)
    assert isinstance(e.warnings, tuple)


def test_removals_that_are_badly_out_are_said():
    from pertinent.diagnostics.perplexity_check import PerplexityCheck, Surprised

    rows = tuple(
        Surprised(number, removal, share, 1.0 + share * (removal == "pad-token") * (2 + 0.01 * number))
        for number in range(24)
        for removal in ("slice-out", "pad-token")
        for share in (0.0, 0.5)
    )
    check = PerplexityCheck(rows=rows, default="pad-token", features="words", draws=1, seed=0)
    assert check.best == "slice-out"
    assert check.verdict("pad-token") == "badly out"
    assert check.verdict("slice-out") == "in distribution"
    np.testing.assert_allclose(check.perplexity("slice-out", 0.5).mean, np.e)


def test_labels_and_models_with_an_encoder_are_refused(model):
    with pytest.raises(PertinentError, match="labels"):
        pertinent.check_removal(model, [PROMPT], ["a"])
    other = pertinent.wrap((tiny_lm.model("t5"), tiny_lm.ending_tokenizer()))
    with pytest.raises(ModelError, match="perplexity is not known"):
        pertinent.check_removal(other, [PROMPT], progress=False)


def test_a_prompt_that_fails_does_not_take_the_others_down(model, monkeypatch):
    plain = model.surprise

    def spoilt(removal, input, masks, seed):
        if "lamp" in "".join(input.features):
            raise RuntimeError("no lamp")
        return plain(removal, input, masks, seed)

    monkeypatch.setattr(model, "surprise", spoilt)
    prompts = ["Ann keeps the key. Who keeps it?", "Bob keeps the lamp. Who keeps it?"]
    found = pertinent.check_removal(model, prompts, draws=2)
    assert {row.input for row in found.rows} == {0}
    assert [(f.index, f.reason) for f in found.failures] == [(1, "no lamp")]


def test_a_cluster_is_refused(model):
    with pytest.raises(SettingError, match="`cluster` must be left out for a language model"):
        pertinent.check_removal(model, ["Ann keeps the key."], cluster=pertinent.Cluster(workers=1))
