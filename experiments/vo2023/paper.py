"""What the paper reports, in percent where it does."""

from __future__ import annotations

FAITHFULNESS = {
    "imdb": {"aim": 99.62, "l2x": 84.80, "lime": 79.00, "vibi": 56.80, "functional-information": 71.70},
    "hatexplain": {"aim": 92.98, "l2x": 75.32, "lime": 80.56, "vibi": 67.25, "functional-information": 66.28},
    "ag_news": {"aim": 97.92, "l2x": 90.13, "lime": 86.64, "vibi": 66.58, "functional-information": 76.10},
}
"""Table 2, K = 10."""

LOG_ODDS: dict[str, dict[str, tuple[float, float]]] = {
    "imdb": {
        "aim": (7.53, -0.20),
        "l2x": (2.92, 2.63),
        "lime": (2.25, 5.74),
        "vibi": (0.09, 8.47),
        "functional-information": (2.38, 7.15),
    },
    "hatexplain": {
        "aim": (4.98, -1.40),
        "l2x": (2.81, 1.15),
        "lime": (3.18, 1.07),
        "vibi": (1.41, 2.50),
        "functional-information": (1.41, 2.59),
    },
    "ag_news": {
        "aim": (7.14, -1.09),
        "l2x": (4.36, 0.28),
        "lime": (1.38, 0.60),
        "vibi": (0.03, 3.88),
        "functional-information": (0.49, 2.24),
    },
}
"""Table 2: positive and negative Δ log-odds."""

MINUTES = {
    "imdb": {"aim": 11.19, "l2x": 6.90, "vibi": 8.48},
    "hatexplain": {"aim": 3.13, "l2x": 2.43, "vibi": 2.15},
    "ag_news": {"aim": 11.44, "l2x": 22.08, "vibi": 15.36},
}
"""Table 2: training."""

CLASS_FAITHFULNESS: dict[str, dict[str, tuple[float, ...]]] = {
    "imdb": {"aim": (98.09, 98.96), "lime": (50.02, 50.48), "functional-information": (86.32, 15.62)},
    "hatexplain": {"aim": (87.76, 88.59), "lime": (24.30, 74.15), "functional-information": (41.21, 60.35)},
    "ag_news": {
        "aim": (73.88, 79.13, 54.56, 84.73),
        "lime": (22.89, 26.45, 25.00, 26.71),
        "functional-information": (25.07, 25.00, 26.18, 26.71),
    },
}
CLASS_IOU = {
    "imdb": {"aim": 0.41, "lime": 15.69, "functional-information": 92.34},
    "hatexplain": {"aim": 3.69, "lime": 66.91, "functional-information": 76.52},
    "ag_news": {"aim": 9.24, "lime": 51.09, "functional-information": 35.60},
}
"""Table 5, by class."""

ABLATIONS = {
    "aim, no context": 61.66,
    "aim, with a selector": None,
    "aim, with a selector, no context": 99.62,
    "aim, with a selector, explore 0": None,
    "aim, inferred from the selector": 80.23,
    "aim, selector alone": 80.71,
}
"""Table 7, IMDB; the paper's explainer has no context."""

ABLATED = {
    "paper": (8.22, 2.48, 99.62),
    "paper, D.1: from the selector": (22.72, 3.15, 80.23),
    "paper, D.2: selector alone": (26.48, 3.09, 80.71),
    "paper, D.3: explainer alone": (29.77, 3.96, 61.66),
}
"""Table 7, IMDB, by the forms of `paper_form.py`: purity, brevity and faithfulness."""

ALPHAS: dict[str, dict[float, tuple[float, float, float]]] = {
    "imdb": {
        0.1: (99.61, 9.34, 1.89),
        0.5: (99.56, 8.83, -0.09),
        1.0: (99.41, 6.65, 0.98),
        1.5: (99.50, 7.31, 1.98),
        1.8: (99.62, 7.53, -0.20),
        2.0: (99.10, 8.35, 1.49),
    },
    "hatexplain": {
        0.1: (92.98, 4.98, -1.40),
        0.5: (92.38, 5.11, -1.75),
        1.0: (92.50, 5.87, -1.82),
        1.5: (92.52, 5.02, -1.16),
        1.8: (91.28, 4.28, -1.36),
        2.0: (90.67, 3.16, -0.44),
    },
    "ag_news": {
        0.1: (97.92, 7.14, -1.09),
        0.5: (96.03, 7.16, -1.01),
        1.0: (97.89, 7.14, -1.09),
        1.5: (97.03, 7.10, -0.88),
        1.8: (97.42, 7.10, -1.08),
        2.0: (97.83, 7.09, -1.07),
    },
}
"""Table 12: faithfulness, and positive and negative Δ log-odds, by alpha."""

TABLE_11: dict[str, dict[str, tuple[float, float, float]]] = {
    "imdb": {"aim": (99.02, 99.62, 99.88), "l2x": (83.42, 84.80, 84.14)},
    "hatexplain": {"aim": (85.15, 92.98, 95.22), "l2x": (70.17, 75.32, 82.90)},
    "ag_news": {"aim": (94.78, 97.92, 99.26), "l2x": (85.79, 90.13, 88.82)},
}
"""Table 11: faithfulness of 5, 10 and 20 words."""

IMAGES = {
    ("mnist", "pixels"): {
        "aim": (96.16, 96.95, 97.30),
        "integrated-gradients": (99.10, 99.52, 99.52),
        "kernel-shap": (67.33, 67.33, 67.33),
    },
    ("fashion_mnist", "pixels"): {
        "aim": (90.66, 93.13, 97.60),
        "integrated-gradients": (92.93, 94.43, 94.43),
        "kernel-shap": (52.30, 59.63, 62.77),
    },
    ("mnist", "patches"): {"aim": (92.67, 94.60, 95.08)},
    ("fashion_mnist", "patches"): {"aim": (88.46, 92.23, 92.42)},
}
"""Tables 8 and 9: faithfulness of 200, 300 and 400 pixels, or of 5, 8 and 10 patches."""
