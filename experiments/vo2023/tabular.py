"""Table 10: which columns of a table row a decision rests on.

    python experiments/vo2023/tabular.py --data DATA --results RESULTS

Writes one JSON file for each set, method and seed into RESULTS, what is there is not made again, and the
table into tabular.md. `DATA` has the folders ``adult`` and ``graduate_admission``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from results import fill_in, over, shown, table
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import pertinent
from pertinent.explainers.search.sampled_search import ExhaustiveSearch
from pertinent.metrics.top_features import Faithfulness, PositiveDeltaLogOdds

PAGE = Path(__file__).parent / "tabular.md"
METRICS = ("faithfulness", "positive-delta-log-odds")
MASKINGS = {"mean": "mean", "noise": "uniform-noise:low=-1,high=1"}
PAPER: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = {
    "admission": {
        "aim": (94.00, 92.20, 1.12, 1.17),
        "lime": (93.00, 91.20, 0.99, 1.16),
        "maple": (94.00, 91.30, 0.74, 1.03),
        "invase": (91.00, 87.50, 0.92, 0.99),
    },
    "adult": {
        "aim": (99.00, 86.26, 1.82, 1.82),
        "lime": (86.63, 83.27, 1.21, 1.19),
        "maple": (91.72, 81.52, 0.93, 0.94),
        "invase": (81.93, 67.90, 0.78, 0.79),
    },
}
"""Faithfulness in percent with mean and with noise masking, positive Δ log-odds with both."""

FITTED = ("aim", "maple", "invase", "l2x")
SAMPLED: Mapping[str, Mapping[str, Any]] = {"lime": {"samples": 1000}, "kernel-shap": {}, "random": {}}
BEST = {
    "best by sufficiency": ExhaustiveSearch(objective="sufficiency"),
    "best by comprehensiveness": ExhaustiveSearch(objective="comprehensiveness"),
}
"""Of all sets of K columns, with mean masking: what can be had."""
ONCE = ("kernel-shap", *BEST)
"""Nothing is random about these, with so few columns."""
ROWS = ("aim", "lime", "maple", "invase", "l2x", "kernel-shap", "random", *BEST)

DROPPED = ["fnlwgt", "education", "income", "label"]
"""Of Adult: the weight of a row, and what other columns say. Twelve are left."""
TREES = 100
SPLIT = 1
"""The seed by which rows are drawn."""


@dataclass(frozen=True)
class Rows:
    """A black box, the rows to learn from and those to explain, and how many columns are kept."""

    model: Any
    training: pd.DataFrame
    test: pd.DataFrame
    k: int
    accuracy: float
    maskings: Sequence[str] = tuple(MASKINGS)


def admission(folder: Path, n_test: int) -> Rows:
    """A random forest; the classes are a chance of admission below the median, and not below it.

    In the copy of 500 rows some scores are 0, since they are missing. The copy of 400 rows has its first 400
    whole; of the others those without a score are left out.
    """
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
        """The mean of all trees by Laplace's rule of succession: where they agree, the log-odds are finite.

        `predict_proba` is the same and takes ten times as long for few rows.
        """
        numbers = np.asarray(rows, dtype=np.float32)
        mean = np.mean([tree.tree_.predict(numbers) for tree in forest.estimators_], axis=0)
        return (TREES * mean + 1) / (TREES + 2)

    model = pertinent.wrap(classify, kind="table", output="probability", background=training)
    return Rows(model, training, test, 3, forest.score(test.to_numpy(), labels.iloc[-n_test:]))


def adult(folder: Path, n_test: int) -> Rows:
    """A logistic regression on numbers: a category is its place in the alphabet."""
    training, test = (adult_split(folder, split) for split in ("train", "test"))
    for name in training.columns.select_dtypes(exclude="number"):
        kinds = sorted(training.columns[name].unique())
        for split in (training, test):
            split.columns[name] = pd.Categorical(split.columns[name], kinds).codes
    before = training.columns
    training, test = (Split(standardised(each.columns, before), each.labels) for each in (training, test))
    return adult_rows(LogisticRegression(max_iter=1000), training, test, n_test)


def adult_with_categories(folder: Path, n_test: int) -> Rows:
    """A logistic regression on one-hot categories: a masked one is the most frequent; there is no noise."""
    training, test = (adult_split(folder, split) for split in ("train", "test"))
    numbers = list(training.columns.select_dtypes("number"))
    categories = [name for name in training.columns if name not in numbers]
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), categories), (StandardScaler(), numbers)
    )
    estimator = make_pipeline(encoder, LogisticRegression(max_iter=1000))
    return replace(adult_rows(estimator, training, test, n_test), maskings=("mean",))


class Split(NamedTuple):
    """The columns of Adult, and the labels."""

    columns: pd.DataFrame
    labels: pd.Series


def adult_split(folder: Path, split: str) -> Split:
    """The training or the test rows."""
    rows = pd.read_parquet(folder / "adult" / f"{split}.parquet")
    return Split(rows.drop(columns=DROPPED), rows["label"])


def adult_rows(estimator: Any, training: Split, test: Split, n_test: int) -> Rows:
    """The black box learns from all rows, the explainers from 5,000 of them."""
    estimator.fit(*training)
    model = pertinent.wrap(estimator, background=training.columns.sample(500, random_state=0))
    part = training.columns.sample(5000, random_state=SPLIT)
    return Rows(model, part, test.columns.sample(n_test, random_state=SPLIT), 6, estimator.score(*test))


def standardised(rows: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """In deviations from the mean of other rows."""
    return (rows - like.mean()) / like.std(ddof=0)


SETS: Mapping[str, Callable[[Path, int], Rows]] = {
    "admission": admission,
    "adult": adult,
    "adult with categories": adult_with_categories,
}
EPOCHS = {"admission": 100, "adult": 15, "adult with categories": 15}
LEARNING_RATE = 3e-3
"""Of all three networks. Chosen by looking at AIM with other rows: the split of SPLIT = 0."""


def measured(rows: Rows, which: str, row: str, seed: int, draws: int) -> dict[str, Any]:
    """Explain and measure; one number for each row of the table, noise averaged over draws."""
    start = time.perf_counter()
    method, settings = (
        fitted(rows, which, row, seed) if row in FITTED else (BEST.get(row, row), SAMPLED.get(row, {}))
    )
    before, share = time.perf_counter(), rows.k / rows.training.shape[1]
    options = {"removal": "mean", "sparsity": share, "seed": seed, "progress": False, **settings}
    found = pertinent.explain(rows.model, rows.test, method, **options)
    explained = time.perf_counter()
    metrics = [Faithfulness(k=rows.k), PositiveDeltaLogOdds(k=rows.k)]
    values: dict[str, list[float]] = {}
    for masking in rows.maskings:
        options = {"removal": MASKINGS[masking], "progress": False}
        several = [
            pertinent.evaluate(rows.model, found, metrics, seed=draw, **options).rows
            for draw in range(draws if masking == "noise" else 1)
        ]
        for metric in METRICS:
            own = [[each.value for each in draw if each.metric == metric] for draw in several]
            values[f"{metric}, {masking}"] = np.mean(own, axis=0).tolist()
    return {
        "values": values,
        "fit seconds": before - start,
        "seconds an input": (explained - before) / len(rows.test),
        "accuracy": rows.accuracy,
    }


def fitted(rows: Rows, which: str, row: str, seed: int) -> tuple[Any, dict[str, Any]]:
    """A method that is fitted, and its settings when it explains."""
    options: dict[str, Any] = {"removal": "mean", "seed": seed, "progress": False}
    if row == "maple":  # scores are slopes: their signs say nothing of a row
        return pertinent.fit(rows.model, rows.training, row, **options), {"absolute": True}
    options |= {"k": rows.k, "epochs": EPOCHS[which], "patience": None, "learning_rate": LEARNING_RATE}
    if row == "aim":
        options["learns_from"] = "decisions"
    return pertinent.fit(rows.model, rows.training, row, **options), {}


def tables(folder: Path) -> dict[str, str]:
    """One table for each set, the paper's figures in parentheses."""
    found = {}
    for which in SETS:
        lines = []
        for row in ROWS:
            stem = file_stem(which, row)
            runs = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{stem}_seed*.json"))]
            if not runs:
                continue
            published = PAPER.get(which, {}).get(row, ("–",) * 4)
            names = [(metric, masking) for metric in METRICS for masking in MASKINGS]
            cells = [
                f"({figure}) {shown(over(runs, f'{metric}, {masking}'), factor)}"
                for figure, (metric, masking), factor in zip(published, names, (100, 100, 1, 1), strict=True)
            ]
            fit = f"{np.mean([run['fit seconds'] for run in runs]):.0f}" if row in FITTED else "–"
            milliseconds = f"{1000 * np.mean([run['seconds an input'] for run in runs]):.1f}"
            lines.append([f"`{row}`", *cells, fit, milliseconds, str(len(runs))])
        head = "method, faithfulness with mean masking, with noise masking, +Δ log-odds with mean masking, "
        head += "with noise masking, seconds of fitting, ms a row, seeds"
        found[which] = table(head.split(", "), lines)
    return found


def file_stem(which: str, row: str) -> str:
    """The beginning of the names of files."""
    return f"{which} {row}".replace(" ", "_")


def main() -> None:
    """Measure what is not there, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=10, help="draws of noise")
    parser.add_argument("--test", type=int, default=500, help="rows of Adult that are explained")
    parser.add_argument("--train", type=int, help="rows that explainers learn from, if not all")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    for which in arguments.sets:
        rows = SETS[which](arguments.data, arguments.test)
        rows = replace(rows, training=rows.training[: arguments.train])
        for seed in range(arguments.seeds):
            for row in arguments.rows:
                made = arguments.results / f"{file_stem(which, row)}_seed{seed}.json"
                if made.is_file() or (row in ONCE and seed):
                    continue
                start = time.perf_counter()
                unfinished = made.with_suffix(".part")
                unfinished.write_text(json.dumps(measured(rows, which, row, seed, arguments.draws)))
                unfinished.rename(made)
                print(f"{made.stem}: {time.perf_counter() - start:.0f} s", flush=True)
    fill_in(arguments.page, tables(arguments.results))


if __name__ == "__main__":
    main()
