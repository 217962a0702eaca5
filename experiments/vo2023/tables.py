"""Write the tables into README.md, between their markers, from what run.py found.

python experiments/vo2023/tables.py --results RESULTS
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from paper import ABLATIONS, CLASS_FAITHFULNESS, FAITHFULNESS, IMAGES, MINUTES
from sets import TEXTS

from pertinent.statistics import bootstrap

README = Path(__file__).parent / "README.md"
ROWS = ("aim", "l2x", "vibi", "lime", "kernel-shap", "parallel-local-search", "thompson-search", "random")


def main() -> None:
    """Fill in the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    folder = parser.parse_args().results
    found = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    found = {name: own for name, own in found.items() if "error" not in own}
    text = README.read_text()
    tables = {"texts": texts(found), "ablations": ablations(found), "images": images(found)}
    for name, table in tables.items():
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda match, table=table: f"{match[1]}\n{table}\n\n{match[2]}",
            text,
            flags=re.DOTALL,
        )
    README.write_text(text)


def of(found: dict[str, Any], which: str, row: str) -> list[Any]:
    """What was found of a row, with every seed."""
    name = f"{which} {row} ".replace(",", "").replace(" ", "_")
    return [own for key, own in found.items() if re.fullmatch(re.escape(name) + r"\d", key)]


def interval(runs: Sequence[Any], metric: str, factor: float = 1.0) -> str:
    """The mean over seeds and inputs, with its interval."""
    values = [run["values"][metric] for run in runs if metric in run["values"]]
    if not values:
        return "–"
    own = bootstrap(factor * np.array(values, dtype=float))
    digits = 1 if factor > 1 else 2
    return f"{own.mean:.{digits}f} [{own.low:.{digits}f}, {own.high:.{digits}f}]"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def texts(found: dict[str, Any]) -> str:
    """Table 2, and the table that the paper does not have: cost beside sufficiency."""
    rows = []
    for which in TEXTS:
        for row in ROWS:
            runs = of(found, which, row)
            if not runs:
                continue
            classes = np.mean(CLASS_FAITHFULNESS[which]) if row == "aim" else None
            fit = [run["fit seconds"] for run in runs if "fit seconds" in run]
            rows.append(
                [
                    which,
                    f"`{row}`",
                    str(FAITHFULNESS[which].get(row, "–")),
                    interval(runs, "faithfulness", 100),
                    "–" if classes is None else f"{classes:.1f}",
                    interval(runs, "class-faithfulness", 100),
                    interval(runs, "positive-delta-log-odds"),
                    interval(runs, "negative-delta-log-odds"),
                    interval(runs, "sufficiency 0.1"),
                    interval(runs, "comprehensiveness 0.1"),
                    f"{MINUTES[which]:.1f}" if row == "aim" else "–",
                    f"{np.mean(fit) / 60:.1f}" if fit else "–",
                    f"{1000 * np.mean([run['seconds an input'] for run in runs]):.1f}",
                    f"{np.mean([run['evaluations'] for run in runs]):,.0f}",
                    str(len(runs)),
                ]
            )
    head = "set, method, faithfulness (paper), here, class faithfulness (paper), here, "
    head += "+Δ log-odds, −Δ log-odds, "
    head += "sufficiency at 10%, comprehensiveness at 10%, minutes of fitting (paper), here, ms an input, "
    head += "evaluations an input, seeds"
    return table(head.split(", "), rows)


def ablations(found: dict[str, Any]) -> str:
    """Table 7."""
    rows = [
        [f"`{row}`", str(paper), interval(of(found, "imdb", row), "faithfulness", 100)]
        for row, paper in ABLATIONS.items()
    ]
    return table(["IMDB", "faithfulness (paper)", "here"], rows)


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
