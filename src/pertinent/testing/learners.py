"""Checks of methods that must be fitted first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import pertinent
from pertinent.array_types import Floats
from pertinent.errors import ModelError, SettingError
from pertinent.learners import LearnedExplainer, learned
from pertinent.models.base import Model
from pertinent.testing.assertions import raises, verify

WORDS = ("good", "fine", "bad", "poor", "the", "film", "was")
CLASSES = ("no", "yes")

TOLERANCE = 1e-6
"""Largest difference between the scores of an input in different batches."""


def check_learned_method(method: str, *, kinds: Sequence[str] | None = None, **settings: Any) -> None:
    """Raise an `AssertionError` if a learned method violates a requirement.

    Parameters
    ----------
    method
        Name under which the explainer is registered.
    kinds
        Kinds of input to fit it to, out of ``"text"`` and ``"table"``; by default those it explains.
    **settings
        Arguments of `fit`; by default one epoch with batches of 8 inputs if the method trains in epochs.
    """
    learner = learned.get(method).learner
    examples = {"text": _text_example(), "table": _table_example()}
    for kind in kinds or [kind for kind in examples if kind in (learner.spec.modalities or examples)]:
        model, inputs = examples[kind]
        if not settings and learner().schedule(model, [model.prepare(inputs[0])]) is not None:
            settings = {"epochs": 1, "batch_size": 8}
        explainer = pertinent.fit(model, inputs, method, seed=3, progress=False, **settings)
        again = pertinent.fit(model, inputs, method, seed=3, progress=False, **settings)
        verify(again.digest == explainer.digest, f"{method}: two fits with the same seed differ.")
        check_fitted(explainer, model, inputs[:6])
        with raises(SettingError, f"setting of {method}", "no_such_setting"):
            pertinent.fit(model, inputs, method, progress=False, no_such_setting=3)
        with raises(SettingError, f"{method!r} must be fitted first"):
            pertinent.explain(model, inputs[0], method)
    entry = next(entry for entry in pertinent.list_methods() if entry.name == method)
    verify(
        entry.fitted_first and entry.summary and entry.paper, f"{method}: a summary and a paper are needed."
    )


def check_fitted(explainer: LearnedExplainer, model: Model, inputs: Sequence[Any]) -> None:
    """Raise an `AssertionError` if a fitted explainer violates a requirement on its model's inputs."""
    name = explainer.name
    expected = _scores(explainer, model, inputs)
    for e in pertinent.explain(model, inputs, explainer, progress=False):
        verify(e.method == name and e.scores.shape == (len(e.features),), f"{name}: scores {e.scores.shape}.")
        verify(np.isfinite(e.scores).all(), f"{name}: scores are not finite.")
        verify(
            e.evaluations <= explainer.evaluations(len(e.features)), f"{name}: {e.evaluations} evaluations."
        )
        verify(e.meaning != "magnitude" or e.scores.min() >= 0, f"{name}: a magnitude is negative.")
    np.testing.assert_equal(_scores(explainer, model, inputs, seed=5), expected, err_msg=f"{name}: the seed")
    variations = {"batch size": {"batch_size": 1}, "order": {"order": -1}}
    for what, options in variations.items():
        scores = _scores(explainer, model, inputs, **options)
        for first, second in zip(scores, expected, strict=True):
            np.testing.assert_allclose(first, second, rtol=0, atol=TOLERANCE, err_msg=f"{name}: the {what}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "fitted"
        explainer.save(path)
        loaded = pertinent.load_explainer(path, digest=explainer.digest)
        verify(type(loaded) is type(explainer), f"{name}: loaded as {type(loaded).__name__}.")
        verify(loaded.folder == explainer.folder == path, f"{name}: the folder is {loaded.folder}.")
        np.testing.assert_equal(_scores(loaded, model, inputs), expected, err_msg=f"{name}: saved and loaded")
    other = pertinent.wrap(
        lambda raw: np.full((len(raw), len(model.classes)), 1 / len(model.classes)),
        kind=model.prepare(inputs[0]).kind,
        classes=model.classes,
    )
    with raises(ModelError, "fitted to a different model"):
        pertinent.explain(other, inputs[0], explainer)


def _scores(
    explainer: LearnedExplainer, model: Model, inputs: Sequence[Any], order: int = 1, **options: Any
) -> list[Floats]:
    """Return the scores of each input, for all classes if available; order −1 reverses the inputs."""
    explanations = pertinent.explain(model, list(inputs[::order]), explainer, progress=False, **options)
    verify(not explanations.failures, f"{explainer.name}: {list(map(str, explanations.failures))}")
    return [e.scores if e.class_scores is None else e.class_scores for e in explanations][::order]


def _text_example() -> tuple[Model, list[Any]]:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(2, 6))) for _ in range(16)]

    def likes_good(texts: Sequence[str]) -> Floats:
        return _two_classes(np.array([2.0 * (text.count("good") - text.count("bad")) for text in texts]))

    return pertinent.wrap(likes_good, kind="text", classes=CLASSES), texts


def _table_example() -> tuple[Model, list[Any]]:
    rows = np.random.default_rng(0).normal(size=(24, 3)).round(2)

    def has_interaction(rows: Any) -> Floats:
        x = np.asarray(rows, dtype=np.float64)
        return _two_classes(x[:, 0] - 2.0 * x[:, 1] * x[:, 2])

    return pertinent.wrap(has_interaction, kind="table", classes=CLASSES), rows.tolist()


def _two_classes(logits: Floats) -> Floats:
    p = 1 / (1 + np.exp(-logits))
    return np.column_stack([1 - p, p])
