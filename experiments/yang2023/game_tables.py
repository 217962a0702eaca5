"""Write the tables of paper_game.md from the records of paper_game.py and what calibrate.py made of them.

python experiments/yang2023/game_tables.py --records RECORDS
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import paper
from collect import Results, difference, fill_in, number, shown, shown_difference, table
from game_records import Record
from learned_tables import calibration
from sets import SETS, TARGETS

from pertinent.array_types import Floats
from pertinent.rank_correlation import spearman

PAGE = Path(__file__).parent / "paper_game.md"
NAMES = ("SVS-25", "KS-25", "KS-100", "KS-200", "KS-2000")
ESTIMATORS = ("captum", "ours")
BESIDE = paper.BESIDE | {"yelp": paper.YELP}
TRUTH = "SVS-25/98"
"""The run of SVS-25 that others are compared with."""
Records = dict[str, Record]


def seeds(record: Record, of: str, method: str, *, special: bool = False) -> list[list[Floats]]:
    """Return the scores of each text with each seed, of one method."""
    keys = [key for key in record.keys if key.startswith(f"{of}/{method}/") and key != f"{of}/{TRUTH}"]
    return [_scores(record, key, of, special) for key in keys]


def stability(runs: list[list[Floats]]) -> Floats | None:
    """Return the mean Spearman's correlation between seeds for each text that all of them have."""
    if len(runs) < 2:
        return None
    pairs = combinations(runs, 2)
    texts = min(map(len, runs))
    return np.mean([_between(a[:texts], b[:texts]) for a, b in pairs], axis=0)  # type: ignore[no-any-return]


def agreement(runs: list[list[Floats]], truth: list[Floats]) -> Floats | None:
    """Return the mean over seeds of Spearman's correlation with the truth, for each text."""
    texts = min([len(truth), *map(len, runs)])
    if not runs:
        return None
    found = [_between(run[:texts], truth[:texts]) for run in runs]
    return np.mean(found, axis=0)  # type: ignore[no-any-return]


def with_truth(record: Record, of: str, method: str, *, special: bool = False) -> Floats | None:
    """Return the agreement of a method with SVS-25 for each text."""
    if f"{of}/{TRUTH}" not in record:
        return None
    truth = _scores(record, f"{of}/{TRUTH}", of, special)
    return agreement(seeds(record, of, method, special=special), truth)


def stability_table(records: Records) -> str:
    """Tables 1 and 2."""
    return _by_method(
        records,
        lambda record, of, method, special: stability(seeds(record, of, method, special=special)),
        lambda beside, name: paper.STABILITY[beside].get(name, (None,))[0],
    )


def approximation_table(records: Records) -> str:
    """Table 3."""
    return _by_method(
        records,
        lambda record, of, method, special: with_truth(record, of, method, special=special),
        lambda beside, name: paper.APPROXIMATION[beside].get(name, (None,))[0],
    )


def transfer_table(records: Records) -> str:
    """Section 6.4, with the lead of the amortized model over each method."""
    rows = []
    for which, target in TARGETS.items():
        record = records.get(which)
        amortized = record and with_truth(record, target, "amortized")
        for method, published in _methods():
            found = record and with_truth(record, target, method)
            lead = None if method == "amortized" else difference(amortized, found)
            rows.append(
                [
                    f"{SETS[which].name} → {SETS[target].name}, {method}",
                    number(paper.TRANSFER.get(published, (None,))[0]),
                    shown(found),
                    shown(record and with_truth(record, target, method, special=True)),
                    shown_difference(lead),
                ]
            )
    kept = [row for row in rows if row[2] != "–"]
    return table(["", "paper", "ρ with SVS-25", "with special tokens", "amortized − this"], kept)


def findings_table(records: Records) -> str:
    """Return the paper's claims as differences over the same texts, positive where they hold."""
    rows = []
    for which in BESIDE:
        record = records.get(which)
        if record is None:
            continue
        between = {name: stability(seeds(record, which, name)) for name in ("SVS-25", "KS-2000, captum")}
        unstable = stability(seeds(record, which, "KS-200, captum"))
        limit = None if unstable is None else np.full(len(unstable), 0.4)
        with_svs = {
            name: with_truth(record, which, name)
            for name in ("amortized", "KS-200, captum", "KS-2000, captum", "KS-200, ours")
        }
        rows.append(
            [
                SETS[which].name,
                shown_difference(difference(limit, unstable)),
                shown_difference(difference(between["SVS-25"], between["KS-2000, captum"])),
                *(
                    shown_difference(difference(with_svs["amortized"], with_svs[other]))
                    for other in ("KS-200, captum", "KS-2000, captum", "KS-200, ours")
                ),
            ]
        )
    head = ["", "KS-200 is unstable: 0.40 − ρ between seeds", "SVS-25 is more stable than KS-2000"]
    head += ["amortized is better than KS-200", "than KS-2000", "than our KS-200"]
    return table(head, rows)


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


def _by_method(
    records: Records,
    measure: Callable[[Record, str, str, bool], Floats | None],
    published: Callable[[str, str], float | None],
) -> str:
    """Return a table with a row for each set and method: paper, tokens, and with special tokens."""
    rows = []
    for which in BESIDE:
        for method, name in _methods() if which in records else ():
            found = measure(records[which], which, method, False)
            rows.append(
                [
                    f"{SETS[which].name}, {method}",
                    "–" if found is None else str(len(found)),
                    number(published(BESIDE[which], name)),
                    shown(found),
                    shown(measure(records[which], which, method, True)),
                ]
            )
    kept = [row for row in rows if row[1] != "–"]
    return table(["", "texts", "paper", "ρ of the tokens", "ρ with special tokens"], kept)


def _methods() -> list[tuple[str, str]]:
    """Return all methods, each with its name in the paper."""
    sampled = [(f"{name}, {whose}", name) for name in NAMES[1:] for whose in ESTIMATORS]
    return [("SVS-25", "SVS-25"), *sampled, ("amortized", "amortized")]


def _scores(record: Record, key: str, of: str, special: bool) -> list[Floats]:
    scores = record.scores(key)
    if not special:
        return scores
    more = record.special(key, 1 + len(SETS[of].columns))
    return [np.concatenate(both) for both in zip(scores, more, strict=True)]


def _between(first: list[Floats], second: list[Floats]) -> Floats:
    return np.array([spearman(np.stack(both))[0, 1] for both in zip(first, second, strict=True)])


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
    parser.add_argument("--records", type=Path, required=True, help="a folder with SET.npz files")
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    records = {path.stem: Record(path) for path in sorted(arguments.records.glob("*.npz"))}
    tables = {name: part(records) for name, part in PARTS.items()}
    tables["calibration"] = calibration(Results(arguments.records), "calibration-game")
    fill_in(arguments.page, tables)


if __name__ == "__main__":
    main()
