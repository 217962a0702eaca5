"""Error against evaluations of the Shapley estimators, on games whose values are known.

    python benchmarks/shapley.py [--seeds 10] [--json out.json]

Texts of 10 to 12 words under the embedded classifiers, rows under forests and boosting, and sums of
unanimity games, each with all 2^d answers known. Prints the mean squared error of every estimator as a
share of kernel-shap's, at 2d to 50d evaluations, and how often 1.96 standard errors cover the truth.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from math import comb
from typing import Any

import numpy as np
from common import save

import pertinent
from pertinent.asks import Values
from pertinent.explainers.base import Explainer, Finding, Task, explainers, plan_budget
from pertinent.removal.base import removals
from pertinent.types import Floats, Masks

TIMES = (2, 3, 5, 10, 20, 50)
METHODS = ("kernel-shap", "shapley-sampling", "shapley")
REVIEWS = (
    "A slow start then a wonderful ending and superb acting overall",
    "Flat jokes and a clumsy script waste a talented cast here",
    "Not bad at all but never really funny or moving either",
)
NEWS = (
    "Shares of the chip maker rose after it raised its forecast",
    "The goalkeeper saved two penalties and the home side won",
    "Astronomers found water on a small planet near a star",
)


def games() -> Iterator[tuple[str, Floats]]:
    """A family and the values of all masks, in binary order."""
    for name, texts in (("sentiment", REVIEWS), ("topics", NEWS)):
        model = pertinent.load(name)
        yield from ((name, values_of(model, text)) for text in texts)
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier

    tables: tuple[tuple[str, Any, Any], ...] = (
        ("forest", load_wine, RandomForestClassifier(60, random_state=0)),
        ("boosted regressor", load_diabetes, GradientBoostingRegressor(max_depth=4, random_state=0)),
        ("boosted classifier", load_breast_cancer, GradientBoostingClassifier(max_depth=5, random_state=0)),
    )
    for name, load, estimator in tables:
        rows, truth = load(return_X_y=True)
        rows = rows[:, :12]
        model = pertinent.wrap(estimator.fit(rows, truth), background=rows[:: len(rows) // 30])
        yield from ((name, values_of(model, rows[i])) for i in (3, len(rows) // 2, len(rows) - 5))
    rng = np.random.default_rng(0)
    for _ in range(3):
        masks, total = all_masks(12), np.zeros(2**12)
        for _ in range(30):
            members = rng.choice(12, rng.integers(1, 13), replace=False)
            total += rng.uniform(-1, 1) * masks[:, members].all(axis=1)
        yield "unanimity games", total


def all_masks(d: int) -> Masks:
    """All subsets, in binary order."""
    return np.asarray((np.arange(2**d)[:, None] >> np.arange(d)) & 1, dtype=np.bool_)


def values_of(model: Any, raw: Any) -> Floats:
    """The target's value for every mask."""
    input = model.prepare(raw)
    removal = removals.make(model.default_removal(input)).bind(model)
    answers = []
    for part in np.array_split(all_masks(input.n_features), 16):
        outputs = np.asarray(model.submit([removal(input, part, 0)]).outputs())
        checked = model.checked(outputs, len(part) * removal.draws)
        answers.append(model.output.natural(model.output.average(checked, removal.draws)))
    table = np.concatenate(answers)
    return np.asarray(table[:, model.output.default_target(table[-1])])


def exact(values: Floats) -> Floats:
    """Shapley values of a table of all masks."""
    d = len(values).bit_length() - 1
    every = np.arange(2**d)
    size = all_masks(d).sum(axis=1)
    weight = 1 / (d * np.array([comb(d - 1, min(int(s), d - 1)) for s in size]))
    found = []
    for i in range(d):
        without = every[(every >> i) & 1 == 0]
        found.append(((values[without | (1 << i)] - values[without]) * weight[without]).sum())
    return np.array(found)


def play(explainer: Explainer, values: Floats, budget: int, seed: int) -> Finding:
    """Run an estimator on a table."""
    d = len(values).bit_length() - 1
    place = 1 << np.arange(d)
    task = Task(d, 0, values[-1:], plan_budget(explainer, budget, d), (0.5,), np.random.default_rng(seed))
    algorithm, answer = explainer.explain(task), None
    while True:
        try:
            asked = algorithm.send(answer)
        except StopIteration as stop:
            found: Finding = stop.value
            return found
        assert isinstance(asked, Values)
        answer = values[asked.masks @ place][:, None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", help="also keep the rows here")
    arguments = parser.parse_args()
    errors: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    covered: dict[tuple[str, int], list[float]] = defaultdict(list)
    for family, values in games():
        truth = exact(values)
        d = len(truth)
        for times in TIMES:
            budget = min(times * d + 2, 2**d)
            for method in METHODS:
                for seed in range(arguments.seeds):
                    found = play(explainers.make(method), values, budget, seed)
                    assert found.scores is not None
                    scores = found.scores.reshape(-1)
                    errors[family, times][method].append(float(((scores - truth) ** 2).mean()))
                    if method == "shapley" and found.standard_errors is not None:
                        error = found.standard_errors.reshape(-1)
                        if np.isfinite(error).all():
                            covered[family, times].append(float((abs(scores - truth) <= 1.96 * error).mean()))
    rows = []
    for (family, times), found_errors in errors.items():
        base = np.mean(found_errors["kernel-shap"])
        row: dict[str, Any] = {"family": family, "evaluations": f"{times}d"}
        row |= {method: f"{np.mean(found_errors[method]) / base:.3f}" for method in METHODS}
        inside = covered.get((family, times))
        row["coverage of shapley"] = f"{np.mean(inside):.0%}" if inside else "–"
        rows.append(row)
    save(rows, arguments.json)


if __name__ == "__main__":
    main()
