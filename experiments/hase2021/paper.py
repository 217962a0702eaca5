"""The paper's numbers, in points, with half of their 95% intervals, and its names of the methods."""

from __future__ import annotations

from experiments.shared.published import read_published

PUBLISHED = read_published("hase2021")

METHODS = {
    "gradient": "Vanilla Grad",
    "lime": "LIME",
    "integrated-gradients": "Int-Grad",
    "anchors": "Anchors",
    "gradient-search": "Gradient Search",
    "taylor-search": "Taylor Search",
    "ordered-search": "Ordered Search",
    "random-search": "Random Search",
    "parallel-local-search": "PLS",
    "exhaustive-search": "Exhaustive Search",
}
