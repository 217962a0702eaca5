"""The paper's numbers, as printed: mean and deviation over inputs."""

from __future__ import annotations

Row = tuple[tuple[float, float] | None, tuple[float, float], tuple[float, float]]
"""Sparsity, sufficiency, seconds for each input."""

TABLES: dict[str, dict[str, Row]] = {
    "forest": {
        "magnex": ((0.81, 0.05), (0.99, 0.02), (0.02, 0.00)),
        "lime": (None, (0.83, 0.15), (0.30, 0.02)),
    },
    "cnn": {
        "magnex": ((0.88, 0.04), (0.99, 0.05), (0.01, 0.0)),
        "lime": (None, (0.99, 0.06), (0.57, 0.1)),
        "integrated-gradients": (None, (0.99, 0.06), (0.60, 0.0)),
    },
    "imdb": {
        "magnex": ((0.94, 0.06), (0.95, 0.10), (0.05, 0.03)),
        "lime": (None, (0.95, 0.09), (9.33, 5.23)),
        "integrated-gradients": (None, (0.90, 0.16), (1.32, 0.70)),
    },
    "squad": {
        "magnex": ((0.76, 0.12), (0.88, 0.30), (0.09, 0.03)),
        "lime": (None, (0.82, 0.32), (12.91, 5.22)),
        "integrated-gradients": (None, (0.34, 0.40), (5.76, 2.24)),
    },
}
NAMES = {
    "forest": "Table 1: a random forest on MNIST",
    "cnn": "Table 2: a convolutional network on MNIST",
    "imdb": "Table 3: a fine-tuned encoder on IMDB",
    "squad": "Table 4: a fine-tuned reader on SQuAD",
}
LIME_SAMPLES = {"forest": 1500, "cnn": 1500, "imdb": 1000, "squad": 700}
"""Sec. 3.2."""
PATH_STEPS = 50
