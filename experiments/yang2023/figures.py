"""Draw Figure 1, one review explained twice, and Figures 3 to 5, a panel for each set.

python experiments/yang2023/figures.py --results RESULTS
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from collect import WHOLE, Results, interval
from measure import SHARES
from sets import SETS
from stages import PROPORTIONS

from pertinent.array_types import Floats
from pertinent.diagnostics.stability import SeedAgreement, Stability
from pertinent.rendering.colours import Look
from pertinent.rendering.plots import LINES, MARKERS, QUIET, add_colour_bar, new_figure
from pertinent.stats import Interval

SAMPLED = ("KS-25", "KS-200", "KS-2000", "KS-8000", "SVS-25", "shapley-200", "shapley-500", "shapley-2000")
MASKED = ("KS-25", "KS-200", "KS-2000", "SVS-25", "shapley-200", "amortized", "FastSHAP")
MEASURES = ("spearman", "top_5", "top_10", "mse", "evaluations")
LINE = 96
"""Characters in a line of a text that is drawn."""
TOP = 5
"""Tokens of the largest scores, which are outlined."""


def draw(axes: Any, number: int, label: str, x: Sequence[float], found: Sequence[Interval]) -> None:
    """A line with 95% intervals."""
    mean, low, high = (np.array([getattr(each, of) for each in found]) for of in ("mean", "low", "high"))
    whiskers = np.nan_to_num(np.stack([mean - low, high - mean])).clip(0.0)
    style = {"color": (*LINES, QUIET)[number], "marker": MARKERS[number % len(MARKERS)]}
    axes.errorbar(x, mean, yerr=whiskers, ms=4.5, lw=1.4, elinewidth=0.9, label=label, **style)


def by_length(results: Results, which: str, method: str) -> Stability | None:
    """A method's agreement between seeds, as `pertinent.stability` gives it."""
    columns = {name: results.column(which, f"method-{method}", name) for name in ("features", *MEASURES)}
    known = {name: values for name, values in columns.items() if values is not None}
    if len(known) < len(columns):
        return None
    rows = []
    for i, length in enumerate(known["features"]):
        measures: dict[str, Any] = {name: float(known[name][i]) for name in MEASURES}
        rows.append(SeedAgreement(i, int(length), seconds=np.nan, **measures))
    fields: dict[str, Any] = {"removal": "attention-mask", "features": "tokens", "scale": "logit"}
    return Stability(rows=tuple(rows), method=method, seeds=(), **fields)


def figure_3(axes: Any, results: Results, which: str) -> None:
    """Stability against the length of texts."""
    found = {name: by_length(results, which, name) for name in SAMPLED}
    known = {name: own for name, own in found.items() if own is not None}
    ticks = {each.low: str(each) for own in known.values() for each in own.by_length}
    places = {low: place for place, low in enumerate(sorted(ticks))}
    for number, (name, own) in enumerate(known.items()):
        lengths = [each for each in own.by_length if each.measures["spearman"].n]
        shift = 0.05 * (number - (len(known) - 1) / 2)
        x = [places[each.low] + shift for each in lengths]
        draw(axes, SAMPLED.index(name), name, x, [each.measures["spearman"] for each in lengths])
    axes.set_xticks(range(len(ticks)), [ticks[low] for low in sorted(ticks)])
    axes.set_xlabel("number of tokens", fontsize=9, color=QUIET)
    axes.set_ylabel("Spearman's correlation between seeds", fontsize=9, color=QUIET)


def figure_4(axes: Any, results: Results, which: str) -> None:
    """The amortized model against the number of its training texts."""
    lines = {"with the reference": "reference spearman", "with SVS-25": "svs spearman"}
    lines |= {"between trainings": "spearman"}
    for number, (label, measure) in enumerate(lines.items()):
        known = [results.curve(which, share) for share in (*PROPORTIONS, WHOLE)]
        columns = [(results.column(which, stage, measure), texts) for stage, texts in known]
        points = [(texts, interval(column)) for column, texts in columns if column is not None and texts]
        if points:
            draw(axes, number, label, *map(list, zip(*points, strict=True)))
    axes.set_xlabel("training texts", fontsize=9, color=QUIET)
    axes.set_ylabel("Spearman's correlation", fontsize=9, color=QUIET)


