"""L2X and VIBI in their papers' own form, tuned as Vo et al. 2023 tuned them (Tables 13 and 15 to 17).

    python experiments/vo2023/baselines.py --data DATA --out FILE [--sets imdb]

Every temperature τ and weight β of the paper's grids is tried once, with the approximator on the selected
features (`subsets="selected"`), as in the papers. The setting whose explainer keeps most decisions of
validation texts is then fitted with every seed, and measured on test texts beside L2X and VIBI with their
defaults here, and beside AIM. FILE is as that of `paper_form.py`, whose functions do the work; `records.py`
and `extra_page.py` write the tables of README.md from it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from forms import AIM, TUNED, UNTUNED
from paper import FAITHFULNESS
from paper import TUNED as PUBLISHED
from paper_form import Fit, add_options, options_of, run, train_boxes
from paper_form import shown as logged
from results import shown
from sets import TEXTS

from pertinent.stats import Difference, bootstrap, paired_difference

sys.path.append(str(Path(__file__).parents[1]))

from shared.legacy import table

BOX = "network"
DEV = "dev faithfulness"
LEVEL = 0.05
"""Of p-values."""


def grid(which: str, method: str) -> list[Fit]:
    """Every setting of a method, once."""
    return [Fit(which, BOX, form, 0) for form in TUNED[method]]


def best(which: str, method: str, made: Mapping[str, Any]) -> str | None:
    """The form that keeps most decisions of validation texts; ``None`` if none was tried."""
    tried = {fit.form: made[fit.name][DEV] for fit in grid(which, method) if fit.name in made}
    return max(tried, key=tried.__getitem__) if tried else None


def of_seeds(which: str, forms: Sequence[str], seeds: Sequence[int]) -> list[Fit]:
    """Forms with several seeds."""
    return [Fit(which, BOX, form, seed) for seed in seeds for form in forms]


def phases(sets: Sequence[str], seeds: int, made: Mapping[str, Any]) -> Iterator[list[Fit]]:
    """First the grids beside what is not tuned, then what was chosen with the other seeds."""
    plain = (AIM, *UNTUNED)
    yield [
        fit
        for which in sets
        for fit in (*of_seeds(which, plain, [0]), *(own for m in TUNED for own in grid(which, m)))
    ]
    chosen = {which: [best(which, method, made) for method in TUNED] for which in sets}
    yield [
        fit
        for seed in range(1, seeds)
        for which in sets
        for fit in of_seeds(which, [form for form in (*chosen[which], *plain) if form], [seed])
    ]


def rows(made: Mapping[str, Any], which: str) -> list[list[str]]:
    """Of each method, tuned and not: what the paper has, what was measured, and how far it is behind AIM."""
    found, aim = [], runs_of(made, which, AIM)
    for name, form in named(made, which).items():
        runs, method = runs_of(made, which, form), name.partition(",")[0]
        if runs:
            ahead = "" if form == AIM or not aim else shown_gap(gap(aim, runs))
            found.append(
                [
                    which,
                    f"`{name}`",
                    str(FAITHFULNESS[which][method]),
                    f"{100 * np.mean([own[DEV] for own in runs]):.1f}",
                    *(_over(runs, metric) for metric in SHOWN.values()),
                    ahead,
                    str(len(runs)),
                ]
            )
    return found


def runs_of(made: Mapping[str, Any], which: str, form: str) -> list[Any]:
    """The results of a form, with every seed whose texts were kept."""
    prefix = f"{which} | {BOX} | {form} | "
    return [own for key, own in made.items() if key.startswith(prefix) and "values" in own]


def _over(runs: Sequence[Any], metric: str) -> str:
    """A mean over seeds and texts with its interval; shares of decisions are in percent."""
    share = metric == "faithfulness"
    own = np.array([run["values"][metric] for run in runs])
    return shown(bootstrap(own, within=(0.0, 1.0) if share else None), 100 if share else 1)


def gap(runs: Sequence[Any], others: Sequence[Any]) -> Difference:
    """By how much runs are more faithful to the same texts than others, over as many seeds as both have."""
    n = min(len(runs), len(others))
    own, other = (np.array([run["values"]["faithfulness"] for run in each[:n]]) for each in (runs, others))
    return paired_difference(own, other)


def shown_gap(found: Difference) -> str:
    """A difference in percent points with its interval."""
    return f"{shown(found, 100)} {found.p_text}"


def named(made: Mapping[str, Any], which: str) -> dict[str, str]:
    """The forms that are shown, by what they are called."""
    found = {"aim": AIM}
    for method in TUNED:
        found |= {method: method}
        form = best(which, method, made)
        if form is not None:
            found[f"{method}, tuned: {form.partition(', ')[2]}"] = form
    return found


SHOWN = {
    "faithfulness": "faithfulness",
    "+Δ log-odds": "positive-delta-log-odds",
    "−Δ log-odds": "negative-delta-log-odds",
    "comprehensiveness at 10%": "comprehensiveness",
}


def tuned_table(made: Mapping[str, Any]) -> str:
    """The rows of Table 2 that are tuned beside those that are not."""
    head = ["set", "method", "faithfulness (paper)", "of validation texts", *SHOWN, "`aim` − it", "seeds"]
    return table(head, [row for which in TEXTS for row in rows(made, which)])


def tuned_verdict(made: Mapping[str, Any]) -> str:
    """For each set, how far AIM is ahead of L2X and VIBI, and what tuning changed."""
    lines = []
    for which in TEXTS:
        runs = {name: runs_of(made, which, form) for name, form in named(made, which).items()}
        aim = runs.pop("aim")
        gaps = [gap(aim, own) for own in runs.values() if own and aim]
        if not gaps:
            continue
        points = [100 * each.mean for each in gaps]
        ahead = sum(each.mean > 0 and each.p_value < LEVEL for each in gaps)
        said = (
            f"- {which}: AIM keeps {min(points):.1f} to {max(points):.1f} points more decisions than L2X and "
        )
        said += f"VIBI, tuned or not (ahead in {ahead} of {len(gaps)} rows)."
        for method in TUNED:
            tuned = [own for name, own in runs.items() if name.startswith(f"{method}, tuned") and own]
            if tuned and runs[method]:
                change = gap(tuned[0], runs[method])
                said += f" Tuning changes {method} by {shown_gap(change)}."
        lines.append(f"{said}\n")
    return "".join(lines)


def grids_table(made: Mapping[str, Any]) -> str:
    """Faithfulness of validation and test texts by setting, one seed each."""
    found = []
    for which in TEXTS:
        for method in TUNED:
            chosen = best(which, method, made)
            for fit in grid(which, method):
                own = made.get(fit.name)
                if own is not None:
                    cells = [f"{100 * own[name]:.1f}" for name in (DEV, "faithfulness")]
                    paper = f"{PUBLISHED[which][fit.form][2]:.1f}"
                    note = "chosen" if fit.form == chosen else ""
                    found.append([which, f"`{fit.form}`", paper, *cells, note])
    head = ["set", "setting", "faithfulness (paper)", "of validation texts", "of test texts", ""]
    return table(head, found)


def main() -> None:
    """Train the black boxes, try the grids, and fit what was chosen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=TEXTS, default=TEXTS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1e6, help="stop after so long")
    parser.add_argument("--processes", type=int, default=1)
    add_options(parser, test=500)
    arguments = parser.parse_args()
    last, out = time.time() + arguments.seconds, arguments.out
    arguments.folder.mkdir(parents=True, exist_ok=True)
    options = options_of(arguments)
    made = json.loads(out.read_text()) if out.is_file() else {}
    for phase in phases(arguments.sets, arguments.seeds, made):
        waiting = [fit for fit in phase if fit.name not in made]
        if not waiting or time.time() > last:
            continue
        train_boxes(waiting, options, last)
        for fit, result in run(waiting, options, arguments.processes, last):
            print(logged(fit, result), flush=True)
            if "error" not in result:
                made[fit.name] = result
                unfinished = out.with_suffix(".part")
                unfinished.write_text(json.dumps(made))
                unfinished.replace(out)


if __name__ == "__main__":
    main()
