"""The figures that Hsieh et al. 2021 published, for MNIST."""

from __future__ import annotations

NAMES = ("Grad", "IG", "EG", "SHAP", "LOO", "BBMP", "CFX", "Random", "Greedy-AS")


def _by_name(*values: float) -> dict[str, float]:
    return dict(zip(NAMES, values, strict=True))


# Table 1, and the variants of Table 3: areas under radii of attacks on irrelevant and on relevant pixels.
IRRELEVANT = _by_name(88.00, 85.98, 93.24, 75.48, 74.14, 78.58, 69.88, 64.44, 98.01)
IRRELEVANT |= {"Greedy": 83.57, "One-Step Banzhaf": 86.37}
RELEVANT = _by_name(91.72, 91.97, 91.05, 101.49, 104.38, 176.61, 102.81, 193.75, 82.81)
RELEVANT |= {"Greedy": 171.56, "One-Step Banzhaf": 83.59}

# Table 5, whose first row is Table 2: areas under the class's logit by reference value.
INSERTION: dict[float | str, dict[str, float]] = {
    "uniform": _by_name(174.18, 177.12, 228.64, 125.93, 121.99, 108.97, 102.05, 51.71, 270.75),
    0.0: _by_name(393.25, 802.57, 450.37, 656.55, 706.63, 212.12, 81.59, 120.65, 502.32),
    0.25: _by_name(293.92, 424.45, 341.05, 412.87, 453.29, 142.00, 77.33, 78.73, 455.74),
    0.5: _by_name(218.18, 317.55, 382.31, 136.51, 189.87, 42.76, 86.80, 49.15, 479.92),
    0.75: _by_name(220.90, 204.92, 285.66, 79.28, 125.73, 21.97, 163.46, 67.35, 325.47),
    1.0: _by_name(234.61, 206.54, 276.48, 89.83, 128.71, 25.31, 229.02, 81.44, 313.66),
}
DELETION: dict[float | str, dict[str, float]] = {
    "uniform": _by_name(153.58, 150.90, 113.21, 213.32, 274.77, 587.08, 137.69, 312.07, 94.24),
    0.0: _by_name(214.81, 134.64, 138.57, 66.36, 119.91, 362.95, 840.78, 453.01, 252.44),
    0.25: _by_name(162.24, 133.06, 161.28, 115.88, 204.75, 442.23, 354.05, 426.21, 90.89),
    0.5: _by_name(209.83, 258.50, 195.47, 271.11, 424.66, 549.11, 90.50, 392.69, 155.59),
    0.75: _by_name(305.17, 305.38, 250.57, 481.67, 712.46, 708.93, 89.38, 451.18, 176.85),
    1.0: _by_name(364.01, 372.18, 310.50, 647.68, 956.88, 823.90, 101.31, 495.91, 223.99),
}

# Table 7: rank correlation with explanations of the network with a random last layer.
SANITY = {
    "Grad": 0.30,
    "IG": 0.30,
    "SHAP": 0.11,
    "LOO": 0.49,
    "BBMP": 0.17,
    "CFX": 0.26,
    "Greedy-AS": 0.18,
}

# Table 8: sensitivity of the top 20% of pixels, radius 0.1.
SENSITIVITY = _by_name(0.45, 0.38, 0.20, 0.52, 0.31, 0.38, 0.57, 0.85, 0.61)

# Table 11: seconds an image.
SECONDS = {
    "Grad": 0.005,
    "IG": 0.023,
    "LOO": 0.004,
    "BBMP": 4.154,
    "SHAP": 9.673,
    "CFX": 8.582,
    "EG": 6.123,
    "Greedy": 9.532,
    "Greedy-AS": 13.621,
}
