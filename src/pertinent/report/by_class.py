"""What reports on several classes side by side share: one scale of colours, and which features are shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pertinent.array_types import Floats, Ints, Masks
from pertinent.inputs.image import ImageInput
from pertinent.inputs.table import TableInput
from pertinent.report import facts as say
from pertinent.report.colours import full_colour, shares
from pertinent.results.explanation import ByClass, Explanation

_TOP = 5
_TOP_COLUMNS = 20


@dataclass(frozen=True)
class Panel:
    """What is shown of one class.

    `share` says how strongly each feature is coloured and how long its bar is, in [−1, 1]; `chosen` is the
    set of the class, and `shown` the features that have a bar.
    """

    explanation: Explanation
    share: Floats
    chosen: Masks
    shown: Ints

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.explanation.target_name

    @property
    def amount(self) -> str:
        """Its probability or value."""
        return say.amount(self.explanation, self.explanation.target)


def panels(found: ByClass, top: int | None = None) -> list[Panel]:
    """A panel for each class, all on one scale, so that a class that hardly any feature moves is pale."""
    return [Panel(*each) for each in zip(found, _shares(found), found.sets, _shown(found, top), strict=True)]


def largest(found: ByClass) -> float:
    """The score that has the full colour."""
    return float(np.abs(_finite(found)).max(initial=0.0)) * _full(found)


def is_clipped(found: ByClass) -> bool:
    """Whether some scores of an image exceed the scale of colours."""
    return _full(found) < 1


def title(found: ByClass) -> str:
    """As ``for each class``, or ``for 5 of 10 classes``."""
    output, n, shown = found[0].output, len(found[0].classes), len(found)
    return f"for each {output.kind}" if shown == n else f"for {shown:,} of {n:,} {output.plural}"


def directions(found: ByClass) -> tuple[str, str]:
    """What features of one and of the other colour do, in words."""
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
    return full_colour(_relative(found)) if isinstance(found[0].input, ImageInput) else 1.0


def _shares(found: ByClass) -> Floats:
    return np.clip(_relative(found) / _full(found), -1, 1)


def _in_order(e: Explanation, features: list[int]) -> Ints:
    return e.ranking[np.isin(e.ranking, features)]


def _shown(found: ByClass, top: int | None) -> list[Ints]:
    """The strongest features of each class and its top ones; of a row the same columns for each."""
    if not isinstance(found[0].input, TableInput):
        top = top or _TOP
        pairs = zip(found, found.sets, strict=True)
        return [_in_order(e, [*say.strongest(e, top), *e.ranking[: min(top, own.sum())]]) for e, own in pairs]
    size = np.abs(_finite(found)).max(axis=0)
    return [np.sort(np.argsort(-size, kind="stable")[: top or _TOP_COLUMNS])] * len(found)
