"""Table 10: the columns of a table row that a decision depends on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pertinent
from experiments.shared.pages import table
from experiments.shared.stages import Run, read_record
from experiments.vo2023.results import PUBLISHED, show_percent, show_runs
from pertinent.explainers.search.sampled_search import ExhaustiveSearch
from pertinent.metrics.top_features import Faithfulness, PositiveDeltaLogOdds

METRICS = ("faithfulness", "positive-delta-log-odds")
MASKINGS = {"mean": "mean", "noise": "uniform-noise:low=-1,high=1"}
FITTED = ("aim", "maple", "invase", "l2x")
SAMPLED: Mapping[str, Mapping[str, Any]] = {"lime": {"samples": 1000}, "kernel-shap": {}, "random": {}}
BEST = {
    "best by sufficiency": ExhaustiveSearch(objective="sufficiency"),
    "best by comprehensiveness": ExhaustiveSearch(objective="comprehensiveness"),
}
"""Best of all sets of K columns, with mean masking."""
ONCE = ("kernel-shap", *BEST)
"""Methods without randomness, with so few columns."""
ROWS = ("aim", "lime", "maple", "invase", "l2x", "kernel-shap", "random", *BEST)

DROPPED = ["fnlwgt", "education", "income", "label"]
"""Columns of Adult that are not used: the weight of a row, and repetitions. Twelve are left."""
TREES = 100
SPLIT = 1
"""Seed by which rows are drawn."""


@dataclass(frozen=True)
class Rows:
    """A black box, the rows to learn from, the rows to explain, and the number of columns that are kept."""

    model: Any
    training: Any
    test: Any
    k: int
    accuracy: float
    maskings: Sequence[str] = tuple(MASKINGS)


def admission(folder: Path, n_test: int) -> Rows:
    """Return a random forest; its classes are a chance of admission below the median, and not below it.

    In the copy of 500 rows some scores are 0, because they are missing. The copy of 400 rows has the first
    400 complete; other rows without a score are skipped.
    """
    import pandas as pd
    from sklearn.ensemble import RandomForestClassifier

    first = pd.read_csv(folder / "graduate_admission" / "Admission_Predict.csv")
    others = pd.read_csv(folder / "graduate_admission" / "Admission_Predict_Ver1.1.csv")
    rows = pd.concat([first, others.set_axis(first.columns, axis=1).iloc[len(first) :]])
    rows = rows[rows["GRE_Score"] > 0].dropna().sample(frac=1, random_state=SPLIT)
    n_test = min(n_test, 100)
    numbers, chance = rows.iloc[:, 1:-1].astype(float), rows.iloc[:, -1]
    training, test = numbers.iloc[:-n_test], numbers.iloc[-n_test:]
    training, test = standardised(training, training), standardised(test, training)
    labels = chance >= chance.iloc[:-n_test].median()
    forest = RandomForestClassifier(TREES, random_state=0).fit(training.to_numpy(), labels.iloc[:-n_test])

    def classify(rows: Any) -> Any:
        """Return the mean of all trees by Laplace's rule of succession, whose log-odds are finite.

        `predict_proba` is ten times slower for few rows.
        """
        numbers = np.asarray(rows, dtype=np.float32)
        mean = np.mean([tree.tree_.predict(numbers) for tree in forest.estimators_], axis=0)
        return (TREES * mean + 1) / (TREES + 2)

    model = pertinent.wrap(classify, kind="table", output="probability", background=training)
    return Rows(model, training, test, 3, forest.score(test.to_numpy(), labels.iloc[-n_test:]))


def adult(folder: Path, n_test: int) -> Rows:
    """Return a logistic regression on numbers: a category is its index in the alphabet."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    training, test = (adult_split(folder, split) for split in ("train", "test"))
    for name in training.columns.select_dtypes(exclude="number"):
        kinds = sorted(training.columns[name].unique())
        for split in (training, test):
            split.columns[name] = pd.Categorical(split.columns[name], kinds).codes
    before = training.columns
    training, test = (Split(standardised(each.columns, before), each.labels) for each in (training, test))
    return adult_rows(LogisticRegression(max_iter=1000), training, test, n_test)