def figure_5(axes: Any, results: Results, which: str) -> None:
    """Accuracy as the most important tokens are masked, as in the paper, on the same texts for all."""
    shares = ("0", *map(str, SHARES))
    found: dict[str, list[Floats]] = {}
    for name in MASKED:
        rows = [results.right(which, f"method-{name}", "pad-token", share) for share in shares]
        known = [row for row in rows if row is not None]
        found |= {name: known} if known else {}
    texts = min((len(rows[0]) for rows in found.values()), default=0)
    for name, known in found.items():
        number = MASKED.index(name)
        x = [100 * float(share) + 0.12 * (number - 3) for share in shares]
        draw(axes, number, name, x, [interval(100 * row[:texts]) for row in known])
    axes.set_xlabel("% of tokens masked, the most important first", fontsize=9, color=QUIET)
    axes.set_ylabel("accuracy, %", fontsize=9, color=QUIET)


def laid_out(tokens: Sequence[str], width: int) -> list[tuple[int, int]]:
    """The line and the first column of each token, if a line has `width` characters."""
    places, line, column = [], 0, 0
    for token in tokens:
        if column and column + len(token) > width:
            line, column = line + 1, 0
        places.append((line, column))
        column += len(token) + 1
    return places


def figure_1(results: Results, out: Path) -> None:
    """One review, explained by KS-200 with two seeds: tokens in the colours of their scores."""
    found = results.stage("imdb", "example")
    if found is None:
        return
    tokens, look = found["tokens"], Look()
    places = laid_out(tokens, LINE)
    lines = places[-1][0] + 1
    largest = float(np.abs(found["scores"]).max())
    figure = new_figure(9.6, 0.25 * len(found["scores"]) * (lines + 1.6) + 0.5)
    panels = figure.subplots(len(found["scores"]), 1)
    for seed, (axes, scores) in enumerate(zip(panels, found["scores"], strict=True)):
        first = set(np.argsort(scores)[::-1][:TOP].tolist())
        for i, (token, (line, column)) in enumerate(zip(tokens, places, strict=True)):
            shade = look.scale()(0.5 + scores[i] / largest / 2)
            edge = "#1b1d22" if i in first else "none"
            box = {"facecolor": shade, "edgecolor": edge, "alpha": look.opacity, "pad": 1.2, "lw": 0.9}
            axes.text(column, -line, token, family="monospace", fontsize=8.8, va="center", bbox=box)
        axes.set(xlim=(0, LINE + 1), ylim=(-lines + 0.4, 0.6))
        axes.set_title(f"KS-200, seed {seed}", loc="left", fontsize=9, color=QUIET)
        axes.axis("off")
    add_colour_bar(figure, largest, "score, log-odds", look=look, is_clipped=False)
    figure.savefig(out / "figure1.png", dpi=150)
    print("figure1.png", flush=True)


FIGURES: dict[str, Callable[[Any, Results, str], None]] = {
    "figure3": figure_3,
    "figure4": figure_4,
    "figure5": figure_5,
}


def main() -> None:
    """Draw each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    results = Results(arguments.results)
    figure_1(results, arguments.out)
    for name, fill in FIGURES.items():
        figure = new_figure(4.0 * len(results.sets) + 1.2, 3.6)
        panels = np.atleast_1d(figure.subplots(1, len(results.sets)))
        for axes, which in zip(panels, results.sets, strict=True):
            fill(axes, results, which)
            axes.set_title(SETS[which].name, loc="left", fontsize=10)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=8)
        lines = {
            label: line
            for axes in panels
            for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(lines.values(), lines.keys(), fontsize=8, frameon=False, loc="outside right center")
        figure.savefig(arguments.out / f"{name}.png", dpi=150)
        print(f"{name}.png", flush=True)


if __name__ == "__main__":
    main()
