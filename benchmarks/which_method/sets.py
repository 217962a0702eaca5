"""Inputs for the embedded models: data sets of scikit-learn, and texts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

N = 40
"""The number of images and rows."""

NEWS = [
    "Shares of the chip maker rose 4 percent after it raised its sales forecast for the year.",
    "The goalkeeper saved two penalties and the home side won the cup final in extra time.",
    "Rebels and government forces agreed to a truce after a week of fighting near the border.",
    "A probe sent back the first pictures of the dust storm on the far side of the planet.",
    "The central bank left interest rates unchanged and warned of slower growth in the spring.",
    "She broke the world record in the 800 metres by more than a second on a wet track.",
    "The prime minister resigned after parliament rejected the budget for the second time.",
    "A flaw in the browser lets attackers read passwords, and a patch is due next week.",
    "The airline will cut two thousand jobs as the price of fuel eats into its profit.",
    "The striker signed for three more years and said he wants to end his career at the club.",
    "Thousands marched through the capital to demand free elections and the release of prisoners.",
    "Researchers built a battery that charges in five minutes and lasts for a thousand cycles.",
    "The retailer reported a loss for the third quarter and closed forty of its stores.",
    "The champion lost in straight sets to a teenager who had to qualify for the tournament.",
    "An earthquake shook the coast before dawn, and rescue teams searched the ruins for survivors.",
    "The new phone has a larger screen, a faster processor and software that blocks spam calls.",
    "Oil fell below forty dollars a barrel as traders feared that demand will shrink this winter.",
    "The coach dropped his captain after the team lost its fourth match in a row.",
    "Inspectors of the United Nations were refused entry to the plant, the ministry said.",
    "Astronomers found a planet the size of the Earth that circles a dim star nearby.",
    "The merger of the two banks will create the largest lender in the country.",
    "A late goal gave the visitors a draw and kept their hopes of promotion alive.",
    "The president will visit the region next month to revive the talks about peace.",
    "The search engine now answers questions in full sentences, the company said on Monday.",
]


def reviews() -> list[str]:
    """Return the reviews of the example study."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "examples"))
    from study import REVIEWS  # type: ignore[import-not-found]

    return list(REVIEWS)


def digits() -> Any:
    """Return handwritten digits of 8 × 8 pixels, with values from 0 to 1."""
    from sklearn.datasets import load_digits

    return load_digits().images[-N:, None] / 16


def wines() -> Any:
    """Return wines with noise in their columns, so that some predictions are uncertain."""
    from sklearn.datasets import load_wine

    values = load_wine().data
    noise = np.random.default_rng(0).normal(size=values.shape)
    return (values + 0.6 * values.std(axis=0) * noise)[:: len(values) // N][:N]


def patients() -> Any:
    """Return patients of the diabetes study, unscaled."""
    from sklearn.datasets import load_diabetes

    return load_diabetes(scaled=False).data[:N]
