"""Write the tables into README.md, between their markers, from what run.py and calibrate.py found.

python experiments/yang2023/tables.py --results RESULTS
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import conclusions
import numpy as np
from collect import Results, fill_in, table
from learned_tables import adaption, calibration, fastshap, selection, training, transfer
from sampled_tables import approximation, padding, seconds, stability
from sets import SETS, SIZES

README = Path(__file__).parent / "README.md"


def overview(results: Results) -> str:
    """The models, the texts and the references."""
    rows = []
    for which in [each for each in SIZES if results.stage(each, "model")]:
        model, reference = results.stage(which, "model"), results.stage(which, "reference")
        learned, trained = results.stage(which, "learned"), results.stage(which, "amortized-0")
        tokens = reference and np.mean(reference["features"])
        rows.append(
            [
                SETS[which].name,
                f"{100 * model['test accuracy']:.1f}%",
                "–" if reference is None else f"{reference['texts']}, {tokens:.0f} tokens on average",
                "–" if reference is None else f"{reference['squared error']:.1e}",
                "–" if learned is None else f"{learned['texts']:,}",
                "–" if learned is None else f"{learned['reference seconds']:.0f} s",
                "–" if trained is None else f"{trained['training seconds']:.0f} s",
            ]
        )
    head = ["set", "accuracy", "test texts", "squared error of the reference", "texts learned from"]
    text = table([*head, "their references took", "training took"], rows)
    errors = [f"- {name} failed: `{error}`" for name, error in results.errors.items()]
    return text + ("\n" + "\n".join(errors) + "\n" if errors else "")


def findings(results: Results) -> str:
    """What holds and what does not."""
    return table(conclusions.head(), [row for row in conclusions.rows(results) if row[-1] != "–"])


PARTS: dict[str, Callable[[Results], str]] = {
    "overview": overview,
    "findings": findings,
    "stability": stability,
    "seconds": seconds,
    "padding": padding,
    "approximation": approximation,
    "fastshap": fastshap,
    "training": training,
    "adaption": adaption,
    "transfer": transfer,
    "selection": selection,
    "calibration": calibration,
}


def main() -> None:
    """Put each table between its markers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--page", type=Path, default=README)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="only these tables")
    arguments = parser.parse_args()
    results = Results(arguments.results)
    fill_in(arguments.page, {name: PARTS[name](results) for name in arguments.parts})


if __name__ == "__main__":
    main()
