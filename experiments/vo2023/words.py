"""Purity, brevity and stability of the words that methods choose (Tables 2 and 11).

Neighbours of a text are among the texts that were explained: ten by embedding, and of the others ten by the
words in common. Embeddings are the 100 leading directions of TF-IDF over these texts (the paper: BERT).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from experiments.shared.intervals import show
from experiments.shared.pages import table
from experiments.vo2023.results import PUBLISHED, K, Runs
from pertinent.array_types import Floats, Ints
from pertinent.inputs.text import Text, cut
from pertinent.metrics.english_words import (
    clusters,
    distinct_contaminated,
    is_contaminated,
    share_contaminated,
)
from pertinent.metrics.nearest_texts import Neighbourhood, mean_overlap
from pertinent.metrics.top_features import lower
from pertinent.stats import Interval, bootstrap

SIZES = (5, 10, 20)
LEXICAL = SEMANTIC = 10
DIRECTIONS = 100
STABILITY = "stability"
STABILITY_OF_SAME = "stability, texts of all rows"


def measure_words(
    runs: Runs, by_size: Mapping[int, Runs], texts: Sequence[str] | None, fewest: int
) -> dict[str, Interval]:
    """Return means over texts and seeds.

    The keys are "purity 5", "brevity 5" and so on, and with the test `texts` "stability". Stability increases
    with the number of texts, so there is also one of the `fewest` texts of any row. `by_size` are runs of a
    method that was fitted for another K.
    """
    measures: dict[str, Interval] = {}
    for k in SIZES:
        own = by_size.get(k, runs)
        top = [[[lower(word) for word in words[:k]] for words in run["words"]] for run in own]
        if own:
            measures[f"purity {k}"] = _mean(top, share_contaminated)
            measures[f"purity as published {k}"] = _mean(top, partial(distinct_contaminated, k=k))
            measures[f"brevity {k}"] = _mean(top, lambda words: float(len(clusters(words))))
    if runs and texts is not None and not any(run["failures"] for run in runs):
        for name, n in ((STABILITY, len(runs[0]["words"])), (STABILITY_OF_SAME, fewest)):
            measures[name] = bootstrap(np.array([stability(run, texts[:n]) for run in runs]))
    return measures


def stability(run: Mapping[str, Any], texts: Sequence[str]) -> list[float]:
    """Return the overlap of each text's top words with its neighbours' (App. B.4); NaN without neighbours."""
    words = [[lower(word) for word in top[:K]] for top in run["words"][: len(texts)]]
    pure = [{word for word in own if not is_contaminated(word)} for own in words]
    nearest = neighbours(tuple(texts), tuple(run["targets"][: len(texts)]))
    return [
        mean_overlap(own, [pure[i] for i in near]) if len(near) else np.nan
        for own, near in zip(pure, nearest, strict=True)
    ]


@lru_cache(maxsize=8)
def neighbours(texts: tuple[str, ...], targets: tuple[str, ...]) -> list[Ints]:
    """Return the similar texts of each text for which the model decides the same."""
    words = [{lower(text[a:b]) for _, a, b in cut(Text(text), "words").tolist()} for text in texts]
    return Neighbourhood(words, targets, texts, embeddings(texts)).find(LEXICAL, SEMANTIC)


def embeddings(texts: Sequence[str]) -> Floats:
    """Return latent semantic analysis: the leading directions (texts, directions) of TF-IDF."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(texts)
    return np.asarray(TruncatedSVD(min(DIRECTIONS, *counts.shape), random_state=0).fit_transform(counts))


def _mean(top: Sequence[Sequence[Sequence[str]]], measure: Callable[[Sequence[str]], float]) -> Interval:
    """Return the mean of a measure over seeds and texts."""
    return bootstrap(np.array([[measure(words) for words in run] for run in top]))


def word_table(
    rows: Mapping[str, Runs], l2x_by_size: Mapping[int, Runs], dataset: str, texts: Sequence[str] | None
) -> str:
    """Return a table of one data set, the paper's numbers in parentheses."""
    lines = []
    fewest = min(len(run["words"]) for runs in rows.values() for run in runs)
    for row, runs in rows.items():
        measures = measure_words(runs, l2x_by_size if row == "l2x" else {}, texts, fewest)
        cells = [f"`{row}`"]
        for name, form, factor in (("purity", ".1f", 100.0), ("brevity", ".2f", 1.0)):
            for i, k in enumerate(SIZES):
                printed = PUBLISHED[name][dataset].get(row, ())
                one = printed[i] if len(printed) > 1 else printed[0] if printed and k == K else None
                cells.append(f"{_paper(one)} {show(measures.get(f'{name} {k}'), form, factor)}")
        cells.append(
            f"{_paper(PUBLISHED['iou'][dataset].get(row))} {show(measures.get(STABILITY), '.1f', 100)}"
        )
        cells.append(show(measures.get(STABILITY_OF_SAME), ".1f", 100))
        lines.append([*cells, str(len(runs[0]["words"])), str(len(runs))])
    head = [dataset, *(f"purity of {k}" for k in SIZES), *(f"brevity of {k}" for k in SIZES)]
    return table([*head, "IoU", "IoU, texts of all rows", "texts", "seeds"], lines)


def _paper(number: float | None) -> str:
    return "(–)" if number is None else f"({number:g})"
