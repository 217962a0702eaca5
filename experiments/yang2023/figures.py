"""Figure 1, one review explained twice, and Figures 3 to 5, a panel for each data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments.shared.figures import draw_interval_curve, outside_legend, tidy
from experiments.shared.intervals import interval
from experiments.yang2023.measure import SHARES
from experiments.yang2023.measuring import PROPORTIONS
from experiments.yang2023.results import WHOLE, Results
from experiments.yang2023.sets import SETS
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
"""Number of tokens of the largest scores, which are outlined."""


def draw(axes: Any, number: int, label: str, x: Sequence[float], points: Sequence[Interval]) -> None:
    """Draw a line with 95% intervals."""
    style = {"color": (*LINES, QUIET)[number], "marker": MARKERS[number % len(MARKERS)]}
    draw_interval_curve(axes, x, points, label=label, ms=4.5, lw=1.4, elinewidth=0.9, **style)


def by_length(results: Results, dataset: str, method: str) -> Stability | None:
    """Return a method's agreement between seeds, as `pertinent.stability` does."""
    columns = {name: results.column(dataset, f"method-{method}", name) for name in ("features", *MEASURES)}
    known = {name: values for name, values in columns.items() if values is not None}
    if len(known) < len(columns):
        return None
    rows = []
    for i, length in enumerate(known["features"]):
        measures: dict[str, Any] = {name: float(known[name][i]) for name in MEASURES}
        rows.append(SeedAgreement(i, int(length), seconds=np.nan, **measures))
    fields: dict[str, Any] = {"removal": "attention-mask", "features": "tokens", "scale": "logit"}
    return Stability(rows=tuple(rows), method=method, seeds=(), **fields)


def figure_3(axes: Any, results: Results, dataset: str) -> None:
    """Draw stability against the length of texts."""
    by_method = {name: by_length(results, dataset, name) for name in SAMPLED}
    known = {name: own for name, own in by_method.items() if own is not None}
    ticks = {each.low: str(each) for own in known.values() for each in own.by_length}
    positions = {low: position for position, low in enumerate(sorted(ticks))}
    for number, (name, own) in enumerate(known.items()):
        lengths = [each for each in own.by_length if each.measures["spearman"].n]
        shift = 0.05 * (number - (len(known) - 1) / 2)
        x = [positions[each.low] + shift for each in lengths]
        draw(axes, SAMPLED.index(name), name, x, [each.measures["spearman"] for each in lengths])
    axes.set_xticks(range(len(ticks)), [ticks[low] for low in sorted(ticks)])
    axes.set_xlabel("number of tokens", fontsize=9, color=QUIET)
    axes.set_ylabel("Spearman's correlation between seeds", fontsize=9, color=QUIET)


def figure_4(axes: Any, results: Results, dataset: str) -> None:
    """Draw the amortized model against the number of its training texts."""
    lines = {"with the reference": "reference spearman", "with SVS-25": "svs spearman"}
    lines |= {"between trainings": "spearman"}
    for number, (label, measure) in enumerate(lines.items()):
        stages = [results.curve(dataset, share) for share in (*PROPORTIONS, WHOLE)]
        columns = [(results.column(dataset, stage, measure), texts) for stage, texts in stages]
        points = [
            (texts, own) for column, texts in columns if texts and (own := interval(column)) is not None
        ]
        if points:
            draw(axes, number, label, *map(list, zip(*points, strict=True)))
    axes.set_xlabel("training texts", fontsize=9, color=QUIET)
    axes.set_ylabel("Spearman's correlation", fontsize=9, color=QUIET)


def figure_5(axes: Any, results: Results, dataset: str) -> None:
    """Draw accuracy as the most important tokens are masked, as in the paper, on the same texts for all."""
    shares = ("0", *map(str, SHARES))
    rows: dict[str, list[Floats]] = {}
    for name in MASKED:
        values = [results.right(dataset, f"method-{name}", "pad-token", share) for share in shares]
        known = [own for own in values if own is not None]
        rows |= {name: known} if known else {}
    texts = min((len(own[0]) for own in rows.values()), default=0)
    for name, own in rows.items():
        number = MASKED.index(name)
        x = [100 * float(share) + 0.12 * (number - 3) for share in shares]
        points = [point for row in own if (point := interval(100 * row[:texts])) is not None]
        draw(axes, number, name, x, points)
    axes.set_xlabel("% of tokens masked, the most important first", fontsize=9, color=QUIET)
    axes.set_ylabel("accuracy, %", fontsize=9, color=QUIET)


def layout(tokens: Sequence[str], width: int) -> list[tuple[int, int]]:
    """Return the line and the first column of each token, if a line has `width` characters."""
    positions, line, column = [], 0, 0
    for token in tokens:
        if column and column + len(token) > width:
            line, column = line + 1, 0
        positions.append((line, column))
        column += len(token) + 1
    return positions


def figure_1(results: Results) -> Any:
    """Return a review explained by KS-200 with two seeds: tokens in the colours of their scores."""
    record = results.stage("imdb", "example")
    if record is None:
        return None
    tokens, look = record["tokens"], Look()
    positions = layout(tokens, LINE)
    lines = positions[-1][0] + 1
    largest = float(np.abs(record["scores"]).max())
    figure = new_figure(9.6, 0.25 * len(record["scores"]) * (lines + 1.6) + 0.5)
    panels = figure.subplots(len(record["scores"]), 1)
    for seed, (axes, scores) in enumerate(zip(panels, record["scores"], strict=True)):
        top = set(np.argsort(scores)[::-1][:TOP].tolist())
        for i, (token, (line, column)) in enumerate(zip(tokens, positions, strict=True)):
            shade = look.scale()(0.5 + scores[i] / largest / 2)
            edge = "#1b1d22" if i in top else "none"
            box = {"facecolor": shade, "edgecolor": edge, "alpha": look.opacity, "pad": 1.2, "lw": 0.9}
            axes.text(column, -line, token, family="monospace", fontsize=8.8, va="center", bbox=box)
        axes.set(xlim=(0, LINE + 1), ylim=(-lines + 0.4, 0.6))
        axes.set_title(f"KS-200, seed {seed}", loc="left", fontsize=9, color=QUIET)
        axes.axis("off")
    add_colour_bar(figure, largest, "score, log-odds", look=look, is_clipped=False)
    return figure


def panels(fill: Callable[[Any, Results, str], None], results: Results) -> Any:
    """Return a figure with a panel for each data set."""
    figure = new_figure(4.0 * len(results.sets) + 1.2, 3.6)
    for axes, dataset in zip(np.atleast_1d(figure.subplots(1, len(results.sets))), results.sets, strict=True):
        fill(axes, results, dataset)
        axes.set_title(SETS[dataset].name, loc="left", fontsize=10)
        tidy(axes)
    outside_legend(figure)
    return figure
