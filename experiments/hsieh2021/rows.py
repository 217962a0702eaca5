"""The rows of the tables on images: methods, their settings, and what the paper calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

SIZES = tuple(share / 100 for share in range(5, 50, 5))
LARGEST = 0.45
"""The shares of pixels that count as relevant, and the largest: as many are chosen."""

MAGNITUDE = ", magnitude"
"""After the name of a row whose pixels are ordered by the magnitude of their scores, not by the scores."""


@dataclass(frozen=True)
class Row:
    """A method with its settings.

    `signed` scores are measured twice: in their own order, and in that of their magnitude. `sampled` says
    that the number of random subsets is an option of the run.
    """

    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    paper: str | None = None
    signed: bool = False
    sampled: bool = False


def greedy(method: str, paper: str | None, name: str | None = None, **settings: Any) -> dict[str, Row]:
    """A method of the paper by both criteria; the first is the default."""
    return {
        f"{name or method}{suffix}": Row(method, settings | own, paper, sampled=method != "greedy")
        for suffix, own in (("", {}), (", relevant", {"criterion": "relevant"}))
    }


def searched(method: str) -> Row:
    """A search for sets of the sizes that are measured."""
    return Row(method, {"budget": 500, "sparsity": list(SIZES)})


ROWS: dict[str, Row] = {
    "random": Row("random", paper="Random"),
    "gradient": Row("gradient", paper="Grad", signed=True),
    "integrated-gradients": Row("integrated-gradients", {"points": 100}, "IG", signed=True),
    "mean-gradient": Row("mean-gradient", {"points": 100}, signed=True),
    "expected-gradients": Row("expected-gradients", {"samples": 200}, "EG", signed=True),
    "shapley-sampling": Row("shapley-sampling", {"budget": 7841}, "SHAP", signed=True),
    "leave-one-out": Row("leave-one-out", {}, "LOO", signed=True),
    "meaningful-perturbation": Row("meaningful-perturbation", {}, "BBMP"),
    "counterfactual": Row("counterfactual", {}, "CFX"),
    "counterfactual, 20% of pixels": Row("counterfactual", {"most": 157}),
    **greedy("greedy-as", "Greedy-AS", chosen=LARGEST),
    **greedy("one-step-banzhaf", "One-Step Banzhaf"),
    **greedy("greedy", "Greedy", chosen=LARGEST, step=0.05),
    **greedy("greedy-as", None, "greedy-as, logit attack", chosen=LARGEST, attack="pgd-logit"),
    "lime": Row("lime", {"budget": 2000}, signed=True),
    "shapley": Row("shapley", {"budget": 2000}, signed=True),
    "parallel-local-search": searched("parallel-local-search"),
    "thompson-search": searched("thompson-search"),
}

FEWER: Sequence[str] = (
    "random",
    "gradient",
    "integrated-gradients",
    "expected-gradients",
    "shapley-sampling",
    "leave-one-out",
    "meaningful-perturbation",
    "counterfactual",
    "greedy-as",
    "greedy-as, relevant",
    "one-step-banzhaf",
    "one-step-banzhaf, relevant",
    "greedy",
    "greedy, relevant",
    "lime",
    "shapley",
    "thompson-search",
)
"""The rows on Fashion-MNIST and on photographs."""

ON_SQUARES: dict[str, dict[str, Any]] = {
    "gradient": {"reduce": "length"},
    "integrated-gradients": {"points": 50},
    "expected-gradients": {"samples": 100},
    "shapley-sampling": {"budget": 491},
    "lime": {"budget": 500},
    "shapley": {"budget": 500},
    "thompson-search": {"budget": 100},
}
"""Settings of rows whose features are 49 squares of photographs, where they differ."""


def photo_rows(attack_steps: int) -> dict[str, Row]:
    """The rows on photographs: fewer features, and a network whose passes take longer."""
    found = {}
    for name in FEWER:
        row = ROWS[name]
        own = ON_SQUARES.get(name, {})
        if row.method in ("counterfactual", "greedy", "greedy-as", "one-step-banzhaf"):
            own = own | {"attack_steps": attack_steps}
        found[name] = replace(row, settings=row.settings | own, signed=row.signed and name != "gradient")
    return found


SALIENCY = (
    "gradient",
    "integrated-gradients",
    "expected-gradients",
    "shapley-sampling",
    "leave-one-out",
)
"""Rows ordered by magnitude in the authors' code.

The code has no expected gradients; they are assumed to be ordered like the other rows.
"""


def authors_lines(name: str) -> tuple[str, ...]:
    """Return the lines that may stand for a row as the authors have it, the closest first.

    Their integrated gradients are not multiplied by the input.
    """
    first = ("mean-gradient" + MAGNITUDE,) if name == "integrated-gradients" else ()
    return (*first, name + MAGNITUDE, name) if name in SALIENCY else (name,)


def lines(names: Sequence[str]) -> list[str]:
    """The rows as tables show them, those with signs twice."""
    doubled = ([name, name + MAGNITUDE] if ROWS[name].signed else [name] for name in names)
    return [line for several in doubled for line in several]
