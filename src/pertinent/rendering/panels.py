"""Panels: the drawable data of an explanation, or of several classes on one colour scale."""

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
    """The drawable data of one explanation.

    `share` is the colour of each feature, in [−1, 1]; `marked` features are underlined or outlined; `shown`
    features have a bar.
    """

    explanation: Explanation
    share: Floats
    marked: Masks
    shown: Ints
    look: Look = field(default_factory=Look)

    @property
    def name(self) -> str:
        """Return the name of the class."""
        return self.explanation.target_name

    @property
    def amount(self) -> str:
        """Return the probability or value of the class."""
        return say.amount(self.explanation, self.explanation.target)


def panel(
    e: Explanation, top: int | None = None, look: Look | None = None, share: Floats | None = None
) -> Panel:
    """Return the panel of one explanation, with the smallest set marked and bars for `top` features."""
    if share is None:
        share = say.coloured_scores(e)
        share = np.clip(share / full_colour(share), -1, 1) if e.input.is_picture else share
    return Panel(e, share, say.smallest_set(e), say.strongest(e, top), look or Look())


def clipping(e: Explanation) -> str:
    """Return how many scores exceed the colour scale; empty if there are none."""
    share = say.coloured_scores(e)
    full = full_colour(share)
    beyond = int((np.abs(share) > full).sum())
    if not beyond or not e.input.is_picture:
        return ""
    largest = full * float(np.abs(np.nan_to_num(e.scores)).max())
    return f"clipped at ±{number_text(largest, 3)}: {beyond:,} of {len(share):,} scores exceed it"


def class_panels(classes: ByClass, top: int | None = None, look: Look | None = None) -> list[Panel]:
    """Return a panel for each class; they share a colour scale, so classes with weak effects are pale."""
    shares_of = np.clip(_relative(classes) / _full(classes), -1, 1)
    parts = zip(classes, shares_of, classes.sets, _shown(classes, top), strict=True)
    return [Panel(*part, look or Look()) for part in parts]


def largest(classes: ByClass) -> float:
    """Return the score at full colour."""
    return float(np.abs(_finite(classes)).max(initial=0.0)) * _full(classes)


def is_clipped(classes: ByClass) -> bool:
    """Return whether some scores exceed the colour scale."""
    return _full(classes) < 1


def title(classes: ByClass) -> str:
    """Return the number of classes shown, as ``for each class`` or ``for 5 of 10 classes``."""
    kind, n, shown = classes[0].output.kind, len(classes[0].classes), len(classes)
    return f"for each {kind}" if shown == n else f"for {shown:,} of {n:,} {_SEVERAL[kind]}"


def directions(classes: ByClass) -> tuple[str, str]:
    """Return the meaning of the supporting and the opposing colour."""
    kind = classes[0].output.kind
    if kind == "value":
        return "raises the value", "lowers the value"
    return f"supports the {kind}", f"opposes the {kind}"


def set_text(classes: ByClass) -> str:
    """Return the meaning of the sets, as ``the top 5% of features for each class``."""
    return f"the top {100 * classes.sparsity:g}% of features for each {classes[0].output.kind}"


def _finite(classes: ByClass) -> Floats:
    return np.nan_to_num(np.stack([e.scores for e in classes]), nan=0.0, posinf=0.0, neginf=0.0)


def _relative(classes: ByClass) -> Floats:
    return shares(_finite(classes), say.unmeasurable(classes[0]))


def _full(classes: ByClass) -> float:
    return full_colour(_relative(classes)) if classes[0].input.is_picture else 1.0


def _shown(classes: ByClass, top: int | None) -> list[Ints]:
    """Return the features with bars for each class; all classes of a list share them."""
    if drawing_of(classes[0].input).lists_features:
        size = np.abs(_finite(classes)).max(axis=0)
        return [np.sort(np.argsort(-size, kind="stable")[: top or _TOP_LISTED])] * len(classes)
    top = top or _TOP
    return [
        e.ranking[np.isin(e.ranking, [*say.strongest(e, top), *e.ranking[: min(top, mask.sum())]])]
        for e, mask in zip(classes, classes.sets, strict=True)
    ]
