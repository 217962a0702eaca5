"""Gradients along soft masks, against finite differences in double precision through plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pertinent
from pertinent.asks import MaskGradients, Values
from pertinent.errors import SettingError
from pertinent.removals.base import removals
from tests import tiny
from tests.models.test_gradients import (
    STEP,
    Plain,
    answer,
    answers,
    close,
    network,
    plain_gradients,
    some_masks,
)

FILLED_IN = ("mask-token", "pad-token", "zero-vector")


def soft(d, rows=3, seed=0):
    return np.random.default_rng(seed).uniform(0.05, 0.95, size=(rows, d))


@pytest.mark.parametrize("removal", ["constant", "mean", "blur"])
def test_images(removal):
    module = network(2 * 6 * 6)
    model = pertinent.wrap(module, kind="image")
    image = np.random.default_rng(0).random((2, 6, 6)).astype(np.float32)
    given, how = model.prepare(image, "patches:3"), removals.make(removal).bind(model)
    found = answer(model, image, MaskGradients(soft(4), 2), removal=removal, features="patches:3")
    for mask, gradients in zip(soft(4), found.gradients, strict=True):
        close(gradients, plain_gradients(module, given, how, mask, 2))


def test_rows_with_a_group():
    module = network(5)
    background = np.random.default_rng(1).normal(size=(9, 5))
    model = pertinent.wrap(
        module, kind="table", background=background, columns=list("abcde"), groups={"bc": ["b", "c"]}
    )
    row = np.array([1.0, 0.0, 1.0, -2.0, 0.5])
    given, how = model.prepare(row), removals.make("mean").bind(model)
    found = answer(model, row, MaskGradients(soft(4), 1), removal="mean")
    for mask, gradients in zip(soft(4), found.gradients, strict=True):
        close(gradients, plain_gradients(module, given, how, mask, 1))


@pytest.mark.parametrize("architecture", ["bert", "distilbert"])
def test_weights_of_attention(architecture):
    model, plain = pertinent.wrap(tiny.pair(architecture)), Plain(architecture)
    text = tiny.text(7, seed=1)
    given = model.prepare(text)
    found = answer(model, text, MaskGradients(soft(7), 1))
    for mask, p, gradients in zip(soft(7), found.values, found.gradients, strict=True):
        close(gradients, plain.gradients(given, mask, 1))
        weights = np.append(mask, 1.0)[given.tokens.feature]
        assert p[1] == pytest.approx(np.exp(plain.log_probability(given.tokens, weights, 1)), abs=1e-5)


class Embedded:
    """A transformer in double precision, at word embeddings between a text's and those of its filler."""

    def __init__(self, given, removal):
        self.module, self.given = tiny.model("bert", torch.float64), given
        tokens = given.tokens
        words = self.module.get_input_embeddings()
        with torch.no_grad():
            self.text = words(torch.tensor(tokens.ids)).numpy()
            if removal == "zero-vector":
                self.filler = np.zeros_like(self.text)
            else:
                filler = tokens.mask_id if removal == "mask-token" else tokens.pad_id
                self.filler = words(torch.full((len(tokens.ids),), filler)).numpy()

    def log_probability(self, mask, target):
        weights = np.append(mask, 1.0)[self.given.tokens.feature][:, None]
        point = torch.tensor(weights * self.text + (1 - weights) * self.filler)[None]
        types = torch.tensor(self.given.tokens.types)[None]
        with torch.no_grad():
            logits = self.module(inputs_embeds=point, token_type_ids=types).logits[0]
        return float(logits.log_softmax(dim=-1)[target])

    def gradients(self, mask, target):
        steps = STEP * np.eye(len(mask))
        ends = [[self.log_probability(mask + sign * step, target) for sign in (1, -1)] for step in steps]
        return np.array([(up - down) / (2 * STEP) for up, down in ends])


@pytest.mark.parametrize("removal", FILLED_IN)
def test_word_embeddings(removal):
    model = pertinent.wrap(tiny.pair("bert"))
    text = tiny.text(6, seed=2)
    plain = Embedded(model.prepare(text), removal)
    for masks in (soft(6), some_masks(6)):
        found = answer(model, text, MaskGradients(masks, 2), removal=removal)
        for mask, p, gradients in zip(masks, found.values, found.gradients, strict=True):
            close(gradients, plain.gradients(mask.astype(float), 2))
            assert p[2] == pytest.approx(np.exp(plain.log_probability(mask.astype(float), 2)), abs=1e-5)


@pytest.mark.parametrize("removal", ["attention-mask", *FILLED_IN])
def test_soft_masks_of_zeros_and_ones_are_masks(removal):
    model = pertinent.wrap(tiny.pair("bert"))
    text, masks = tiny.text(6, seed=3), some_masks(6)
    hard, of_numbers = (
        answer(model, text, MaskGradients(own, 0), removal=removal) for own in (masks, masks.astype(float))
    )
    np.testing.assert_array_equal(hard.values, of_numbers.values)
    np.testing.assert_array_equal(hard.gradients, of_numbers.gradients)
    values = answer(model, text, Values(masks), removal=removal)
    np.testing.assert_allclose(hard.values, values, atol=1e-5)


@pytest.mark.parametrize("removal", ["attention-mask", "mask-token"])
def test_texts_of_several_lengths_travel_together(removal):
    model = pertinent.wrap(tiny.pair("bert"))
    questions = [(tiny.text(n, seed=n), MaskGradients(soft(n, seed=n), n % 3)) for n in (3, 9, 5)]
    for (text, ask), found in zip(questions, answers(model, questions, removal=removal), strict=True):
        alone = answer(model, text, ask, removal=removal)
        np.testing.assert_allclose(found.values, alone.values, atol=1e-5)
        scale = np.abs(alone.gradients).max()
        np.testing.assert_allclose(found.gradients / scale, alone.gradients / scale, atol=1e-4)


@pytest.mark.parametrize("masks", [soft(4) + 1, soft(4) - 1, np.full((1, 4), np.nan), soft(3), soft(4)[0]])
def test_masks_that_make_no_sense_are_refused(masks):
    model = pertinent.wrap(network(4), kind="table")
    with pytest.raises(TypeError, match="asks must be"):
        answer(model, np.ones(4), MaskGradients(masks, 0), removal="constant")


def test_drawn_fillers_are_refused():
    model = pertinent.wrap(network(4), kind="table", background=np.eye(4))
    with pytest.raises(SettingError, match="fixed fill values"):
        answer(model, np.ones(4), MaskGradients(soft(4), 0), removal="background")
