"""Small models of texts, images and table rows, with inputs, on which methods are checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import pertinent
from pertinent.array_types import Array
from pertinent.asks import AttackRadii
from pertinent.config.settings import replace_settings
from pertinent.errors import InputError, ModelError
from pertinent.explainers.base import Explainer
from pertinent.models.base import Model
from pertinent.testing.assertions import verify
from pertinent.testing.row_log import RowLog

CLASSES = ("low", "middle", "high")
WORDS = ("w1", "w22", "a", "w3", "w44", "w5", "w66")
N_FEATURES = len(WORDS)
KINDS = ("text", "image", "table")
SPARSITIES = (0.1, 0.2, 0.5)

SMALL_BUDGET = 40
"""Budget of methods that adapt to it; too small to evaluate all subsets of seven features."""


@dataclass(frozen=True, eq=False)
class Example:
    """A model and inputs for it.

    Attributes
    ----------
    tolerance
        Largest difference between two answers to the same question in different batches.
    sizes
        Numbers of features that the model's inputs may have.
    log
        The rows that the model was evaluated on; ``None`` if it keeps no log.
    make
        Function that creates such an example from a kind and options of `wrap`.
    """

    kind: str
    model: Model
    tolerance: float = 0.0
    sizes: tuple[int, ...] = (1, 2, N_FEATURES)
    log: RowLog | None = None
    make: Callable[..., Example] | None = None

    def input(self, n_features: int = N_FEATURES, seed: int = 0) -> Any:
        """Return a raw input with this number of features."""
        rng = np.random.default_rng([seed, n_features])
        if self.kind == "text":
            return " ".join(rng.permutation(WORDS)[:n_features])
        values = rng.normal(size=n_features).round(3)
        if self.kind == "table":
            return values
        patches = np.repeat(np.repeat(values[None, None], 2, axis=1), 2, axis=2)
        return (patches + rng.normal(size=(1, 2, 2 * n_features)) / 9).astype(np.float32)

    def explain(self, explainer: Explainer, inputs: Any = None, **options: Any) -> Any:
        """Explain inputs, by default one with seven features, with the budget of `small_budget`."""
        inputs = self.input() if inputs is None else inputs
        options = {"budget": small_budget(explainer), "sparsity": SPARSITIES, "progress": False, **options}
        if self.kind == "image":
            options["features"] = "patches:2"
        return pertinent.explain(self.model, inputs, self.adapt(explainer), **options)

    def adapt(self, explainer: Explainer) -> Explainer:
        """Return the method with a constant baseline if it would draw one and there is no background."""
        if self.kind == "table" and getattr(explainer, "baseline", None) == "drawn":
            return replace_settings(explainer, {"baseline": "constant"})
        return explainer


def small_budget(explainer: Explainer, n_features: int = N_FEATURES) -> int | None:
    """Return a small budget for methods that adapt to it, ``None`` if their settings determine it."""
    adapts = explainer.evaluations(n_features) is None
    return max(SMALL_BUDGET, explainer.min_budget(n_features)) if adapts else None


def probabilities(numbers: Sequence[float]) -> list[float]:
    """Return three class probabilities for some numbers, with interactions between neighbours."""
    scores = [0.0, 0.3, -0.2]
    for i, x in enumerate(numbers):
        scores[i % 3] += x * (1.0 + 0.5 * math.sin(i))
        scores[(i + 1) % 3] += math.tanh(x * numbers[i - 1])
    weights = [math.exp(score) for score in scores]
    return [weight / sum(weights) for weight in weights]


def read_texts(texts: Sequence[str]) -> list[list[float]]:
    """Return the probabilities for texts; only words in `WORDS` count."""
    present = [{word: 0.3 + 0.1 * len(word) for word in text.split()} for text in texts]
    return [probabilities([words.get(word, 0.0) for word in WORDS]) for words in present]


def read_arrays(arrays: Array) -> list[list[float]]:
    """Return the probabilities for arrays of numbers, computed one by one."""
    return [probabilities(np.asarray(array, dtype=float).ravel().tolist()) for array in arrays]


def function_example(kind: str, **options: Any) -> Example:
    """Return a function model whose answers do not depend on the batch, not even by rounding."""
    log = RowLog()

    def function(inputs: Any) -> list[list[float]]:
        if kind == "text":
            return read_texts(inputs)
        log.add(inputs)
        return read_arrays(inputs)

    model = pertinent.wrap(function, kind=kind, classes=CLASSES, **options)
    return Example(kind, model, log=log, make=function_example)


def value_example(kind: str, **options: Any) -> Example:
    """Return a function model of table rows that returns a plain value."""
    model = pertinent.wrap(lambda rows: np.sum(rows, axis=1), kind=kind, output="value", **options)
    return Example(kind, model, make=value_example)


def differentiable_example(kind: str, **options: Any) -> Example:
    """Return a model with gradients: a transformer for texts, a torch module for images and table rows."""
    from pertinent.testing.networks import ImageNetwork, RowNetwork, text_network

    if kind == "text":
        return Example(kind, pertinent.wrap(text_network(WORDS, CLASSES)), tolerance=1e-5)
    log = RowLog()
    network = ImageNetwork() if kind == "image" else RowNetwork(log)
    model = pertinent.wrap(network, kind=kind, classes=CLASSES, output="logit", **options)
    return Example(kind, model, tolerance=1e-5, log=log, make=differentiable_example)


def tree_example(kind: str, **options: Any) -> Example:
    """Return a decision tree for table rows; needs scikit-learn."""
    from sklearn.tree import DecisionTreeClassifier

    rows = np.random.default_rng(0).normal(size=(40, N_FEATURES))
    classes = [CLASSES[int(np.argmax(answer))] for answer in read_arrays(rows)]
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(rows, classes)
    model = pertinent.wrap(tree, **{"background": rows[:10], **options})
    return Example(kind, model, tolerance=1e-12, sizes=(N_FEATURES,), make=tree_example)


def examples_for(explainer: Explainer) -> list[Example]:
    """Return the first example that the method explains for each kind of input; at least one."""
    sizes = (N_FEATURES,) if AttackRadii in explainer.traits.asks else (1, 2, N_FEATURES)
    examples, reasons = [], []
    for kind in KINDS:
        makers: list[Callable[..., Example]] = [function_example, differentiable_example]
        for make in [*makers, *([tree_example] if kind == "table" else [])]:
            example = make(kind)
            reason = refusal(explainer, example)
            if not reason:
                examples.append(replace(example, sizes=sizes) if len(example.sizes) > 1 else example)
                break
            reasons.append(reason)
    verify(
        examples,
        f"{explainer.name} cannot explain any of the example models: {' '.join(dict.fromkeys(reasons))}",
    )
    return examples


def table_example(explainer: Explainer) -> Example | None:
    """Return the example with table rows, if the method explains one."""
    return next((example for example in examples_for(explainer) if example.kind == "table"), None)


def refusal(explainer: Explainer, example: Example) -> str:
    """Return the reason why the method does not explain an example's model; empty if it does."""
    if reason := type(explainer).refusal(example.model):
        return reason
    try:
        example.explain(explainer)
    except (InputError, ModelError) as error:
        return str(error)
    return ""
