"""Error of Shapley estimators and their peers by the number of evaluations, on games with known values.

    python benchmarks/shapley.py [--seeds 10] [--families all|models|hard] [--long 2] [--long-seeds 3]
                                 [--json out.json] [--plot out.png]

Models: texts of 10 to 12 words with the embedded classifiers, rows with forests and boosting, and sums of
unanimity games, each with all 2^d values; and reviews of 34 words, whose Shapley values come from a long run.
Hard: the games of `shapley_families`, with 12 to 60 features. Prints the mean squared error of every
estimator as a share of the mean square of the values, at 2d to 20d evaluations; the coverage of 1.96 standard
errors; and a summary of the families that were used to choose the estimator and of the held-out families.
Peers use at least the number of distinct evaluations of `shapley`, as closely as their settings allow.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from common import new_parser, save
from shapley_families import HELD_OUT, hard_games
from shapley_games import Game, exact_games, long_games
from shapley_peers import SLOW, peers, with_at_least
from shapley_plot import plot

from pertinent.array_types import Floats
from pertinent.explainers.base import Explainer, Finding, explainers
from pertinent.testing import games

TIMES = (2, 5, 10, 20)
METHODS = ("kernel-shap", "shapley-sampling", "shapley")
EXACT = 1e-12
"""Share of the values' mean square below which errors are rounding, and estimators equally good."""
Errors = dict[tuple[str, int], dict[str, list[float]]]


def play(explainer: Explainer, game: Game, budget: int, seed: int) -> Finding:
    """Run an estimator on a game."""
    played = games.RecordedGame(game.d, lambda masks: game(masks)[:, None])
    return games.play(explainer, played, budget=budget, sparsities=(0.5,), seed=seed)


class Results:
    """Squared errors and coverage of every method by family and number of evaluations."""

    def __init__(self) -> None:
        self.errors: Errors = defaultdict(lambda: defaultdict(list))
        self.covered: Errors = defaultdict(lambda: defaultdict(list))

    def measure(self, game: Game, times: int, seeds: int) -> None:
        """Run all methods and peers with `times` · d evaluations."""
        key, budget = (game.family, times), min(times * game.d, 2**game.d)
        for seed in range(seeds):
            for method in METHODS:
                finding = play(explainers.make(method), game, budget, seed)
                assert finding.scores is not None
                errors = finding.scores.reshape(-1) - game.truth
                self._add(key, method, errors, game)
                if finding.standard_errors is not None:
                    bound = 1.96 * finding.standard_errors.reshape(-1)
                    bound += EXACT**0.5 * np.abs(game.truth).max()
                    if np.isfinite(bound).all():
                        self.covered[key][method].append(float((np.abs(errors) <= bound).mean()))
            for name, peer in peers().items():
                if name not in SLOW or seed < SLOW[name]:
                    scores = with_at_least(peer, game, 2 * (budget // 2), seed)
                    self._add(key, name, scores - game.truth, game)

    def _add(self, key: tuple[str, int], method: str, errors: Floats, game: Game) -> None:
        error = float((errors**2).mean()) - game.truth_error
        self.errors[key][method].append(error / float((game.truth**2).mean()))

    def rows(self) -> list[dict[str, Any]]:
        """Return the errors, the best other method and the coverage by family and evaluations."""
        rows = []
        for (family, times), errors in self.errors.items():
            means = {method: float(np.mean(values)) for method, values in errors.items()}
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
                covered = self.covered[family, times][method]
                row[f"coverage of {method}"] = f"{np.mean(covered):.0%}" if covered else "–"
            rows.append(row)
        return rows

    def ratio(self, family: str, times: int) -> float:
        """Return the error of `shapley` divided by that of the best other method; 1 if both are rounding."""
        means = {method: float(np.mean(values)) for method, values in self.errors[family, times].items()}
        best = min(means[method] for method in means if method != "shapley")
        return (max(means["shapley"], EXACT) + EXACT) / (max(best, EXACT) + EXACT)

    def summary(self) -> list[dict[str, Any]]:
        """Return summaries of the families used to choose the estimator, and of the held-out families."""
        rows = []
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
                    means = [np.mean(self.covered[key][method]) for key in keys if self.covered[key][method]]
                    covered = f"{min(means):.0%}–{max(means):.0%}" if means else "–"
                    row[f"coverage of {method}"] = covered
                rows.append(row)
        return rows


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--families", choices=("all", "models", "hard"), default="all")
    parser.add_argument("--long", type=int, default=2, help="reviews of 34 words")
    parser.add_argument("--long-seeds", type=int, default=3)
    parser.add_argument("--plot", help="write a figure of the errors to this file")
    arguments = parser.parse_args()
    results, families = Results(), arguments.families
    known = [*(exact_games() if families != "hard" else ()), *(hard_games() if families != "models" else ())]
    for game in known:
        for times in TIMES:
            results.measure(game, times, arguments.seeds)
        print(f"{game.family}, {game.d} features: done", flush=True)
    for game in long_games(arguments.long if families != "hard" else 0):
        print(f"long review: root mean squared error of the truth {game.truth_error**0.5:.2e}", flush=True)
        for times in TIMES:
            results.measure(game, times, arguments.long_seeds)
    save(results.rows(), arguments.json)
    save(results.summary(), None)
    if arguments.plot:
        plot(results.errors, METHODS, arguments.plot)


if __name__ == "__main__":
    main()
