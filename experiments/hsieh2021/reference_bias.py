"""Theorems A.1 to A.4 on a model whose important feature is known and equals the reference value.

The model sees four numbers. Its log-odds are ``8 (0.5 − x₀) + 2 (x₁ − 0.5)``: the first number decides, the
second helps, the others do nothing. The input is (0, 1, 1, 0.5): the first number is 0, like a black pixel
that decides, and so is the reference value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

import pertinent
from experiments.shared.pages import table
from pertinent.array_types import Floats

INPUT = np.array([0.0, 1.0, 1.0, 0.5])
WEIGHTS = np.array([-8.0, 2.0, 0.0, 0.0])
BIAS = 3.0
DECISIVE = 0
"""Index of the feature that decides, whose value is that of the reference."""

REFERENCES = np.array([[-1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
"""References of Theorem A.2, whose mean is 0."""
AVERAGED = "gradient × (input − reference), averaged"

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "integrated-gradients": ("A.1", {"baseline": "constant"}),
    "gradient-x-input": ("A.1", {}),
    "shapley": ("A.3", {"removal": "constant:value=0"}),
    "shapley-sampling": ("A.3", {"removal": "constant:value=0"}),
    "leave-one-out": ("A.3", {"removal": "constant:value=0"}),
    AVERAGED: ("A.2", {}),
    "gradient": ("–", {}),
    "counterfactual": ("–", {}),
    "greedy-as": ("–", {"chosen": 0.5}),
}
"""The theorem by which a method gives the decisive feature nothing ("–": none), and settings."""


def model() -> Any:
    """Return the model, wrapped: the probability of its second class has the log-odds above."""
    layer = nn.Linear(4, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(np.stack([np.zeros(4), WEIGHTS])))
        layer.bias.copy_(torch.tensor([0.0, BIAS]))
    ends = np.array([[0.0] * 4, [1.0] * 4])
    return pertinent.wrap(layer, kind="table", output="logit", background=ends, classes=["no", "yes"])


def averaged_reference(input: Floats, references: Floats, gradient: Floats) -> Floats:
    """Return E[(x − x′) K(f, x)] (Eqn. 10), where K is the gradient and x′ the reference."""
    return np.asarray(((input - references) * gradient).mean(axis=0))


def scores(wrapped: Any) -> dict[str, Floats]:
    """Return the scores of the features by each method, of log-odds where a method has them."""
    by_method = {}
    for method, (_, settings) in METHODS.items():
        if method == AVERAGED:
            by_method[method] = averaged_reference(INPUT, REFERENCES, WEIGHTS)
            continue
        scale = {} if method in ("counterfactual", "greedy-as") else {"scale": "logit"}
        e = pertinent.explain(wrapped, INPUT, method, progress=False, **settings, **scale)
        by_method[method] = np.asarray(e.scores)
    return by_method


def curves(wrapped: Any, order: list[int]) -> dict[str, Floats]:
    """Return probabilities with only the first features of an order, and without them (Def. A.1)."""
    e = pertinent.explain(wrapped, INPUT, "gradient", progress=False)
    rank = np.empty(4)
    rank[order] = np.arange(4)
    sets = np.array([rank < n for n in range(5)])
    layer = wrapped.module
    with torch.inference_mode():
        rows = {"insertion": np.where(sets, INPUT, 0.0), "deletion": np.where(sets, 0.0, INPUT)}
        return {
            kind: layer(torch.tensor(own, dtype=torch.float32)).softmax(dim=1)[:, e.target].numpy()
            for kind, own in rows.items()
        }


def theorem_rows(by_method: Mapping[str, Floats]) -> list[list[str]]:
    """Return each method's scores, and the rank of the decisive feature by magnitude."""
    rows = []
    for method, own in by_method.items():
        rank = 1 + int((np.abs(own) > np.abs(own[DECISIVE])).sum())
        nothing = "yes" if np.isclose(own[DECISIVE], 0, atol=1e-6) else "no"
        name = method if method == AVERAGED else f"`{method}`"
        cells = [f"{value:+.2f}" for value in own]
        rows.append([name, METHODS[method][0], *cells, nothing, f"{rank} of 4"])
    return rows


def score_table() -> str:
    """Return the scores by all methods."""
    values = [f"x{i} = {value:g}" for i, value in enumerate(INPUT)]
    return table(
        ["method", "theorem", *values, "nothing for x0", "place of x0"], theorem_rows(scores(model()))
    )


def curve_table() -> str:
    """Return insertion and deletion with the decisive feature first."""
    by_kind = curves(model(), [DECISIVE, 1, 2, 3])
    rows = [[kind, *(f"{value:.3f}" for value in own)] for kind, own in by_kind.items()]
    return table(["", "none", "x0", "x0, x1", "x0 to x2", "all"], rows)
