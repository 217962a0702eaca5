"""Write the tables of paper_game.md from the records of paper_game.py and what calibrate.py made of them.

    python experiments/yang2023/game_tables.py --records RECORDS

Without `--records`, those of game_records.tar.xz.
"""

from __future__ import annotations

import argparse
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import paper
from collect import Results, difference, fill_in, number, shown, shown_difference, table
from game_measures import MEASURES, REFERENCE, TRUTH, agreement, seeds, spread, squared_difference, stability
from game_records import Record
from learned_tables import calibration
from sets import SETS, TARGETS

from pertinent.stats import Difference

FOLDER = Path(__file__).parent
ARCHIVE, PAGE = FOLDER / "game_records.tar.xz", FOLDER / "paper_game.md"
SAMPLED = ("KS-25", "KS-100", "KS-200", "KS-2000")
ESTIMATORS = ("captum", "ours")
BESIDE = {"yelp": paper.YELP} | paper.BESIDE
Records = dict[str, Record]


def stability_table(records: Records) -> str:
    """Tables 1 and 2, and of Table 4 the row of all training texts."""
    rows = []
    for which, method, name in _rows(records):
        runs = seeds(records[which], which, method)
        found = {key: stability(runs, measure) for key, measure in MEASURES.items()}
        beside = BESIDE[which]
        published: tuple[float | None, ...] = paper.STABILITY[beside].get(name, (None,) * 4)
        if name == "amortized":
            published = (paper.TRAINING[beside][100], None, None, None)
        cells = [
            cell
            for value, key in zip(published, MEASURES, strict=False)
            for cell in (number(value), shown(found[key], 4 if key == "MSE" else 2))
        ]
        special = stability(seeds(records[which], which, method, special=True))
        cells.insert(2, shown(special))
        texts = "–" if found["ρ"] is None else str(len(found["ρ"]))
        rows.append([f"{SETS[which].name}, {method}", texts, str(len(runs)), *cells])
    head = ["", "texts", "seeds", "ρ: paper", "ours", "with special tokens"]
    head += ["top 5: paper", "ours", "top 10: paper", "ours", "MSE: paper", "ours"]
    return table(head, [row for row in rows if row[1] != "–"])


def approximation_table(records: Records) -> str:
    """Table 3."""
    rows = []
    for which, method, name in _rows(records):
        record = records[which]
        found = agreement(record, which, method)
        published = paper.APPROXIMATION[BESIDE[which]].get(name, (None, None))
        rows.append(
            [
                f"{SETS[which].name}, {method}",
                "–" if found is None else str(len(found)),
                number(published[0]),
                shown(found),
                number(spread(record, which, method), ".3f"),
                shown(agreement(record, which, method, special=True)),
                shown(agreement(record, which, method, truth=REFERENCE)),
                number(published[1], ".1e"),
                shown(agreement(record, which, method, measure=squared_difference), 4),
            ]
        )
    head = ["", "texts", "ρ with SVS-25: paper", "ours", "SD over seeds", "with special tokens"]
    return table(
        [*head, "ρ with the reference", "MSE: paper", "ours"], [row for row in rows if row[1] != "–"]
    )


def transfer_table(records: Records) -> str:
    """Section 6.4, with the lead of the amortized model over each method."""
    rows = []
    for which, target in TARGETS.items():
        record = records.get(which)
        if record is None:
            continue
        for method, published in _methods():
            found = agreement(record, target, method)
            rows.append(
                [
                    f"{SETS[which].name} → {SETS[target].name}, {method}",
                    "–" if found is None else str(len(found)),
                    number(paper.TRANSFER.get(published, (None,))[0]),
                    shown(found),
                    number(spread(record, target, method), ".3f"),
                    shown(agreement(record, target, method, special=True)),
                    shown(agreement(record, target, method, truth=REFERENCE)),
                    *(_lead(record, target, method, special=special) for special in (False, True)),
                ]
            )
    head = ["", "texts", "paper", "ρ with SVS-25", "SD over seeds", "with special tokens"]
    head += ["ρ with the reference", "amortized − this", "with special tokens"]
    return table(head, [row for row in rows if row[1] != "–"])


def _lead(record: Record, target: str, method: str, *, special: bool) -> str:
    if method == "amortized":
        return "–"
    both = (agreement(record, target, name, special=special) for name in ("amortized", method))
    return shown_difference(difference(*both))


