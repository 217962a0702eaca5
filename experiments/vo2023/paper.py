"""What the paper reports, in percent where it does."""

from __future__ import annotations

FAITHFULNESS = {
    "imdb": {"aim": 99.62, "l2x": 84.80, "lime": 79.00, "vibi": 56.80, "functional-information": 71.70},
    "hatexplain": {"aim": 92.98, "l2x": 75.32, "lime": 80.56, "vibi": 67.25, "functional-information": 66.28},
    "ag_news": {"aim": 97.92, "l2x": 90.13, "lime": 86.64, "vibi": 66.58, "functional-information": 76.10},
}
"""Table 2, K = 10."""

MINUTES = {"imdb": 11.19, "hatexplain": 3.13, "ag_news": 11.44}
"""Table 2: the training of AIM."""

CLASS_FAITHFULNESS = {
    "imdb": (98.09, 98.96),
    "hatexplain": (87.76, 88.59),
    "ag_news": (73.88, 79.13, 54.56, 84.73),
}
"""Table 5, AIM, by class."""

ABLATIONS = {
    "aim": 99.62,
    "aim, inferred from the selector": 80.23,
    "aim, selector alone": 80.71,
    "aim, explainer alone": 61.66,
}
"""Table 7, IMDB."""

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
