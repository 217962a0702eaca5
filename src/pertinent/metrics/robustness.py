"""Robustness to attacks on the relevant features, or on all others (Hsieh et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from pertinent.array_types import Floats, Ints
from pertinent.asks import Asking, Attack, AttackRadii
from pertinent.asks.attack_radii import AttackName, never_rising
from pertinent.config.settings import Count, Share
from pertinent.errors import ModelError
from pertinent.explainers.base import n_kept
from pertinent.explainers.robustness.base import ABSENT
from pertinent.masks import full_mask
from pertinent.metrics.base import Measures, Metric, metrics, top_masks
from pertinent.results.explanation import Explanation

SHARES = tuple(share / 100 for share in range(5, 50, 5))
WORDS = 5
"""The sizes of relevant sets: 5% … 45% of the features; for a text, 1 to 5 features."""

MOST_ALONE = 100
"""Largest number of features that are attacked one by one."""


@dataclass(frozen=True)
class Robustness(Metric):
    """The area under the curve of attack radii over the number of relevant features (Sec. 3.2).

    The curve is over the share of features in percent; for a text, over their number. If no attack is found
    in a set, all features together and each alone (of more than 100 features, 100) are attacked, and the
    set's radius is 1.5 times the largest one found for the input, which is usually more than the radius of
    any set of another ranking; if no attack is found at all, the measure fails.

    Parameters
    ----------
    shares
        Shares of features that count as relevant; by default 5% to 45%, for a text the first 1 to 5.
    norm
        The norm of the perturbation, ``"l2"`` or ``"linf"``.
    attack
        ``"auto"``, ``"projection"``, ``"pgd"``, ``"pgd-logit"`` or ``"decision"``, as in `attack_radius`.
    steps
        Steps of each attack; by default the number that suits the attack.
    """

    attack_relevant: ClassVar[bool]
    shares: tuple[Share, ...] | None = None
    norm: Literal["l2", "linf"] = "l2"
    attack: AttackName = "auto"
    steps: Count | None = None

    def measure(self, explanation: Explanation) -> Measures:
        """Attack sets of growing size, and integrate the radii."""
        counts, places = self._sizes(explanation)
        relevant = top_masks(explanation, counts)
        sets = relevant if self.attack_relevant else ~relevant
        attack = Attack(self.attack, self.norm, self.steps)
        decided = explanation.prediction.column
        found = yield AttackRadii(sets, explanation.prediction.values, decided, attack=attack)
        radii = never_rising(sets, found).radii
        known = np.isfinite(radii)
        if not known.all():
            absent = yield from self._absent(explanation, radii[known], decided, attack)
            radii = np.where(known, radii, absent)
        if len(places) == 1:
            return {None: float(radii[0])}
        return {None: float(np.trapezoid(radii, places))}

    def _sizes(self, explanation: Explanation) -> tuple[Ints, Floats]:
        """The number of relevant features at each point of the curve, and the points' coordinates."""
        d = len(explanation.features)
        if self.shares is None and explanation.input.has_words:
            counts = np.arange(1, min(WORDS, d) + 1)
            return counts, counts.astype(np.float64)
        shares = SHARES if self.shares is None else self.shares
        return np.array([n_kept(share, d) for share in shares]), 100 * np.array(shares)

    def _absent(self, explanation: Explanation, radii: Floats, decided: int, attack: Attack) -> Asking[float]:
        """The radius that counts for a set in which no attack is found; `radii` are those that were found."""
        # Whatever the ranking, the radius of a set is at most that of each feature in it.
        d = len(explanation.features)
        some = np.unique(np.linspace(0, d - 1, MOST_ALONE).astype(int))
        all_and_each = np.concatenate([full_mask(d), np.eye(d, dtype=np.bool_)[some]])
        found = yield AttackRadii(all_and_each, explanation.prediction.values, decided, attack=attack)
        radii = np.append(radii, found.radii[np.isfinite(found.radii)])
        if not len(radii):
            raise ModelError(
                "No attack on any set of features was found that changes the prediction, not even on all of "
                "them: try more `steps` or another `attack`."
            )
        return ABSENT * float(radii.max())


@metrics.register("robustness-of-irrelevant")
@dataclass(frozen=True)
class RobustnessOfIrrelevant(Robustness):
    r"""Robustness-:math:`\bar S_r`: attacks on all features but the relevant ones (Def. 3.2)."""

    paper = "Hsieh et al. 2021, Def. 3.2 (Robustness-S̄r)"
    summary = "area under the radii of attacks on all features but the most important"
    better = "higher"
    attack_relevant = False


@metrics.register("robustness-of-relevant")
@dataclass(frozen=True)
class RobustnessOfRelevant(Robustness):
    r"""Robustness-:math:`S_r`: attacks on the relevant features alone (Def. 3.2)."""

    paper = "Hsieh et al. 2021, Def. 3.2 (Robustness-Sr)"
    summary = "area under the radii of attacks on the most important features alone"
    better = "lower"
    attack_relevant = True
