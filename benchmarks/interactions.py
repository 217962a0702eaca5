"""Error of `shapley-interactions` and of shapiq's estimators by the number of evaluations, on known games.

    python benchmarks/interactions.py [--seeds 3] [--long 2] [--index sii stii faith-shap] [--json out.json]

Texts of 10 to 12 words, rows with forests, boosting, a network and support vectors, and sums of simple games,
each with all 2^d values; and reviews of 34 words, whose values come from a long run (only for the Shapley
interaction index). Prints the mean squared error of the pairs' values as a share of their mean square (1 is
the error of zeros), the best peer, and the coverage of 1.96 standard errors. Peers use at least the same
number of distinct evaluations. Shares below 1e-6 count as exact.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import new_parser, save
from interaction_games import games, long_games, pairs_of
from shapley import play
from shapley_games import Game
from shapley_peers import Peer, with_at_least

from pertinent.array_types import Floats
from pertinent.explainers.shapley.interaction_index import IndexName
from pertinent.explainers.shapley.shapley_interactions import ShapleyInteractions

TIMES = (5, 10, 20, 50)
EXACT = 1e-6
OURS = "shapley-interactions"


def _shapiq(name: str, **settings: Any) -> Peer:
    def peer(game: Game, n: int, seed: int) -> Floats:
        import shapiq

        method: Any = getattr(shapiq.approximator, name)(n=game.d, max_order=2, random_state=seed, **settings)
        values = method.approximate(n, game)
        return np.array([values[pair] for pair in zip(*np.triu_indices(game.d, 1), strict=True)])

    return peer


def _sampled(index: str) -> dict[str, Peer]:
    paired = {name: _shapiq(name, index=index, pairing_trick=True) for name in ("SVARMIQ", "SHAPIQ")}
    return {**paired, "ProxySPEX": _shapiq("ProxySPEX", index=index)}


PEERS: dict[str, Callable[[], dict[str, Peer]]] = {
    "sii": lambda: {
        "KernelSHAPIQ": _shapiq("KernelSHAPIQ", index="SII"),
        "KernelSHAPIQ, paired": _shapiq("KernelSHAPIQ", index="SII", pairing_trick=True),
        "InconsistentKernelSHAPIQ": _shapiq("InconsistentKernelSHAPIQ", index="SII"),
        "InconsistentKernelSHAPIQ, paired": _shapiq(
            "InconsistentKernelSHAPIQ", index="SII", pairing_trick=True
        ),
        "PermutationSamplingSII": _shapiq("PermutationSamplingSII", index="SII"),
        **_sampled("SII"),
    },
    "stii": lambda: {
        "PermutationSamplingSTII": _shapiq("PermutationSamplingSTII"),
        **_sampled("STII"),
    },
    "faith-shap": lambda: {
        "RegressionFSII": _shapiq("RegressionFSII"),
        "RegressionFSII, paired": _shapiq("RegressionFSII", pairing_trick=True),
        **_sampled("FSII"),
    },
}
SLOW = {"SVARMIQ", "ProxySPEX"}
"""Peers that run with only one seed."""


class Results:
    """Errors as shares of the values' mean square, and coverage, for one index."""

    def __init__(self, index: IndexName) -> None:
        self.index, self.peers = index, PEERS[index]()
        self.errors: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.covered: dict[tuple[str, int], list[float]] = defaultdict(list)

    def measure(self, game: Game, truth: Floats, times: int, seeds: int) -> None:
        """Run all estimators with `times` · d evaluations."""
        key, budget = (game.family, times), times * game.d
        size, above = float((truth**2).mean()), np.triu_indices(game.d, 1)

        def add(name: str, values: Floats) -> None:
            share = (float(((values - truth) ** 2).mean()) - game.truth_error) / size
            self.errors[key][name].append(max(share, EXACT))

        for seed in range(seeds):
            interactions = play(ShapleyInteractions(index=self.index), game, budget, seed).interactions
            assert interactions is not None
            values, errors = interactions.values[0][above], interactions.standard_errors[0][above]
            add(OURS, values)
            bound = 1.96 * errors + (EXACT * size) ** 0.5
            self.covered[key].append(float((np.abs(values - truth) <= bound).mean()))
            for name, peer in self.peers.items():
                if name not in SLOW or seed == 0:
                    add(name, with_at_least(peer, game, 2 * (budget // 2), seed))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each family and number of evaluations."""
        rows = []
        for (family, times), errors in self.errors.items():
            mean = {name: float(np.mean(each)) for name, each in errors.items()}
            ours = mean.pop(OURS)
            best = min(mean, key=lambda name: mean[name])
            row: dict[str, Any] = {"index": self.index, "family": family, "evaluations": f"{times}d"}
            row |= {"error": f"{ours:.2g}", "of the best peer": f"{ours / mean[best]:.2f}", "best peer": best}
            row |= {"coverage": f"{np.mean(self.covered[family, times]):.0%}"}
            rows.append(row | {name: f"{each:.2g}" for name, each in mean.items()})
        return rows


def summary(rows: list[dict[str, Any]]) -> str:
    """Summarise the ratios of errors to those of the best peers, and the coverage."""
    shares = np.array([float(row["of the best peer"]) for row in rows])
    covered = np.array([float(row["coverage"][:-1]) for row in rows])
    return (
        f"{len(rows)} rows: at most half of the best peer's error in {(shares <= 0.5).sum()}, within 1.05 in "
        f"{(shares <= 1.05).sum()}, median {np.median(shares):.2f}; coverage 90% or more in "
        f"{(covered >= 90).sum()}, mean {covered.mean():.0f}%"
    )


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--long", type=int, default=2, help="reviews of 34 words")
    parser.add_argument("--index", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--times", type=int, nargs="+", default=list(TIMES), help="evaluations per feature")
    parser.add_argument("--first", type=int, help="use only the first games; by default all")
    arguments = parser.parse_args()
    known, rows = list(games())[: arguments.first], []
    for index in arguments.index:
        results = Results(index)
        for game in known:
            for times in arguments.times:
                results.measure(game, pairs_of(game, index), times, arguments.seeds)
        for game in long_games(arguments.long if index == "sii" else 0):
            print(f"long review: error of the truth {game.truth_error / (game.truth**2).mean():.2g}")
            for times in arguments.times:
                if times <= 20:
                    results.measure(game, game.truth, times, 1)
        print(f"{index}: {summary(results.rows())}", flush=True)
        rows += results.rows()
    names = ("index", "family", "evaluations", "error", "of the best peer", "best peer", "coverage")
    save([{name: row[name] for name in names} for row in rows], None)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
