"""Write the tables into README.md, between their markers, from what run.py found.

NLTK_DATA=FOLDER python experiments/vo2023/tables.py --data DATA --results RESULTS
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from paper import (
    ABLATIONS,
    ALPHAS,
    CLASS_FAITHFULNESS,
    CLASS_IOU,
    FAITHFULNESS,
    IMAGES,
    LOG_ODDS,
    MINUTES,
    TABLE_11,
)
from results import ROWS, fill_in, of, over, read_results, shown, table
from sets import CLASSES, TEXTS, read
from sets import IMAGES as IMAGE_SETS
from stages import ALPHA_BETA
from words import word_table

from pertinent.stats import bootstrap, paired_difference

README = Path(__file__).parent / "README.md"
K = 10
ALL_ROWS = ("aim", "aim, 20 epochs", "aim, with a selector", *ROWS[1:])


def main() -> None:
    """Fill in the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--page", type=Path, default=README)
    arguments = parser.parse_args()
    found = read_results(arguments.results)
    words = [word_table(found, which, read(arguments.data, which, "test").inputs) for which in TEXTS]
    tables = {
        "texts": texts(found),
        "classes": classes(found),
        "differences": differences(found),
        "cost": cost(found),
        "words": "\n".join(words),
        "settings": settings(found),
        "alphas": alphas(found),
        "sizes": sizes(found),
        "images": images(found),
        "seconds": seconds(found),
    }
    fill_in(arguments.page, tables)


def _shared(found: dict[str, Any], which: str) -> int:
    """How many texts every row has."""
    return min(len(run["words"]) for row in ROWS for run in of(found, which, row))


def _published(row: str) -> str:
    """The name under which the paper has figures for a row: one for all forms of AIM."""
    return "aim" if row.startswith("aim") else row


def texts(found: dict[str, Any]) -> str:
    """Table 2."""
    rows = []
    for which in TEXTS:
        for row in ALL_ROWS:
            runs = of(found, which, row)
            positive, negative = LOG_ODDS[which].get(_published(row), ("–", "–"))
            if runs:
                rows.append(
                    [
                        which,
                        f"`{row}`",
                        str(FAITHFULNESS[which].get(_published(row), "–")),
                        shown(over(runs, "faithfulness"), 100),
                        shown(over(runs, "faithfulness", _shared(found, which)), 100),
                        str(positive),
                        shown(over(runs, "positive-delta-log-odds")),
                        str(negative),
                        shown(over(runs, "negative-delta-log-odds")),
                        str(len(runs[0]["words"])),
                        str(len(runs)),
                    ]
                )
    head = "set, method, faithfulness (paper), here, of the texts of all rows, "
    head += "+Δ log-odds (paper), here, −Δ log-odds (paper), here, "
    return table(f"{head}texts, seeds".split(", "), rows)


def classes(found: dict[str, Any]) -> str:
    """Table 5."""
    rows = []
    for which in TEXTS:
        for row in (*ALL_ROWS[:3], "lime", "kernel-shap"):
            runs = of(found, which, row)
            if runs:
                each = [
                    shown(over(runs, f"class-faithfulness {column}"), 100)
                    for column in range(len(CLASSES[which]))
                ]
                paper = CLASS_FAITHFULNESS[which].get(_published(row))
                rows.append(
                    [
                        which,
                        f"`{row}`",
                        " / ".join(map(str, paper)) if paper else "–",
                        " / ".join(each),
                        f"{np.mean(paper):.1f}" if paper else "–",
                        shown(over(runs, "class-faithfulness"), 100),
                        shown(over(runs, "class-faithfulness", _shared(found, which)), 100),
                        shown(over(runs, "class-faithfulness", more_words_than=K), 100),
                        str(CLASS_IOU[which].get(_published(row), "–")),
                        shown(over(runs, "class-iou"), 100),
                    ]
                )
    head = "set, method, of each class (paper), here, mean (paper), here, of the texts of all rows, "
    head += "of texts with more than 10 words, IoU of classes (paper), here"
    return table(head.split(", "), rows)


def cost(found: dict[str, Any]) -> str:
    """What the paper does not have: sufficiency and comprehensiveness beside cost."""
    rows = []
    for which in TEXTS:
        for row in ALL_ROWS:
            runs = of(found, which, row)
            if runs:
                fit = [run["fit seconds"] for run in runs if "fit seconds" in run]
                rows.append(
                    [
                        which,
                        f"`{row}`",
                        shown(over(runs, "sufficiency 0.1")),
                        shown(over(runs, "comprehensiveness 0.1")),
                        f"{np.mean([run['evaluations'] for run in runs]):,.0f}",
                        f"{np.mean(fit) / 60:.1f}" if fit else "–",
                        str(MINUTES[which].get(_published(row), "–")),
                    ]
                )
    head = "set, method, sufficiency at 10% ↓, comprehensiveness at 10% ↑, evaluations an input, "
    return table(f"{head}minutes of fitting, paper".split(", "), rows)


