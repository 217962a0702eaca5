"""The figures that Hsieh et al. 2021 published, for MNIST and ImageNet."""

from __future__ import annotations

from dataclasses import dataclass

NAMES = ("Grad", "IG", "EG", "SHAP", "LOO", "BBMP", "CFX", "Random", "Greedy-AS")


def _by_name(*values: float) -> dict[str, float]:
    return dict(zip(NAMES, values, strict=True))


@dataclass(frozen=True)
class Published:
    """Areas of a data set: under the radii of attacks, and under the class's logit by reference value."""

    irrelevant: dict[str, float]
    relevant: dict[str, float]
    insertion: dict[float | str, dict[str, float]]
    deletion: dict[float | str, dict[str, float]]


# Table 1, with the variants of Table 3; Table 5, whose first row is Table 2.
MNIST = Published(
    irrelevant=_by_name(88.00, 85.98, 93.24, 75.48, 74.14, 78.58, 69.88, 64.44, 98.01)
    | {"Greedy": 83.57, "One-Step Banzhaf": 86.37},
    relevant=_by_name(91.72, 91.97, 91.05, 101.49, 104.38, 176.61, 102.81, 193.75, 82.81)
    | {"Greedy": 171.56, "One-Step Banzhaf": 83.59},
    insertion={
        "uniform": _by_name(174.18, 177.12, 228.64, 125.93, 121.99, 108.97, 102.05, 51.71, 270.75),
        0.0: _by_name(393.25, 802.57, 450.37, 656.55, 706.63, 212.12, 81.59, 120.65, 502.32),
        0.25: _by_name(293.92, 424.45, 341.05, 412.87, 453.29, 142.00, 77.33, 78.73, 455.74),
        0.5: _by_name(218.18, 317.55, 382.31, 136.51, 189.87, 42.76, 86.80, 49.15, 479.92),
        0.75: _by_name(220.90, 204.92, 285.66, 79.28, 125.73, 21.97, 163.46, 67.35, 325.47),
        1.0: _by_name(234.61, 206.54, 276.48, 89.83, 128.71, 25.31, 229.02, 81.44, 313.66),
    },
    deletion={
        "uniform": _by_name(153.58, 150.90, 113.21, 213.32, 274.77, 587.08, 137.69, 312.07, 94.24),
        0.0: _by_name(214.81, 134.64, 138.57, 66.36, 119.91, 362.95, 840.78, 453.01, 252.44),
        0.25: _by_name(162.24, 133.06, 161.28, 115.88, 204.75, 442.23, 354.05, 426.21, 90.89),
        0.5: _by_name(209.83, 258.50, 195.47, 271.11, 424.66, 549.11, 90.50, 392.69, 155.59),
        0.75: _by_name(305.17, 305.38, 250.57, 481.67, 712.46, 708.93, 89.38, 451.18, 176.85),
        1.0: _by_name(364.01, 372.18, 310.50, 647.68, 956.88, 823.90, 101.31, 495.91, 223.99),
    },
)

# The same of ImageNet; Table 6.
IMAGENET = Published(
    irrelevant=_by_name(27.13, 26.01, 26.88, 18.25, 22.29, 21.56, 27.12, 17.98, 31.62)
    | {"Greedy": 21.16, "One-Step Banzhaf": 24.54},
    relevant=_by_name(45.53, 46.28, 48.82, 60.02, 58.46, 158.01, 46.10, 56.11, 43.97)
    | {"Greedy": 58.45, "One-Step Banzhaf": 47.07},
    insertion={
        "uniform": _by_name(86.16, 109.94, 150.81, 28.06, 63.90, 135.98, 97.33, 31.73, 183.66),
        0.0: _by_name(125.32, 214.85, 183.47, 85.57, 61.37, 138.00, 135.31, 69.57, 182.61),
        0.25: _by_name(291.06, 329.24, 245.46, 39.74, 163.81, 243.92, 287.58, 103.63, 293.30),
        0.5: _by_name(301.78, 343.77, 348.66, 45.77, 178.18, 250.25, 270.03, 129.65, 305.87),
        0.75: _by_name(222.63, 217.26, 248.74, 29.39, 131.92, 243.44, 215.11, 87.38, 286.40),
        1.0: _by_name(109.89, 136.10, 170.96, 55.29, 89.26, 135.06, 109.44, 59.23, 189.96),
    },
    deletion={
        "uniform": _by_name(276.78, 256.51, 244.88, 143.27, 290.10, 615.13, 281.12, 314.82, 219.52),
        0.0: _by_name(313.04, 260.75, 288.52, 181.11, 262.78, 665.49, 333.98, 312.66, 234.34),
        0.25: _by_name(408.95, 395.37, 433.78, 328.50, 365.03, 686.75, 421.56, 516.56, 322.50),
        0.5: _by_name(431.17, 412.70, 420.31, 345.84, 388.64, 689.08, 421.89, 546.30, 321.11),
        0.75: _by_name(364.28, 340.24, 329.11, 279.51, 325.71, 701.97, 375.87, 402.97, 262.36),
        1.0: _by_name(245.57, 218.09, 203.84, 207.57, 234.28, 658.54, 329.20, 217.39, 191.96),
    },
)

BY_DATA = {"mnist": MNIST, "photographs": IMAGENET, "photographs-20": IMAGENET}
"""What the paper has of a set; Fashion-MNIST is not in it."""

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
