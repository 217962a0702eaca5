"""`wrap` refuses unsupported models with a snippet that makes them explainable."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers

import pertinent
from pertinent.errors import ModelError
from pertinent.models.unsupported import UNSUPPORTED
from tests import tiny


def fake(name: str, package: str, base: type = torch.nn.Module) -> type:
    return type(name, (base,), {"__module__": f"{package}.{name.lower()}"})


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (
            fake("SentenceTransformer", "sentence_transformers", torch.nn.Sequential)(),
            r"SentenceTransformer returns a vector(.|\n)*model\.encode\(texts\)(.|\n)*output=\"value\"",
        ),
        (
            fake("CrossEncoder", "sentence_transformers")(),
            r"CrossEncoder scores pairs(.|\n)*model\.predict",
        ),
        (fake("CrossEncoder", "sentence_transformers", object)(), "CrossEncoder scores pairs"),
        (
            fake("FasterRCNN", "x", fake("GeneralizedRCNN", "torchvision.models.detection"))(),
            r"FasterRCNN detects(.|\n)*box",
        ),
        (
            fake("FCN", "x", fake("_SimpleSegmentationModel", "torchvision.models.segmentation"))(),
            "FCN returns a value for each",
        ),
        (SimpleNamespace(task="token-classification"), r"A token-classification pipeline is a token"),
        (SimpleNamespace(task="zero-shot-classification"), r"zero-shot-classification pipeline takes"),
        (SimpleNamespace(task="image-segmentation"), "image-segmentation pipeline returns a value"),
        (SimpleNamespace(task="object-detection"), "object-detection pipeline detects objects"),
    ],
)
def test_unsupported_models_are_refused_with_a_snippet(thing, message):
    with pytest.raises(ModelError, match=message):
        pertinent.wrap(thing)


@pytest.mark.parametrize(
    ("architecture", "reason"),
    [
        (transformers.BertForTokenClassification, "is a token classifier"),
        (transformers.BertForMaskedLM, "is a masked language model"),
    ],
)
def test_transformers_models_with_unsupported_heads(architecture, reason):
    bert, tokenizer = tiny.pair("bert")
    with pytest.raises(ModelError, match=rf"{architecture.__name__} {reason}(.|\n)*pertinent\.wrap\(score"):
        pertinent.wrap((architecture(bert.config), tokenizer))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (lambda n: torch.zeros(n, 3, 4, 4), "map of pixels"),
        (lambda n: [{"boxes": torch.zeros(1, 4), "scores": torch.ones(1)}] * n, "returns boxes"),
    ],
)
def test_modules_with_unsupported_outputs(output, message):
    module = fake("Network", "x")()
    module.forward = lambda images: output(len(images))
    with pytest.raises(ModelError, match=rf"{message}(.|\n)*kind=\"image\", output=\"value\""):
        pertinent.explain(pertinent.wrap(module, kind="image"), np.ones((1, 4, 4)), "leave-one-out")


@pytest.mark.parametrize("unsupported", UNSUPPORTED, ids=lambda unsupported: unsupported.reason)
def test_snippets_are_valid_python_that_calls_wrap(unsupported):
    lines = [line.removeprefix("    ") for line in unsupported.snippet.splitlines()]
    names = {"pertinent": pertinent, "model": SimpleNamespace(encode=lambda query: query)}
    exec("\n".join(lines), names)
    assert isinstance(names["model"], pertinent.models.base.Model)


def test_the_snippets_explain_a_text():
    encoder = SimpleNamespace(
        encode=lambda texts: np.array([[len(t)] for t in ([texts] if isinstance(texts, str) else texts)]),
        similarity=lambda a, b: a @ b.T,
    )
    (snippet,) = (u.snippet for u in UNSUPPORTED if "SentenceTransformer" in u.classes)
    names = {"pertinent": pertinent, "model": encoder}
    original = names["model"]
    exec("\n".join(line.removeprefix("    ") for line in snippet.splitlines()[:-1]), names)
    assert names["model"] is original
    explanation = pertinent.explain(
        pertinent.wrap(names["score"], kind="text", output="value"), "a query of words", "leave-one-out"
    )
    assert explanation.scores.shape == (4,)