def findings_table(records: Records) -> str:
    """Return the paper's claims as differences over the same texts, positive where they hold."""
    rows = []
    for which in BESIDE:
        record = records.get(which)
        if record is None:
            continue
        unstable = stability(seeds(record, which, "KS-200, captum"))
        between = (stability(seeds(record, which, name)) for name in ("SVS-25", "KS-2000, captum"))
        amortized = agreement(record, which, "amortized")
        others = ("KS-200, captum", "KS-2000, captum", "KS-200, ours", "KS-2000, ours")
        found = [
            None if unstable is None else difference(np.full(len(unstable), 0.4), unstable),
            shorter(record, which),
            difference(*between),
            *(difference(amortized, agreement(record, which, other)) for other in others),
        ]
        rows.append([SETS[which].name, *map(shown_difference, found)])
    head = ["", "KS-200 is unstable: 0.40 − ρ between seeds", "more stable on the shorter half of the texts"]
    head += ["SVS-25 is more stable than KS-2000", "amortized is better than KS-200", "than KS-2000"]
    return table([*head, "than our KS-200", "than our KS-2000"], rows)


def shorter(record: Record, which: str) -> Difference | None:
    """Return ρ of captum's KS-200 between seeds on the shorter half of the texts minus on the longer."""
    runs = seeds(record, which, "KS-200, captum")
    found = stability(runs)
    if found is None:
        return None
    order = np.argsort([len(row) for row in runs[0][: len(found)]], kind="stable")
    half = len(order) // 2
    return difference(found[order[:half]], found[order[-half:]])


def seconds_table(records: Records) -> str:
    """Section 6.1: one text after the other."""
    rows = []
    for which in BESIDE:
        seconds = records[which].meta.get("seconds") if which in records else None
        if seconds is None:
            continue
        slow, batch, fast, once = (
            np.array(seconds[name])
            for name in ("KS-200, one mask per pass", "KS-200, one batch", "amortized", "one pass")
        )
        published = paper.STABILITY[BESIDE[which]]["KS-200"][4] / paper.AMORTIZED_SECONDS
        cells = [shown(each, 4) for each in (slow, batch, fast, once)]
        ratios = [shown(slow / fast, 1), shown(batch / fast, 1), shown(slow / once, 1)]
        rows.append([SETS[which].name, str(len(slow)), *cells, *ratios, f"{published:.0f}"])
    head = ["", "texts", "KS-200, one mask per pass", "KS-200, one batch", "amortized", "one pass"]
    head += [
        "one mask per pass / amortized",
        "one batch / amortized",
        "one mask per pass / one pass",
        "paper",
    ]
    return table(head, rows)


def models_table(records: Records) -> str:
    """Return the accuracy of the classifiers, and what amortized models learned from."""
    rows = []
    for which in BESIDE:
        meta = records[which].meta if which in records else {}
        if "model" in meta and "learned" in meta:
            learned = meta["learned"]
            texts = records[which].scores(f"{which}/{TRUTH}")
            rows.append(
                [
                    SETS[which].name,
                    f"{100 * meta['model']['test accuracy']:.1f}%",
                    f"{len(texts)}, {np.mean([len(row) for row in texts]):.0f} tokens on average",
                    f"{learned['texts']:,}",
                    f"{learned['evaluations']:,.0f}",
                    f"{learned['seconds']:.0f} s",
                ]
            )
    head = ["set", "accuracy", "test texts", "texts learned from", "evaluations of each", "they took"]
    return table(head, rows)


def _rows(records: Records) -> list[tuple[str, str, str]]:
    """Return all sets that have a record, with each method and its name in the paper."""
    return [(which, *each) for which in BESIDE if which in records for each in _methods()]


def _methods() -> list[tuple[str, str]]:
    """Return all methods, each with its name in the paper."""
    sampled = [(f"{name}, {whose}", name) for name in SAMPLED for whose in ESTIMATORS]
    return [("SVS-25", "SVS-25"), *sampled, ("amortized", "amortized")]


PARTS: dict[str, Callable[[Records], str]] = {
    "models": models_table,
    "findings": findings_table,
    "stability": stability_table,
    "approximation": approximation_table,
    "transfer": transfer_table,
    "seconds": seconds_table,
}


def main() -> None:
    """Put each table between its markers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=Path, help="a folder with SET.npz files")
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as unpacked:
        if arguments.records is None:
            with tarfile.open(ARCHIVE) as archive:
                archive.extractall(unpacked, filter="data")
        folder = arguments.records or Path(unpacked)
        records = {path.stem: Record(path) for path in sorted(folder.glob("*.npz"))}
        tables = {name: part(records) for name, part in PARTS.items()}
        tables["calibration"] = calibration(Results(folder), "calibration-game")
    fill_in(arguments.page, tables)


if __name__ == "__main__":
    main()
