"""What pages are written from, as numbers: without the words, but with what is counted of them.

    NLTK_DATA=NLTK python experiments/vo2023/records.py --extra FOLDER ... --made FILE ... --out RECORDS

FOLDERs are what extra.py wrote, FILEs what baselines.py and paper_form.py did. RECORDS, a folder, gets
``made.json`` and ``extra.json``, which ``records.tar.xz`` holds packed; what is new is added to them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from baselines import BOX, DEV, SHOWN, named
from extra import SIZES, nested
from paper import ABLATED
from sets import TEXTS
from words import K

from pertinent.metrics.english_words import clusters, distinct_contaminated, senses, share_contaminated
from pertinent.metrics.top_features import lower

EXAMPLES = {"imdb": 2, "hatexplain": 0, "ag_news": 1}
"""Texts whose words are shown; those of HateXplain are offensive."""
Records = dict[str, Any]


def published_clusters(words: Sequence[str]) -> float:
    """The number of clusters that the authors' code finds: all words that WordNet knows are in one of them.

    It joins words that have a relative in common, and every known word has the relative "similar".
    """
    known = {word: bool(senses(word).direct) for word in words}
    return float(any(known.values()) + list(known.values()).count(False))


MEASURES: dict[str, Callable[[Sequence[str]], float]] = {
    "purity": share_contaminated,
    "purity as published": lambda words: distinct_contaminated(words, K),
    "brevity": lambda words: float(len(clusters(words))),
    "brevity as published": published_clusters,
}


def counted(words: Sequence[Sequence[str]]) -> dict[str, list[float]]:
    """Purity and brevity of the top ten words of each text, also as the authors' code counts them."""
    top = [[lower(word) for word in own[:K]] for own in words]
    return {name: [round(measure(own), 4) for own in top] for name, measure in MEASURES.items()}


def of_fits(made: Mapping[str, Any]) -> Records:
    """The fits of baselines.py and paper_form.py; those that were only tried keep their means alone."""
    shown = [f"{which} | {BOX} | {form} | " for which in TEXTS for form in named(made, which).values()]
    shown += [f"{which} | {BOX} | {form} | " for which in TEXTS for form in ABLATED]
    found: Records = {}
    for name, own in made.items():
        if "words" not in own:
            found[name] = own
            continue
        found[name] = {
            key: own[key]
            for key in (DEV, "faithfulness", "accuracy of the black box", "kept", "doubt", "fit seconds")
            if key in own
        }
        if name.startswith(tuple(shown)):
            values = {metric: np.round(own["values"][metric], 3).tolist() for metric in SHOWN.values()}
            found[name] |= {"values": values, "counted": counted(own["words"])}
    return found


def of_part(name: str, own: Mapping[str, Any]) -> Records:
    """A part of extra.py, by its name, such as "imdb sizes"."""
    which, _, part = name.partition(" ")
    if part == "classes":
        return {"values": own["values"]}
    if part == "sizes":
        words, n = own["words"], EXAMPLES[which]
        return {
            "faithfulness": own["faithfulness"],
            "texts": own["texts"][:n],
            "words": {f"l2x {k}": words[f"l2x {k}"][:n] for k in SIZES},
            "stay": {
                f"{row} {k}": nested(words[f"{row} {k}"], words[f"{row} {more}"])
                for row in ("l2x", "aim")
                for k, more in pairwise(SIZES)
                if f"{row} {k}" in words
            },
        }
    return {
        setting: {
            "faithfulness": each["faithfulness"],
            "seconds": each["seconds"],
            "counted": counted(each["words"]),
        }
        for setting, each in own.items()
    }


def main() -> None:
    """Add what is new to the records; what is there stays."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--extra", type=Path, nargs="*", default=[])
    parser.add_argument("--made", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    made, extra = arguments.out / "made.json", arguments.out / "extra.json"
    fits = read_all([*arguments.made, made])
    made.write_text(json.dumps(of_fits(fits), ensure_ascii=False))
    parts = {
        path.stem: of_part(path.stem, json.loads(path.read_text()))
        for folder in arguments.extra
        for path in sorted(folder.glob("*.json"))
    }
    extra.write_text(json.dumps(parts | read_all([extra]), ensure_ascii=False))


def read_all(paths: Sequence[Path]) -> Records:
    """The records of all files that are there; of the same name the last one counts."""
    return {k: v for path in paths if path.is_file() for k, v in json.loads(path.read_text()).items()}


if __name__ == "__main__":
    main()