def adult_with_categories(folder: Path, n_test: int) -> Rows:
    """Return a logistic regression on one-hot categories; a masked category is the most frequent one."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    training, test = (adult_split(folder, split) for split in ("train", "test"))
    numbers = list(training.columns.select_dtypes("number"))
    categories = [name for name in training.columns if name not in numbers]
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), categories), (StandardScaler(), numbers)
    )
    estimator = make_pipeline(encoder, LogisticRegression(max_iter=1000))
    return replace(adult_rows(estimator, training, test, n_test), maskings=("mean",))


class Split(NamedTuple):
    """Columns of Adult, and the labels."""

    columns: Any
    labels: Any


def adult_split(folder: Path, split: str) -> Split:
    """Return the training or the test rows."""
    import pandas as pd

    rows = pd.read_parquet(folder / "adult" / f"{split}.parquet")
    return Split(rows.drop(columns=DROPPED), rows["label"])


def adult_rows(estimator: Any, training: Split, test: Split, n_test: int) -> Rows:
    """Return a black box that learned from all rows, and 5,000 of them for the explainers."""
    estimator.fit(*training)
    model = pertinent.wrap(estimator, background=training.columns.sample(500, random_state=0))
    part = training.columns.sample(5000, random_state=SPLIT)
    return Rows(model, part, test.columns.sample(n_test, random_state=SPLIT), 6, estimator.score(*test))


def standardised(rows: Any, like: Any) -> Any:
    """Return rows in standard deviations from the mean of other rows."""
    return (rows - like.mean()) / like.std(ddof=0)


SETS: Mapping[str, Callable[[Path, int], Rows]] = {
    "admission": admission,
    "adult": adult,
    "adult with categories": adult_with_categories,
}
EPOCHS = {"admission": 100, "adult": 15, "adult with categories": 15}
LEARNING_RATE = 3e-3
"""Learning rate of all three networks, chosen by AIM on other rows: the split of SPLIT = 0."""


def measure(
    run: Run, dataset: str, row: str, seed: int, *, draws: int, n_test: int, n_train: int | None
) -> dict[str, Any]:
    """Explain rows by a method and measure; values of noise are means over draws."""
    rows = SETS[dataset](run.data, n_test)
    rows = replace(rows, training=rows.training[:n_train])
    start = time.perf_counter()
    method, settings = (
        fit_method(rows, dataset, row, seed) if row in FITTED else (BEST.get(row, row), SAMPLED.get(row, {}))
    )
    before, share = time.perf_counter(), rows.k / rows.training.shape[1]
    options = {"removal": "mean", "sparsity": share, "seed": seed, "progress": False, **settings}
    explanations = pertinent.explain(rows.model, rows.test, method, **options)
    explained = time.perf_counter()
    metrics = [Faithfulness(k=rows.k), PositiveDeltaLogOdds(k=rows.k)]
    values: dict[str, list[float]] = {}
    for masking in rows.maskings:
        options = {"removal": MASKINGS[masking], "progress": False}
        several = [
            pertinent.evaluate(rows.model, explanations, metrics, seed=draw, **options).rows
            for draw in range(draws if masking == "noise" else 1)
        ]
        for metric in METRICS:
            table = [[each.value for each in draw if each.metric == metric] for draw in several]
            values[f"{metric}, {masking}"] = np.mean(table, axis=0).tolist()
    return {
        "values": values,
        "fit seconds": before - start,
        "seconds an input": (explained - before) / len(rows.test),
        "accuracy": rows.accuracy,
    }


def fit_method(rows: Rows, dataset: str, row: str, seed: int) -> tuple[Any, dict[str, Any]]:
    """Return a fitted method, and its settings when it explains."""
    options: dict[str, Any] = {"removal": "mean", "seed": seed, "progress": False}
    if row == "maple":  # scores are slopes, whose signs say nothing of a row
        return pertinent.fit(rows.model, rows.training, row, **options), {"absolute": True}
    options |= {"k": rows.k, "epochs": EPOCHS[dataset], "patience": None, "learning_rate": LEARNING_RATE}
    if row == "aim":
        options["learns_from"] = "decisions"
    return pertinent.fit(rows.model, rows.training, row, **options), {}


def tabular_table(dataset: str, folder: Path) -> str:
    """Return the table of a data set, the paper's numbers in parentheses."""
    lines = []
    for row in ROWS:
        paths = sorted(folder.glob(f"{file_stem(dataset, row)}_seed*.json"))
        runs = [read_record(path) for path in paths]
        if not runs:
            continue
        published = PUBLISHED["tabular"].get(dataset, {}).get(row, ("–",) * 4)
        cells = []
        for metric, show in zip(METRICS, (show_percent, show_runs), strict=True):
            cells += [show(runs, f"{metric}, {masking}") for masking in MASKINGS]
        cells = [f"({figure}) {cell}" for figure, cell in zip(published, cells, strict=True)]
        fit = f"{np.mean([run['fit seconds'] for run in runs]):.0f}" if row in FITTED else "–"
        milliseconds = f"{1000 * np.mean([run['seconds an input'] for run in runs]):.1f}"
        lines.append([f"`{row}`", *cells, fit, milliseconds, str(len(runs))])
    head = "method, faithfulness with mean masking, with noise masking, +Δ log-odds with mean masking, "
    head += "with noise masking, seconds of fitting, ms a row, seeds"
    return table(head.split(", "), lines)


def file_stem(dataset: str, row: str) -> str:
    """Return the beginning of the names of files."""
    return f"{dataset} {row}".replace(" ", "_")
