"""Purity, brevity and stability of the words that were chosen (Tables 2 and 11), from what run.py found.

    NLTK_DATA=FOLDER python experiments/vo2023/words.py --data DATA --results RESULTS

Neighbours of a text are among the texts that were explained: ten by embedding, and of the others ten by the
words in common. Embeddings are the 100 leading directions of TF-IDF over these texts (the paper: BERT).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from results import ROWS, of, read_results, shown, table
from sets import TEXTS, read

from pertinent.array_types import Floats, Ints
from pertinent.inputs.segmentation import cut
from pertinent.inputs.text import Text
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
K = 10
LEXICAL = SEMANTIC = 10
DIRECTIONS = 100
STABILITY = "stability"
STABILITY_OF_SAME = "stability, texts of all rows"

Published = dict[str, dict[str, tuple[float, ...]]]
PURITY: Published = {
    "imdb": {
        "aim": (5.91, 8.22, 12.46),
        "l2x": (10.99, 12.89, 19.23),
        "lime": (36.55,),
        "vibi": (30.86,),
        "functional-information": (30.27,),
    },
    "hatexplain": {
        "aim": (13.94, 19.78, 18.85),
        "l2x": (22.74, 21.87, 26.63),
        "lime": (37.73,),
        "vibi": (33.91,),
        "functional-information": (33.13,),
    },
    "ag_news": {
        "aim": (1.29, 3.83, 13.08),
        "l2x": (4.29, 6.64, 13.10),
        "lime": (29.15,),
        "vibi": (21.15,),
        "functional-information": (27.61,),
    },
}
BREVITY: Published = {
    "imdb": {
        "aim": (1.68, 2.48, 4.30),
        "l2x": (1.68, 2.51, 5.21),
        "lime": (7.73,),
        "vibi": (3.86,),
        "functional-information": (3.66,),
    },
    "hatexplain": {
        "aim": (2.59, 3.88, 5.38),
        "l2x": (2.65, 4.36, 7.25),
        "lime": (7.59,),
        "vibi": (4.56,),
        "functional-information": (4.23,),
    },
    "ag_news": {
        "aim": (2.10, 3.39, 6.53),
        "l2x": (2.39, 3.94, 5.99),
        "lime": (8.76,),
        "vibi": (4.07,),
        "functional-information": (4.91,),
    },
}
"""Percent, and clusters: of 5, 10 and 20 words, or of 10."""
IOU: dict[str, dict[str, float]] = {
    "imdb": {"aim": 6.11, "l2x": 4.50, "lime": 1.44, "vibi": 0.59, "functional-information": 3.04},
    "hatexplain": {"aim": 6.66, "l2x": 3.42, "lime": 4.40, "vibi": 2.37, "functional-information": 3.04},
    "ag_news": {"aim": 6.48, "l2x": 6.01, "lime": 3.52, "vibi": 1.68, "functional-information": 3.18},
}
"""Table 2, percent."""


def word_measures(
    found: dict[str, Any], which: str, row: str, texts: Sequence[str] | None = None
) -> dict[str, Interval]:
    """Means with intervals over texts and seeds; `found` are the results of run.py by name.

    The keys are "purity 5", "brevity 5" and so on, and with the set's test `texts` "stability". That of a row
    with many texts has nearer neighbours, so there is also one of as many texts as every row has. L2X at K =
    5 and 20 is what was fitted with that K, if anything. Empty, if nothing was found.
    """
    measures: dict[str, Interval] = {}
    for k in SIZES:
        runs = of(found, which, row if row != "l2x" or k == K else f"{row} {k}")
        top = [[[lower(word) for word in own[:k]] for own in run["words"]] for run in runs]
        if runs:
            measures[f"purity {k}"] = _over(top, share_contaminated)
            measures[f"purity as published {k}"] = _over(top, partial(distinct_contaminated, k=k))
            measures[f"brevity {k}"] = _over(top, lambda own: float(len(clusters(own))))
    runs = of(found, which, row)
    if runs and texts is not None and not any(run["failures"] for run in runs):
        fewest = min(len(run["words"]) for each in ROWS for run in of(found, which, each))
        for name, n in ((STABILITY, len(runs[0]["words"])), (STABILITY_OF_SAME, fewest)):
            measures[name] = bootstrap(np.array([stability(run, texts[:n]) for run in runs]))
    return measures


def stability(run: dict[str, Any], texts: Sequence[str]) -> list[float]:
    """How much the top words of each text are those of its neighbours (App. B.4); NaN where it has none."""
    words = [[lower(word) for word in own[:K]] for own in run["words"][: len(texts)]]
    top = [{word for word in own if not is_contaminated(word)} for own in words]
    nearest = neighbours(tuple(texts), tuple(run["targets"][: len(texts)]))
    return [
        mean_overlap(own, [top[i] for i in near]) if len(near) else np.nan
        for own, near in zip(top, nearest, strict=True)
    ]


@lru_cache(maxsize=8)
def neighbours(texts: tuple[str, ...], targets: tuple[str, ...]) -> list[Ints]:
    """The texts that are like each and of which the model decides the same."""
    words = [{lower(text[a:b]) for _, a, b in cut(Text(text), "words").tolist()} for text in texts]
    return Neighbourhood(words, targets, texts, embeddings(texts)).find(LEXICAL, SEMANTIC)


def embeddings(texts: Sequence[str]) -> Floats:
    """Latent semantic analysis: the leading directions (texts, directions) of TF-IDF."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(texts)
    return np.asarray(TruncatedSVD(min(DIRECTIONS, *counts.shape), random_state=0).fit_transform(counts))


def _over(top: Sequence[Sequence[Sequence[str]]], measure: Callable[[Sequence[str]], float]) -> Interval:
    """The mean of a measure over seeds and texts."""
    return bootstrap(np.array([[measure(own) for own in run] for run in top]))


def word_table(found: dict[str, Any], which: str, texts: Sequence[str] | None) -> str:
    """A table of one set: the paper's figures, ours, and how many texts and seeds."""
    rows = []
    for row in ROWS:
        own = word_measures(found, which, row, texts)
        if own:
            runs = of(found, which, row)
            cells = [f"`{row}`"]
            for name, published, factor in (("purity", PURITY, 100.0), ("brevity", BREVITY, 1.0)):
                for i, k in enumerate(SIZES):
                    figures = published[which].get(row, ())
                    one = figures[i] if len(figures) > 1 else figures[0] if figures and k == K else None
                    cells.append(f"{_paper(one)} {shown(own.get(f'{name} {k}'), factor)}")
            cells += [f"{_paper(IOU[which].get(row))} {shown(own.get(STABILITY), 100)}"]
            cells += [shown(own.get(STABILITY_OF_SAME), 100)]
            rows.append([*cells, str(len(runs[0]["words"])), str(len(runs))])
    head = [which, *(f"purity of {k}" for k in SIZES), *(f"brevity of {k}" for k in SIZES)]
    return table([*head, "IoU", "IoU, texts of all rows", "texts", "seeds"], rows)


def _paper(figure: float | None) -> str:
    return "(–)" if figure is None else f"({figure:g})"


def main() -> None:
    """Print a table for each set; the paper's figures are in parentheses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="the texts; without them there is no stability")
    arguments = parser.parse_args()
    found = read_results(arguments.results)
    for which in TEXTS:
        if any(of(found, which, row) for row in ROWS):
            texts = read(arguments.data, which, "test").inputs if arguments.data else None
            print(word_table(found, which, texts))


if __name__ == "__main__":
    main()
