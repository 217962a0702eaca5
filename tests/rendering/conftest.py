"""Cheap models and explanations of every kind."""

from __future__ import annotations

import numpy as np
import pytest

import pertinent

NASTY = "A [bold]wonderful[/bold] <script>alert('x')</script> & \"slow\"  film,\n\tnot [link=file:///x]dull[/link]!"
WEIGHTS = {"wonderful": 2.0, "slow": -1.0, "not": -0.5, "Ada": 1.0, "1843": 2.0}


def probabilities(texts):
    rows = []
    for text in texts:
        words = " ".join(text) if isinstance(text, tuple) else text
        p = 1 / (1 + np.exp(-sum(w for word, w in WEIGHTS.items() if word in words)))
        rows.append([1 - p, p])
    return rows


@pytest.fixture(scope="session")
def text_model():
    return pertinent.wrap(probabilities, classes=["<b>bad</b>", "[red]good"])


@pytest.fixture(scope="session")
def text(text_model):
    return pertinent.explain(text_model, NASTY, "shapley-sampling", samples=8)


@pytest.fixture(scope="session")
def pair(text_model):
    given = {"query": "Who wrote <it>?", "document": "Ada wrote it in 1843."}
    return pertinent.explain(text_model, given, "leave-one-out")


@pytest.fixture(scope="session")
def search(text_model):
    return pertinent.explain(text_model, NASTY, "parallel-local-search", budget=40, sparsity=(0.05, 0.2))


@pytest.fixture(scope="session")
def image():
    def classify(images):
        p = 0.1 + 0.8 * np.asarray(images)[:, 0, 2:4, 2:4].mean(axis=(1, 2))
        return np.stack([1 - p, p], axis=1)

    picture = np.linspace(0, 1, 54).reshape(1, 6, 9)
    return pertinent.explain(
        pertinent.wrap(classify, kind="image"), picture, "leave-one-out", features="patches:2"
    )


@pytest.fixture(scope="session")
def row():
    def classify(rows):
        p = 1 / (1 + np.exp(-(np.asarray(rows, dtype=float) @ [1.0, -2.0, 0.5])))
        return np.stack([1 - p, p], axis=1)

    columns = ["age", "<i>income</i>", "$x_1$ [b]"]
    model = pertinent.wrap(classify, kind="table", columns=columns, background=np.eye(3))
    return pertinent.explain(model, np.array([1.0, 2.0, 3.0]), "shapley-sampling", samples=4)


@pytest.fixture(scope="session")
def evaluation(text_model):
    texts = [NASTY, "not slow, but wonderful", "   "]
    return pertinent.compare(text_model, texts, ["leave-one-out", "kernel-shap"], budget=80, sparsity=0.2)


@pytest.fixture(params=["text", "pair", "search", "image", "row"])
def explanation(request):
    return request.getfixturevalue(request.param)
