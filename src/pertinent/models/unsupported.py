"""Models that `wrap` does not support directly, and the function that makes each of them explainable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pertinent.errors import ModelError


@dataclass(frozen=True)
class UnsupportedModels:
    """A group of models that do not return one row of scores per input.

    Attributes
    ----------
    classes
        Class names in the method resolution order: ``"package.Name"`` of a package, or the end of the name
        of a transformers class.
    tasks
        The tasks of transformers pipelines.
    reason
        What the model returns, as the end of a sentence.
    snippet
        A function that returns one score per input, and the call of `wrap`.
    """

    classes: tuple[str, ...]
    tasks: tuple[str, ...]
    reason: str
    snippet: str


def _scoring(kind: str, expression: str) -> str:
    """Return a snippet that wraps a function with one plain value per input."""
    return (
        f"    score = lambda {kind}s: {expression}\n"
        f'    model = pertinent.wrap(score, kind="{kind}", output="value")'
    )


_TOKEN_SNIPPET = _scoring(
    "text",
    '[max((t["score"] for t in found if t["word"] == "Paris"), default=0.0) for found in pipeline(texts)]',
)
BOX_SNIPPET = _scoring(
    "image",
    '[max((b["score"] for b in detect(image) if b["label"] == "cat"), default=0.0) for image in images]',
)
PIXEL_SNIPPET = _scoring("image", '[(label_pixels(image) == "cat").mean() for image in images]')

UNSUPPORTED = (
    UnsupportedModels(
        ("sentence_transformers.SentenceTransformer",),
        ("feature-extraction", "image-feature-extraction"),
        "returns a vector for each input instead of a score",
        '    query = model.encode("a query")\n'
        + _scoring("text", "model.similarity(model.encode(texts), query)"),
    ),
    UnsupportedModels(
        ("sentence_transformers.CrossEncoder",),
        ("text-ranking",),
        "scores pairs of texts",
        _scoring("text", 'model.predict([("a query", text) for text in texts])'),
    ),
    UnsupportedModels(
        ("ForTokenClassification",),
        ("token-classification", "ner"),
        "is a token classifier: it labels each token",
        _TOKEN_SNIPPET,
    ),
    UnsupportedModels(
        (),
        ("zero-shot-classification",),
        "takes the labels as an argument of each call",
        '    answers = lambda texts: pipeline(texts, ["sports", "politics"])\n'
        '    scores = lambda texts: [dict(zip(a["labels"], a["scores"])) for a in answers(texts)]\n'
        '    model = pertinent.wrap(scores, kind="text")',
    ),
    UnsupportedModels(
        ("ForMaskedLM",),
        ("fill-mask",),
        "is a masked language model: it predicts a masked token",
        _scoring("text", '[fill_mask(text, targets=["good"])[0]["score"] for text in texts]'),
    ),
    UnsupportedModels(
        ("ForConditionalGeneration",),
        ("image-text-to-text", "image-to-text", "automatic-speech-recognition", "visual-question-answering"),
        "is a generative model that reads more than text",
        "    score = lambda images: [log_likelihood(image, answer) for image in images]\n"
        '    model = pertinent.wrap(score, kind="image", output="log-likelihood")',
    ),
    UnsupportedModels(
        (
            "ForObjectDetection",
            "ForZeroShotObjectDetection",
            "torchvision.GeneralizedRCNN",
            "torchvision.RetinaNet",
            "torchvision.SSD",
            "torchvision.FCOS",
        ),
        ("object-detection", "zero-shot-object-detection"),
        "detects objects: it returns boxes",
        BOX_SNIPPET,
    ),
    UnsupportedModels(
        (
            "ForSemanticSegmentation",
            "ForInstanceSegmentation",
            "ForUniversalSegmentation",
            "ForImageSegmentation",
            "torchvision._SimpleSegmentationModel",
            "torchvision.LRASPP",
        ),
        ("image-segmentation", "mask-generation", "depth-estimation"),
        "returns a value for each pixel",
        PIXEL_SNIPPET,
    ),
)


def check_supported(model: Any) -> None:
    """Raise a `ModelError` with a snippet if the class of a model is among the unsupported ones."""
    for unsupported in UNSUPPORTED:
        if any(_matches(base, name) for base in type(model).__mro__ for name in unsupported.classes):
            raise unsupported_output(f"{type(model).__name__} {unsupported.reason}.", unsupported.snippet)


def check_supported_task(task: str) -> None:
    """Raise a `ModelError` with a snippet if the task of a pipeline is among the unsupported ones."""
    for unsupported in UNSUPPORTED:
        if task in unsupported.tasks:
            raise unsupported_output(f"A {task} pipeline {unsupported.reason}.", unsupported.snippet)


def _matches(cls: type, name: str) -> bool:
    package, _, class_name = name.rpartition(".")
    if package:
        return cls.__name__ == class_name and cls.__module__.partition(".")[0] == package
    return cls.__name__.endswith(class_name)


def unsupported_output(reason: str, snippet: str) -> ModelError:
    """Return the error for a model whose output is not one row of scores per input."""
    return ModelError(f"{reason} Wrap a function that returns one score per input, for example:\n{snippet}")
