"""Removals: what is kept stays, what is removed is gone, and draws depend on nothing but the question."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import pertinent
from pertinent.errors import SettingError
from pertinent.inputs.background import Background
from pertinent.inputs.image import image_input
from pertinent.inputs.table import Columns, table_input
from pertinent.removals.base import removals
from tests import tiny

IMAGE = image_input(np.random.default_rng(0).random((3, 8, 8)).astype(np.float32), "patches:4")
COLUMNS = Columns(("a", "b1", "b2", "c"), {"b": ["b1", "b2"]})
ROW = table_input([1.0, 1.0, 0.0, 5.0], COLUMNS)
BACKGROUND = Background(np.random.default_rng(1).integers(0, 2, (50, 4)) + 10.0)
MASKS3 = np.array([[1, 1, 1], [1, 0, 1], [0, 0, 0]], dtype=bool)
MASKS4 = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0]], dtype=bool)


IMAGES = Background.from_images(
    [image_input(each) for each in np.random.default_rng(2).random((1, 3, 8, 8)).astype(np.float32)]
)


def made(name, background=BACKGROUND):
    settings = {"background": background} if hasattr(removals.all()[name], "background") else {}
    return removals.make(name, settings)


@pytest.mark.parametrize("name", removals.for_kind("image"))
def test_images(name):
    rows = made(name, IMAGES)(IMAGE, MASKS4, 0)
    assert rows.shape == (3, 3, 8, 8)
    np.testing.assert_array_equal(rows[0], IMAGE.pixels)
    kept = MASKS4[1][IMAGE.labels]
    np.testing.assert_array_equal(rows[1][:, kept], IMAGE.pixels[:, kept])
    assert (rows[1][:, ~kept] != IMAGE.pixels[:, ~kept]).mean() > 0.9


@pytest.mark.parametrize("name", removals.for_kind("table"))
def test_tables(name):
    removal = made(name)
    rows = removal(ROW, MASKS3, 0).reshape(3, removal.draws, 4)
    assert (rows[0] == ROW.values).all()
    assert (rows[1][:, [0, 3]] == ROW.values[[0, 3]]).all()
    assert (rows[1][:, 1:3] != ROW.values[1:3]).any()


def test_values_filled_in():
    assert made("constant")(ROW, MASKS3, 0)[2].tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(made("mean")(ROW, MASKS3, 0)[2], BACKGROUND.values.mean(axis=0))
    middle = np.sort(BACKGROUND.values, axis=0)[24]
    np.testing.assert_array_equal(made("median-mode")(ROW, MASKS3, 0)[2], middle)
    mean = IMAGE.pixels.reshape(3, 64).mean(axis=1)
    filled = made("mean")(IMAGE, MASKS4, 0)[2]
    np.testing.assert_allclose(filled, np.broadcast_to(mean[:, None, None], (3, 8, 8)), rtol=1e-5)
    assert not made("constant")(IMAGE, MASKS4, 0)[2].any()


def test_a_blur_is_a_gaussian_average():
    from scipy.ndimage import gaussian_filter

    for sigma in (None, 2.0):
        blurred = removals.make("blur", {"sigma": sigma})(IMAGE, MASKS4, 0)[2]
        for mine, channel in zip(blurred, IMAGE.pixels, strict=True):
            expected = gaussian_filter(channel, sigma or 1.0, mode="nearest", truncate=3.0)
            np.testing.assert_allclose(mine, expected, atol=1e-5)


def test_noise_fills_its_range_and_no_more():
    samples = 2000
    noise = removals.make("uniform-noise", {"low": 2.0, "high": 3.0, "samples": samples})
    for given, masks, size in ((ROW, MASKS3[2:], 4), (IMAGE, MASKS4[2:], 3 * 8 * 8)):
        drawn = np.asarray(noise(given, masks, 0)).reshape(samples, size)
        assert 2 <= drawn.min() < 2.01 < 2.99 < drawn.max() <= 3
        np.testing.assert_allclose(drawn.mean(axis=0), 2.5, atol=5 / np.sqrt(12 * samples))
    wide = Background(np.array([[0.0, 10.0, -1.0, 5.0], [1.0, 30.0, 1.0, 5.5]]))
    noise = removals.make("uniform-noise", {"background": wide, "samples": samples})
    drawn = noise(ROW, MASKS3[2:], 0)
    np.testing.assert_allclose(drawn.min(axis=0), wide.values[0], atol=0.1)
    np.testing.assert_allclose(drawn.max(axis=0), wide.values[1], atol=0.1)
    assert ((drawn >= wide.values[0]) & (drawn <= wide.values[1])).all()


def test_a_group_comes_from_one_background_row():
    pairs = Background(np.array([[0.0, i, 100.0 + i, 0.0] for i in range(50)]))
    drawn = removals.make("background", {"background": pairs, "rows": 20})(ROW, MASKS3[1:2], 0)
    assert drawn.shape == (20, 4)
    np.testing.assert_array_equal(drawn[:, 2] - drawn[:, 1], np.full(20, 100.0))
    assert len(np.unique(drawn[:, 1])) == 20


def test_a_small_background_is_used_whole():
    small = Background(BACKGROUND.values[:5])
    removal = removals.make("background", {"background": small})
    assert removal.draws == 5
    np.testing.assert_array_equal(removal(ROW, MASKS3[2:], 0), small.values)


def test_background_rows_are_the_same_for_every_mask_and_input():
    """So a column that the model does not use scores 0, and inputs share their base value."""
    rows = np.random.default_rng(0).normal(size=(300, 3))

    def use_first(batch):
        p = 1 / (1 + np.exp(-batch[:, 0]))
        return np.stack([1 - p, p], axis=1)

    model = pertinent.wrap(use_first, background=rows)
    for method in ("kernel-shap", "shapley-sampling", "leave-one-out"):
        found = pertinent.explain(model, rows[:4], method, target=1, removal="background:rows=20")
        assert all(abs(e.scores[1:]).max() < 1e-12 for e in found)
        if found[0].base_values is not None:
            assert len({round(float(e.base_values[1]), 12) for e in found}) == 1


@pytest.mark.parametrize(("name", "given", "masks"), [
    ("uniform-noise", IMAGE, MASKS4), ("uniform-noise", ROW, MASKS3), ("background:rows=5", ROW, MASKS3),
])  # fmt: skip
def test_draws_depend_on_seed_input_and_mask_only(name, given, masks):
    removal = made(name) if ":" not in name else replace(removals.parse(name), background=BACKGROUND)
    one = removal(given, masks, 0)
    again = removal(given, masks[::-1], 0)
    n = removal.draws
    np.testing.assert_array_equal(one[-n:], again[:n])
    assert (removal(given, masks, 1)[-n:] != one[-n:]).any()


@pytest.fixture(scope="module")
def model():
    return pertinent.wrap(tiny.pair("bert"))


def by_hand(model, **arguments):
    with torch.no_grad():
        return model.model(**{k: torch.tensor(v)[None] for k, v in arguments.items()}).logits[0].numpy()


@pytest.mark.parametrize("name", [n for n in removals.for_kind("text") if removals.make(n).draws == 1])
def test_text_removals_on_tokens(model, name):
    given = model.prepare("w1 w2 w3 w4")
    masks = np.array([[1, 0, 1, 0], [1, 1, 1, 1]], dtype=bool)
    found = model.submit([made(name)(given, masks, 0)]).outputs()
    ids = given.tokens.ids.tolist()
    cls, w1, _, w3, _, sep = ids
    if name == "attention-mask":
        expected = by_hand(model, input_ids=ids, attention_mask=[1, 1, 0, 1, 0, 1])
    elif name == "slice-out":
        expected = by_hand(model, input_ids=[cls, w1, w3, sep])
    elif name == "mask-token":
        expected = by_hand(model, input_ids=[cls, w1, 4, w3, 4, sep])
    elif name == "pad-token":
        expected = by_hand(model, input_ids=[cls, w1, 0, w3, 0, sep])
    else:
        embedded = model.model.get_input_embeddings()(torch.tensor(ids)).detach().numpy()
        embedded[[2, 4]] = 0
        expected = by_hand(model, inputs_embeds=embedded)
    np.testing.assert_allclose(found[0], expected, atol=1e-5)
    np.testing.assert_allclose(found[1], by_hand(model, input_ids=ids), atol=1e-5)


def test_padding_tokens_do_not_shift_roberta_positions():
    model = pertinent.wrap(tiny.pair("roberta"))
    given = model.prepare("w1 w2 w3")
    found = model.submit([made("pad-token")(given, np.array([[0, 1, 1]], dtype=bool), 0)]).outputs()
    ids = given.tokens.ids.copy()
    ids[1] = 0
    expected = by_hand(model, input_ids=ids, position_ids=np.arange(1, 6))
    np.testing.assert_allclose(found[0], expected, atol=1e-5)


def test_text_removals_on_strings():
    seen = []

    def model(texts):
        seen.extend(texts)
        return [[0.5, 0.5] for _ in texts]

    pertinent.explain(model, "not bad, at all", method="leave-one-out")
    assert set(seen) == {"not bad, at all", "bad, at all", "not , at all", "not bad at all", "not bad, all",
                         "not bad, at "}  # fmt: skip
    seen.clear()
    pertinent.explain(model, ("a b", "c"), method="leave-one-out", removal="mask-token")
    assert set(seen) == {("a b", "c"), ("[MASK] b", "c"), ("a [MASK]", "c"), ("a b", "[MASK]")}


def test_removals_that_do_not_fit(model):
    with pytest.raises(SettingError, match="choose from attention-mask"):
        pertinent.explain(model, "w1 w2", removal="blur")
    with pytest.raises(SettingError, match="reads strings"):
        pertinent.explain(lambda t: [[1, 0]] * len(t), "a b", removal="attention-mask")
    with pytest.raises(SettingError, match="Did you mean 'slice-out'"):
        pertinent.explain(model, "w1 w2", removal="sliceout")
    with pytest.raises(SettingError, match="background="):
        pertinent.explain(lambda t: [[1, 0]] * len(t), [1.0, 2.0], removal="mean")
