"""Records of fits, the paper's numbers, and means with intervals as the tables show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.shared.intervals import interval, show
from experiments.shared.published import read_published
from experiments.shared.stages import read_record
from pertinent.metrics.english_words import clusters, distinct_contaminated, senses, share_contaminated
from pertinent.metrics.top_features import lower
from pertinent.stats import Difference, Interval

PUBLISHED: dict[str, Any] = read_published("vo2023")
RESAMPLES = 100_000
SHARES = ("faithfulness", "class-faithfulness")
"""Values between 0 and 1."""
K = 10
Runs = Sequence[Mapping[str, Any]]
"""Records of a method, with every seed."""


def read_records(folder: Path, file: str) -> dict[str, Any]:
    """Return the records of a kept file, and those of single jobs in the folder of the same name."""
    kept = folder / f"{file}.json"
    records = read_record(kept) if kept.is_file() else {}
    for path in sorted((folder / file).glob("*.json")):
        record = read_record(path)
        records[record.get("name", path.stem)] = record
    return dict(records)


def runs_of(records: Mapping[str, Any], dataset: str, form: str, box: str = "network") -> list[Any]:
    """Return the records of a form with every seed, if the values of texts were kept."""
    prefix = f"{dataset} | {box} | {form} | "
    return [own for key, own in records.items() if key.startswith(prefix) and "values" in own]


def mean_of(runs: Runs, metric: str, first: int | None = None, more_words_than: int = 0) -> Interval | None:
    """Return the mean over seeds and inputs: of the first inputs, or of those with more words (up to 20)."""
    rows = []
    for run in [run for run in runs if metric in run["values"]]:
        values = run["values"][metric][:first]
        if more_words_than:
            pairs = zip(values, run["words"], strict=False)
            values = [value for value, words in pairs if len(words) > more_words_than]
        rows.append(values)
    within = (0.0, 1.0) if metric.startswith(SHARES) else None
    return interval(np.array(rows, dtype=float), within=within, resamples=RESAMPLES) if rows else None


def show_percent(runs: Runs, metric: str, first: int | None = None) -> str:
    """Return a mean with its interval in percent, of the first inputs."""
    return show(mean_of(runs, metric, first), ".1f", 100)


def show_runs(runs: Runs, metric: str) -> str:
    """Return a mean with its interval."""
    return show(mean_of(runs, metric))


def show_share(values: Sequence[float]) -> str:
    """Return the mean of shares in percent, with its interval."""
    return show(interval(np.array([values]), within=(0.0, 1.0), resamples=RESAMPLES), ".1f", 100)


def show_points(gap: Difference) -> str:
    """Return a difference of shares in percentage points with its interval and p-value."""
    return f"{show(gap, '.1f', 100)} {gap.p_text}"


def published_clusters(words: Sequence[str]) -> float:
    """Return the number of clusters that the authors' code finds: it joins all words that WordNet knows.

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


def count_words(record: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return purity and brevity of the top ten words of each text, also as the authors' code counts them."""
    if "counted" in record:
        return dict(record["counted"])
    top = [[lower(word) for word in words[:K]] for words in record["words"]]
    return {name: [round(measure(words), 4) for words in top] for name, measure in MEASURES.items()}


def word_measures(runs: Runs) -> dict[str, Interval | None]:
    """Return the means of purity and brevity over texts and seeds."""
    counts = [count_words(run) for run in runs]
    return {name: interval(np.array([own[name] for own in counts]), resamples=RESAMPLES) for name in MEASURES}
