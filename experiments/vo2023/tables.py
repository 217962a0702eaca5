"""Write the tables into README.md, between their markers, from what run.py found.

    NLTK_DATA=FOLDER python experiments/vo2023/tables.py --data DATA --results RESULTS [--small RESULTS]

``--small`` are the results of the smaller study of settings, on a CPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from paper import ABLATIONS, ALPHAS, CLASS_FAITHFULNESS, CLASS_IOU, FAITHFULNESS, IMAGES, LOG_ODDS, MINUTES
from results import ROWS, fill_in, of, over, read_results, shown, table
from sets import CLASSES, TEXTS, read
from words import word_table

README = Path(__file__).parent / "README.md"
K = 10
SMALL = "ag_news"
"""The set of the smaller study."""


def main() -> None:
    """Fill in the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--small", type=Path)
    arguments = parser.parse_args()
    found = read_results(arguments.results)
    words = [word_table(found, which, read(arguments.data, which, "test").inputs) for which in TEXTS]
    tables = {
        "texts": texts(found),
        "classes": classes(found),
        "cost": cost(found),
        "words": "\n\n".join(words),
        "images": images(found),
    }
    if arguments.small:
        small = read_results(arguments.small)
        tables |= {"settings": settings(small), "sizes": sizes(small)}
    fill_in(README, tables)


def _shared(found: dict[str, Any], which: str) -> int:
    """How many texts every row has."""
    return min(len(run["words"]) for row in ROWS for run in of(found, which, row))


def texts(found: dict[str, Any]) -> str:
    """Table 2."""
    rows = []
    for which in TEXTS:
        for row in ROWS:
            runs = of(found, which, row)
            positive, negative = LOG_ODDS[which].get(row, ("–", "–"))
            if runs:
                rows.append(
                    [
                        which,
                        f"`{row}`",
                        str(FAITHFULNESS[which].get(row, "–")),
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
        for row in ("aim", "lime", "kernel-shap"):
            runs = of(found, which, row)
            if runs:
                each = [
                    shown(over(runs, f"class-faithfulness {column}"), 100)
                    for column in range(len(CLASSES[which]))
                ]
                paper = CLASS_FAITHFULNESS[which].get(row)
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
                        str(CLASS_IOU[which].get(row, "–")),
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
        for row in ROWS:
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
                        str(MINUTES[which].get(row, "–")),
                    ]
                )
    head = "set, method, sufficiency at 10% ↓, comprehensiveness at 10% ↑, evaluations an input, "
    return table(f"{head}minutes of fitting, paper".split(", "), rows)


def settings(small: dict[str, Any]) -> str:
    """Tables 7 and 12, and the settings of our own."""
    rows = []
    published: dict[str, str] = {"aim": str(FAITHFULNESS[SMALL]["aim"])}
    published |= dict.fromkeys(("aim, explore 0", "aim, no context", "aim, rate 0.003"), "–")
    published |= {row: f"{value} (IMDB)" for row, value in ABLATIONS.items()}
    published |= {f"aim, alpha {alpha}": str(value) for alpha, value in ALPHAS[SMALL].items()}
    for row, paper in published.items():
        runs = of(small, SMALL, row)
        if runs:
            rows.append(
                [
                    f"`{row}`",
                    paper,
                    shown(over(runs, "faithfulness"), 100),
                    shown(over(runs, "class-faithfulness"), 100),
                    shown(over(runs, "positive-delta-log-odds")),
                    shown(over(runs, "negative-delta-log-odds")),
                ]
            )
    head = "row, faithfulness (paper), here, class faithfulness, +Δ log-odds, −Δ log-odds"
    return table(head.split(", "), rows)


def sizes(small: dict[str, Any]) -> str:
    """Table 11: L2X is fitted anew for every K."""
    rows = []
    for k in (5, 10, 20):
        fitted = of(small, SMALL, "l2x" if k == 10 else f"l2x {k}")
        rows.append(
            [
                str(k),
                shown(over(of(small, SMALL, "aim"), f"faithfulness of {k}"), 100),
                shown(over(fitted, f"faithfulness of {k}"), 100) if fitted else "–",
                shown(over(of(small, SMALL, "l2x"), f"faithfulness of {k}"), 100),
            ]
        )
    return table(["K", "`aim`", "`l2x`, fitted with this K", "`l2x`, fitted with K = 10"], rows)


def images(found: dict[str, Any]) -> str:
    """Tables 8 and 9."""
    rows = []
    for (which, features), methods in IMAGES.items():
        runs = of(found, which, features)
        for name in ("aim", "integrated-gradients", "kernel-shap"):
            own = [run[name] for run in runs if name in run]
            if own:
                cells = [f"{100 * np.mean([run[k] for run in own]):.1f}" for k in own[0]]
                paper = " / ".join(f"{value:.1f}" for value in methods.get(name, ())) or "–"
                sizes = " / ".join(own[0])
                rows.append([which, features, sizes, f"`{name}`", paper, " / ".join(cells), str(len(own))])
    return table(["set", "features", "K", "method", "faithfulness (paper)", "here", "seeds"], rows)


if __name__ == "__main__":
    main()
