"""Models that `wrap` does not support directly, with a function that makes each explainable."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pertinent.errors import ModelError


@dataclass(frozen=True)
class UnsupportedModels:
    """A group of models that do not return one row of scores per input.

    Attributes
    ----------
    classes
        Regular expression that matches their class names, ``"module.Name"``.
    tasks
        Transformers pipeline tasks.
    reason
        What the model does, as the end of a sentence.
    snippet
        Example of a function that returns one score per input, and the call of `wrap`.
    """

    classes: str
    tasks: tuple[str, ...]
    reason: str
    snippet: str


def _scoring(kind: str, expression: str, setup: str = "") -> str:
    """Return a snippet that wraps a function with one plain value per input."""
    function = f"    score = lambda {kind}s: {expression}\n"
    return f'{setup}{function}    model = pertinent.wrap(score, kind="{kind}", output="value")'


BOX_SNIPPET = _scoring(
    "image",
    '[max((b["score"] for b in detect(image) if b["label"] == "cat"), default=0.0) for image in images]',
)
PIXEL_SNIPPET = _scoring("image", '[(label_pixels(image) == "cat").mean() for image in images]')

UNSUPPORTED = (
    UnsupportedModels(
        r"^sentence_transformers\..*\bSentenceTransformer$",
        ("feature-extraction", "image-feature-extraction"),
        "returns a vector for each input instead of a score",
        _scoring(
            "text", "model.similarity(model.encode(texts), query)", '    query = model.encode("a query")\n'
        ),
    ),
    UnsupportedModels(
        r"^sentence_transformers\..*\bCrossEncoder$",
        ("text-ranking",),
        "scores pairs of texts",
        _scoring("text", 'model.predict([("a query", text) for text in texts])'),
    ),
    UnsupportedModels(
        "ForTokenClassification$",
        ("token-classification", "ner"),
        "is a token classifier: it labels each token",
        _scoring(
            "text",
            '[max((t["score"] for t in tokens if t["word"] == "Paris"), default=0.0) '
            "for tokens in pipeline(texts)]",
        ),
    ),
    UnsupportedModels(
        r"\bZeroShotClassificationPipeline$",
        ("zero-shot-classification",),
        "takes the labels as an argument of each call",
        '    answers = lambda texts: pipeline(texts, ["sports", "politics"])\n'
        '    scores = lambda texts: [dict(zip(a["labels"], a["scores"])) for a in answers(texts)]\n'
        '    model = pertinent.wrap(scores, kind="text")',
    ),
    UnsupportedModels(
        "ForMaskedLM$",
        ("fill-mask",),
        "is a masked language model: it predicts a masked token",
        _scoring("text", '[fill_mask(text, targets=["good"])[0]["score"] for text in texts]'),
    ),
    UnsupportedModels(
        "ForConditionalGeneration$",
        ("image-text-to-text", "image-to-text", "automatic-speech-recognition", "visual-question-answering"),
        "is a generative model that reads more than text",
        "    score = lambda images: [log_likelihood(image, answer) for image in images]\n"
        '    model = pertinent.wrap(score, kind="image", output="log-likelihood")',
    ),
    UnsupportedModels(
        r"ObjectDetection$|^torchvision\.models\.detection\.",
        ("object-detection", "zero-shot-object-detection"),
        "detects objects: it returns boxes",
        BOX_SNIPPET,
    ),
    UnsupportedModels(
        r"Segmentation$|^torchvision\.models\.segmentation\.",
        ("image-segmentation", "mask-generation", "depth-estimation"),
        "returns a value for each pixel",
        PIXEL_SNIPPET,
    ),
)


def check_supported(model: Any) -> None:
    """Raise a `ModelError` with a snippet if the model's class is unsupported."""
    names = [f"{base.__module__}.{base.__name__}" for base in type(model).__mro__]
    for unsupported in UNSUPPORTED:
        if any(re.search(unsupported.classes, name) for name in names):
            raise unsupported_output(f"{type(model).__name__} {unsupported.reason}.", unsupported.snippet)


def check_supported_task(task: str) -> None:
    """Raise a `ModelError` with a snippet if the pipeline's task is unsupported."""
    for unsupported in UNSUPPORTED:
        if task in unsupported.tasks:
            raise unsupported_output(f"A {task} pipeline {unsupported.reason}.", unsupported.snippet)


def unsupported_output(reason: str, snippet: str) -> ModelError:
    """Return the error for a model whose output is not one row of scores per input."""
    return ModelError(f"{reason} Wrap a function that returns one score per input, for example:\n{snippet}")
