"""Rebuild all pages and figures from records, without explaining anything.

    python experiments/hsieh2021/pages.py --data DATA
    python experiments/hsieh2021/pages.py --data DATA --results RESULTS

Without ``--results`` the records are those of ``records.tar.xz``. Tables and figures without records stay as
they are. Without ``--data``, which pictures of digits need, no figures are drawn.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent


def commands(results: Path, data: Path | None, pages: Path) -> list[list[str]]:
    """Return the scripts that write pages and figures, with their arguments, for the records in `results`."""
    found = [["tables.py", "--results", str(results), "--pages", str(pages)]]
    if any(results.glob("photographs*/*.jsonl")):
        found.append([*found[0], "--photographs"])
    if all((results / f"text-{name}").is_dir() for name in ("lstm", "minilm", "vectors")):
        found.append(["text_report.py", "--results", str(results), "--out", str(pages / "text.md")])
    if any(results.glob("**/marks.jsonl")):
        found.append(["marks_report.py", "--results", str(results), "--page", str(pages / "marks.md")])
    if data is not None:
        found.append(["figures.py", "--results", str(results), "--data", str(data), "--out", str(pages)])
        found[-1] += ["--figures", *drawable(results)]
    return found


def drawable(results: Path) -> list[str]:
    """Return the names of the figures whose records or scores are in `results`."""
    needed = {
        "figure2": "mnist/greedy-as.npz",
        "figure5": "mnist/targeted.npz",
        "figure6": "mnist/greedy-as.jsonl",
        "figure9": "mnist/greedy-as.npz",
        "figure13": "mnist/greedy-as.jsonl",
        "figure14": "mnist/greedy-as.jsonl",
        "fashion": "fashion-mnist/greedy-as.jsonl",
        "fashion9": "fashion-mnist/greedy-as.npz",
        "figure7": "photographs/greedy-as.jsonl",
        "figure16": "photographs*/greedy-as.jsonl",
    }
    return [name for name, pattern in needed.items() if any(results.glob(pattern))]


def main() -> None:
    """Unpack the records if need be, and run each script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--pages", type=Path, default=FOLDER, help="their folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as unpacked:
        if arguments.results is None:
            with tarfile.open(FOLDER / "records.tar.xz") as archive:
                archive.extractall(unpacked, filter="data")
        results = (arguments.results or Path(unpacked)).resolve()
        for script, *words in commands(results, arguments.data, arguments.pages.resolve()):
            print(script, flush=True)
            subprocess.run([sys.executable, str(FOLDER / script), *words], check=True)


if __name__ == "__main__":
    main()
