"""Sanity check (App. I) and sensitivity (App. J): random parameters, and images that differ a little.

    python experiments/hsieh2021/checks.py --data DATA/mnist --weights WEIGHTS --results RESULTS/mnist

Writes RESULTS/checks.jsonl.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from mnist import read_network, wrapped
from records import Writer
from rows import ROWS
from run import SUBSETS, chosen_images, settings_of

import pertinent
from pertinent.array_types import Array
from pertinent.diagnostics.sanity import Correlation, correlation
from pertinent.explainers.base import Explainer, explainers
from pertinent.explainers.robustness.base import AttackExplainer
from pertinent.models.torch.randomised import RandomisedModel, layers_of

CHOSEN = 0.2
"""The share of pixels that is compared (App. J), and that Greedy-AS chooses."""

CHECKED = (
    "random",
    "gradient",
    "integrated-gradients",
    "expected-gradients",
    "leave-one-out",
    "counterfactual",
    "meaningful-perturbation",
    "greedy-as",
    "greedy-as, relevant",
    "shapley-sampling",
    "shapley",
)


def correlations(
    model: Any, images: Sequence[Array], method: Explainer, options: Mapping[str, Any]
) -> Sequence[Correlation]:
    """Of the explanations with those of the network with a random last layer.

    Attacks change the predicted class, which a random layer changes: they explain its own prediction.
    """
    if not isinstance(method, AttackExplainer):
        return pertinent.sanity(model, images, method, layers="last", **options).rows
    copied = RandomisedModel(model, 0)
    copied.randomise(layers_of(model)[0])
    found, again = (pertinent.explain(own, images, method, **options) for own in (model, copied.model))
    placed = {own.index: own for own in again}
    return [correlation(own, placed[own.index], 1) for own in found if own.index in placed]


def main() -> None:
    """Check one row after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True, help="its name is that of the experiment")
    parser.add_argument("--rows", nargs="+", choices=CHECKED, default=CHECKED, metavar="ROW")
    parser.add_argument("--only", choices=("sanity", "sensitivity"))
    parser.add_argument("--images", type=int, default=50, help="of the sanity check")
    parser.add_argument("--moved", type=int, default=20, help="images of the sensitivity")
    parser.add_argument("--samples", type=int, default=10, help="images near each of them")
    parser.add_argument("--subsets", type=int, default=SUBSETS)
    parser.add_argument("--name", default="checks")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    module = read_network(arguments.weights)
    model = wrapped(module.to(arguments.device))
    writer = Writer(arguments.results / f"{arguments.name}.jsonl", arguments.results.name)
    writer.path.unlink(missing_ok=True)
    images = list(chosen_images(arguments.data, arguments.images))
    for name in arguments.rows:
        row = ROWS[name]
        settings = settings_of(row, arguments.subsets, "raw")
        settings |= {"chosen": CHOSEN} if "chosen" in settings else {}
        options: dict[str, Any] = {"removal": "constant", "features": "pixels", "progress": False}
        options |= {key: settings.pop(key) for key in ("budget", "scale") if key in settings}
        method = explainers.get(row.method)(**settings)
        if arguments.only != "sensitivity":
            found = correlations(model, images, method, options)
            writer.write(name, "sanity", [one.spearman for one in found])
            writer.write(name, "sanity of magnitudes", [one.absolute for one in found])
        if arguments.only != "sanity":
            near = images[: arguments.moved]
            moved = pertinent.sensitivity(
                model, near, method, samples=arguments.samples, sparsity=CHOSEN, **options
            )
            writer.write(name, "sensitivity", [one.value for one in moved.rows])
        print(f"{name}: checked", flush=True)


if __name__ == "__main__":
    main()
