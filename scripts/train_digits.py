"""Train the image classifier shipped with the package: `digits`, a small convolutional network.

    python scripts/train_digits.py --out OUT

OUT/digits gets the weights in float32, a card and a README. It takes a few seconds on a CPU, and the same
seed gives the same weights. Nothing but scikit-learn is needed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy

from pertinent.models.embedded.digits import digits_data, digits_network

SEED = 0
EPOCHS = 12
BATCH = 64
LEARNING_RATE = 2e-3

README = """# digits

A convolutional network with {parameters:,} parameters that classifies handwritten digits of 8 × 8 pixels.
It was trained on {trained_on:,} images of scikit-learn's `load_digits` (UCI optical recognition of
handwritten digits) and classifies {accuracy:.1%} of the other {tested_on} correctly.

Rebuilt by `{command}`.
"""


def train() -> tuple[torch.nn.Module, dict[str, Any]]:
    """Train the network; return it with its card."""
    data, network = digits_data(), digits_network()
    rng = np.random.default_rng(SEED)
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    network.train()
    for _ in range(EPOCHS):
        for batch in np.array_split(rng.permutation(len(data.rows)), len(data.rows) // BATCH):
            logits = network(torch.from_numpy(data.rows[batch]))
            optimizer.zero_grad()
            cross_entropy(logits, torch.from_numpy(data.targets[batch])).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    network.eval()
    with torch.inference_mode():
        predicted = network(torch.from_numpy(data.test_rows)).argmax(dim=1).numpy()
    return network, {
        "name": "digits",
        "task": "handwritten digits of 8 × 8 pixels",
        "accuracy": float((predicted == data.test_targets).mean()),
        "trained_on": len(data.rows),
        "tested_on": len(data.test_rows),
        "parameters": sum(weights.numel() for weights in network.parameters()),
        "command": "python scripts/train_digits.py --out OUT",
    }


def main() -> None:
    """Train and save the network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the model's folder")
    folder = parser.parse_args().out / "digits"
    folder.mkdir(parents=True, exist_ok=True)
    network, card = train()
    save_file(network.state_dict(), folder / "model.safetensors")
    (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    (folder / "README.md").write_text(README.format(**card))


if __name__ == "__main__":
    main()
