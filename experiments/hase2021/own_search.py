"""Thompson search with a quarter of the budget, beside Parallel Local Search with all of it.

    python experiments/hase2021/own_search.py --data DATA --set sst2 [--points 60] [--out page.md]

The embedded models, which are counterfactual-trained; features are words. Needs no GPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from methods import BUDGET, OBJECTIVES, REDUCED, SPARSITIES

import pertinent
from pertinent.array_types import Floats
from pertinent.results.explanation import Explanations
from pertinent.stats import paired_difference

SETS = {
    "sst2": ("sentiment", "sst2/test.parquet", 25, "SST-2 test, sentences of 25 words and more"),
    "ag_news": ("topics", "ag_news/test.parquet", 30, "AG News test, texts of 30 words and more"),
}
WINS = 1e-4
"""Differences in probability below this are ties."""


def reached(found: Explanations) -> Floats:
    """The target's probability at each sparsity (inputs, sparsities)."""
    rows = []
    for e in found:
        per_size = {int(k): log[-1][1] for k, log in e.details["trajectory"].items()}
        rows.append([per_size[int(e.mask(s).sum())] for s in SPARSITIES])
    return np.array(rows)


def caught_up(found: Explanations, wanted: Floats, sign: int) -> Floats:
    """Evaluations after which the probability wanted was reached; NaN where it never was."""
    rows = []
    for e, goals in zip(found, wanted, strict=True):
        row = []
        for share, goal in zip(SPARSITIES, goals, strict=True):
            log = e.details["trajectory"][str(int(e.mask(share).sum()))]
            row.append(next((n for n, p in log if sign * p >= sign * goal - 1e-9), np.nan))
        rows.append(row)
    return np.array(rows)


def compared(model: Any, texts: list[str], objective: str) -> list[str]:
    """A row of the table."""
    sign = 1 if objective == "sufficiency" else -1
    options: dict[str, Any] = {"objective": objective, "trajectory": True, "sparsity": SPARSITIES}
    pls = pertinent.explain(model, texts, "parallel-local-search", budget=BUDGET, **options)
    own = pertinent.explain(model, texts, "thompson-search", budget=REDUCED, **options)
    at_pls, at_own = reached(pls), reached(own)
    gain = sign * (at_own - at_pls)
    over = paired_difference(100 * sign * at_own.mean(axis=1), 100 * sign * at_pls.mean(axis=1))
    quarter = np.array(
        [[_after(e.details["trajectory"][str(int(e.mask(s).sum()))]) for s in SPARSITIES] for e in pls]
    )
    behind = paired_difference(100 * sign * at_own.mean(axis=1), 100 * sign * quarter.mean(axis=1))
    needed = caught_up(own, at_pls, sign)
    share = float(np.isfinite(needed).mean())
    return [
        objective,
        f"{100 * at_pls.mean():.2f}",
        f"{100 * quarter.mean():.2f}",
        f"{100 * at_own.mean():.2f}",
        f"{over.mean:+.2f} [{over.low:.2f}, {over.high:.2f}] ({over.p_text})",
        f"{behind.mean:+.2f} ({behind.p_text})",
        f"{(gain > WINS).mean():.0%} / {(np.abs(gain) <= WINS).mean():.0%} / {(gain < -WINS).mean():.0%}",
        f"{share:.0%}, median {np.nanmedian(needed):.0f}",
    ]


def _after(log: list[list[float]]) -> float:
    return [p for n, p in log if n <= REDUCED][-1]


def main() -> None:
    """Compare and write a page."""
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("own-search.md"))
    arguments = parser.parse_args()
    head = ["looks for", f"p, PLS at {BUDGET}", f"p, PLS at {REDUCED}", f"p, thompson at {REDUCED}"]
    head += [f"ahead of PLS at {BUDGET}, points", f"ahead of PLS at {REDUCED}", "better / same / worse"]
    head += [f"reached PLS at {BUDGET}, after evaluations"]
    page = f"# thompson-search at {REDUCED} evaluations beside parallel-local-search at {BUDGET}\n\n"
    page += (
        "For each of four sparsities. p is the mean probability of the target in %: to be high when only "
        "the set is kept (sufficiency), low when it is removed (comprehensiveness). Positive differences "
        "favour `thompson-search`; they are paired by text and averaged over sparsities. Embedded models, "
        "features are words, one search seed.\n"
    )
    for which in arguments.sets:
        name, file, least, title = SETS[which]
        every = pd.read_parquet(arguments.data / file).text
        texts = [text for text in every if len(text.split()) >= least][: arguments.points]
        model = pertinent.load(name)
        page += f"\n## {title}: {len(texts)} texts\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}\n"
        for objective in OBJECTIVES:
            page += f"| {' | '.join(compared(model, texts, objective))} |\n"
            arguments.out.write_text(page, encoding="utf-8")
            print(page.splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
