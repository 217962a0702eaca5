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
        timed = results.stage(which, "seconds")
        rows = []
        for name, label in (NAMES | {"amortized": "amortized, draws nothing"}).items():
            stage = f"method-{name}"
            published = paper.STABILITY[paper.BESIDE[which]].get(name, (None,) * 5)
            published = (*published[:4], paper.AMORTIZED_SECONDS) if name == "amortized" else published
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
                    number(published[4]),
                    "–" if timed is None else f"{timed['seconds'][name]:.3f}",
                ]
            )
        head = ["method", "texts", "ρ: paper", "ours", "top 5: paper", "ours", "top 10: paper", "ours"]
        head += ["MSE: paper", "ours", "evaluations", "seconds: paper", "ours"]
        said = f"Correlation of MSE with ρ over methods and texts: {mse_and_spearman(results, which):.2f}"
        said += f" (paper, Yelp-Polarity: {paper.MSE_AND_SPEARMAN}).\n"
        name = f"**{SETS[which].name}**, beside {paper.BESIDE[which]}"
        parts.append(f"{name}\n\n{table(head, rows)}\n{said}")
    return "\n".join(parts)


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
    """Tables 1 and 2 with the padding of the paper."""
    rows = []
    for which in results.sets:
        for name in PADDED:
            everything = results.column(which, f"padded-{name}", "spearman of all")
            alone = results.column(which, f"method-{name}", "spearman")
            rows.append(
                [
                    f"{SETS[which].name}, {name}",
                    f"{paper.STABILITY[paper.BESIDE[which]][name][0]:.2f}",
                    shown(everything),
                    shown(results.column(which, f"padded-{name}", "spearman")),
                    "–" if alone is None or everything is None else shown(alone[: len(everything)]),
                ]
            )
    kept = [row for row in rows if row[2] != "–"]
    head = [
        "",
        "paper",
        "512 players, ρ of all",
        "512 players, ρ of the tokens",
        "tokens alone, the same texts",
    ]
    return table(head, kept)


def approximation(results: Results) -> str:
    """Table 3."""
    parts = []
    for which in results.sets:
        rows = []
        for name, label in (NAMES | LEARNED).items():
            stage, published = (
                f"method-{name}",
                paper.APPROXIMATION[paper.BESIDE[which]].get(name, (None, None)),
            )
            rows.append(
                [
                    label,
                    shown(results.column(which, stage, "svs spearman")),
                    number(published[0]),
                    shown(results.column(which, stage, "svs mse"), 4),
                    number(published[1], ".1e"),
                    shown(results.column(which, stage, "reference spearman")),
                    shown(results.column(which, stage, "reference mse"), 4),
                    shown(results.column(which, stage, "coverage"), factor=100, digits=0),
                ]
            )
        rows = [[row[0], row[2], row[1], row[4], row[3], *row[5:]] for row in rows if row[1] != "–"]
        head = ["method", "ρ with SVS-25: paper", "ours", "MSE: paper", "ours"]
        head += ["ρ with the reference", "MSE", "% within ±1.96 SE"]
        parts.append(f"**{SETS[which].name}**, beside {paper.BESIDE[which]}\n\n{table(head, rows)}")
    return "\n".join(parts)
