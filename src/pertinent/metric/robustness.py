"""Robustness to attacks on the relevant features, or on all others (Hsieh et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pertinent.array_types import Array, Floats, Ints
from pertinent.asks import Attack, AttackRadii
from pertinent.asks.attack_radii import never_rising
from pertinent.errors import ModelError
from pertinent.explainers.base import n_kept
from pertinent.explainers.robustness.base import ABSENT
from pertinent.metric.base import Measures, Metric, metrics
from pertinent.results.explanation import Explanation
from pertinent.settings import Count, Share

SHARES = tuple(share / 100 for share in range(5, 50, 5))
WORDS = 5
"""The sizes of relevant sets: 5% … 45% of the features, of a text 1 to 5 of them."""


@dataclass(frozen=True)
class Robustness(Metric):
    """The area under the curve of attack radii over the number of relevant features (Sec. 3.2).

    Over the share of features in percent, of a text over their number. A set in which no attack is found
    counts as the norm of the image. Of rows and texts all features together and each alone are attacked then,
    and it counts as 1.5 times the largest radius found for the input, as a rule more than any set of another
    ranking; if no attack is found at all, the measure fails.

    Parameters
    ----------
    shares
        The shares of features that count as relevant; by default 5% to 45%, of a text the first 1 to 5.
    norm
        Of the perturbation, ``"l2"`` or ``"linf"``.
    attack
        ``"auto"``, ``"projection"``, ``"pgd"`` or ``"decision"``, as in `attack_radius`.
    steps
        Steps of each attack; by default as many as suit it.
    """

    shares: tuple[Share, ...] | None = None
    norm: Literal["l2", "linf"] = "l2"
    attack: Literal["auto", "projection", "pgd", "decision"] = "auto"
    steps: Count | None = None

    def _area(self, explanation: Explanation, *, relevant: bool) -> Measures:
        counts, places = self._sizes(explanation)
        rank = np.empty(len(explanation.features), dtype=np.int64)
        rank[explanation.ranking] = np.arange(len(rank))
        sets = rank[None] < counts[:, None]
        sets = sets if relevant else ~sets
        prediction, attack = explanation.prediction, Attack(self.attack, self.norm, self.steps)
        decided = explanation.output.default_target(prediction)
        found = yield AttackRadii(sets, prediction, decided, attack=attack)
        radii = never_rising(sets, found).radii
        known = np.isfinite(radii)
        if not known.all():
            pixels, others = getattr(explanation.input, "pixels", None), radii
            if pixels is None:  # by whatever ranking, a set's radius is at most that of each feature in it
                all_and_each = np.eye(len(rank) + 1, len(rank), k=-1, dtype=np.bool_)
                all_and_each[0] = True
                found = yield AttackRadii(all_and_each, prediction, decided, attack=attack)
                others = np.append(radii, found.radii)
            radii = np.where(known, radii, self._absent(pixels, others[np.isfinite(others)]))
        if len(places) == 1:
            return {None: float(radii[0])}
        return {None: float(np.trapezoid(radii, places))}

    def _sizes(self, explanation: Explanation) -> tuple[Ints, Floats]:
        """How many features are relevant at each point of the curve, and where the points lie."""
        d = len(explanation.features)
        if self.shares is None and explanation.input.kind == "text":
            counts = np.arange(1, min(WORDS, d) + 1)
            return counts, counts.astype(np.float64)
        shares = SHARES if self.shares is None else self.shares
        return np.array([n_kept(share, d) for share in shares]), 100 * np.array(shares)

    def _absent(self, pixels: Array | None, found: Floats) -> float:
        """What a set without attack counts as, given the image, if it is one, and all radii found."""
        if pixels is not None:
            return float(np.linalg.norm(pixels) if self.norm == "l2" else np.abs(pixels).max())
        if not len(found):
            raise ModelError(
                "No attack on any set of features was found that changes the prediction, not even on all of "
                "them: try more `steps` or another `attack`."
            )
        return ABSENT * float(found.max())


@metrics.register("robustness-of-irrelevant")
@dataclass(frozen=True)
class RobustnessOfIrrelevant(Robustness):
    r"""Robustness-:math:`\bar S_r`: attacks on all features but the relevant ones (Def. 3.2)."""

    paper = "Hsieh et al. 2021, Def. 3.2 (Robustness-S̄r)"
    summary = "area under the radii of attacks on all features but the most important"
    better = "higher"

    def measure(self, explanation: Explanation) -> Measures:
        """Anchor the relevant features."""
        return (yield from self._area(explanation, relevant=False))


@metrics.register("robustness-of-relevant")
@dataclass(frozen=True)
class RobustnessOfRelevant(Robustness):
    r"""Robustness-:math:`S_r`: attacks on the relevant features alone (Def. 3.2)."""

    paper = "Hsieh et al. 2021, Def. 3.2 (Robustness-Sr)"
    summary = "area under the radii of attacks on the most important features alone"
    better = "lower"

    def measure(self, explanation: Explanation) -> Measures:
        """Attack the relevant features."""
        return (yield from self._area(explanation, relevant=True))
