"""Write the tables into README.md, between their markers, from what run.py and estimators.py found.

python experiments/magnex/tables.py --results RESULTS
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from paper import NAMES, TABLES, Row
from stages import FITS, METRICS, Fit

from pertinent.statistics import bootstrap, paired_difference

README = Path(__file__).parent / "README.md"
SUFFICIENCY, SPARSITY = METRICS
NOT_MEASURED = "not measured"
GOALS = {"forest": (0.99, 0.81), "cnn": (0.99, 0.88), "imdb": (0.95, 0.94), "squad": (0.88, 0.76)}
"""Sufficiency and sparsity."""


class Results:
    """The files of a folder; a stage that is missing or failed is ``None``."""

    def __init__(self, folder: Path) -> None:
        self._found = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}

    def stage(self, name: str) -> Any:
        """What a stage found."""
        found = self._found.get(name)
        return None if found is None or "error" in found else found

    def fits(self, which: str) -> list[tuple[Fit, Any]]:
        """The explainers of a black box that were fitted."""
        every = [(own, self.stage(f"{which}.{own.name}")) for own in FITS[which]]
        return [(own, found) for own, found in every if found is not None]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def one_table(results: Results, which: str) -> str:
    """One of the paper's tables, for each v and learning rate that was tried."""
    rows = []
    kinds = list(dict.fromkeys((own.v, own.learning_rate) for own, _ in results.fits(which)))
    timed = results.stage(f"{which}.seconds")
    for v, rate in kinds:
        fits = [(own, found) for own, found in results.fits(which) if (own.v, own.learning_rate) == (v, rate)]
        for row, printed in TABLES[which].items():
            columns = [_columns(results, which, own, found, row) for own, found in fits]
            known = [each for each in columns if each is not None]
            seconds = None if timed is None else timed["seconds"].get(row)
            rows.append(
                [
                    f"{row}, v = {v:g}, rate {rate:g}",
                    _printed(printed, 0),
                    _mean(known, SPARSITY),
                    _printed(printed, 1),
                    _mean(known, SUFFICIENCY),
                    _printed(printed, 2),
                    "–" if seconds is None else f"{np.mean(seconds):.3f}",
                    str(len(known)),
                ]
            )
    head = [
        "method",
        "sparsity, paper",
        "here",
        "sufficiency, paper",
        "here",
        "seconds, paper",
        "here",
        "initialisations",
    ]
    return f"**{NAMES[which]}.** {_black_box(results, which)}\n\n" + (
        table(head, rows) if rows else f"{NOT_MEASURED}\n"
    )


def _columns(results: Results, which: str, own: Fit, found: Any, row: str) -> Any:
    return found if row == "magnex" else results.stage(f"{which}.{row}-at-{own.name}")


def _printed(row: Row, place: int) -> str:
    return "–" if (found := row[place]) is None else f"{found[0]:.2f} ± {found[1]:.2f}"


def _mean(columns: Sequence[Any], name: str) -> str:
    """The mean with a 95% interval over inputs and initialisations, and the deviation over inputs."""
    if not columns:
        return "–"
    values = np.array([each[name] for each in columns])
    return f"{bootstrap(values)} ± {values.std(axis=1).mean():.2f}"


def _black_box(results: Results, which: str) -> str:
    found = results.stage(f"{which}.model")
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
        fits = results.fits(which)
        means = [(np.mean(found[SUFFICIENCY]), np.mean(found[SPARSITY])) for _, found in fits]
        reached = any(a >= su and b >= sp for a, b in means)
        measured = "; ".join(f"{a:.3f} at {b:.3f}" for a, b in means) or NOT_MEASURED
        rows.append(
            [NAMES[which], f"{su:.2f} at {sp:.2f}", measured, "yes" if reached else "no" if means else "–"]
        )
    return table(["", "goal: sufficiency at sparsity", "each initialisation", "reached"], rows)


def differences(results: Results) -> str:
    """MAGNEx against the others at the same number of features of each input."""
    rows = []
    for which in NAMES:
        for method in ("lime", "integrated-gradients"):
            pairs = [
                (found, results.stage(f"{which}.{method}-at-{own.name}"))
                for own, found in results.fits(which)
            ]
            known = [(a[SUFFICIENCY], b[SUFFICIENCY]) for a, b in pairs if b is not None]
            if known:
                ours, others = (np.array([pair[i] for pair in known]) for i in (0, 1))
                rows.append([NAMES[which], method, str(paired_difference(ours, others))])
    return table(["", "against", "sufficiency of magnex − of it"], rows) if rows else f"{NOT_MEASURED}\n"


def estimators(results: Results) -> str:
    """Of the gradient."""
    found = results.stage("estimators")
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
        found = results.stage(f"{which}.seconds")
        if found is not None:
            own, box = found["seconds"]["magnex together"], found["seconds"]["prediction"]
            rows.append(
                [NAMES[which], str(found["together"]), f"{box:.2f} s", f"{own:.2f} s", f"{own / box:.2f}×"]
            )
    head = ["", "inputs", "predictions alone", "magnex, with predictions", "ratio"]
    return table(head, rows) if rows else f"{NOT_MEASURED}\n"


PARTS: dict[str, Callable[[Results], str]] = {
    "goals": goals,
    "tables": tables,
    "differences": differences,
    "estimators": estimators,
    "speed": speed,
}


def _filled(text: str, found: re.Match[str]) -> str:
    return f"{found[1]}\n{text}\n{found[2]}"


def main() -> None:
    """Put each table between its markers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--page", type=Path, default=README)
    arguments = parser.parse_args()
    results = Results(arguments.results)
    page = arguments.page.read_text(encoding="utf-8")
    for name, make in PARTS.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(page):
            parser.error(f"{arguments.page} has no place for {name}: <!-- {name} --> and <!-- end -->.")
        page = pattern.sub(partial(_filled, make(results)), page)
    arguments.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
