"""Tables 1 to 3: stability, and agreement with references."""

from __future__ import annotations

import numpy as np
import paper
from collect import LEARNED, NAMES, Results, number, shown, table
from sets import SETS
from stages import PADDED


def stability(results: Results) -> str:
    """Tables 1 and 2."""
    parts = []
    for which in results.sets:
        rows = []
        for name, label in (NAMES | {"amortized": "amortized, between trainings"}).items():
            stage = f"method-{name}"
            published = paper.STABILITY[paper.BESIDE[which]].get(name, (None,) * 5)
            found = results.column(which, stage, "spearman")
            spent = results.column(which, stage, "evaluations")
            rows.append(
                [
                    label,
                    "–" if spent is None else str(len(spent)),
                    number(published[0]),
                    shown(found),
                    number(published[1]),
                    shown(results.column(which, stage, "top_5"), factor=5),
                    number(published[2]),
                    shown(results.column(which, stage, "top_10"), factor=10),
                    number(published[3]),
                    shown(results.column(which, stage, "mse"), 4),
                    "–" if spent is None else f"{np.mean(spent):,.0f}",
                ]
            )
        head = ["method", "texts", "ρ: paper", "ours", "top 5: paper", "ours", "top 10: paper", "ours"]
        head += ["MSE: paper", "ours", "evaluations"]
        rows = [row for row in rows if row[1] != "–"]
        said = f"Correlation of MSE with ρ over methods and texts: {mse_and_spearman(results, which):.2f}"
        said += f" (paper, Yelp-Polarity: {paper.MSE_AND_SPEARMAN}).\n"
        name = f"**{SETS[which].name}**, beside {paper.BESIDE[which]}"
        parts.append(f"{name}\n\n{table(head, rows)}\n{said}")
    return "\n".join(parts)


def seconds(results: Results) -> str:
    """Section 6.1: the seconds of one text, and how many times as fast the amortized model is."""
    rows = []
    for which in paper.BESIDE:
        for stage, device in (("seconds-alone", "H200"), ("seconds-cpu", "one core of a CPU")):
            alone = (results.having(which, stage).stage(which, stage) or {}).get("alone", {})
            for name in ("KS-200", "KS-2000"):
                if name in alone:
                    slow, fast = np.array(alone[name]), np.array(alone["amortized"])
                    published = paper.STABILITY[paper.BESIDE[which]][name][4] / paper.AMORTIZED_SECONDS
                    label = f"{SETS[which].name}, {device}, {name}"
                    rows.append(
                        [
                            label,
                            str(len(slow)),
                            shown(slow, 3),
                            shown(fast, 3),
                            shown(slow / fast, 1),
                            f"{published:.0f}",
                        ]
                    )
    return table(["", "texts", "its seconds", "seconds of amortized", "times as fast", "paper"], rows)


def mse_and_spearman(results: Results, which: str) -> float:
    """Pearson's correlation between a text's mean squared difference and its rank correlation."""
    pairs = [
        (results.column(which, f"method-{name}", "mse"), results.column(which, f"method-{name}", "spearman"))
        for name in NAMES
    ]
    known = [np.stack([mse, rank]) for mse, rank in pairs if mse is not None and rank is not None]
    both = np.concatenate(known, axis=1) if known else np.zeros((2, 0))
    both = both[:, np.isfinite(both).all(axis=0)]
    return float(np.asarray(np.corrcoef(both))[0, 1]) if both.shape[1] > 1 else np.nan


def padding(results: Results) -> str:
    """Return the stability of the tokens' ranks where padding plays but is not attended to."""
    rows = []
    for which in results.sets:
        for name in PADDED:
            run = results.having(which, f"padded-{name}")
            padded = run.column(which, f"padded-{name}", "spearman")
            alone = run.column(which, f"method-{name}", "spearman")
            rows.append(
                [
                    f"{SETS[which].name}, {name}",
                    f"{paper.STABILITY[paper.BESIDE[which]][name][0]:.2f}",
                    shown(padded),
                    "–" if alone is None or padded is None else shown(alone[: len(padded)]),
                ]
            )
    kept = [row for row in rows if row[2] != "–"]
    return table(["", "paper", "512 players, ρ of the tokens", "tokens alone, the same texts"], kept)


def approximation(results: Results) -> str:
    """Table 3."""
    parts = []
    for which in results.sets:
        rows = []
        for name, label in (NAMES | {"amortized": LEARNED["amortized"]}).items():
            stage = f"method-{name}"
            published = paper.APPROXIMATION[paper.BESIDE[which]].get(name, (None, None))
            found = {
                measure: results.column(which, stage, measure)
                for measure in ("svs spearman", "svs mse", "reference spearman", "reference mse", "coverage")
            }
            rows.append(
                [
                    label,
                    number(published[0]),
                    shown(found["svs spearman"]),
                    number(results.spread(which, stage, "svs spearman"), ".3f"),
                    number(published[1], ".1e"),
                    shown(found["svs mse"], 4),
                    shown(found["reference spearman"]),
                    shown(found["reference mse"], 4),
                    shown(found["coverage"], factor=100, digits=0),
                ]
            )
        rows = [row for row in rows if row[2] != "–"]
        head = ["method", "ρ with SVS-25: paper", "ours", "SD over runs", "MSE: paper", "ours"]
        head += ["ρ with the reference", "MSE", "% within ±1.96 SE"]
        parts.append(f"**{SETS[which].name}**, beside {paper.BESIDE[which]}\n\n{table(head, rows)}")
    return "\n".join(parts)
