"""Coverage of 95% intervals on small games with known values.

    OMP_NUM_THREADS=1 python benchmarks/interval_coverage.py [--seeds 100] [--methods banzhaf shapley ...]
        [--games AND OR ...] [--most-evaluations 300] [--json out.json] [--before old.json]

A cell is a game, a number of features and a budget from d + 2 to 2^d − 2. Prints every cell in which fewer
than 85% of the stated intervals of ± 1.96 standard errors cover the true value, and a summary per method. NaN
and infinite standard errors state no interval, and runs with a warning are not counted. With ``--before``,
also prints the median ratio of interval widths on smooth games to those of an earlier run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import new_parser

from pertinent.array_types import Floats, Masks
from pertinent.explainers.base import explainers
from pertinent.explainers.shapley.interaction_index import INDICES, exact_pairs
from pertinent.masks import all_coalitions, shapley_values_of
from pertinent.testing.games import RecordedGame, play

METHODS = ("banzhaf", "shapley", "kernel-shap", "shapley-sampling", "shapley-interactions")
FEATURES = (4, 5, 6, 7, 8, 10, 12)
LEAST_COVERAGE = 0.85
ROUNDING = 1e-7
SMOOTH = ("additive", "smooth", "pairs")

Values = Callable[[Masks], Any]


def _sparse(d: int) -> Values:
    rng = np.random.default_rng(d)
    members = [rng.choice(d, rng.integers(1, 5), replace=False) for _ in range(d)]
    weights = rng.normal(size=d)
    return lambda masks: np.stack([masks[:, m].all(axis=1) for m in members], axis=1) @ weights


def _smooth(d: int) -> Values:
    weights = np.random.default_rng(d).normal(size=d)
    return lambda masks: 1 / (1 + np.exp(0.5 - masks @ weights))


def _pairs(d: int) -> Values:
    rng = np.random.default_rng(d)
    single, pair = rng.normal(size=d), np.triu(rng.normal(size=(d, d)), 1) / d**0.5
    return lambda masks: masks @ single + np.einsum("ni,ij,nj->n", masks, pair, masks)


def _xor_pairs(masks: Masks) -> Floats:
    half = masks.shape[1] // 2
    return np.asarray((masks[:, :half] ^ masks[:, half : 2 * half]).mean(axis=1))


def _voting(d: int) -> Values:
    votes = np.random.default_rng(d).integers(1, 10, size=d)
    return lambda masks: np.asarray(masks @ votes > 0.6 * votes.sum())


GAMES: dict[str, Callable[[int], Values]] = {
    "AND": lambda _: lambda masks: masks.all(axis=1),
    "AND of 3": lambda _: lambda masks: masks[:, :3].all(axis=1),
    "OR": lambda _: lambda masks: masks.any(axis=1),
    "majority": lambda d: lambda masks: masks.sum(axis=1) > d / 2,
    "voting": _voting,
    "gloves": lambda d: (
        lambda masks: np.minimum(masks[:, : d // 3].sum(axis=1), masks[:, d // 3 :].sum(axis=1))
    ),
    "parity": lambda _: lambda masks: masks.sum(axis=1) % 2,
    "XOR pairs": lambda _: _xor_pairs,
    "additive": lambda d: lambda masks: masks @ np.random.default_rng(d).normal(size=d),
    "sparse": _sparse,
    "pairs": _pairs,
    "smooth": _smooth,
}


def budgets(d: int, most: int) -> list[int]:
    """Return the budgets of a grid row, from d + 2 to 2^d − 2."""
    grid = {d + 2, 2 * d, 2 * d + 2, 3 * d, 5 * d, 10 * d, 2 ** (d - 1), 2**d - 2}
    return sorted(budget for budget in grid if budget <= min(most, 2**d - 2))


def true_values(method: str, table: Floats) -> Floats:
    """Return the values that a method estimates, of features or of pairs of features."""
    if method == "shapley-interactions":
        d = len(table).bit_length() - 1
        return exact_pairs(INDICES["k-sii"], table[:, None])[..., 0][np.triu_indices(d, 1)]
    return banzhaf_of(table) if method == "banzhaf" else shapley_values_of(table)


def banzhaf_of(table: Floats) -> Floats:
    """Return the Banzhaf values of a game from its values for all masks in binary order."""
    signs = np.where(all_coalitions(len(table).bit_length() - 1), 2.0, -2.0)
    return np.asarray(signs.T @ table / len(table))


def measure(method: str, game: str, d: int, budget: int, seeds: int) -> dict[str, Any]:
    """Return the coverage of one cell."""
    table = GAMES[game](d)(all_coalitions(d)).astype(np.float64)
    truth = true_values(method, table)
    explainer, span = explainers.make(method), float(np.ptp(table))
    scores, errors, warned = [], [], []
    for seed in range(seeds):
        played = RecordedGame(d, lambda masks: table[masks @ (1 << np.arange(d))][:, None])
        finding = play(explainer, played, budget=budget, sparsities=(0.5,), seed=seed)
        if finding.interactions is None:
            assert finding.scores is not None
            assert finding.standard_errors is not None
            scores.append(finding.scores[0])
            errors.append(finding.standard_errors[0])
        else:
            pairs = np.triu_indices(d, 1)
            scores.append(finding.interactions.values[0][pairs])
            errors.append(finding.interactions.standard_errors[0][pairs])
        warned.append(bool(finding.warnings))
    half_widths = 1.96 * np.array(errors)
    stated = np.isfinite(half_widths) & ~np.array(warned)[:, None]
    covered = np.abs(np.array(scores) - truth) <= half_widths + ROUNDING * span
    return {
        "method": method,
        "game": game,
        "d": d,
        "budget": budget,
        "coverage": round(float(covered[stated].mean()), 4) if stated.any() else None,
        "stated": round(float(stated.mean()), 4),
        "overall": round(float((covered | ~stated).mean()), 4),
        "width": float(np.median(half_widths[stated])) / span if stated.any() else None,
        "widest": float(half_widths[stated].max()) / span if stated.any() else None,
    }


def is_wrong(cell: dict[str, Any]) -> bool:
    """Return whether too few of the stated intervals cover the true value."""
    return cell["coverage"] is not None and cell["coverage"] < LEAST_COVERAGE


def summarize(cells: list[dict[str, Any]], before: list[dict[str, Any]]) -> None:
    """Print one line per method."""
    old = {_key(cell): cell["width"] for cell in before}
    for method in dict.fromkeys(cell["method"] for cell in cells):
        of_method = [cell for cell in cells if cell["method"] == method]
        print(
            f"{method}: {sum(map(is_wrong, of_method))} of {len(of_method)} cells below {LEAST_COVERAGE:.0%} "
            f"of stated intervals, {sum(cell['overall'] < LEAST_COVERAGE for cell in of_method)} of all; "
            f"{np.mean([cell['stated'] for cell in of_method]):.0%} of intervals stated"
        )
        ratios = [
            cell["width"] / old[_key(cell)]
            for cell in of_method
            if cell["game"] in SMOOTH and old.get(_key(cell)) and cell["width"]
        ]
        if ratios:
            low, middle, high = np.quantile(ratios, [0.1, 0.5, 0.9])
            print(f"    widths on {', '.join(SMOOTH)}: {middle:.2f} of before (80%: {low:.2f} to {high:.2f})")


def _key(cell: dict[str, Any]) -> tuple[Any, ...]:
    return cell["method"], cell["game"], cell["d"], cell["budget"]


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=list(GAMES), metavar="GAME")
    parser.add_argument("--most-evaluations", type=int, default=300)
    parser.add_argument("--before", type=Path, help="the JSON file of an earlier run, to compare widths with")
    arguments = parser.parse_args()
    cells = []
    for method in arguments.methods:
        least = explainers.make(method).min_budget
        for game in arguments.games:
            for d in FEATURES:
                for budget in budgets(d, arguments.most_evaluations):
                    if budget >= least(d):
                        cells.append(measure(method, game, d, budget, arguments.seeds))
                        if is_wrong(cells[-1]):
                            print(cells[-1], flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(cells, indent=1))
    summarize(cells, json.loads(arguments.before.read_text()) if arguments.before else [])


if __name__ == "__main__":
    main()