def settings(found: dict[str, Any]) -> str:
    """Table 7, and settings of our own."""
    rows = []
    for which in TEXTS:
        for row in ("aim", *ABLATIONS):
            runs = of(found, which, row)
            paper = ABLATIONS.get(row) if which == "imdb" else None
            rows.append(
                [which, f"`{row}`", "–" if paper is None else str(paper), *_judged(runs), str(len(runs))]
            )
    return table(f"set, row, {JUDGED}, seeds".split(", "), rows)


def alphas(found: dict[str, Any]) -> str:
    """Table 12."""
    rows = []
    for which, published in ALPHAS.items():
        for alpha, (faithfulness, *log_odds) in published.items():
            own = "aim, with a selector" if alpha == ALPHA_BETA[which][0] else f"aim, alpha {alpha}"
            runs = of(found, which, own)
            share, of_class, *deltas = _judged(runs)
            pairs = [f"({paper}) {here}" for paper, here in zip(log_odds, deltas, strict=True)]
            cells = [str(faithfulness), share, of_class, *pairs] if runs else []
            rows.append([which, str(alpha), *cells, str(len(runs)) if runs else "–"])
    return table(f"set, α, {JUDGED}, seeds".split(", "), rows)


JUDGED = "faithfulness (paper), here, class faithfulness, +Δ log-odds, −Δ log-odds"


def _judged(runs: list[Any]) -> list[str]:
    return [
        shown(over(runs, "faithfulness"), 100),
        shown(over(runs, "class-faithfulness"), 100),
        shown(over(runs, "positive-delta-log-odds")),
        shown(over(runs, "negative-delta-log-odds")),
    ]


def sizes(found: dict[str, Any]) -> str:
    """Table 11: L2X is fitted anew for every K."""
    rows = []
    for which in TEXTS:
        for place, k in enumerate((5, 10, 20)):
            own = f"faithfulness of {k}"
            aim, l2x = (TABLE_11[which][row][place] for row in ("aim", "l2x"))
            rows.append(
                [
                    which,
                    str(k),
                    f"({aim}) {shown(over(of(found, which, 'aim'), own), 100)}",
                    f"({l2x}) {shown(over(of(found, which, 'l2x' if k == K else f'l2x {k}'), own), 100)}",
                    shown(over(of(found, which, "l2x"), own), 100),
                ]
            )
    return table(["set", "K", "`aim`", "`l2x`, fitted with this K", "`l2x`, fitted with K = 10"], rows)


def differences(found: dict[str, Any]) -> str:
    """AIM (the mean over seeds) against LIME on the texts that both explained, in paired differences."""
    rows = []
    for which in TEXTS:
        aim, lime = (of(found, which, row) for row in ("aim", "lime"))
        for metric, factor in PAIRED.items() if aim and lime else ():
            n = _shared(found, which)
            ours, theirs = (
                np.mean([run["values"][metric][:n] for run in runs], axis=0) for runs in (aim, lime)
            )
            gap = paired_difference(ours, theirs)
            means = [f"{factor * each.mean():.{1 if factor > 1 else 2}f}" for each in (ours, theirs)]
            rows.append([which, metric, *means, shown(gap, factor), gap.p_text])
    return table(["set", "metric", "`aim`", "`lime`", "difference", ""], rows)


PAIRED = {
    "class-faithfulness": 100.0,
    "positive-delta-log-odds": 1.0,
    "negative-delta-log-odds": 1.0,
    "sufficiency 0.1": 1.0,
    "comprehensiveness 0.1": 1.0,
}
"""By how much the values are multiplied."""


def seconds(found: dict[str, Any]) -> str:
    """How long the predictions for many inputs take, and explanations with them."""
    rows = []
    for which in (*TEXTS, *IMAGE_SETS):
        own = found.get(f"{which}_timed")
        if own:
            black_box, aim = (min(own[row]) for row in ("black box", "aim"))
            cells = [f"{own['inputs']:,}", f"{black_box:.2f} s", f"{aim:.2f} s", f"{aim / black_box:.2f}×"]
            rows.append([which, *cells])
    return table(["set", "inputs", "predictions alone", "`aim`, with predictions", "ratio"], rows)


def images(found: dict[str, Any]) -> str:
    """Tables 8 and 9."""
    rows = []
    for (which, features), methods in IMAGES.items():
        runs = {"aim": of(found, which, features)}
        runs["aim, with a selector"] = of(found, which, f"{features} with a selector")
        runs |= dict.fromkeys(("integrated-gradients", "kernel-shap"), runs["aim"])
        for row, several in runs.items():
            own = [run[_published(row)] for run in several if _published(row) in run]
            if not own:
                continue
            cells = [shown(bootstrap(np.array([run[k] for run in own]), within=(0, 1)), 100) for k in own[0]]
            paper = " / ".join(f"{value:.1f}" for value in methods.get(_published(row), ())) or "–"
            sizes = " / ".join(own[0])
            rows.append([which, features, sizes, f"`{row}`", paper, " / ".join(cells), str(len(own))])
    return table(["set", "features", "K", "method", "faithfulness (paper)", "here", "seeds"], rows)


if __name__ == "__main__":
    main()
