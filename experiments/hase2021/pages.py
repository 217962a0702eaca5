"""Write the pages: the paper's tables and figures beside ours.

    python experiments/hase2021/pages.py --results DIR [--speed speed.json] [--pages table1 figure3]

Makes the pages whose results are there, in some five minutes. Sections of sets that were not measured again
stay as they are on the page there is.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from collect import Results, table
from data import SETS
from figures import course_page, masked_page, removal_page
from methods import COUNTED, FILLER, LAYERS
from tables import accuracy_table, evidence_table, main_table, reduced_table, second_table, short_table

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


def kept(new: str, old: str) -> str:
    """The new page, with the sections of the old one that it lacks; sets in their order, then the rest."""
    head, *found = re.split(r"\n(?=## )", new)
    _, *there = re.split(r"\n(?=## )", old)
    names = [spec.name for spec in SETS.values()]

    def subject(section: str) -> str:
        heading = section.splitlines()[0].removeprefix("## ")
        return next((name for name in names if heading.split(":")[0] == name), heading)

    sections = {subject(section): section.rstrip("\n") + "\n" for section in (*there, *found)}
    order = [name for name in names if name in sections] + [name for name in sections if name not in names]
    return "\n".join([head, *(sections[name] for name in order)])


def kept_rows(new: str, old: str) -> str:
    """The new table, with those rows of the old one whose sets it lacks, in the sets' order."""
    rows = {
        line.split(" | ")[0]: line for page in (old, new) for line in page.splitlines() if line[:2] == "| "
    }
    head = [line for line in new.splitlines() if line[:2] != "| "]
    ordered = ["| set", "| ---", *(f"| {spec.name}" for spec in SETS.values())]
    return "\n".join([*head, *(rows[name] for name in ordered if name in rows)]) + "\n"


def available(folder: Path, out: Path, speed: Sequence[Path]) -> dict[str, Callable[[], str]]:
    """The pages that there are results for."""
    results = Results(folder)
    pages: dict[str, Callable[[], str]] = {}
    if any(folder.glob("*.train.json")):
        pages["table3"] = lambda: accuracy_table(folder)
    if any(folder.glob("removals-*.json")):
        pages["figure2"] = lambda: removal_page(folder, out)
    if any(folder.glob(f"removals-*-{FILLER}-*.json")):
        pages["figure2-masked"] = lambda: masked_page(folder, out)
    if any(results.cells(which) for which in SETS):
        pages["table1"] = lambda: main_table(results)
        pages["table5"] = lambda: reduced_table(results, Results(folder / COUNTED))
        pages["table7"] = lambda: evidence_table(results)
        pages["figure3"] = lambda: course_page(results, out)
    if any(results.cells(which, layers=LAYERS) for which in SETS):
        pages["table6"] = lambda: second_table(results)
    if results.cells("sst2", short=True):
        pages["table4"] = lambda: short_table(results)
    if speed:
        pages["speed"] = lambda: speed_page(speed)
    return pages


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--speed", type=Path, nargs="+", default=[], help="what speed.py wrote, in parts")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--pages", nargs="+", metavar="PAGE", help="only these, such as table1")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pages = available(arguments.results, arguments.out, arguments.speed)
    wanted = arguments.pages or list(pages)
    if missing := set(wanted) - set(pages):
        parser.error(f"No results for {', '.join(sorted(missing))}; there are some for {', '.join(pages)}.")
    for name in wanted:
        path, page = arguments.out / f"{name}.md", pages[name]()
        if path.is_file():
            page = (kept_rows if name == "table3" else kept)(page, path.read_text(encoding="utf-8"))
        path.write_text(page, encoding="utf-8")
        print(f"{name}.md", flush=True)


if __name__ == "__main__":
    main()
