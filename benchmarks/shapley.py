"""Error against evaluations of the Shapley estimators and their peers, on games whose values are known.

    python benchmarks/shapley.py [--seeds 10] [--families all|models|hard] [--long 2] [--long-seeds 3]
                                 [--json out.json] [--plot out.png]

Models: texts of 10 to 12 words under the embedded classifiers, rows under forests and boosting, and sums of
unanimity games, each with all 2^d answers known; and reviews of 34 words, whose values come from a long run.
Hard: the games of `shapley_families`, 12 to 60 features. Prints the mean squared error of every estimator as
a share of the mean square of the values, at 2d to 20d evaluations; how often 1.96 standard errors cover the
truth; a summary for the families that took part in choosing the estimator and for those that did not; and
what the arithmetic of `shapley` takes beside a 6-layer encoder. Peers take at least the distinct evaluations
of `shapley`, as nearly as they can be told to.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from typing import Any

import numpy as np
from common import save
from shapley_encoder import beside_an_encoder
from shapley_families import HELD_OUT, hard_games
from shapley_games import Game, exact_games, long_games
from shapley_peers import SLOW, peers, with_at_least
from shapley_plot import plot

from pertinent.array_types import Floats
from pertinent.asks import Compute, Values
from pertinent.explainers.base import Explainer, Finding, Task, explainers, plan_budget

TIMES = (2, 5, 10, 20)
METHODS = ("kernel-shap", "shapley-sampling", "shapley")
EXACT = 1e-12
"""A share of the values' mean square that is rounding: all estimators below it are equally good."""
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
        if isinstance(asked, Compute):
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
                if found.standard_errors is not None:
                    bound = 1.96 * found.standard_errors.reshape(-1) + EXACT**0.5 * np.abs(game.truth).max()
                    if np.isfinite(bound).all():
                        self.covered[key][method].append(float((np.abs(off) <= bound).mean()))
            for name, peer in peers().items():
                if name not in SLOW or seed < SLOW[name]:
                    scores = with_at_least(peer, game, 2 * (budget // 2), seed)
                    self._add(key, name, scores - game.truth, game)

    def _add(self, key: tuple[str, int], method: str, off: Floats, game: Game) -> None:
        error = float((off**2).mean()) - game.own_error
        self.errors[key][method].append(error / float((game.truth**2).mean()))

    def rows(self) -> list[dict[str, Any]]:
        """The errors of ours and of the best other, and coverage, for each family and column."""
        rows = []
        for (family, times), errors in self.errors.items():
            means = {method: float(np.mean(found)) for method, found in errors.items()}
            others = {method: means[method] for method in means if method != "shapley"}
            best = min(others, key=lambda method: others[method])
            row: dict[str, Any] = {"family": family, "held out": "yes" if family in HELD_OUT else ""}
            row |= {
                "evaluations": f"{times}d",
                "/ best other": f"{self.ratio(family, times):.3g}",
                "best other": best,
            }
            row |= {method: f"{mean:.2e}" for method, mean in means.items()}
            for method in METHODS:
                inside = self.covered[family, times][method]
                row[f"coverage of {method}"] = f"{np.mean(inside):.0%}" if inside else "–"
            rows.append(row)
        return rows

    def ratio(self, family: str, times: int) -> float:
        """The error of `shapley` as a share of the best other's; 1 if both are rounding."""
        means = {method: float(np.mean(found)) for method, found in self.errors[family, times].items()}
        best = min(means[method] for method in means if method != "shapley")
        return (max(means["shapley"], EXACT) + EXACT) / (max(best, EXACT) + EXACT)

    def summary(self) -> list[dict[str, Any]]:
        """For families that took part in choosing the estimator, and for those that did not, each column."""
        found = []
        for held_out in (False, True):
            for times in dict.fromkeys(times for _, times in self.errors):
                keys = [key for key in self.errors if key[1] == times and (key[0] in HELD_OUT) == held_out]
                if not keys:
                    continue
                ratios = [self.ratio(*key) for key in keys]
                row: dict[str, Any] = {"families": "held out" if held_out else "chosen by"}
                row |= {"evaluations": f"{times}d", "rows": len(keys)}
                row |= {"/ best other, median": f"{np.median(ratios):.2f}"}
                row |= {"within 1.05": sum(ratio <= 1.05 for ratio in ratios), "worst": f"{max(ratios):.3g}"}
                for method in METHODS:
                    inside = [np.mean(self.covered[key][method]) for key in keys if self.covered[key][method]]
                    text = f"{min(inside):.0%}–{max(inside):.0%}" if inside else "–"
                    row[f"coverage of {method}"] = text
                found.append(row)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--families", choices=("all", "models", "hard"), default="all")
    parser.add_argument("--long", type=int, default=2, help="reviews of 34 words")
    parser.add_argument("--long-seeds", type=int, default=3)
    parser.add_argument("--json", help="also keep the rows here")
    parser.add_argument("--plot", help="draw error against evaluations into this file")
    arguments = parser.parse_args()
    results, families = Results(), arguments.families
    games = [*(exact_games() if families != "hard" else ()), *(hard_games() if families != "models" else ())]
    for game in games:
        for times in TIMES:
            results.measure(game, times, arguments.seeds)
        print(f"{game.family}, {game.d} features: done", flush=True)
    for game in long_games(arguments.long if families != "hard" else 0):
        print(
            f"truth of a long review: its own root mean squared error is {game.own_error**0.5:.2e}",
            flush=True,
        )
        for times in TIMES:
            results.measure(game, times, arguments.long_seeds)
    save(results.rows(), arguments.json)
    save(results.summary(), None)
    save([beside_an_encoder(budget) for budget in (200, 500, 1000)], None)
    if arguments.plot:
        plot(results.errors, METHODS, arguments.plot)


if __name__ == "__main__":
    main()
