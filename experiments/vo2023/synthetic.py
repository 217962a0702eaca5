"""What AIM needs to learn the weights of words, on a task where they are known.

python experiments/vo2023/synthetic.py

The model is a bag of words with known weights: texts of 40 words, 3,000 words of which some are frequent and
most are rare, four classes. One seed; prints a table.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import pertinent

WORDS, CLASSES, LENGTH = 3000, 4, 40
RARE = 0.9
"""The exponent of Zipf's law."""
ROWS: tuple[dict[str, Any], ...] = (
    {},
    {"explore": 0.0},
    {"context": False},
    {"learning_rate": 3e-3},
    {"train": "explainer"},
)
"""Settings of AIM."""


def main() -> None:
    """Fit and measure each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--texts", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=8)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    matters = rng.random((WORDS, CLASSES)) < 0.1
    weights = np.where(matters, rng.normal(0, 2, matters.shape), 0) + rng.normal(0, 0.1, matters.shape)
    names = [f"w{i}" for i in range(WORDS)]
    own = dict(zip(names, weights, strict=True))

    def classify(texts: list[str]) -> Any:
        sums = [sum((own[word] for word in text.split() if word in own), np.zeros(CLASSES)) for text in texts]
        odds = np.exp(4 * np.tanh(np.array(sums) / 3))
        return odds / odds.sum(axis=1, keepdims=True)

    chances = 1 / np.arange(1, WORDS + 1) ** RARE
    chances /= chances.sum()
    texts = [" ".join(rng.choice(names, LENGTH, p=chances)) for _ in range(arguments.texts + 300)]
    model = pertinent.wrap(classify)
    print("| settings | faithfulness | class faithfulness |\n|---|---|---|")
    for settings in ROWS:
        aim = pertinent.fit(
            model,
            texts[: arguments.texts],
            "aim",
            k=5,
            alpha=0.1,
            beta=1e-4,
            epochs=arguments.epochs,
            batch_size=64,
            patience=None,
            progress=False,
            **settings,
        )
        found = pertinent.explain(model, texts[arguments.texts :], aim, progress=False)
        judged = pertinent.evaluate(found, model, ["faithfulness", "class-faithfulness"], progress=False)
        shown = ", ".join(f"{name}={value}" for name, value in settings.items())
        measured = [judged.mean("aim", name) for name in ("faithfulness", "class-faithfulness")]
        print(f"| `aim{', ' * bool(shown)}{shown}` | {measured[0]:.3f} | {measured[1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
