"""Write the tables into README.md, between their markers, from what run.py and estimators.py found.

python experiments/magnex/tables.py --results RESULTS
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from paper import NAMES, TABLES, Row
from run import results_in
from stages import AS_PAPER, GOALS, GRID, METRICS, Fit, choose, methods_beside

from pertinent.stats import bootstrap, paired_difference

sys.path.append(str(Path(__file__).parents[1]))

from shared.legacy import fill_in, table

README = Path(__file__).parent / "README.md"
SUFFICIENCY, SPARSITY = METRICS
NOT_MEASURED = "not measured"
SEEDS = 5


class Results:
    """The files of a folder; a stage that is missing or failed is ``None``."""

    def __init__(self, folder: Path) -> None:
        self._found = {which: results_in(folder, which) for which in NAMES}
        path = folder / "estimators.json"
        self.estimators = json.loads(path.read_text()) if path.is_file() else None

    def stage(self, which: str, name: str) -> Any:
        """What a stage found."""
        return self._found[which].get(name)

    def chosen(self, which: str) -> Fit | None:
        """The v and the learning rate that were chosen."""
        return choose(which, self._found[which])

    def fits(self, which: str) -> list[tuple[Fit, Any]]:
        """The explainers with these, of every seed."""
        best = self.chosen(which)
        if best is None:
            return []
        every = [replace(best, seed=seed) for seed in range(SEEDS)]
        return [(own, found) for own in every if (found := self.stage(which, own.name)) is not None]


def one_table(results: Results, which: str) -> str:
    """One of the paper's tables."""
    rows = []
    fits, timed = results.fits(which), results.stage(which, "seconds")
    for row, printed in TABLES[which].items():
        known = [own for _, own in fits] if row == "magnex" else _compared(results, which, row)
        seconds = None if timed is None else timed.get(row)
        rows.append(
            [
                row,
                _printed(printed, 0),
                _mean(known, SPARSITY),
                _printed(printed, 1),
                _mean(known, SUFFICIENCY),
                _printed(printed, 2),
                "–" if seconds is None else f"{np.mean(seconds):.3f}",
            ]
        )
    head = ["method", "sparsity, paper", "here", "sufficiency, paper", "here", "seconds, paper", "here"]
    own = table(head, rows) + _as_paper(results, which) if fits else f"{NOT_MEASURED}\n"
    return f"**{NAMES[which]}.** {_black_box(results, which)}\n\n{own}"


def _as_paper(results: Results, which: str) -> str:
    """The sufficiency of as many of the highest scores as the paper's explainer keeps, where measured."""
    found = {"magnex": [own.get(AS_PAPER) for _, own in results.fits(which)]}
    for method in methods_beside(which):
        found[method] = [(results.stage(which, f"{method}-compared") or {}).get(AS_PAPER)]
    cells = [f"{row} {_mean(each, SUFFICIENCY)}" for row, each in found.items() if None not in each]
    share = 1 - GOALS[which][1]
    return f"\nSufficiency of the top {share:.0%} of each input: {', '.join(cells)}.\n" if cells else ""


def _compared(results: Results, which: str, method: str) -> list[Any]:
    """What another method found with as many features as each explainer."""
    found = results.stage(which, f"{method}-compared") or {}
    return [found[own.name] for own, _ in results.fits(which) if own.name in found]


def _printed(row: Row, place: int) -> str:
    return "–" if (found := row[place]) is None else f"{found[0]:.2f} ± {found[1]:.2f}"


def _mean(columns: Sequence[Any], name: str) -> str:
    """The mean with a 95% interval over inputs and initialisations, and the deviation over inputs."""
    if not columns:
        return "–"
    values = np.array([each[name] for each in columns])
    return f"{bootstrap(values)} ± {values.std(axis=1).mean():.2f}"


def _black_box(results: Results, which: str) -> str:
    found = results.stage(which, "model")
    if found is None:
        return ""
    return ", ".join(
        f"{name} {value:.1%}" for name, value in found.items() if name in ("accuracy", "F1", "exact match")
    )


def tables(results: Results) -> str:
    """All of them."""
    return "\n".join(one_table(results, which) for which in NAMES)


