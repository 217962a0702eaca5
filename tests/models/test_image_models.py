"""Image classifiers: transformers with their processor, and torch modules that answer in any form."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import (
    ConvNextConfig,
    ConvNextForImageClassification,
    ConvNextImageProcessorPil,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessorPil,
    pipeline,
)
from transformers.modeling_outputs import ImageClassifierOutput

import pertinent
from pertinent.errors import InputError, ModelError, SettingError
from pertinent.models.embedded.load import find_head, load_transformer

NAMES = {0: "cat", 1: "dog", 2: "fish"}
PHOTO = np.random.default_rng(0).integers(0, 256, (50, 40, 3), dtype=np.uint8)


def vit():
    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=32,
        patch_size=8,
        id2label=NAMES,
        label2id={name: i for i, name in NAMES.items()},
    )
    return ViTForImageClassification(config).eval(), ViTImageProcessorPil(size={"height": 32, "width": 32})


def convnext():
    torch.manual_seed(0)
    config = ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, num_labels=3)
    return ConvNextForImageClassification(config).eval(), ConvNextImageProcessorPil(
        size={"shortest_edge": 32}
    )


def answer(model, raw):
    """What the wrapped model says about the whole image."""
    return pertinent.explain(model, raw, method="random").prediction.values


def direct(pair, raw):
    model, processor = pair
    with torch.no_grad():
        return model(**processor(raw, return_tensors="pt")).logits.softmax(-1)[0].numpy()


@pytest.mark.parametrize("make", [vit, convnext])
def test_it_answers_as_the_processor_and_the_model_do(make, tmp_path):
    pair = make()
    model = pertinent.wrap(pair)
    Image.fromarray(PHOTO).save(tmp_path / "x.png")
    for raw in (Image.fromarray(PHOTO), tmp_path / "x.png", str(tmp_path / "x.png"), PHOTO, PHOTO / 255):
        np.testing.assert_allclose(answer(model, raw), direct(pair, Image.fromarray(PHOTO)), atol=1e-5)


@pytest.mark.parametrize(
    "change", [{"do_normalize": False}, {"do_rescale": False}, {"image_mean": [0.1, 0.2, 0.3]}]
)
def test_what_the_processor_does_to_values_is_part_of_the_model(change):
    network, _ = vit()
    pair = network, ViTImageProcessorPil(size={"height": 32, "width": 32}, **change)
    np.testing.assert_allclose(answer(pertinent.wrap(pair), PHOTO), direct(pair, PHOTO), atol=1e-4)


def test_a_pipeline():
    network, processor = vit()
    whole = pipeline("image-classification", model=network, image_processor=processor)
    model = pertinent.wrap(whole)
    assert model.classes == ("cat", "dog", "fish")
    best = whole(Image.fromarray(PHOTO))[0]
    explained = pertinent.explain(model, Image.fromarray(PHOTO), method="random")
    assert model.classes[explained.target] == best["label"]
    assert explained.prediction.values.max() == pytest.approx(best["score"], abs=1e-4)


def test_features_are_cut_in_the_image_that_the_model_sees():
    given = pertinent.wrap(vit()).prepare(Image.fromarray(PHOTO), "patches:8")
    assert given.n_features == 16 and given.pixels.shape == (3, 32, 32)
    assert given.pixels.min() >= 0 and given.pixels.max() <= 1
    assert given.notes == ("resized from 50 × 40 to the 32 × 32 pixels that the model reads",)
    segments = np.arange(32 * 32).reshape(32, 32) % 5
    assert pertinent.wrap(vit()).prepare(PHOTO, segments).n_features == 5


def test_an_image_that_was_prepared_is_prepared_the_same_again():
    model = pertinent.wrap(convnext())
    first = model.prepare(PHOTO)
    again = model.prepare(first.raw, first.granularity)
    np.testing.assert_array_equal(first.pixels, again.pixels)
    assert again.notes == ()
    explained = pertinent.explain(model, PHOTO, method="leave-one-out")
    assert pertinent.evaluate(model, explained).rows


@pytest.mark.parametrize("method", ["kernel-shap", "gradient", "integrated-gradients", "gradient-search"])
def test_methods_of_every_family(method):
    explained = pertinent.explain(
        pertinent.wrap(vit()), PHOTO, method=method, features="patches:16", budget=60
    )
    assert np.isfinite(explained.scores).all()


def test_grey_and_transparent_images():
    model = pertinent.wrap(vit())
    grey = model.prepare(Image.fromarray(PHOTO).convert("L")).pixels
    assert grey.shape == (3, 32, 32) and (grey[0] == grey[1]).all()
    clear = np.concatenate([PHOTO, np.zeros((50, 40, 1), dtype=np.uint8)], axis=2)
    assert (model.prepare(clear).pixels == 1).all()
    assert (model.prepare(Image.fromarray(clear)).pixels == 1).all()


def test_images_of_the_wrong_form():
    model = pertinent.wrap(vit())
    with pytest.raises(InputError, match="0 to 255 or floats from 0 to 1"):
        model.prepare(PHOTO.astype(float))
    with pytest.raises(InputError, match="must have 3 channels, got 2"):
        model.prepare(np.zeros((2, 8, 8)))


def test_what_wrap_says():
    network, processor = vit()
    with pytest.raises(ModelError, match="image processor"):
        pertinent.wrap(network)
    with pytest.raises(SettingError, match="image-classification option"):
        pertinent.wrap((network, processor), max_length=3)
    with pytest.raises(ModelError, match="'text-generation' are supported"):
        pertinent.wrap(SimpleNamespace(task="video-classification"))


def test_a_folder(tmp_path):
    network, processor = vit()
    network.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    assert find_head(tmp_path).name == "image-classification"
    model = load_transformer(tmp_path, dtype="float64")
    assert model.dtype == torch.float64
    np.testing.assert_allclose(answer(model, PHOTO), direct((network, processor), PHOTO), atol=1e-4)
    assert model.fingerprint == load_transformer(tmp_path, dtype=torch.float64).fingerprint


class Answers(torch.nn.Module):
    def __init__(self, answer):
        super().__init__()
        self.answer = answer
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.answer(self.layer(x))


ROW = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize(
    "form",
    [
        lambda scores: scores,
        lambda scores: {"logits": scores, "hidden": scores},
        lambda scores: {"scores": scores, "name": "x"},
        lambda scores: ImageClassifierOutput(logits=scores, loss=None),
        lambda scores: (scores, scores.sum()),
        lambda scores: [None, scores],
        lambda scores: SimpleNamespace(aux=scores[:, :1], logits=scores),
    ],
)
def test_modules_may_answer_in_any_form(form):
    torch.manual_seed(0)
    module = Answers(form)
    model = pertinent.wrap(module, kind="table")
    with torch.no_grad():
        wanted = module.layer(torch.from_numpy(ROW)).softmax(-1).numpy()
    explained = pertinent.explain(model, ROW, method="gradient")
    np.testing.assert_allclose(explained.prediction.values, wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        (lambda scores: {"out": scores, "aux": scores}, "keys out, aux"),
        (lambda scores: {}, "return only the scores"),
        (lambda scores: "x", "returned str"),
        (lambda scores: (), "returned tuple"),
    ],
)
def test_answers_that_hold_no_clear_scores(form, reason):
    with pytest.raises(ModelError, match=reason):
        pertinent.explain(pertinent.wrap(Answers(form), kind="table"), ROW, method="random")


def test_a_string_is_a_path_to_a_module(tmp_path):
    Image.fromarray(PHOTO).save(tmp_path / "x.pic", "PNG")
    model = pertinent.wrap(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6000, 2)))
    assert model.prepare(str(tmp_path / "x.pic")).kind == "image"


@pytest.mark.parametrize("make", [vit, convnext])
def test_background_images_are_read_as_images_are(make):
    """Photos of any size come to what the model sees, and baselines are drawn from them."""
    photos = [Image.fromarray(PHOTO), Image.fromarray(PHOTO[:44].copy())]
    model = pertinent.wrap(make(), background=photos)
    for mine, photo in zip(model.background.values, photos, strict=True):
        np.testing.assert_array_equal(mine, model.prepare(photo).pixels)
    e = pertinent.explain(model, photos[0], "expected-gradients", samples=6)
    assert e.warnings == ()
    assert pertinent.explain(model, photos[0], "grad-cam").scores.max() > 0
