"""Theorems A.1 to A.4 on a model whose important feature is known: what is black counts for nothing.

    python experiments/hsieh2021/reference_bias.py

The model sees four numbers. Its log-odds are ``8 (0.5 − x₀) + 2 (x₁ − 0.5)``: the first number decides, the
second helps, the others do nothing. The input is (0, 1, 1, 0.5): the first number is 0, as a black pixel on
which a decision rests, and so is the reference value. The table is written into README.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from records import fill_in, table
from torch import nn

import pertinent
from pertinent.array_types import Floats

INPUT = np.array([0.0, 1.0, 1.0, 0.5])
WEIGHTS = np.array([-8.0, 2.0, 0.0, 0.0])
BIAS = 3.0
DECISIVE = 0
"""The number of the feature that decides, whose value is that of the reference."""

REFERENCES = np.array([[-1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
"""Of Theorem A.2: their mean is 0."""
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
"""The theorem that says a method gives the decisive feature nothing, and its settings; "–": none does."""


def model() -> Any:
    """The model, wrapped: the probability of its second class has the log-odds above."""
    layer = nn.Linear(4, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(np.stack([np.zeros(4), WEIGHTS])))
        layer.bias.copy_(torch.tensor([0.0, BIAS]))
    ends = np.array([[0.0] * 4, [1.0] * 4])
    return pertinent.wrap(layer, kind="table", output="logit", background=ends, classes=["no", "yes"])


def averaged_reference(input: Floats, references: Floats, gradient: Floats) -> Floats:
    """Eqn. 10: E[(x − x′) K(f, x)], where K does not depend on the reference x′; here the gradient."""
    return np.asarray(((input - references) * gradient).mean(axis=0))


def scores(wrapped: Any) -> dict[str, Floats]:
    """The scores of the features by each method, of log-odds where a method has them."""
    found = {}
    for method, (_, settings) in METHODS.items():
        if method == AVERAGED:
            found[method] = averaged_reference(INPUT, REFERENCES, WEIGHTS)
            continue
        scaled = {} if method in ("counterfactual", "greedy-as") else {"scale": "logit"}
        e = pertinent.explain(wrapped, INPUT, method, progress=False, **settings, **scaled)
        found[method] = np.asarray(e.scores)
    return found


def curves(wrapped: Any, order: list[int]) -> dict[str, Floats]:
    """Probabilities with the first features of an order alone, and without them (Def. A.1)."""
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


def theorem_rows(found: Mapping[str, Floats]) -> list[list[str]]:
    """Each method's scores, and the place of the decisive feature among them by magnitude."""
    rows = []
    for method, own in found.items():
        place = 1 + int((np.abs(own) > np.abs(own[DECISIVE])).sum())
        nothing = "yes" if np.isclose(own[DECISIVE], 0, atol=1e-6) else "no"
        cells = [f"{value:+.2f}" for value in own]
        name = method if method == AVERAGED else f"`{method}`"
        rows.append([name, METHODS[method][0], *cells, nothing, f"{place} of 4"])
    return rows


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--page", type=Path, default=Path(__file__).parent / "README.md")
    arguments = parser.parse_args()
    wrapped = model()
    values = [f"x{i} = {value:g}" for i, value in enumerate(INPUT)]
    head = ["method", "theorem", *values, "nothing for x0", "place of x0"]
    made = curves(wrapped, [DECISIVE, 1, 2, 3])
    rows = [[kind, *(f"{value:.3f}" for value in own)] for kind, own in made.items()]
    fill_in(
        arguments.page,
        {
            "reference bias": table(head, theorem_rows(scores(wrapped))),
            "reference bias of curves": table(["", "none", "x0", "x0, x1", "x0 to x2", "all"], rows),
        },
    )


if __name__ == "__main__":
    main()