def goals(results: Results) -> str:
    """What was to be reached, and what was."""
    rows = []
    for which, (su, sp) in GOALS.items():
        every = [found for _, found in results.fits(which)]
        means = [(np.mean(found[SUFFICIENCY]), np.mean(found[SPARSITY])) for found in every]
        reached = [bool(a >= su and b >= sp) for a, b in means]
        overall = np.mean(means, axis=0) if means else None
        rows.append(
            [
                NAMES[which],
                f"{su:.2f} at {sp:.2f}",
                NOT_MEASURED if overall is None else f"{overall[0]:.3f} at {overall[1]:.3f}",
                "; ".join(f"{a:.3f} at {b:.3f}" for a, b in means),
                "–" if overall is None else "yes" if overall[0] >= su and overall[1] >= sp else "no",
                f"{sum(reached)} of {len(reached)}",
            ]
        )
    head = [
        "",
        "goal: sufficiency at sparsity",
        "mean",
        "each initialisation",
        "reached",
        "by initialisations",
    ]
    return table(head, rows)


def grid(results: Results) -> str:
    """What v and the learning rate do to selections of dev inputs."""
    rows = []
    for which in NAMES:
        for own in GRID[which]:
            found = results.stage(which, own.setting)
            if found is not None:
                measured = [f"{np.mean(found[name]):.3f}" for name in METRICS]
                chosen = "chosen" if own == results.chosen(which) else ""
                rows.append([NAMES[which], f"{own.v:g}", f"{own.learning_rate:g}", *measured, chosen])
    head = ["", "v", "learning rate", "sufficiency, dev", "sparsity, dev", ""]
    return table(head, rows) if rows else f"{NOT_MEASURED}\n"


def differences(results: Results) -> str:
    """MAGNEx against the others at the same number of features of each input."""
    rows = []
    for which in NAMES:
        for method in methods_beside(which):
            others = _compared(results, which, method)
            ours = [found for _, found in results.fits(which)]
            if others and len(others) == len(ours):
                pair = [np.array([found[SUFFICIENCY] for found in each]) for each in (ours, others)]
                rows.append([NAMES[which], method, str(paired_difference(*pair))])
    return table(["", "against", "sufficiency of magnex − of it"], rows) if rows else f"{NOT_MEASURED}\n"


def estimators(results: Results) -> str:
    """Of the gradient."""
    found = results.estimators
    if found is None:
        return f"{NOT_MEASURED}\n"
    rows = []
    for name in found["variance"]["late"]:
        qualities = found["quality"].get(name, [])
        variances = [found["variance"].get(when, {}).get(name) for when in ("early", "late")]
        rows.append(
            [
                name,
                *("–" if value is None else f"{value:.3g}" for value in variances),
                f"{np.mean(qualities):.3f}" if qualities else "–",
                ", ".join(f"{quality:.3f}" for quality in qualities),
            ]
        )
    head = [
        "estimator",
        "variance for one evaluation, early",
        "late",
        "quality after as many evaluations",
        "each seed",
    ]
    return table(head, rows)


def speed(results: Results) -> str:
    """Many inputs together, beside the black box's own predictions of them."""
    rows = []
    for which in NAMES:
        found = results.stage(which, "speed")
        if found is not None:
            own, box = found["magnex"], found["prediction"]
            rows.append(
                [
                    NAMES[which],
                    found["device"],
                    str(found["inputs"]),
                    f"{box:.2f} s",
                    f"{own:.2f} s",
                    f"{own / box:.2f}×",
                ]
            )
    head = ["", "device", "inputs", "predictions alone", "magnex, with predictions", "ratio"]
    return table(head, rows) if rows else f"{NOT_MEASURED}\n"


PARTS: dict[str, Callable[[Results], str]] = {
    "goals": goals,
    "grid": grid,
    "tables": tables,
    "differences": differences,
    "estimators": estimators,
    "speed": speed,
}


def main() -> None:
    """Put each table between its markers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--page", type=Path, default=README)
    arguments = parser.parse_args()
    results = Results(arguments.results)
    fill_in(arguments.page, {name: make(results) for name, make in PARTS.items()})


if __name__ == "__main__":
    main()
