"""Calibration of the NLI model on MRPC from explanations (Table 6; Ye & Durrett 2022).

A random forest learns from a few hundred pairs whether the model is right about a pair: whether it sees a
paraphrase if and only if it says "entailment". Its features are the probabilities of entailment and
contradiction; with `BOW` the number of words of each class in each sentence, separately for words that both
sentences have; with explanations also the share of the positive and of the negative scores that falls on
each of these. Where the forest says "wrong", the decision is reversed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.hase2021.data import read
from experiments.shared.intervals import difference, interval
from experiments.shared.stages import Run
from experiments.yang2023.game_record import GameRecord
from experiments.yang2023.measuring import ON_PAIRS
from experiments.yang2023.results import Results
from experiments.yang2023.sets import SETS
from experiments.yang2023.word_classes import WordClasses
from pertinent.array_types import Floats, Ints, Masks

TREES, DEPTH = 300, 6
ENTAILMENT, CONTRADICTION = 0, 2
COMPARED = ("BOW", "KS-2000", "KS-2000, padded", "KS-2000, captum")
Word = tuple[int, int, int, str]
"""Sentence, start, end and class of a word."""
Scores = dict[str, list[list[float]]]
"""Scores of each pair by method."""


def words_of(pair: Sequence[str], classes: WordClasses) -> list[Word]:
    """Return the words of both sentences; the class of words that both have begins with "common"."""
    matches = [list(re.finditer(r"\w+|[^\w\s]", sentence)) for sentence in pair]
    first, second = ({match.group().lower() for match in words} for words in matches)
    words = []
    for sentence, own in enumerate(matches):
        for match in own:
            kind = classes(match.group(), first=match.start() == 0)
            common = match.group().lower() in first & second
            words.append((sentence, match.start(), match.end(), f"{'common ' if common else ''}{kind}"))
    return words


def bag(words: Sequence[Word]) -> dict[str, float]:
    """Return the number of words of each class in each sentence."""
    counts: dict[str, float] = defaultdict(float)
    for sentence, _, _, kind in words:
        counts[f"{sentence} {kind}"] += 1
    return counts


def shares(
    words: Sequence[Word], spans: Sequence[Sequence[int]], scores: Sequence[float]
) -> dict[str, float]:
    """Return the shares of positive and of negative scores on each class and sentence."""
    totals: dict[str, float] = defaultdict(float)
    for (sentence, start, _), score in zip(spans, scores, strict=True):
        kind = next((w[3] for w in words if w[0] == sentence and w[1] <= start < w[2]), "other")
        sign = "+" if score > 0 else "-"
        for name in (f"{sign} {sentence} {kind}", f"{sign} {sentence}"):
            totals[name] += abs(score)
    sums = {sign: sum(totals[f"{sign} {sentence}"] for sentence in (0, 1)) for sign in "+-"}
    return {name: value / (sums[name[0]] or 1.0) for name, value in totals.items()}


def matrix(rows: Sequence[dict[str, float]]) -> Floats:
    """Return a column for each name."""
    names = sorted({name for row in rows for name in row})
    return np.array([[row.get(name, 0.0) for name in names] for row in rows])


def calibrated(
    features: Floats | None, decided: Ints, labels: Ints, splits: Sequence[Masks]
) -> tuple[Floats, list[float]]:
    """Return whether pairs are decided correctly (splits, pairs), NaN for training pairs, and AUCs."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score

    right = (decided == labels).astype(int)
    table, areas = np.full((len(splits), len(labels)), np.nan), []
    for number, chosen in enumerate(splits):
        train, test = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        if features is None:  # the most frequent answer
            table[number, test] = labels[test] == round(float(labels[train].mean()))
            continue
        forest = RandomForestClassifier(TREES, max_depth=DEPTH, random_state=number)
        forest.fit(features[train], right[train])
        table[number, test] = forest.predict(features[test]) == right[test]
        areas.append(float(roc_auc_score(right[test], forest.predict_proba(features[test])[:, 1])))
    return table, areas


def calibrate_pairs(run: Run, nltk: Path, n_splits: int, n_train: int) -> dict[str, Any]:
    """Calibrate from the explanations of the game of only the tokens."""
    results = Results(run.results)
    stages = {name: results.stage("mnli", f"pairs-{name}") for name in ON_PAIRS}
    scores = {name: stage["scores"] for name, stage in stages.items() if stage is not None}
    return calibrate(stages[ON_PAIRS[0]], scores, nltk, n_splits, n_train)


def calibrate_game(run: Run, nltk: Path, n_splits: int, n_train: int) -> dict[str, Any]:
    """Calibrate from the explanations of the paper's game, of the first pairs, which all methods have."""
    record = GameRecord(run.results / "mnli.npz")
    scores = {key.split("/")[1]: record.scores(key) for key in record.keys if key.startswith("mrpc/")}
    n = min(map(len, scores.values()))
    pairs = {name: values[:n] for name, values in record.meta["pairs"].items()}
    texts = read(run.data, SETS["mrpc"], "test", n).inputs
    pairs["pairs"] = [list(text.values()) for text in texts]
    return calibrate(pairs, {name: rows[:n] for name, rows in scores.items()}, nltk, n_splits, n_train)


def calibrate(
    pairs: dict[str, Any], scores: dict[str, Any], nltk: Path, n_splits: int, n_train: int
) -> dict[str, Any]:
    """Calibrate with each kind of features, on the same splits."""
    labels, probabilities = np.array(pairs["labels"]), np.array(pairs["probabilities"])
    classes = WordClasses(nltk)
    words = [words_of(pair, classes) for pair in pairs["pairs"]]
    plain = probabilities[:, [ENTAILMENT, CONTRADICTION]]
    counted = np.hstack([plain, matrix([bag(own) for own in words])])
    kinds: dict[str, Floats | None] = {"majority": None, "probabilities": plain, "BOW": counted}
    for name, rows in scores.items():
        triples = zip(words, pairs["spans"], rows, strict=True)
        kinds[name] = np.hstack([counted, matrix([shares(*own) for own in triples])])
    decided = (probabilities[:, ENTAILMENT] > 0.5).astype(int)
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(labels)) for _ in range(n_splits)]
    splits = [np.isin(np.arange(len(labels)), order[:n_train]) for order in orders]
    tables, areas = {}, {}
    for name, features in kinds.items():
        tables[name], areas[name] = calibrated(features, decided, labels, splits)
        print(f"{name}: {np.nanmean(tables[name]):.3f}", flush=True)
    return {
        "pairs": len(labels),
        "train": n_train,
        "splits": n_splits,
        "uncalibrated": vars(interval((decided == labels).astype(float))),
        "rows": {
            name: vars(interval(table))
            | {"auc": float(np.mean(areas[name])) if areas[name] else None}
            | {
                f"beside {other}": vars(difference(table, tables[other]))
                for other in COMPARED
                if other in tables
            }
            for name, table in tables.items()
        },
    }
