"""What is drawn of pairs of features that act together: which pairs, in which words, and where."""

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
"""How many pairs are listed or drawn."""

TOP_TRIPLES = 3
_LONGEST = 18
_GAP = "…"


def shown_pairs(e: Explanation, top: int = TOP) -> Ints:
    """The strongest pairs (pairs, 2), those without a measurable interaction left out."""
    if e.interactions is None:
        return np.empty((0, 2), dtype=np.int64)
    found = strongest_pairs(e, top)
    return np.asarray(found[np.abs(e.interactions[found[:, 0], found[:, 1]]) > say.unmeasurable(e)])


def relative_interactions(e: Explanation) -> Floats:
    """The interactions divided by the largest magnitude; zeros where none is measurable."""
    return shares(interactions_of(e), say.unmeasurable(e))


def value_text(e: Explanation, i: int, j: int) -> str:
    """The interaction of two features, as ``+0.123``."""
    return f"{interactions_of(e)[i, j]:+{say.number_format(interactions_of(e))}}"


def error_of(e: Explanation, i: int, j: int) -> float | None:
    """The standard error of the interaction of two features, if it is known."""
    errors = e.interaction_standard_errors
    return None if errors is None or not isfinite(errors[i, j]) else float(errors[i, j])


def error_text(e: Explanation, i: int, j: int) -> str:
    """The same as ``± 0.010``; empty if it is not known."""
    error = error_of(e, i, j)
    return "" if error is None else f"± {error:{say.number_format(interactions_of(e))}}"


def shown_triples(e: Explanation) -> list[tuple[str, str]]:
    """The names of the strongest triples of features, and their values as ``+0.123 ± 0.010``."""
    if "triples" not in e.details:
        return []
    form, found = say.number_format(triples_of(e)[0]), strongest_triples(e, TOP_TRIPLES)
    return [
        (names_text(e, *places), f"{own.value:+{form}} ± {own.standard_error:{form}}")
        for places, own in found.items()
        if abs(own.value) > say.unmeasurable(e)
    ]


def names_text(e: Explanation, *numbers: int) -> str:
    """The names, as ``not × good``; a name that several features have is followed by its place, from 1."""
    names = [
        say.clipped(e.features[k], _LONGEST) + (f" ({k + 1})" if e.features.count(e.features[k]) > 1 else "")
        for k in numbers
    ]
    return " × ".join(names)


def directions(e: Explanation) -> tuple[str, str]:
    """What a positive and what a negative interaction means, in words."""
    raises, lowers = ("raise", "lower") if e.output.kind == "value" else ("support", "oppose")
    name = e.target_name
    return f"together they {raises} {name} more than apart", f"together they {lowers} {name} more than apart"


@dataclass(frozen=True)
class Word:
    """A feature, or a gap where some are left out, centred at `place`; widths are in characters."""

    text: str
    place: float
    width: float
    feature: int | None = None


@dataclass(frozen=True)
class Arc:
    """Two features that act together, from place to place; `share` is of the strongest interaction."""

    left: float
    right: float
    share: float
    i: int
    j: int


@dataclass(frozen=True)
class Arcs:
    """Features in a line and the arcs that join pairs of them; `width` is in characters."""

    words: list[Word]
    arcs: list[Arc]
    width: float

    def height(self, arc: Arc, lowest: float, highest: float) -> float:
        """How high an arc is drawn: the higher, the farther apart its ends are."""
        farthest = max(each.right - each.left for each in self.arcs)
        return lowest + (highest - lowest) * (arc.right - arc.left) / farthest


def arcs(e: Explanation, top: int = TOP, widest: int = 80) -> Arcs:
    """The features in their order, and arcs for the strongest pairs, the weakest first.

    If all features are wider than `widest` characters, only those in the pairs are there, with gaps.
    """
    found, share = shown_pairs(e, top), relative_interactions(e)
    names = [say.clipped(name, _LONGEST) for name in e.features]
    kept = list(range(len(names)))
    if sum(cell_len(name) + 1 for name in names) > widest:
        kept = sorted(set(found.ravel().tolist()))
    words: list[Word] = []
    place, last = 0.0, -1
    for feature in [*kept, len(names)]:
        parts: list[tuple[str, int | None]] = [(_GAP, None)] if feature > last + 1 else []
        parts += [(names[feature], feature)] if feature < len(names) else []
        for text, own in parts:
            width = cell_len(text)
            words.append(Word(text, place + width / 2, width, own))
            place += width + 1
        last = feature
    places = {word.feature: word.place for word in words}
    drawn = [Arc(places[i], places[j], float(share[i, j]), i, j) for i, j in found.tolist()]
    return Arcs(words, drawn[::-1], max(0.0, place - 1))


def joined_features(e: Explanation, top: int) -> list[int]:
    """At most `top` features, those in the strongest pairs, in their order."""
    ranked = dict.fromkeys(strongest_pairs(e).ravel().tolist())
    return sorted(list(ranked)[:top])
