"""Shapley values of tree models: processor time compared with shap, and with an older checkout.

    OMP_NUM_THREADS=1 python benchmarks/trees.py [--before ../older/src] [--json out.json]

The rows have ten columns, two of them categorical. shap and the older code run on fewer rows, and their time
for all rows is extrapolated; for a pipeline, shap explains the columns of the last step. A ratio is our time
divided by theirs. shap has no exact values for probabilities of boosted trees or for categorical splits.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from argparse import SUPPRESS
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from common import new_parser, save

import pertinent

TRAINING = 3000


@dataclass(frozen=True)
class Setup:
    """Estimator, number of background rows, scale, and whether shap computes the same values."""

    make: Callable[[], Any]
    frame: bool
    background: int
    scale: str
    in_shap: bool


def _data(*, frame: bool) -> tuple[Any, Any]:
    """Return rows, as numbers or as a data frame with two categorical columns, and their classes."""
    import pandas as pd

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(TRAINING + 5300, 10))
    rows[:, 8:] = rng.integers(0, 4, (len(rows), 2))
    score = rows[:, 0] + rows[:, 1] * rows[:, 2] + np.isin(rows[:, 8], [1, 3]) + rng.normal(size=len(rows))
    if not frame:
        return rows, (score > 0.5).astype(int)
    table = pd.DataFrame(rows, columns=list("abcdefghij"))
    for name in "ij":
        table[name] = table[name].map(dict(enumerate(["red", "green", "blue", "grey"])))
    return table, (score > 0.5).astype(int)


def _pipeline(estimator: Any) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(
        make_column_transformer((numbers, list("abcdefgh")), (encoder, ["i", "j"])), estimator
    )


def _setups() -> dict[str, Setup]:
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from xgboost import XGBClassifier

    def boosted() -> Any:
        return _pipeline(HistGradientBoostingClassifier(random_state=0))

    def forest() -> Any:
        return _pipeline(RandomForestClassifier(random_state=0, n_jobs=1))

    def light() -> Any:
        return LGBMClassifier(verbose=-1, n_jobs=1)

    def with_categories() -> Any:
        return HistGradientBoostingClassifier(categorical_features=[8, 9], random_state=0)

    setups = {
        "xgboost, log-odds": Setup(
            lambda: XGBClassifier(n_jobs=1), frame=False, background=100, scale="logit", in_shap=True
        ),
        "lightgbm, log-odds": Setup(light, frame=False, background=50, scale="logit", in_shap=True),
        "lightgbm, probabilities": Setup(light, frame=False, background=50, scale="natural", in_shap=False),
        "pipeline with boosting, log-odds": Setup(
            boosted, frame=True, background=50, scale="logit", in_shap=True
        ),
        "pipeline with boosting, probabilities": Setup(
            boosted, frame=True, background=50, scale="natural", in_shap=False
        ),
        "pipeline with a forest": Setup(forest, frame=True, background=100, scale="natural", in_shap=True),
        "categorical splits, log-odds": Setup(
            with_categories, frame=False, background=50, scale="logit", in_shap=False
        ),
    }
    if find_spec("catboost") is not None:
        from catboost import CatBoostClassifier

        setups["catboost, log-odds"] = Setup(
            lambda: CatBoostClassifier(iterations=100, verbose=0, allow_writing_files=False, thread_count=1),
            frame=False,
            background=50,
            scale="logit",
            in_shap=True,
        )
    return setups


def _fitted(setup: Setup) -> tuple[Any, Any, Any]:
    """Return the fitted estimator, the background, and the rows to explain."""
    rows, classes = _data(frame=setup.frame)
    estimator = setup.make().fit(rows[:TRAINING], classes[:TRAINING])
    return estimator, rows[TRAINING : TRAINING + setup.background], rows[TRAINING + 200 :]


def _ours(setup: Setup, n: int) -> float:
    """Return the processor seconds of `shapley` for n rows."""
    estimator, background, rows = _fitted(setup)
    options: dict[str, Any] = {"removal": f"background:rows={setup.background}", "progress": False}
    seconds = 0.0
    for some in (rows[n : n + 1], rows[:n]):  # the first call is a warm-up
        model = pertinent.wrap(estimator, background=background)
        start = time.process_time()
        pertinent.explain(model, some, "shapley", scale=setup.scale, budget=2**10, **options)
        seconds = time.process_time() - start
    return seconds


def _shap(setup: Setup, n: int) -> float:
    """Return the processor seconds of shap's interventional TreeExplainer for n rows."""
    import shap

    estimator, background, rows = _fitted(setup)
    rows = rows[:n]
    start = time.process_time()
    if hasattr(estimator, "steps"):
        background, rows, estimator = (*map(estimator[:-1].transform, (background, rows)), estimator[-1])
    masker = shap.maskers.Independent(background, max_samples=len(background))
    explainer = shap.TreeExplainer(estimator, masker, feature_perturbation="interventional")
    explainer.shap_values(rows, check_additivity=False)
    return time.process_time() - start


def _before(source: str, name: str, n: int) -> float:
    """Return the processor seconds of `shapley` of another checkout for n rows; NaN if it fails."""
    command = [sys.executable, __file__, "--time", name, "--rows", str(n)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    return float(json.loads(done.stdout.splitlines()[-1])) if done.returncode == 0 else np.nan


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--shap-rows", type=int, default=200)
    parser.add_argument("--before", help="the `src` folder of an older checkout")
    parser.add_argument("--before-rows", type=int, default=2)
    parser.add_argument("--time", help=SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    setups = _setups()
    if arguments.time:
        print(json.dumps(_ours(setups[arguments.time], arguments.rows)))
        return
    rows = []
    for name, setup in setups.items():
        ours = _ours(setup, arguments.rows)
        row = {
            "model": name,
            "background rows": setup.background,
            "ours, s": f"{ours:.1f}",
            "ours / shap": "–",
        }
        if setup.in_shap:
            theirs = _shap(setup, arguments.shap_rows) * arguments.rows / arguments.shap_rows
            row["ours / shap"] = f"{ours / theirs:.2f}"
        if arguments.before:
            before = _before(arguments.before, name, arguments.before_rows)
            row["ours / before"] = f"{ours / (before * arguments.rows / arguments.before_rows):.4f}"
        print(row, flush=True)
        rows.append(row)
    save(rows, arguments.json)


if __name__ == "__main__":
    main()
