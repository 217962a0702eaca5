"""Write the pages: the paper's tables and figures beside ours.

    python experiments/hase2021/pages.py --results DIR [--speed speed.json] [--pages table1 figure3]

Makes the pages whose results are there, in some five minutes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from collect import Results, table
from data import SETS
from figures import course_page, removal_page
from tables import accuracy_table, evidence_table, main_table, reduced_table, short_table

HERE = Path(__file__).parent


def speed_page(paths: Sequence[Path]) -> str:
    """Appendix A.3."""
    parts = [json.loads(path.read_text()) for path in paths]
    page = "# Appendix A.3: wall time for 500 explanations\n\n"
    page += (
        "At one sparsity, 1000 passes, texts of 512 tokens of which 483 or 484 may be removed. Paper: "
        f"BERT-base on one RTX 2080. Ours: a random BERT-base in bfloat16 on one {parts[0]['device']}; a "
        "search keeps half of the tokens, the dearest of the four sparsities. Nothing is scaled for the "
        "machines; times of fewer than 500 points are scaled up to 500.\n\n"
    )
    rows = [
        [
            row["method"],
            str(row["points"]),
            "–" if row["paper hours"] is None else f"{3600 * row['paper hours']:,.0f}",
            f"{row['seconds per 500']:.1f}",
            "–" if row["times faster"] is None else f"{row['times faster']:.0f}×",
            "–" if row["times faster"] is None else ("yes" if row["times faster"] >= 100 else "NO"),
        ]
        for part in parts
        for row in part["rows"]
    ]
    head = ["method", "points run", "paper, s", "ours, s", "faster", "at least 100×"]
    return page + table(head, rows)


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--speed", type=Path, nargs="+", default=[], help="what speed.py wrote, in parts")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--pages", nargs="+", metavar="PAGE", help="only these, such as table1")
    arguments = parser.parse_args()
    results = Results(arguments.results)
    pages: dict[str, Callable[[], str]] = {}
    if any(arguments.results.glob("*.train.json")):
        pages["table3"] = lambda: accuracy_table(arguments.results)
    if any(arguments.results.glob("removals-*.json")):
        pages["figure2"] = lambda: removal_page(arguments.results, arguments.out)
    if any(results.cells(which) for which in SETS):
        pages["table1"] = lambda: main_table(results)
        pages["table5"] = lambda: reduced_table(results)
        pages["table7"] = lambda: evidence_table(results)
        pages["figure3"] = lambda: course_page(results, arguments.out)
    if results.cells("sst2", short=True):
        pages["table4"] = lambda: short_table(results)
    if arguments.speed:
        pages["speed"] = lambda: speed_page(arguments.speed)
    wanted = arguments.pages or list(pages)
    if missing := set(wanted) - set(pages):
        parser.error(f"No results for {', '.join(sorted(missing))}; there are some for {', '.join(pages)}.")
    for name in wanted:
        (arguments.out / f"{name}.md").write_text(pages[name](), encoding="utf-8")
        print(f"{name}.md", flush=True)


if __name__ == "__main__":
    main()
