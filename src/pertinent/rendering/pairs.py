"""Pairs of interacting features: their selection, texts and layout for all drawings."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from rich.cells import cell_len

from pertinent.array_types import Floats, Ints
from pertinent.rendering import wording as say
from pertinent.rendering.colours import shares
from pertinent.results.explanation import Explanation
from pertinent.results.interactions import interactions_of, strongest_pairs, strongest_triples, triples_of

TOP = 8
"""Number of pairs to list or draw."""

TOP_TRIPLES = 3
_LONGEST = 18
_GAP = "…"


def shown_pairs(e: Explanation, top: int = TOP) -> Ints:
    """Return the strongest pairs with a measurable interaction (pairs, 2)."""
    if e.interactions is None:
        return np.empty((0, 2), dtype=np.int64)
    pairs = strongest_pairs(e, top)
    return np.asarray(pairs[np.abs(e.interactions[pairs[:, 0], pairs[:, 1]]) > say.unmeasurable(e)])


def relative_interactions(e: Explanation) -> Floats:
    """Return the interactions divided by the largest magnitude; zeros if none is measurable."""
    return shares(interactions_of(e), say.unmeasurable(e))


def value_text(e: Explanation, i: int, j: int) -> str:
    """Return the interaction of two features, as ``+0.123``."""
    return f"{interactions_of(e)[i, j]:+{say.number_format(interactions_of(e))}}"


def error_of(e: Explanation, i: int, j: int) -> float | None:
    """Return the standard error of the interaction of two features, or ``None``."""
    errors = e.interaction_standard_errors
    return None if errors is None or not isfinite(errors[i, j]) else float(errors[i, j])


def error_text(e: Explanation, i: int, j: int) -> str:
    """Return the standard error of an interaction, as ``± 0.010``; empty if unknown."""
    error = error_of(e, i, j)
    return "" if error is None else f"± {error:{say.number_format(interactions_of(e))}}"


def shown_triples(e: Explanation) -> list[tuple[str, str]]:
    """Return the names of the strongest triples of features, and their values as ``+0.123 ± 0.010``."""
    if "triples" not in e.details:
        return []
    form = say.number_format(triples_of(e)[0])
    return [
        (names_text(e, *features), f"{triple.value:+{form}} ± {triple.standard_error:{form}}")
        for features, triple in strongest_triples(e, TOP_TRIPLES).items()
        if abs(triple.value) > say.unmeasurable(e)
    ]


def names_text(e: Explanation, *features: int) -> str:
    """Return the names of features, as ``not × good``; ambiguous names get the feature's number, from 1."""
    names = [
        say.clipped(e.features[k], _LONGEST) + (f" ({k + 1})" if e.features.count(e.features[k]) > 1 else "")
        for k in features
    ]
    return " × ".join(names)


def directions(e: Explanation) -> tuple[str, str]:
    """Return the meaning of a positive and of a negative interaction."""
    raises, lowers = ("raise", "lower") if e.output.kind == "value" else ("support", "oppose")
    name = e.target_name
    return (
        f"together they {raises} {name} more than separately",
        f"together they {lowers} {name} more than separately",
    )


@dataclass(frozen=True)
class Word:
    """A feature, or a gap for omitted features; `centre` and `width` are in characters."""

    text: str
    centre: float
    width: float
    feature: int | None = None


@dataclass(frozen=True)
class Arc:
    """A pair of interacting features; `share` is relative to the strongest interaction, in [−1, 1]."""

    left: float
    right: float
    share: float
    i: int
    j: int


@dataclass(frozen=True)
class Arcs:
    """Features in a line, with arcs that join pairs of features; `width` is in characters."""

    words: list[Word]
    arcs: list[Arc]
    width: float

    def height(self, arc: Arc, lowest: float, highest: float) -> float:
        """Return the height of an arc, which increases from `lowest` to `highest` with its width."""
        widest = max(other.right - other.left for other in self.arcs)
        return lowest + (highest - lowest) * (arc.right - arc.left) / widest


def arcs(e: Explanation, top: int = TOP, widest: int = 80) -> Arcs:
    """Return the features in order, and arcs for the strongest pairs, weakest first.

    If the features are wider than `widest` characters, only features in pairs are shown, with gaps.
    """
    strongest, share = shown_pairs(e, top), relative_interactions(e)
    names = [say.clipped(name, _LONGEST) for name in e.features]
    features = list(range(len(names)))
    if sum(cell_len(name) + 1 for name in names) > widest:
        features = sorted(set(strongest.ravel().tolist()))
    words: list[Word] = []
    start, last = 0.0, -1
    for feature in [*features, len(names)]:
        parts: list[tuple[str, int | None]] = [(_GAP, None)] if feature > last + 1 else []
        parts += [(names[feature], feature)] if feature < len(names) else []
        for text, index in parts:
            width = cell_len(text)
            words.append(Word(text, start + width / 2, width, index))
            start += width + 1
        last = feature
    centres = {word.feature: word.centre for word in words}
    drawn = [Arc(centres[i], centres[j], float(share[i, j]), i, j) for i, j in strongest.tolist()]
    return Arcs(words, drawn[::-1], max(0.0, start - 1))


def joined_features(e: Explanation, top: int) -> list[int]:
    """Return up to `top` features of the strongest pairs, in input order."""
    ranked = dict.fromkeys(strongest_pairs(e).ravel().tolist())
    return sorted(list(ranked)[:top])
