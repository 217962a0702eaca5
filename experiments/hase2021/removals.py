"""How accurate a model stays as random tokens go, by removal (Figure 2).

`python removals.py --data DIR --model DIR --set snli --out results.json [--removals attention-mask …]
[--filler DIR]`; with a masked language model to fill in, `marginalize` is checked, too.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from data import SETS, read

import pertinent
from pertinent.models.embedded.load import load_transformer
from pertinent.removals import Marginalize
from pertinent.removals.base import Removal

REMOVALS = ("attention-mask", "mask-token", "slice-out", "zero-vector")
"""Those that a model can be trained with."""


def main() -> None:
    """Check the removals and write the accuracies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--set", choices=SETS, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--removals", nargs="+", default=list(REMOVALS))
    parser.add_argument("--filler", type=Path, help="a masked language model: check marginalize, too")
    arguments = parser.parse_args()
    torch.set_num_threads(1 if torch.cuda.is_available() else 2)
    model = load_transformer(str(arguments.model), device="cuda" if torch.cuda.is_available() else "cpu")
    dev = read(arguments.data, arguments.set, "dev", arguments.points)
    removals: list[str | Removal] = arguments.removals
    if arguments.filler:
        removals = [*removals, Marginalize(filler=str(arguments.filler))]
    check = pertinent.check_removal(
        model, dev.examples, dev.labels, removals=removals, features="tokens", progress=False
    )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    check.save(arguments.out)
    print(json.dumps({"model": str(arguments.model), "advice": check.recommendation}), flush=True)


if __name__ == "__main__":
    main()
