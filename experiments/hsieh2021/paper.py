"""The paper's numbers, and its names of our rows."""

from __future__ import annotations

from typing import Any

from experiments.shared.published import read_published

PUBLISHED = read_published("hsieh2021")
NAMES = tuple(PUBLISHED["sensitivity"])
"""The paper's methods."""
BY_DATA: dict[str, dict[str, Any]] = {
    "mnist": PUBLISHED["mnist"],
    "photographs": PUBLISHED["imagenet"],
    "photographs-20": PUBLISHED["imagenet"],
}
"""The paper's numbers of a set of images; Fashion-MNIST is not in the paper."""
SANITY: dict[str, float] = PUBLISHED["sanity"]
SENSITIVITY: dict[str, float] = PUBLISHED["sensitivity"]
MARKS: dict[str, list[float]] = PUBLISHED["marks"]

OF_TEXTS = {
    "gradient": "Grad",
    "integrated-gradients": "IG",
    "shapley-sampling": "SHAP",
    "leave-one-out": "LOO",
    "expected-gradients": "EG",
    "random": "Random",
    "greedy-as": "Greedy-AS",
    "counterfactual": "CFX",
}
"""The paper's names of rows on texts, in the order of Table 9."""


def reference_key(reference: float | str) -> str:
    """Return the key of a reference value."""
    return reference if isinstance(reference, str) else f"{reference:g}"


def area_of_texts(metric: str, removal: str, row: str) -> float | None:
    """Return the area that the paper reports for a row on texts."""
    areas = PUBLISHED["texts"][f"{metric}, {removal}" if removal else metric]
    value: float | None = areas.get(OF_TEXTS.get(row, ""))
    return value
