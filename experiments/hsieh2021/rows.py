"""Rows of the tables on images: methods, their settings, and their names in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

SIZES = tuple(share / 100 for share in range(5, 50, 5))
LARGEST = 0.45
"""Shares of pixels that count as relevant, and the largest, which Greedy-AS chooses."""

MAGNITUDE = ", magnitude"
"""Suffix of a row whose pixels are ordered by the magnitude of their scores."""


@dataclass(frozen=True)
class Row:
    """A method with its settings.

    Attributes
    ----------
    paper
        Name in the paper.
    signed
        Whether scores are measured twice: in their order, and in that of their magnitude.
    sampled
        Whether the number of random subsets is an option of the run.
    """

    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    paper: str | None = None
    signed: bool = False
    sampled: bool = False


def greedy(method: str, paper: str | None, name: str | None = None, **settings: Any) -> dict[str, Row]:
    """Return the rows of a method that optimizes either criterion."""
    return {
        f"{name or method}{suffix}": Row(method, settings | criterion, paper, sampled=method != "greedy")
        for suffix, criterion in (("", {}), (", relevant", {"criterion": "relevant"}))
    }


def search(method: str) -> Row:
    """Return the row of a search for sets of the sizes that are measured."""
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
    "parallel-local-search": search("parallel-local-search"),
    "thompson-search": search("thompson-search"),
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
"""Rows on Fashion-MNIST and on photographs."""

ON_SQUARES: dict[str, dict[str, Any]] = {
    "gradient": {"reduce": "length"},
    "integrated-gradients": {"points": 50},
    "expected-gradients": {"samples": 100},
    "shapley-sampling": {"budget": 491},
    "lime": {"budget": 500},
    "shapley": {"budget": 500},
    "thompson-search": {"budget": 100},
}
"""Settings that differ for the 49 squares of photographs."""


def photo_rows(attack_steps: int) -> dict[str, Row]:
    """Return the rows on photographs, which have fewer features and a slower network."""
    rows = {}
    for name in FEWER:
        row, settings = ROWS[name], ON_SQUARES.get(name, {})
        if row.method in ("counterfactual", "greedy", "greedy-as", "one-step-banzhaf"):
            settings = settings | {"attack_steps": attack_steps}
        signed = row.signed and name != "gradient"
        rows[name] = replace(row, settings=row.settings | settings, signed=signed)
    return rows


SALIENCY = (
    "gradient",
    "integrated-gradients",
    "expected-gradients",
    "shapley-sampling",
    "leave-one-out",
)
"""Rows ordered by magnitude in the authors' code, and expected gradients, which the code does not have."""


def authors_lines(name: str) -> tuple[str, ...]:
    """Return the lines that may stand for a row in the authors' order, the closest first.

    Their integrated gradients are not multiplied by the input.
    """
    first = ("mean-gradient" + MAGNITUDE,) if name == "integrated-gradients" else ()
    return (*first, name + MAGNITUDE, name) if name in SALIENCY else (name,)


def lines(names: Sequence[str]) -> list[str]:
    """Return the lines of tables: rows with signs have two."""
    doubled = ([name, name + MAGNITUDE] if ROWS[name].signed else [name] for name in names)
    return [line for several in doubled for line in several]
