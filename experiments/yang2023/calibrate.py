"""Calibrate the NLI model on MRPC from explanations (Table 6; Ye & Durrett 2022).

    python experiments/yang2023/calibrate.py --results RESULTS --nltk DATA/nltk_data

A random forest learns from a few hundred pairs whether the model is right about a pair: whether it sees a
paraphrase just where it says "entailment". Its features are the probabilities of entailment and
contradiction; with `BOW` the number of words of each class in each sentence, apart for words that both
sentences have; with explanations also the share of the positive and of the negative scores that falls on
each of these. Where the forest says "wrong", the decision is turned round.

Writes RESULTS/mnli.calibration.json; with `--record`, the explanations of the paper's game, and `--data`, the
pairs that sets.py packed, instead RESULTS/mnli.calibration-game.json.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from collect import Results, difference, interval
from game_records import Record
from sets import read
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from stages import ON_PAIRS
from word_classes import WordClasses

from pertinent.array_types import Floats, Ints, Masks

TREES, DEPTH = 300, 6
ENTAILMENT, CONTRADICTION = 0, 2
BESIDE = ("BOW", "KS-2000", "KS-2000, padded", "KS-2000, captum")
Word = tuple[int, int, int, str]
"""Its sentence, start, end and class."""


def words_of(pair: Sequence[str], classes: WordClasses) -> list[Word]:
    """The words of both sentences; "common" is part of the class of those that both have."""
    found = [list(re.finditer(r"\w+|[^\w\s]", sentence)) for sentence in pair]
    first, second = ({each.group().lower() for each in words} for words in found)
    words = []
    for sentence, own in enumerate(found):
        for each in own:
            kind = classes(each.group(), first=each.start() == 0)
            common = each.group().lower() in first & second
            words.append((sentence, each.start(), each.end(), f"{'common ' if common else ''}{kind}"))
    return words


def bag(words: Sequence[Word]) -> dict[str, float]:
    """How many words of each class each sentence has."""
    counts: dict[str, float] = defaultdict(float)
    for sentence, _, _, kind in words:
        counts[f"{sentence} {kind}"] += 1
    return counts


def shares(
    words: Sequence[Word], spans: Sequence[Sequence[int]], scores: Sequence[float]
) -> dict[str, float]:
    """The share of positive and of negative scores on each class and sentence."""
    totals: dict[str, float] = defaultdict(float)
    for (sentence, start, _), score in zip(spans, scores, strict=True):
        kind = next((w[3] for w in words if w[0] == sentence and w[1] <= start < w[2]), "other")
        sign = "+" if score > 0 else "-"
        for name in (f"{sign} {sentence} {kind}", f"{sign} {sentence}"):
            totals[name] += abs(score)
    sums = {sign: sum(totals[f"{sign} {sentence}"] for sentence in (0, 1)) for sign in "+-"}
    return {name: value / (sums[name[0]] or 1.0) for name, value in totals.items()}


def matrix(rows: Sequence[dict[str, float]]) -> Floats:
    """A column for each name."""
    names = sorted({name for row in rows for name in row})
    return np.array([[row.get(name, 0.0) for name in names] for row in rows])


def calibrated(features: Floats | None, decided: Ints, labels: Ints, splits: Sequence[Masks]) -> Any:
    """Whether each pair is decided rightly (splits, pairs), NaN where it was learned from, and the AUCs."""
    right = (decided == labels).astype(int)
    table, areas = np.full((len(splits), len(labels)), np.nan), []
    for number, chosen in enumerate(splits):
        train, test = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        if features is None:  # the answer seen most often
            table[number, test] = labels[test] == round(float(labels[train].mean()))
            continue
        forest = RandomForestClassifier(TREES, max_depth=DEPTH, random_state=number).fit(
            features[train], right[train]
        )
        table[number, test] = forest.predict(features[test]) == right[test]
        areas.append(roc_auc_score(right[test], forest.predict_proba(features[test])[:, 1]))
    return table, areas


def pairs_of_results(results: Results) -> tuple[Any, dict[str, Any]]:
    """Return the pairs with their labels, and the scores of each method, of run.py's results."""
    found = {name: results.stage("mnli", f"pairs-{name}") for name in ON_PAIRS}
    scores = {name: stage["scores"] for name, stage in found.items() if stage is not None}
    return found[ON_PAIRS[0]], scores


def pairs_of_record(record: Record, data: Path) -> tuple[Any, dict[str, Any]]:
    """Return the same of a record of the paper's game: the first pairs, which all methods have."""
    keys = [key for key in record.keys if key.startswith("mrpc/")]
    scores = {key.split("/")[1]: record.scores(key) for key in keys}
    n = min(map(len, scores.values()), default=0)
    base = record.meta.get("pairs")
    if base is None:
        return None, {}
    texts = read(data, "mrpc", "test", n).examples
    return (
        {name: values[:n] for name, values in base.items()} | {"pairs": [[*each.values()] for each in texts]},
        {name: rows[:n] for name, rows in scores.items()},
    )


def main() -> None:
    """Calibrate with each kind of features, on the same splits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--record", type=Path, help="mnli.npz of paper_game.py, instead of the results")
    parser.add_argument("--data", type=Path, help="what sets.py packed, for the record")
    parser.add_argument("--nltk", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--train", type=int, default=500, help="pairs that the forest learns from")
    arguments = parser.parse_args()
    if arguments.record is None:
        base, scores = pairs_of_results(Results(arguments.results))
    elif arguments.data is None:
        parser.error("`--record` requires `--data`.")
    else:
        base, scores = pairs_of_record(Record(arguments.record), arguments.data)
    if base is None:
        parser.error("There are no explanations of MRPC: run.py makes them, in its stages mnli.pairs-….")
    labels = np.array(base["labels"])
    probabilities = np.array(base["probabilities"])
    classes = WordClasses(arguments.nltk)
    words = [words_of(pair, classes) for pair in base["pairs"]]
    plain = probabilities[:, [ENTAILMENT, CONTRADICTION]]
    counted = np.hstack([plain, matrix([bag(own) for own in words])])
    kinds: dict[str, Floats | None] = {"majority": None, "probabilities": plain, "BOW": counted}
    for name, rows_of_pairs in scores.items():
        each = zip(words, base["spans"], rows_of_pairs, strict=True)
        kinds[name] = np.hstack([counted, matrix([shares(*own) for own in each])])
    decided = (probabilities[:, ENTAILMENT] > 0.5).astype(int)
    rng = np.random.default_rng(0)
    order = [rng.permutation(len(labels)) for _ in range(arguments.splits)]
    splits = [np.isin(np.arange(len(labels)), own[: arguments.train]) for own in order]
    rows = {}
    for name, features in kinds.items():
        table, areas = calibrated(features, decided, labels, splits)
        rows[name] = table, float(np.mean(areas)) if areas else None
        print(f"{name}: {np.nanmean(table):.3f}", flush=True)
    result: dict[str, Any] = {"pairs": len(labels), "train": arguments.train, "splits": arguments.splits}
    result["uncalibrated"] = vars(interval((decided == labels).astype(float)))
    result["rows"] = {
        name: vars(interval(table))
        | {"auc": area}
        | {f"beside {other}": vars(difference(table, rows[other][0])) for other in BESIDE if other in rows}
        for name, (table, area) in rows.items()
    }
    name = "calibration" if arguments.record is None else "calibration-game"
    (arguments.results / f"mnli.{name}.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
