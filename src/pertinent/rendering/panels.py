"""What is drawn of an explanation, or of each of several classes on one scale of colours."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.number_format import number_text
from pertinent.rendering import wording as say
from pertinent.rendering.colours import Look, full_colour, shares
from pertinent.rendering.drawings import drawing_of
from pertinent.results.explanation import ByClass, Explanation

_TOP = 5
_TOP_LISTED = 20
_SEVERAL = {"class": "classes", "label": "labels", "value": "values"}


@dataclass(frozen=True)
class Panel:
    """What is drawn of one explanation.

    `share` is how strongly each feature is coloured, in [−1, 1], `marked` are the features that are
    underlined or outlined, and `shown` those that have a bar. `look` says how a heat map is drawn.
    """

    explanation: Explanation
    share: Floats
    marked: Masks
    shown: Ints
    look: Look = field(default_factory=Look)

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.explanation.target_name

    @property
    def amount(self) -> str:
        """The class's probability or value."""
        return say.amount(self.explanation, self.explanation.target)


def panel(
    e: Explanation, top: int | None = None, look: Look | None = None, share: Floats | None = None
) -> Panel:
    """Return the panel of one explanation: the smallest set is marked, the `top` features have bars."""
    if share is None:
        share = say.coloured_scores(e)
        share = np.clip(share / full_colour(share), -1, 1) if e.input.is_picture else share
    return Panel(e, share, say.smallest_set(e), say.strongest(e, top), look or Look())


def clipping(e: Explanation) -> str:
    """Which scores exceed the scale of colours; empty if none does."""
    share = say.coloured_scores(e)
    full = full_colour(share)
    beyond = int((np.abs(share) > full).sum())
    if not beyond or not e.input.is_picture:
        return ""
    largest = full * float(np.abs(np.nan_to_num(e.scores)).max())
    return f"clipped at ±{number_text(largest, 3)}: {beyond:,} of {len(share):,} scores exceed it"


def class_panels(found: ByClass, top: int | None = None, look: Look | None = None) -> list[Panel]:
    """A panel for each class, all on one scale, so that a class that hardly any feature moves is pale."""
    shares_of = np.clip(_relative(found) / _full(found), -1, 1)
    each = zip(found, shares_of, found.sets, _shown(found, top), strict=True)
    return [Panel(*own, look or Look()) for own in each]


def largest(found: ByClass) -> float:
    """The score that has the full colour."""
    return float(np.abs(_finite(found)).max(initial=0.0)) * _full(found)


def is_clipped(found: ByClass) -> bool:
    """Whether some scores exceed the scale of colours."""
    return _full(found) < 1


def title(found: ByClass) -> str:
    """Which classes are shown, as ``for each class`` or ``for 5 of 10 classes``."""
    kind, n, shown = found[0].output.kind, len(found[0].classes), len(found)
    return f"for each {kind}" if shown == n else f"for {shown:,} of {n:,} {_SEVERAL[kind]}"


def directions(found: ByClass) -> tuple[str, str]:
    """What features of the supporting and of the opposing colour do, in words."""
    kind = found[0].output.kind
    if kind == "value":
        return "raises the value", "lowers the value"
    return f"supports the {kind}", f"speaks against the {kind}"


def set_text(found: ByClass) -> str:
    """What the sets are, as ``the top 5% of features for each class``."""
    return f"the top {100 * found.sparsity:g}% of features for each {found[0].output.kind}"


def _finite(found: ByClass) -> Floats:
    return np.nan_to_num(np.stack([e.scores for e in found]), nan=0.0, posinf=0.0, neginf=0.0)


def _relative(found: ByClass) -> Floats:
    return shares(_finite(found), say.unmeasurable(found[0]))


def _full(found: ByClass) -> float:
    return full_colour(_relative(found)) if found[0].input.is_picture else 1.0


def _shown(found: ByClass, top: int | None) -> list[Ints]:
    """The strongest features of each class and its top ones; of a list the same features for each."""
    if drawing_of(found[0].input).lists_features:
        size = np.abs(_finite(found)).max(axis=0)
        return [np.sort(np.argsort(-size, kind="stable")[: top or _TOP_LISTED])] * len(found)
    top = top or _TOP
    return [
        e.ranking[np.isin(e.ranking, [*say.strongest(e, top), *e.ranking[: min(top, own.sum())]])]
        for e, own in zip(found, found.sets, strict=True)
    ]
