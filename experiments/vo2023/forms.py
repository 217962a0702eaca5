"""L2X and VIBI, as they are here and as their papers have them, with the settings that were tuned."""

from __future__ import annotations

from typing import Any

AIM = "from probabilities"
"""The form of AIM that they stand beside."""
K = 10
TAUS = {"l2x": (0.1, 0.2, 0.5, 0.7), "vibi": (0.2, 0.5, 0.7)}
BETAS = (0.1, 0.5, 2.0)
"""Of Tables 13 and 15 to 17; of β every other one."""

UNTUNED: dict[str, dict[str, Any]] = {"l2x": {"k": K}, "vibi": {"k": K}}


def _selected(tau: float) -> dict[str, Any]:
    return {"k": K, "subsets": "selected", "temperature": tau}


TUNED: dict[str, dict[str, dict[str, Any]]] = {
    "l2x": {f"l2x, τ {tau}": _selected(tau) for tau in TAUS["l2x"]},
    "vibi": {
        f"vibi, τ {tau}, β {beta}": _selected(tau) | {"beta": beta} for beta in BETAS for tau in TAUS["vibi"]
    },
}
SETTINGS: dict[str, dict[str, Any]] = UNTUNED | TUNED["l2x"] | TUNED["vibi"]
"""All of them, by name."""
