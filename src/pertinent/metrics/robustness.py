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
"""Sizes of relevant sets: 5% … 45% of the features; for texts 1 to 5 features."""

MOST_SINGLE = 100
"""Largest number of features to attack one by one."""


@dataclass(frozen=True)
class Robustness(Metric):
    """The area under the curve of attack radii over the number of relevant features (Sec. 3.2).

    The x-axis is the percentage of features, or for texts their number. If no attack on a set succeeds, all
    features together and each single feature (at most 100) are attacked. The set's radius is then 1.5 times
    the largest radius for this input, which is usually larger than that of any set of another ranking. If no
    attack succeeds at all, the metric fails.

    Parameters
    ----------
    shares
        Shares of features that count as relevant; by default 5% to 45%, for texts the first 1 to 5 features.
    norm
        Norm of the perturbation, ``"l2"`` or ``"linf"``.
    attack
        ``"auto"``, ``"projection"``, ``"pgd"``, ``"pgd-logit"`` or ``"decision"``, as in `attack_radius`.
    steps
        Number of steps of each attack; the default depends on the attack.
    """

    attack_relevant: ClassVar[bool]
    shares: tuple[Share, ...] | None = None
    norm: Literal["l2", "linf"] = "l2"
    attack: AttackName = "auto"
    steps: Count | None = None

    def measure(self, explanation: Explanation) -> Measures:
        """Attack sets of increasing size and integrate the radii."""
        counts, coordinates = self._sizes(explanation)
        relevant = top_masks(explanation, counts)
        sets = relevant if self.attack_relevant else ~relevant
        attack = Attack(self.attack, self.norm, self.steps)
        prediction = explanation.prediction
        attacks = yield AttackRadii(sets, prediction.values, prediction.column, attack=attack)
        radii = never_rising(sets, attacks).radii
        succeeded = np.isfinite(radii)
        if not succeeded.all():
            substitute = yield from self._radius_without_attack(explanation, radii[succeeded], attack)
            radii = np.where(succeeded, radii, substitute)
        return {None: float(radii[0] if len(coordinates) == 1 else np.trapezoid(radii, coordinates))}

    def _sizes(self, explanation: Explanation) -> tuple[Ints, Floats]:
        """Return the number of relevant features at each point of the curve, and the points' coordinates."""
        d = len(explanation.features)
        if self.shares is None and explanation.input.has_words:
            counts = np.arange(1, min(WORDS, d) + 1)
            return counts, counts.astype(np.float64)
        shares = SHARES if self.shares is None else self.shares
        return np.array([n_kept(share, d) for share in shares]), 100 * np.array(shares)

    def _radius_without_attack(
        self, explanation: Explanation, radii: Floats, attack: Attack
    ) -> Asking[float]:
        """Return the radius of sets on which no attack succeeded; `radii` are those of the other sets."""
        # For any ranking, the radius of a set is at most the radius of each feature in it.
        d, prediction = len(explanation.features), explanation.prediction
        single = np.unique(np.linspace(0, d - 1, MOST_SINGLE).astype(int))
        sets = np.concatenate([full_mask(d), np.eye(d, dtype=np.bool_)[single]])
        attacks = yield AttackRadii(sets, prediction.values, prediction.column, attack=attack)
        radii = np.append(radii, attacks.radii[np.isfinite(attacks.radii)])
        if not len(radii):
            raise ModelError("No attack changes the prediction: try more `steps` or another `attack`.")
        return ABSENT * float(radii.max())


@metrics.register("robustness-of-irrelevant")
@dataclass(frozen=True)
class RobustnessOfIrrelevant(Robustness):
    r"""Robustness-:math:`\bar S_r`: attacks on all features except the relevant ones (Def. 3.2)."""

    paper = "Hsieh et al. 2021, Def. 3.2 (Robustness-S̄r)"
    summary = "area under the radii of attacks on all but the most important features"
    better = "higher"
    attack_relevant = False


@metrics.register("robustness-of-relevant")
@dataclass(frozen=True)
class RobustnessOfRelevant(Robustness):
    """Robustness-:math:`S_r`: attacks on only the relevant features (Def. 3.2)."""

    paper = "Hsieh et al. 2021, Def. 3.2 (Robustness-Sr)"
    summary = "area under the radii of attacks on only the most important features"
    better = "lower"
    attack_relevant = True
