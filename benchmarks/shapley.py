"""Error against evaluations of the Shapley estimators and their peers, on games whose values are known.

    python benchmarks/shapley.py [--seeds 10] [--long 2] [--long-seeds 3] [--json out.json] [--plot out.png]

Texts of 10 to 12 words under the embedded classifiers, rows under forests and boosting, and sums of
unanimity games, each with all 2^d answers known; and reviews of 34 words, whose values come from a long
run. Prints the mean squared error of every estimator as a share of kernel-shap's, at 2d to 50d
evaluations; how often 1.96 standard errors cover the truth; and what the arithmetic of `shapley` takes
beside a 6-layer encoder. Peers take at least the distinct evaluations of `shapley`,
as nearly as they can be told to.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from typing import Any

import numpy as np
from common import save
from shapley_encoder import beside_an_encoder
from shapley_games import Game, exact_games, long_games
from shapley_peers import SLOW, peers, with_at_least
from shapley_plot import plot

from pertinent.array_types import Floats
from pertinent.asks import Arithmetic, Values
from pertinent.explainers.base import Explainer, Finding, Task, explainers, plan_budget

TIMES = (2, 5, 10, 20, 50)
METHODS = ("kernel-shap", "shapley-sampling", "shapley")
SAMPLED = ("shapley-sampling", "shapley")
Errors = dict[tuple[str, int], dict[str, list[float]]]


def play(explainer: Explainer, game: Game, budget: int, seed: int) -> Finding:
    """Run an estimator on a game."""
    full = game(np.ones((1, game.d)))
    task = Task(game.d, 0, full, plan_budget(explainer, budget, game.d), (0.5,), np.random.default_rng(seed))
    algorithm, answer = explainer.explain(task), None
    while True:
        try:
            asked = algorithm.send(answer)
        except StopIteration as stop:
            found: Finding = stop.value
            return found
        if isinstance(asked, Arithmetic):
            answer = asked.compute()
            continue
        assert isinstance(asked, Values)
        answer = game(asked.masks)[:, None]


class Results:
    """Squared errors, coverage and seconds of every method in every family and column."""

    def __init__(self) -> None:
        self.errors: Errors = defaultdict(lambda: defaultdict(list))
        self.covered: Errors = defaultdict(lambda: defaultdict(list))
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def measure(self, game: Game, times: int, seeds: int) -> None:
        """All methods and peers with `times` · d evaluations."""
        key, budget = (game.family, times), min(times * game.d, 2**game.d)
        for seed in range(seeds):
            for method in METHODS:
                start = time.perf_counter()
                found = play(explainers.make(method), game, budget, seed)
                self.seconds[method].append(time.perf_counter() - start)
                assert found.scores is not None
                off = found.scores.reshape(-1) - game.truth
                self._add(key, method, off, game)
                if method in SAMPLED and found.standard_errors is not None:
                    bound = 1.96 * found.standard_errors.reshape(-1)
                    if np.isfinite(bound).all():
                        self.covered[key][method].append(float((np.abs(off) <= bound).mean()))
            for name, peer in peers().items():
                if name not in SLOW or seed < SLOW[name]:
                    scores = with_at_least(peer, game, 2 * (budget // 2), seed)
                    self._add(key, name, scores - game.truth, game)

    def _add(self, key: tuple[str, int], method: str, off: Floats, game: Game) -> None:
        self.errors[key][method].append(float((off**2).mean()) - game.own_error)

    def shares(self) -> list[dict[str, Any]]:
        """Of each method's error in kernel-shap's, one row for each family and column."""
        rows = []
        for (family, times), errors in self.errors.items():
            base = np.mean(errors["kernel-shap"])
            row: dict[str, Any] = {"family": family, "evaluations": f"{times}d"}
            row |= {method: f"{np.mean(errors[method]) / base:.3f}" for method in errors}
            for method in SAMPLED:
                inside = self.covered[family, times][method]
                row[f"coverage of {method}"] = f"{np.mean(inside):.0%}" if inside else "–"
            rows.append(row)
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--long", type=int, default=2, help="reviews of 34 words")
    parser.add_argument("--long-seeds", type=int, default=3)
    parser.add_argument("--json", help="also keep the rows here")
    parser.add_argument("--plot", help="draw error against evaluations into this file")
    arguments = parser.parse_args()
    results = Results()
    for game in exact_games():
        for times in TIMES:
            results.measure(game, times, arguments.seeds)
    for game in long_games(arguments.long):
        print(
            f"truth of a long review: its own root mean squared error is {game.own_error**0.5:.2e}",
            flush=True,
        )
        for times in TIMES[:-1]:
            results.measure(game, times, arguments.long_seeds)
    save(results.shares(), arguments.json)
    save([beside_an_encoder(budget) for budget in (200, 500, 1000)], None)
    if arguments.plot:
        plot(results.errors, METHODS, arguments.plot)


if __name__ == "__main__":
    main()
